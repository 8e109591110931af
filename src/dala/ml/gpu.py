"""Models: loaded by name or from a file, run on tensors or on images.

`load_model(name)(image)` gives what is in the image. A model is also a kernel, so a stage of a
pipeline: `pipeline.add(kernel=model, inputs=[tensor], output=logits)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dala.ml.catalog.entries import MODELS, find
from dala.ml.models.loading import load_model
from dala.ml.models.model import Model, Options, Seen, require_model
from dala.ml.models.prediction import predict, predict_async
from dala.ml.models.ranking import top_k
from dala.ml.models.recognition import recognize
from dala.ml.results.results import (
    Classification,
    Detection,
    Keypoint,
    Mask,
    Pose,
    Segmentation,
    TextLine,
)
from dala.ml.results.tracking import Tracker

if TYPE_CHECKING:
    from typing import Unpack

__all__ = [
    "Classification",
    "Detection",
    "Keypoint",
    "Mask",
    "Model",
    "Pose",
    "Segmentation",
    "TextLine",
    "Tracker",
    "available_models",
    "load_model",
    "model_info",
    "predict",
    "predict_async",
    "predict_frame",
    "top_k",
]


def available_models() -> list[str]:
    """Returns the names of all models of the catalog.

    >>> from dala.ml import gpu
    >>> "mobilenet_v2" in gpu.available_models()
    True
    """
    return list(MODELS)


def model_info(model: str | Model) -> dict[str, Any]:
    """Returns what is known of a model: a name of the catalog, or one that was loaded.

    Of a name: task, input, labels, license, source and hashes. Of a loaded model also its declared
    inputs and outputs, what computes it, and where.
    """
    return model.info() if isinstance(model, Model) else find(model).describe()


def predict_frame(
    model: Model[Seen],
    frame: Any,
    width: int | None = None,
    height: int | None = None,
    **options: Unpack[Options],
) -> Seen:
    """What the model sees in a frame, as `model(frame)` gives it; also of bytes with their size."""
    size = None if width is None or height is None else (width, height)
    seen: Seen = recognize(require_model("predict_frame", model), frame, options, size)
    return seen
