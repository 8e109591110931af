"""Pictures and models under a limit on memory: what fits is loaded, and the rest says so."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from media.picture_files import encoded
from ml.small_models import doubling
from PIL import Image

from dala import errors, media
from dala.base.binary_file import read_at_most

pytest.importorskip("resource", reason="memory cannot be limited here")

PROGRAM = """
import resource, sys
from dala import errors, media
from dala.ml.onnx.file import check_onnx
import PIL.Image, dala.media.pictures.color_profiles, onnx.defs
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 200_000_000,) * 2)
small, large, model = sys.argv[1:]
print(media.load(small).shape)
try:
    media.load(large)
except errors.MemoryLimitError as error:
    print(error)
print(media.load(small).shape)
print(check_onnx(model).operators)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="what is held is not told here")
def test_files_are_read_by_their_size_and_what_does_not_fit_is_a_typed_error(tmp_path):
    Image.new("RGB", (20, 10)).save(tmp_path / "small.png")
    Image.new("RGB", (10_000, 10_000)).save(tmp_path / "large.png")
    (tmp_path / "m.onnx").write_bytes(doubling())
    files = [str(tmp_path / name) for name in ("small.png", "large.png", "m.onnx")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *files], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    first, said, again, operators = done.stdout.splitlines()
    assert first == again == "(10, 20, 3)"
    assert "large.png cannot be decoded: the system did not give the memory" in said
    assert operators == "{'Mul': 1}"


def test_no_more_is_asked_of_a_file_than_it_has():
    asked = []

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            asked.append(size)
            return super().read(size)

    assert read_at_most("x", Counted(bytes(3 << 20)), 1 << 40, 3 << 20) == bytes(3 << 20)
    assert max(asked) == 3 << 20


@pytest.mark.parametrize("size", [0, 1, (1 << 20) + 1, 5 << 20])
@pytest.mark.parametrize("told", [0, 7, 5 << 20])
def test_a_file_is_read_whole_whatever_it_says_of_its_size(size, told):
    data = os.urandom(size)
    assert read_at_most("x", io.BytesIO(data), 1 << 40, told) == data
    assert read_at_most("x", io.BytesIO(data), 1000, told) == data[:1000]


def test_memory_that_is_not_given_is_a_typed_error():
    class Full(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise MemoryError

    with pytest.raises(errors.MemoryLimitError, match=r"x\.png cannot be read: .* 4,096 or more"):
        read_at_most("x.png", Full(), 1 << 40, 4096)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_picture_comes_through_a_pipe(tmp_path):
    data = encoded(Image.effect_noise((2000, 1500), 99), "PNG")
    assert len(data) > 1 << 20
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,))
    writer.start()
    assert media.load(tmp_path / "pipe").shape == (1500, 2000)
    writer.join()
