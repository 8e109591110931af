"""Kernels that make images of images: colors, neighborhoods, geometry, layers, pixel formats."""

from dala.kernels.image import (  # noqa: F401
    backgrounds,
    beauty,
    blurs,
    colors,
    compositing,
    geometry,
    grading,
    lookup_tables,
    medians,
    neighborhoods,
    patterns,
    pixel_formats,
    preprocess,
    resizing,
    smoothing,
)
