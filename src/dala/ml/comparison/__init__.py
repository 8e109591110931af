"""Every node of a model on every device, compared: where results first differ, and by how much."""

from __future__ import annotations

from dala.ml.comparison.search import parity

__all__ = ["parity"]
