"""What a model finds in an image, drawn over it: a kernel from an image to an image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dala.devices import using
from dala.kernels.base.builtin import DeclaredKernel
from dala.kernels.base.limits import SHARE
from dala.kernels.base.parameters import choice, declare, number, other
from dala.kernels.base.shapes import require_alike
from dala.kernels.image.images import require_image
from dala.ml.catalog.entries import MODELS
from dala.ml.models.choice import chosen_model
from dala.ml.results.drawing import draw_alike
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params
from dala.runtime.pipelines.composite import HostCallKernel, Stage
from dala.runtime.profiling.profile import copy

_DOC = """What a model finds in the image, drawn over it: boxes, key points, masks or its label

`model` is a name of the catalog, an ONNX file, which is fed and read as the model `like` is, or
one that was loaded. `threshold`, 0 to 1, is how sure it has to be.
"""
_PARAMS = declare(
    model=other("model", "what finds things: a name of the catalog, an ONNX file, or a model"),
    threshold=number(
        "how sure it has to be; the model's own unless given", None, usual=(0, 1), limit=SHARE
    ),
    like=choice("the model that an ONNX file is fed and read like", *MODELS, default=None),
)


def found(image: Buffer, params: Params) -> Any:
    """What the model of the parameters finds in an image; None where there are no pixels."""
    model = chosen_model("detect", params["model"], params["like"])
    sure = params["threshold"]
    options = {} if sure is None else {"threshold": sure}
    return None if 0 in image.shape else model(image, **options)


def draw(results: Any, image: Buffer, output: Buffer) -> None:
    """Write the image into the output, with the results drawn over it."""
    device = image.memory.device
    with using(device):
        listed = results if isinstance(results, list) else [results]
        made = image if results is None else draw_alike(listed, image)
    copy(device, made.memory, output.memory)


class _Annotate(HostCallKernel):
    """Runs a model and draws on the device of its buffers; only the model itself is elsewhere."""

    def __init__(self) -> None:
        super().__init__("detect", ("image",), _nothing)

    def _compute(self, inputs: Sequence[Buffer], output: Buffer, params: Params) -> None:
        (image,) = inputs
        draw(found(image, params), image, output)

    def elsewhere(self, output: Buffer) -> str:
        if output.is_host:
            return ""
        return (
            f"what it finds is read from {output.device} by the host, which computes the model "
            f"itself, too, unless dala's kernels do"
        )


def _nothing(*_: Any, **__: Any) -> None:
    """What a model finds in the image, drawn over it."""


_annotate = _Annotate()


def _expand(inputs: Sequence[Buffer], output: Buffer, params: dict[str, Any]) -> Iterator[Stage]:
    (image,) = inputs
    require_image("detect", "the image", image)
    require_image("detect", "the output", output)
    require_alike("detect", image, output)
    chosen_model("detect", params["model"], params["like"])
    yield Stage(_annotate, inputs, output, params)


DETECT = DeclaredKernel("detect", _DOC.strip(), ("image",), _PARAMS, _expand, "models")
