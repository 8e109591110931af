"""Text in images, in one call: found, cut out, and read."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.errors import ModelError
from dala.images.frames import frame_of, levels_of, with_channels
from dala.ml.models.loading import load_model
from dala.ml.models.model import Model
from dala.ml.results.results import Results, TextLine
from dala.ml.tasks.text_lines import cut_line, line_tensor, read_line

LEAST_SCORE = 0.5
"""How sure lines have to be of which nothing else is said."""


def read_text(
    image: Any,
    *,
    threshold: float = LEAST_SCORE,
    finder: Model | None = None,
    reader: Model | None = None,
) -> Results[TextLine]:
    """The lines of text in an image, from top to bottom: their text, how sure it is, their boxes.

    An image is an array, a Pillow image or a Buffer. Lines may be turned; Chinese and English are
    read. `finder` and `reader` are models like text_detection and text_recognition, which are
    loaded, and fetched when they are first used, unless given. `threshold` is how sure a text has
    to be.
    """
    find = load_model("text_detection") if finder is None else finder
    read = load_model("text_recognition") if reader is None else reader
    pixels = with_channels(levels_of(np.asarray(frame_of("read_text", image).pixels)), "rgb")
    characters = _characters(read)
    lines = Results[TextLine]()
    for region in find(image):
        line = cut_line(pixels, np.array(region.corners))
        (shares,) = read.outputs([line_tensor(line)]).values()
        if shares.ndim != 3 or shares.shape[2] != len(characters) + 1:
            raise ModelError(
                f"{read.name}: expected probabilities (1, n, {len(characters) + 1}), one for each "
                f"character and one for none, but it gives {shares.shape}."
            )
        text, score = read_line(shares[0], characters)
        if text.strip() and score >= threshold:
            lines.append(TextLine(text, score, region.box, region.corners or ()))
    return lines


def _characters(model: Model) -> list[str]:
    """The characters that a recognizer knows, which stand in its file, and the space."""
    listed = model.metadata.get("character")
    if not listed:
        raise ModelError(
            f"{model.name}: its file does not say which characters it reads: they are in the "
            f"metadata of such models, as 'character'."
        )
    return [*listed.split("\n"), " "]
