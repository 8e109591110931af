"""What a model sees in an image: prepared, run and decoded on the image's device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dala.devices import current_device, using
from dala.errors import ArgumentError, argument, either
from dala.images.frames import frame_of, new_buffer
from dala.kernels.image.preprocess import preprocess
from dala.ml.catalog.reading import Reading
from dala.ml.models.model import Model, tensor_shape
from dala.ml.models.prediction import outputs_of
from dala.ml.results.placement import placed
from dala.ml.results.tracking import Tracker
from dala.ml.tasks import decode
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.commands.run import run_kernel

_OTHERWISE = {"text": "ml.read_text(image)", "speech": "ml.find_speech(samples)"}
"""What is called for tasks that do not begin with an image alone."""


def recognize(
    model: Model,
    image: Any,
    options: Mapping[str, Any],
    size: tuple[int, int] | None = None,
    run: Callable[[Model, Sequence[Buffer]], dict[str, Any]] = outputs_of,
) -> Any:
    """The results of the model's task for an image; bytes come with their size (width, height).

    `run` gives the outputs of the model for its inputs.
    """
    entry = require_entry(model)
    wanted = options.get("threshold")
    tracker, options = _tracker(model, entry, options)
    frame = frame_of(model.name, image, size)
    pixels = frame.pixels
    device = pixels.memory.device if isinstance(pixels, Buffer) else current_device()
    with using(device):
        tensor = new_buffer(tensor_shape(entry), entry.dtype)
        run_kernel(preprocess, [frame.buffer()], tensor, preparation(entry))
        outputs = run(model, [tensor])
        height, width = frame.shape[:2]
        resize = entry.settings.get("resize", 0)
        placement = placed((height, width), entry.shape, entry.fit, resize)
        seen = decode(outputs, placement, entry, options)
        if tracker is None or not isinstance(seen, list):
            return seen
        return tracker.update(seen, wanted)


def _tracker(
    model: Model, entry: Reading, options: Mapping[str, Any]
) -> tuple[Tracker | None, Mapping[str, Any]]:
    """What numbers the things that are found, and the options that it takes from the model.

    Boxes that are less sure than the model usually is go on with things that are known.
    """
    rest = {name: value for name, value in options.items() if name != "track"}
    tracker = options.get("track")
    if tracker is None or tracker is False:
        return None, rest
    if not isinstance(tracker, Tracker):
        raise ArgumentError(
            f"{model.name}: {argument('track')} is True, False or a Tracker, not {tracker!r}."
        )
    if entry.task not in ("detection", "pose"):
        raise ArgumentError(
            f"{model.name} is for {entry.task}: only what finds things, and where, can track them."
        )
    return tracker, {**rest, "threshold": tracker.least}


def require_entry(model: Model) -> Reading:
    """Returns the entry of the catalog that says how images go in, and what the outputs mean."""
    if model.entry is not None and model.entry.task in _OTHERWISE:
        raise ArgumentError(
            f"{model.name} is part of what {_OTHERWISE[model.entry.task]} does: call that."
        )
    if model.entry is not None:
        return model.entry
    takes = ", ".join(f"{item.name}: {item}" for item in model.takes)
    otherwise = either(f", or give predict(model, tensors) what it takes ({takes})", "")
    raise ArgumentError(
        f"{model.name} was loaded without {argument('like')}, so nothing says how an image goes "
        f"into it: load it with {argument('like', '…', 'NAME')}, a model of the catalog that it "
        f"is fed and read as{otherwise}."
    )


def preparation(entry: Reading) -> dict[str, Any]:
    """Returns the parameters of `preprocess` that make of an image what the model takes."""
    return {
        "normalize": entry.normalize,
        "layout": entry.layout,
        "fit": entry.fit,
        "fill": entry.settings.get("fill", 0.0),
        "resize": entry.settings.get("resize", 0),
        "order": entry.settings.get("order", "rgb"),
    }
