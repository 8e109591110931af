"""The median of the pixels around each, found by minima and maxima alone: vectors of any dtype."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations

from dala.ir.nodes import Border
from dala.kernels.base import language
from dala.kernels.base.builtin import Given, Inputs, composite
from dala.kernels.base.limits import Limit
from dala.kernels.image.images import checked_border
from dala.kernels.image.parameters import AROUND, radius_param
from dala.kernels.image.premultiplied import premultiplied
from dala.lang.lower import Definition
from dala.lang.source import from_text
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

SORTING = {
    3: ((0, 1), (1, 2), (0, 1)),
    5: ((0, 1), (3, 4), (2, 4), (2, 3), (0, 3), (0, 2), (1, 4), (1, 3), (1, 2)),
}
"""Which of so many values to compare, and exchange if need be, so that they are in order."""


@composite(
    "image",
    group="smoothing",
    radius=radius_param(
        1, (1, 2), limit=Limit(1, 2, advice=": a larger one can be had by filtering again")
    ),
    **AROUND,
)
@premultiplied
def median(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The median of the (2 · radius + 1)² pixels around each, by channel; radius is 1 or 2"""
    border = checked_border("median", inputs[0], output, params)
    yield Stage(_median_kernel(border, params["radius"], len(inputs[0].shape) == 2), inputs, output)


@cache
def _median_kernel(border: Border, radius: int, is_gray: bool) -> Kernel:
    text = _text(radius, ".r" if is_gray else "")
    return Kernel(
        "median", "", lambda: Definition(from_text(text, {"dala": language}, "<median>"), border)
    )


def _text(radius: int, channel: str) -> str:
    """The kernel as a text: every read, then the minima and maxima that matter."""
    size = 2 * radius + 1
    network = Network(size)
    lines = [
        f"v{i * size + k} = x[i + {k - radius}, j + {i - radius}]{channel}"
        for i in range(size)
        for k in range(size)
    ]
    lines += [f"v{made} = {name}(v{a}, v{b})" for made, (name, a, b) in network.needed().items()]
    body = "\n    ".join(["i, j = dala.position(2)", "x = image.levels", *lines])
    return f"def median(image: dala.Image):\n    {body}\n    return v{network.median}\n"


class Network:
    """Comparisons that find the median of size² values, and what is known of their order.

    Values are numbers; those of a column of the window follow each other. A comparison of two makes
    two new ones, the lesser and the greater. Each of these is below and above all that follows from
    what was known; what is above more than half of all, or below, cannot be the median.
    """

    def __init__(self, size: int) -> None:
        self._made: dict[int, tuple[str, int, int]] = {}
        self._count = size * size
        self._above: dict[int, set[int]] = {i: set() for i in range(size * size)}
        """For each value that is left, those of them that are known to be no less."""
        columns = [self._sorted([i * size + k for k in range(size)]) for i in range(size)]
        rows = [
            self._ranked(list(row), downwards=2 * k > size)
            for k, row in enumerate(zip(*columns, strict=True))
        ]
        places = {(i, k): rows[i][k] for i in range(size) for k in range(size)}
        # Columns stay sorted when rows are sorted, which single comparisons do not tell.
        self._above = {
            value: {places[m, n] for m, n in places if m >= i and n >= k and (m, n) != (i, k)}
            for (i, k), value in places.items()
        }
        self.median = self._select((size * size + 1) // 2)

    def needed(self) -> dict[int, tuple[str, int, int]]:
        """What makes each value that matters, in order: the min or max of which others."""
        wanted = {self.median}
        for made in sorted(self._made, reverse=True):
            if made in wanted:
                wanted |= set(self._made[made][1:])
        return {made: how for made, how in self._made.items() if made in wanted}

    def _compare(self, a: int, b: int) -> tuple[int, int]:
        """The lesser and the greater of two values."""
        if b in self._above[a]:
            return a, b
        if a in self._above[b]:
            return b, a
        low, high = self._count, self._count + 1
        self._count += 2
        self._made[low], self._made[high] = ("min", a, b), ("max", a, b)
        over_a, over_b = self._above.pop(a), self._above.pop(b)
        for others in self._above.values():
            found = others & {a, b}
            # What is below one of them is below the greater; below the lesser, if below both.
            others.difference_update(found)
            others.update((high,) if len(found) == 1 else (low, high) if found else ())
        self._above[low] = over_a | over_b | {high}
        self._above[high] = over_a & over_b
        return low, high

    def _sorted(self, row: list[int]) -> list[int]:
        """The values in order, by the fewest comparisons."""
        for a, b in SORTING[len(row)]:
            row[a], row[b] = self._compare(row[a], row[b])
        return row

    def _ranked(self, row: list[int], *, downwards: bool) -> list[int]:
        """The values in order, the least found first, or else the largest."""
        for last in range(len(row) - 1, 0, -1):
            for k in range(last):
                if downwards:
                    row[-2 - k], row[-1 - k] = self._compare(row[-2 - k], row[-1 - k])
                else:
                    row[k], row[k + 1] = self._compare(row[k], row[k + 1])
        return row

    def _select(self, rank: int) -> int:
        """The value of a rank, counted from 1, of those that are left."""
        while True:
            rank = self._discard(rank)
            if len(self._above) == 1:
                return next(iter(self._above))
            self._compare(*self._most_telling())

    def _below(self, value: int) -> int:
        return sum(value in others for others in self._above.values())

    def _discard(self, rank: int) -> int:
        """Drop what cannot have the rank; the rank among those that are left."""
        while True:
            total = len(self._above)
            for value, others in self._above.items():
                is_low, is_high = len(others) > total - rank, self._below(value) >= rank
                if is_low or is_high:
                    del self._above[value]
                    for left in self._above.values():
                        left.discard(value)
                    rank -= is_low
                    break
            else:
                return rank

    def _most_telling(self) -> tuple[int, int]:
        """Two values whose order is not known, and which are nearest to being dropped."""
        unknown = [
            (a, b)
            for a, b in combinations(self._above, 2)
            if b not in self._above[a] and a not in self._above[b]
        ]
        return max(
            unknown,
            key=lambda pair: max(
                len(self._above[pair[0]] | self._above[pair[1]]),
                sum(bool(others & set(pair)) for others in self._above.values()),
            ),
        )
