"""Powers: products for small integer exponents, `pow` for all others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dala.lang.arithmetic import LARGEST_LITERAL_BITS, Mismatch
from dala.lang.values import Literal, LoweredValue

if TYPE_CHECKING:
    from dala.lang.expressions import Expressions


def power(lower: Expressions, base: LoweredValue, exponent: LoweredValue) -> LoweredValue:
    """Returns `base ** exponent`."""
    if isinstance(base, Literal) and isinstance(exponent, Literal):
        return Literal(_of_literals(base.value, exponent.value))
    times = exponent.value if isinstance(exponent, Literal) else None
    if times is None or not float(times).is_integer() or not 1 <= times <= 16:
        return lower.intrinsic("pow", [base, exponent])
    result: LoweredValue | None = None
    square, left = base, int(times)
    while left:
        if left & 1:
            result = square if result is None else lower.arithmetic.binary("mul", result, square)
        left >>= 1
        if left:
            square = lower.arithmetic.binary("mul", square, square)
    assert result is not None
    return result


def _of_literals(base: float, exponent: float) -> bool | int | float:
    """Computes a power in Python; where Python raises, the IEEE 754 result."""
    are_integers = isinstance(base, int) and isinstance(exponent, int)
    if are_integers and int(base).bit_length() * exponent > LARGEST_LITERAL_BITS:
        raise Mismatch("this number is too large to write down.", "Write it as a float.")
    try:
        found = base**exponent
    except ZeroDivisionError:
        return math.inf
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    return math.nan if isinstance(found, complex) else found
