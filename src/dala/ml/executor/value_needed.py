"""What a layout waits for: values that decide what is computed next."""

from __future__ import annotations

from collections.abc import Sequence

from dala.ml.onnx.contents import Node


class ValueNeeded(Exception):
    """Raised by a layout that cannot go on before values were computed and read.

    With `on_host` a node is computed of them there.
    """

    def __init__(self, names: Sequence[str], on_host: Node | None = None) -> None:
        super().__init__(*names)
        self.names = tuple(names)
        self.on_host = on_host
