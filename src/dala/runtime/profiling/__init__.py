"""What ran, when, and how long it took."""
