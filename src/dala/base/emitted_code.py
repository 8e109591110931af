"""Dumps of emitted code, into the folder that `DALA_DUMP_CODE` names."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def dump_code(text: str, language: str) -> None:
    """Writes a module's text into the folder that `DALA_DUMP_CODE` names, if it is set.

    The file is named by the text's hash, so that two folders are easily compared.
    """
    folder = os.environ.get("DALA_DUMP_CODE")
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:20]
    (Path(folder) / f"{name}.{language}").write_text(text, encoding="utf-8")
