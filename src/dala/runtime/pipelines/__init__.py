"""Stages planned together, composite kernels, and pipelines as documents."""
