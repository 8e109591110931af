"""The built-in kernels, written in the kernel language itself."""

from dala.kernels import image, tensor, vision  # noqa: F401
