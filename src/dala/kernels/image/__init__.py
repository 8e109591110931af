"""Kernels that make images of images: colours, neighbourhoods, geometry, layers, pixel formats."""

from dala.kernels.image import (  # noqa: F401
    backgrounds,
    beauty,
    blurs,
    colours,
    compositing,
    geometry,
    grading,
    lookup_tables,
    medians,
    neighbourhoods,
    patterns,
    pixel_formats,
    preprocess,
    resizing,
    smoothing,
)
