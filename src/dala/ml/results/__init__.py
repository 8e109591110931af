"""What a model finds, in the pixels of the image."""
