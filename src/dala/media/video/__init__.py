"""Video: files decoded, filtered and encoded, frame by frame."""
