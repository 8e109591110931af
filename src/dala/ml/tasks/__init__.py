"""What a model's outputs mean: classes, boxes, poses or masks, in the pixels of the image."""

from dala.ml.tasks.decoding import decode

__all__ = ["decode"]
