"""Documents of pipelines that an earlier dala wrote, with the meaning that they had then."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

VERSION = 2
"""What is written now. From 1 to 2 a size became (width, height), and the radius and the sigma of a
blur follow from each other."""
READ = (1, VERSION)

_SIZED = ("resize", "letterbox", "warp_affine", "preprocess")
_BLURS = {"blur": {"radius": 3, "sigma": 1.5}, "background_blur": {"radius": 15, "sigma": 7.5}}


def brought_up(stage: Mapping[str, Any], version: int, others: Container[Any]) -> Mapping[str, Any]:
    """Returns a stage as it is written now; `others` names kernels that are not built in."""
    kernel, params = stage.get("kernel"), stage.get("params")
    if version == VERSION or not isinstance(kernel, str) or not isinstance(params, Mapping):
        return stage
    if kernel in others:
        return stage
    made = dict(params)
    if kernel in _SIZED and isinstance(made.get("size"), list):
        made["size"] = made["size"][::-1]
    if kernel in _BLURS and ("radius" in made) != ("sigma" in made):
        made = {**_BLURS[kernel], **made}
    return {**stage, "params": made}
