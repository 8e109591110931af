"""Errors of a command name its options, and nothing that only Python has."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from media.small_models import write_bright_class
from typer.main import get_command

import dala
from dala import media
from dala.cli.app import app
from dala.cli.option_names import _CALLED_OTHERWISE
from dala.errors import ArgumentError, MediaError, argument, either, renaming
from dala.media.video import transcode
from dala.media.video.reading import source_opening as sources
from dala.media.video.writing import sink_opening as sinks
from dala.ml.models import loading
from dala.runtime.pipelines import file as pipeline_file

SOURCE = Path(dala.__file__).parent
CALLS = [
    media.load,
    media.save,
    loading.load_model,
    sources.open_source,
    sinks.open_sink,
    transcode.transcode,
    pipeline_file.load_pipeline,
]
"""The functions that commands call with what they were told."""
PYTHON_ONLY = ("AttributeError", "ClosedError")
"""What only a program can make happen."""
PYTHON = re.compile(r"\w+=(?!…)|\w\(\)|\b(load|save|load_model|predict|media)[:.(]|dala\.|\[\.\.\.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("process clip.mp4 out.mp4 --rate 5", "--rate is for pictures and raw frames"),
        ("process clip.mp4 out.mp4 --raw-size 4x4", "--raw-size and --raw-format are for raw"),
        ("process clip.mp4 out.mp4 --raw-format rgb", "--raw-size and --raw-format are for raw"),
        ("process photo.png out.mp4 --rate 0", "--rate is frames in a second, more than 0"),
        ("process clip.mp4 out.mp4 --codec h266", "--codec 'h266' is not known: give one of"),
        ("process clip.mp4 out.mp4 --preset slowly", "--preset 'slowly' is not known: give"),
        ("process clip.mp4 out.mp4 --quality 300", "--quality is a number from 0 to 100, not 300"),
        ("process clip.mp4 out.mp4 --size 63x47", "give even numbers, such as --size 62x46."),
        ("process clip.mp4 frames --codec h264", "--codec and --preset are for those"),
        ("process clip.mp4 out.mp4 --resume", "Run it without --resume, which begins anew."),
        ("process photo.png out.png --quality 50", "--quality is for JPEG, WebP, AVIF and HEIC;"),
        ("process photo.png out.jpg --quality 0", "--quality is an integer from 1 to 100, not 0"),
        ("process photo.png out.xyz", "out.xyz ends in '.xyz', which stands for no format"),
        ("process clear.png out.jpg", "or put the image over a background, with the filter"),
        ("process photo.png out.png -f detect:model=blazeface,every=2,threshold=2", "0 to 1"),
        ("run own.json photo.png out.png", "One of your own is given by --kernels FILE."),
        ("predict classes.onnx photo.png", "loaded without --like, so nothing says how an image"),
        ("predict classes.onnx photo.png", "load it with --like NAME, a model of the catalog"),
        ("predict mobilenet_v2 photo.png --like posenet", "and --like posenet is for files"),
        ("predict yolo_v5 photo.png", "Where that is accepted, run dala models get yolo_v5 --acc"),
    ],
)
def test_options_are_named_as_they_are_typed(refused, folder, picture, clip, arguments, said):
    media.save(np.zeros((4, 4, 4), np.uint8), "clear.png")
    write_bright_class(folder / "classes.onnx")
    (folder / ".out.mp4.partial").mkdir()
    (folder / "own.json").write_text(
        '{"version": 1, "buffers": {"a": {"shape": [30, 40, 3], "dtype": "u8"}, '
        '"b": {"shape": [30, 40, 3], "dtype": "u8"}}, '
        '"stages": [{"kernel": "mine", "inputs": ["a"], "output": "b"}]}'
    )
    found = refused(*arguments.split())
    assert said in found
    assert not PYTHON.search(found.replace("DALA_ACCEPT_LICENSE=yolo_v5", "")), found
    assert not (folder / "out.mp4").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("process", "at most 1,000 are loaded: if you trust the file, give a larger --largest-pix"),
        ("predict classes.onnx --like mobilenet_v2", "give a larger --largest-pixels."),
    ],
)
def test_a_picture_of_too_many_pixels_names_the_option(refused, folder, picture, arguments, said):
    write_bright_class(folder / "classes.onnx")
    command, *rest = arguments.split()
    typed = [command, *rest, "photo.png", *(["out.png"] if command == "process" else [])]
    assert said in refused(*typed, "--largest-pixels", "1000", code=1)


def test_a_picture_of_many_pixels_is_taken_with_the_option(told, folder, picture, monkeypatch):
    monkeypatch.setattr("dala.media.pictures.files.LARGEST_PIXELS", 1000)
    assert told("process", "photo.png", "out.png")[0] == 1
    assert told("process", "photo.png", "out.png", "--largest-pixels", "1200")[0] == 0
    assert told("process", "photo.png", "out.gif", "--largest-pixels", "1200")[0] == 0
    assert told("batch", "photo.png", "--out", "made", "--largest-pixels", "1200")[0] == 0


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ([], "standard input: raw frames have no size: give --raw-size WxH."),
        (["--raw-size", "4x4"], "bytes of its 64 are missing. Are --raw-size and --raw-format ri"),
        (["--raw-size", "4x4", "--raw-format", "cmyk"], "--raw-format 'cmyk' is not known: give"),
    ],
)
def test_raw_frames_name_the_options_that_are_theirs(folder, typed, said):
    done = subprocess.run(
        [sys.executable, "-m", "dala", "process", "-", "out.mp4", *typed],
        input=b"12345",
        capture_output=True,
        check=False,
    )
    assert said in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_a_batch_names_options_too(told, folder, picture):
    code, _, err = told("batch", "photo.png", "--out", "made", "--quality", "50")
    assert code == 1
    assert (
        "dala: photo.png: --quality is for JPEG, WebP, AVIF and HEIC; made/photo.png is PNG" in err
    )


# -- how errors carry what they name ---------------------------------------------------------------


def test_an_error_says_the_argument_to_python():
    with pytest.raises(ArgumentError, match=r"^save: give size=\(4, 4\) or end\.$"):
        raise ArgumentError(
            f"{either('save: ', '')}give {argument('size', '(4, 4)', '4x4')} or {argument('end')}."
        )


def test_an_error_is_told_in_other_words_also_where_another_quotes_it():
    def spell(name: str, python: str, typed: str) -> str:
        return f"--{name} {typed}".strip() if name else typed

    inner = MediaError(f"{either('load: ', '')}give {argument('size', '(4, 4)', '4x4')}.")
    outer = ArgumentError(f"overlay: {inner} Or not.")
    outer.__cause__ = inner
    assert str(outer) == "overlay: load: give size=(4, 4). Or not."
    assert outer.told(spell) == "overlay: give --size 4x4. Or not."


def test_an_argument_that_was_passed_on_is_named_as_it_was_given():
    with (
        pytest.raises(ArgumentError, match=r"^give raw_size=\(4, 4\), not end\.$"),
        renaming(size="raw_size"),
    ):
        raise ArgumentError(f"give {argument('size', '(4, 4)')}, not {argument('end')}.")


def test_options_of_other_names_are_there():
    commands = get_command(app).commands
    options = {item.name for command in commands.values() for item in command.params}
    assert set(_CALLED_OTHERWISE.values()) <= options


def texts_of_errors() -> Iterator[tuple[str, str]]:
    """Every piece of text that an error is made with, and where."""
    for layer in ("media", "ml", "images"):
        for path in sorted((SOURCE / layer).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                is_error = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error")
                if is_error and ast.unparse(node.func) not in PYTHON_ONLY and node.args:
                    for part in pieces(node.args[0]):
                        yield f"{path.relative_to(SOURCE)}:{node.lineno}", part


def pieces(node: ast.expr) -> Iterator[str]:
    """The literal text of a message, without what `argument` and `either` are given."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield from pieces(part)
    elif isinstance(node, ast.BinOp):
        yield from pieces(node.left)
        yield from pieces(node.right)


def test_no_error_of_a_picture_video_or_model_names_an_argument_without_saying_so():
    names = {name for call in CALLS for name in inspect.signature(call).parameters}
    spelled = {name for name in names if "_" in name}
    wrong = re.compile(rf"\b({'|'.join(spelled)})\b|\b({'|'.join(names)})=|\bdala\.media\b")
    found = [f"{place}: {text!r}" for place, text in texts_of_errors() if wrong.search(text)]
    assert not found
