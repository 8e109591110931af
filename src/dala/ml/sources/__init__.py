"""Where the weights of the catalog come from, and where they are kept once converted."""

from __future__ import annotations

from dala.ml.sources.fetching import fetch, read

__all__ = ["fetch", "read"]
