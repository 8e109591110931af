"""Models on images and sound: what goes into them, and by `dala.ml.gpu` what comes out."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dala.ml import gpu as gpu
    from dala.ml.comparison.search import parity as parity
    from dala.ml.models.audio import mel_spectrogram as mel_spectrogram
    from dala.ml.models.preprocessing import preprocess as preprocess
    from dala.ml.models.session import session as session
    from dala.ml.models.speech import find_speech as find_speech
    from dala.ml.models.text import read_text as read_text

_HOMES = {
    "find_speech": "dala.ml.models.speech",
    "mel_spectrogram": "dala.ml.models.audio",
    "parity": "dala.ml.comparison.search",
    "preprocess": "dala.ml.models.preprocessing",
    "read_text": "dala.ml.models.text",
    "session": "dala.ml.models.session",
}


def __getattr__(name: str) -> Any:
    """Names are loaded when they are first used: kernels know the names of models from here."""
    if name == "gpu":
        return importlib.import_module("dala.ml.gpu")
    if name not in _HOMES:
        raise AttributeError(f"module 'dala.ml' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return ["gpu", *_HOMES]
