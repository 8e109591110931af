"""Writes down the transform of a few complex numbers, line by line."""

from __future__ import annotations

import cmath
import math

Complex = tuple[str, str]
"""The names of a real and an imaginary part."""

NEAR = 1e-9


class Lines:
    """Lines of a kernel, each of which names a value."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def name(self, text: str) -> str:
        self.texts.append(f"v{len(self.texts)} = {text}")
        return f"v{len(self.texts) - 1}"

    def transform(self, x: list[Complex]) -> list[Complex]:
        """Names the transform of some numbers: of their count's factors, one after the other."""
        n = len(x)
        if n <= 2:
            return x if n == 1 else [self._sum(x[0], x[1]), self._difference(x[0], x[1])]
        if n == 4:
            return self._transform_four(x)
        factor = 4 if n % 4 == 0 else next(size for size in range(2, n + 1) if n % size == 0)
        if factor == n:
            return self._transform_prime(x)
        rest = n // factor
        columns = [self.transform(x[first::rest]) for first in range(rest)]
        rows = [
            [self.turned(columns[b][k], -b * k / n) for b in range(rest)] for k in range(factor)
        ]
        made = [self.transform(row) for row in rows]
        return [made[k % factor][k // factor] for k in range(n)]

    def turned(self, x: Complex, turn: float) -> Complex:
        """Names a number turned by a part of a full turn."""
        re, im = x
        by = cmath.exp(2j * math.pi * turn)
        if abs(by - 1) < NEAR:
            return x
        if abs(by + 1) < NEAR:
            return self.name(f"-{re}"), self.name(f"-{im}")
        if abs(by.real) < NEAR:
            return (self.name(f"-{im}"), re) if by.imag > 0 else (im, self.name(f"-{re}"))
        if abs(abs(by.real) - abs(by.imag)) < NEAR:
            return self._eighth(x, math.copysign(1, by.real), math.copysign(1, by.imag))
        c, s = repr(by.real), repr(by.imag)
        return self.name(f"{re} * {c} - {im} * {s}"), self.name(f"{im} * {c} + {re} * {s}")

    def times(self, x: Complex, cosine: str, sine: str) -> Complex:
        """Names a number turned back by an angle."""
        re, im = x
        return (
            self.name(f"{re} * {cosine} + {im} * {sine}"),
            self.name(f"{im} * {cosine} - {re} * {sine}"),
        )

    def _sum(self, a: Complex, b: Complex) -> Complex:
        return self.name(f"{a[0]} + {b[0]}"), self.name(f"{a[1]} + {b[1]}")

    def _difference(self, a: Complex, b: Complex) -> Complex:
        return self.name(f"{a[0]} - {b[0]}"), self.name(f"{a[1]} - {b[1]}")

    def _eighth(self, x: Complex, c: float, s: float) -> Complex:
        """Names a number turned by an odd number of eighths."""
        re, im = x if c > 0 else (f"-{x[0]}", f"-{x[1]}")
        root = repr(math.sqrt(0.5))
        minus, plus = ("-", "+") if s > 0 else ("+", "-")
        return (
            self.name(f"({re} {minus} {x[1]}) * {root}"),
            self.name(f"({im} {plus} {x[0]}) * {root}"),
        )

    def _transform_four(self, x: list[Complex]) -> list[Complex]:
        even, odd = self.transform(x[::2]), self.transform(x[1::2])
        (re, im), (other_re, other_im) = even[1], odd[1]
        first = self.name(f"{re} + {other_im}"), self.name(f"{im} - {other_re}")
        third = self.name(f"{re} - {other_im}"), self.name(f"{im} + {other_re}")
        return [self._sum(even[0], odd[0]), first, self._difference(even[0], odd[0]), third]

    def _transform_prime(self, x: list[Complex]) -> list[Complex]:
        """Names what the sums for k and -k have in common once: cosines, and sines."""
        n, half = len(x), range(1, len(x) // 2 + 1)
        sums = [self._sum(x[j], x[-j]) for j in half]
        differences = [self._difference(x[j], x[-j]) for j in half]
        made = {0: self._weighted([x[0], *sums], [1.0] * (1 + len(half)))}
        for k in half:
            turns = [2 * math.pi * k * j / n for j in half]
            along = self._weighted([x[0], *sums], [1.0, *map(math.cos, turns)])
            re, im = self._weighted(differences, [math.sin(turn) for turn in turns])
            made[k] = self.name(f"{along[0]} + {im}"), self.name(f"{along[1]} - {re}")
            made[n - k] = self.name(f"{along[0]} - {im}"), self.name(f"{along[1]} + {re}")
        return [made[k] for k in range(n)]

    def _weighted(self, x: list[Complex], weights: list[float]) -> Complex:
        """Names a sum of weighted numbers."""
        terms = list(zip(x, weights, strict=True))
        re, im = (
            self.name(" + ".join(v[part] if w == 1 else f"{v[part]} * {w!r}" for v, w in terms))
            for part in (0, 1)
        )
        return re, im
