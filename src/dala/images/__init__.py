"""Images as callers hold them, and drawing on them."""
