"""What a killed download leaves, and who takes it away; what was hashed is what is loaded."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from ml.small_models import doubling
from ml.sources.made_packages import entry_of

from dala import ml
from dala.base.record import changed
from dala.ml.models import loading
from dala.ml.sources import store as kept
from dala.ml.sources import work_folder as work

DATA = b"a converted model"
ENTRY = entry_of("one", {"one.json": b"{}"}, sha256=hashlib.sha256(DATA).hexdigest())

KILLED = """
import os, signal, sys
from pathlib import Path
from dala.ml.sources.work_folder import work_folder
with work_folder(Path(sys.argv[1])) as folder:
    (folder / "half.onnx").write_bytes(b"half")
    print("working", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def working(models):
    """A process that downloads into the folder for models."""
    models.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(models)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert running.stdout.readline() == b"working\n"
    yield running
    running.kill()
    running.communicate()


@pytest.mark.skipif(os.name == "nt", reason="locks are those of POSIX")
def test_what_a_killed_process_left_is_swept_by_the_next(models, working):
    (left,) = models.glob(".work-*")
    path = kept.store(ENTRY, DATA)
    assert left.exists()  # it is alive, and may need it
    os.kill(working.pid, signal.SIGKILL)
    working.wait()
    kept.store(ENTRY, DATA)
    assert list(models.iterdir()) == [path]


def test_what_was_left_long_ago_is_swept_where_nobody_can_be_asked(models):
    models.mkdir()
    names = (".one-0123.onnx-41-42", ".one-0123.0a1b2c3d4e5f6071.partial.onnx")
    for name in (*names, ".mine.onnx", "one.partial.onnx"):
        (models / name).write_bytes(b"half")
    kept.store(ENTRY, DATA)
    assert all((models / name).exists() for name in names)  # somebody may be writing them
    for name in names:
        os.utime(models / name, (0, 0))
    (models / ".work-0").mkdir()
    os.utime(models / ".work-0", (0, 0))
    kept.store(ENTRY, DATA)
    assert {item.name for item in models.iterdir()} == {
        kept.path_of(ENTRY).name,
        ".mine.onnx",
        "one.partial.onnx",
    }


def test_a_folder_is_gone_after_its_work_even_if_that_failed(models):
    models.mkdir()
    with pytest.raises(FileExistsError), work.work_folder(models) as folder:
        folder.mkdir()
    assert list(models.iterdir()) == []


def test_what_was_hashed_is_what_is_loaded(models, monkeypatch):
    """Somebody changes the file between the check and whatever opens it next."""
    good = doubling()
    entry = changed(ENTRY, sha256=hashlib.sha256(good).hexdigest())
    path = kept.store(entry, good)
    check = kept._check

    def checked_then_changed(*given):
        check(*given)
        path.write_bytes(b"something else")

    monkeypatch.setattr(kept, "_check", checked_then_changed)
    for engine in ("dala", "onnxruntime"):
        path.write_bytes(good)
        model = loading._named(entry, engine, accept_license=False)
        x = np.ones((1, 4), np.float32)
        assert ml.gpu.predict(model, x).tolist() == [[2.0] * 4]
