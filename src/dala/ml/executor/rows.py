"""Rows seen as planes of one row, so that layers of planes compute them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dala.ml.executor.deferred import Finish, Takes
from dala.ml.executor.epilogue import Epilogue, Shape
from dala.ml.executor.node_context import NodeContext
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage


class RowContext(NodeContext):
    """A node of (batch, channels, places) where it is laid out as one of planes."""

    def defer(
        self, shape: Sequence[int], finish: Finish, takes: Takes, *, channels_last: bool = False
    ) -> Iterator[Stage]:
        """Leave the result to be computed as planes, when it is known what becomes of it."""
        assert not channels_last
        planes = tuple(shape)

        def finish_rows(
            epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer
        ) -> Iterator[Stage]:
            lifted = [reshaped(item, _lifted(item.shape)) for item in operands]
            yield from finish(epilogue, lifted, reshaped(out, planes))

        def takes_rows(given: Sequence[Shape]) -> bool:
            return takes([_lifted(item) for item in given])

        return super().defer((*planes[:2], planes[3]), finish_rows, takes_rows)


def _lifted(shape: Shape) -> Shape:
    """A shape of at most three axes as one of four, the third of them 1."""
    padded = (1,) * (3 - len(shape)) + tuple(shape)
    return (*padded[:2], 1, padded[2])
