"""Element by element: arithmetic and the activations of neural networks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from dala.ir.types import promote
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, builtin, dispatch, helper
from dala.kernels.base.parameters import number
from dala.kernels.base.results import common_dtype
from dala.kernels.base.shapes import Shape
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.inference import broadcast
from dala.runtime.pipelines.composite import Stage

_HALF_ROOT = math.sqrt(0.5)


@builtin
def elementwise_add(a: Any, b: Any) -> Any:
    """a + b"""
    return a + b


@builtin
def elementwise_sub(a: Any, b: Any) -> Any:
    """a - b"""
    return a - b


@builtin
def elementwise_mul(a: Any, b: Any) -> Any:
    """a · b"""
    return a * b


@helper
def _divide(a: Any, b: Any) -> Any:
    return a / b


@helper
def _divide_whole(a: Any, b: Any) -> Any:
    return a // b


@dispatch("a", "b")
def elementwise_div(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """a / b; integers are rounded down, and 0 where b is 0"""
    met = promote(inputs[0].scalar, inputs[1].scalar)
    whole = met is None or met.is_integer
    yield Stage(_divide_whole if whole else _divide, inputs, output)


@elementwise_div.sized
def _quotient_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    a, b = shapes
    return broadcast("elementwise_div", [("a", a), ("b", b)])


elementwise_div.typed(common_dtype)


@builtin
def elementwise_min(a: Any, b: Any) -> Any:
    """The smaller of a and b; NaN where either is"""
    return min(a, b)


@builtin
def elementwise_max(a: Any, b: Any) -> Any:
    """The larger of a and b; NaN where either is"""
    return max(a, b)


@builtin(factor=number("what each element is multiplied by"))
def scale(x: Any, factor: dala.number) -> Any:
    """x · factor"""
    return x * factor


@builtin(slope=number("what negative elements are multiplied by"))
def relu(x: Any, slope: dala.number = 0) -> Any:
    """x where it is positive, else x · slope"""
    return x if x > 0 or x != x else (x * slope if slope != 0 else 0)


@builtin
def relu6(x: Any) -> Any:
    """x, but at least 0 and at most 6"""
    return dala.clamp(x, 0, 6)


@builtin(slope=number("what negative elements are multiplied by"))
def leaky_relu(x: Any, slope: dala.number = 0.01) -> Any:
    """x where it is positive, else x · slope"""
    return x if x > 0 or x != x else (x * slope if slope != 0 else 0)


@builtin
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))"""
    return dala.sigmoid(x)


@builtin
def tanh(x: Any) -> Any:
    """The hyperbolic tangent of x"""
    return dala.tanh(x)


@builtin
def gelu(x: Any) -> Any:
    """x · Φ(x), with the exact normal distribution Φ"""
    # Below -100 the product is 0, and -inf · 0 would be NaN.
    bounded = max(x, -100.0)
    return 0.5 * bounded * dala.erfc(bounded * -_HALF_ROOT)


@builtin
def exp(x: Any) -> Any:
    """e to the power of x"""
    return dala.exp(x)


@builtin
def log(x: Any) -> Any:
    """The natural logarithm of x"""
    return dala.log(x)


@builtin
def sqrt(x: Any) -> Any:
    """The square root of x"""
    return dala.sqrt(x)


@builtin
def abs(x: Any) -> Any:
    """The absolute value of x"""
    return dala.abs(x)


@builtin(low=number("the least that is kept"), high=number("the most that is kept"))
def clamp(x: Any, low: dala.number, high: dala.number) -> Any:
    """x, but at least low and at most high"""
    return dala.clamp(x, low, high)


@builtin
def cast(x: Any) -> Any:
    """x as the output's dtype: floats round to nearest and saturate, integers wrap"""
    return x


@builtin(value=number("what each element becomes"))
def fill(value: dala.number) -> Any:
    """The value, everywhere"""
    return value
