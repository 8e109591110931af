"""The likeliest classes of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dala.kernels.tensor.normalization import softmax
from dala.kernels.tensor.ranking import top_k
from dala.ml.catalog.entries import Entry
from dala.ml.catalog.labels import labels
from dala.ml.results.placement import Placement
from dala.ml.results.results import Classification, Results
from dala.ml.tasks.options import chosen
from dala.ml.tasks.outputs import Outputs, computed, require_output
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped


def decode(
    outputs: Outputs, placement: Placement, entry: Entry, options: Mapping[str, Any]
) -> Results[Classification]:
    """Returns the likeliest classes with their probabilities, from logits."""
    count = chosen(entry, options, "top_k")["top_k"]
    names = labels(entry.labels)
    logits = require_output(outputs, entry, "logits", (1, len(names)), (1, len(names), 1, 1))
    return ranked(logits, count, names)


def ranked(logits: Buffer, count: int, names: Sequence[str]) -> Results[Classification]:
    """The `count` likeliest of as many classes as there are logits, or all if there are fewer."""
    row = reshaped(logits, (1, len(names)))
    count = min(count, len(names))
    shares = computed(softmax, [row], row.shape)
    order = computed(top_k, [shares], (1, count), "s32", {"indices": True})
    scores = np.asarray(shares)[0]
    found = np.asarray(order)[0].tolist()
    return Results(Classification(index, names[index], float(scores[index])) for index in found)
