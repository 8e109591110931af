"""The models that are known by name."""
