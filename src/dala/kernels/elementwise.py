"""Element by element: arithmetic and the activations of neural networks."""

from __future__ import annotations

from typing import Any

import dala
from dala.kernels.builtin import builtin


@builtin
def elementwise_add(a: Any, b: Any) -> Any:
    """a + b"""
    return a + b


@builtin
def elementwise_mul(a: Any, b: Any) -> Any:
    """a · b"""
    return a * b


@builtin
def scale(x: Any, factor: dala.number) -> Any:
    """x · factor"""
    return x * factor


@builtin
def relu(x: Any, slope: dala.number = 0) -> Any:
    """x where it is positive, else x · slope"""
    return x if x > 0 else x * slope
