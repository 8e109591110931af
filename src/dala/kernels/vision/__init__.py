"""Kernels that decode what vision models give."""

from dala.kernels.vision import detection, masks, poses, suppression, yolo  # noqa: F401
