"""Images as callers hold them, whatever is then done with them."""
