"""Filters on the frames of a video."""
