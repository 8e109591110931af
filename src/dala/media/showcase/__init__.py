"""Sample pictures and clips, and the gallery of filters."""
