"""Names from outside are shown without what would move a cursor, or make a line of its own."""

from __future__ import annotations

import io
import pickle
import traceback

import pytest
from ml.altered_models import graph, model
from ml.altered_models import node as onnx_node
from onnx import TensorProto, helper

from dala import errors, media, ml
from dala.base.printable import printable

EVIL = "a\x1b[31m\nb\r\x9b2J\x07\u202e\udcff.png"
SHOWN = r"a\x1b[31m\nb\r\x9b2J\x07\u202e\udcff.png"

ALL_ERRORS = [
    item
    for item in vars(errors).values()
    if isinstance(item, type) and issubclass(item, errors.DalaError)
]


def seen(text: str) -> bool:
    """Whether all of a text is seen, as lines."""
    return all(line.isprintable() for line in text.split("\n"))


def test_what_is_not_seen_is_written_out():
    assert printable(EVIL) == SHOWN
    assert printable("a\n\tb\x1b", lines=True) == "a\n\tb\\x1b"
    assert printable(printable(EVIL)) == SHOWN


@pytest.mark.parametrize(
    "name",
    [
        "photo 1.png",
        "ünï.png",
        "写真.jpg",
        "C:\\a\\nb.png",
        "3.45\u202fPM.png",
        "👩\u200d💻.png",
        "é\u00a0",
    ],
)
def test_names_as_people_give_them_stay_as_they_are(name):
    assert printable(name) == name


@pytest.mark.parametrize("kind", ALL_ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_can_be_sent_to_a_terminal(kind):
    error = kind(f"{EVIL} cannot be read.")
    assert seen(str(error))
    assert "\x1b" not in str(error)
    file = io.StringIO()
    try:
        raise error
    except errors.DalaError as raised:
        traceback.print_exception(raised, file=file)
    assert seen(file.getvalue())
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_name_with_a_break_in_it_makes_no_line_of_its_own():
    assert str(errors.FileError("a\nb.png cannot be read.")) == r"a\nb.png cannot be read."
    assert str(errors.KernelSyntaxError("line 1\n    ^^^")) == "line 1\n    ^^^"


def test_the_file_in_an_error_of_the_library_is_shown_so(tmp_path):
    path = tmp_path / "a\x1b[31m\nb.png"
    path.write_bytes(b"no picture")
    with pytest.raises(errors.MediaError) as raised:
        media.load(path)
    assert r"a\x1b[31m\nb.png is none of the pictures" in str(raised.value)


def test_names_in_a_model_are_shown_so():
    name = "x\x1b[2J"
    made = graph([onnx_node("Identity", "x", "y")])
    made.node[0].input[0] = made.input[0].name = name
    made.input[0].type.tensor_type.shape.dim[0].dim_param = "n\x1b]0;title\x07"
    loaded = ml.gpu.load_model(model(made))
    assert loaded.inputs == (name,)
    assert seen(repr(loaded))
    assert r"x\x1b[2J" in repr(loaded)
    assert seen(loaded.explain())


def test_names_of_nodes_in_errors_are_shown_so():
    made = helper.make_node("Evil\x1b[2J", ["x"], ["y"], name="n\nfake line")
    with pytest.raises(errors.ModelError) as raised:
        ml.gpu.load_model(model(graph([made])))
    assert str(raised.value).isprintable()
    weights = TensorProto(name="w\x1b[2J", dims=[3], data_type=1, raw_data=b"1")
    with pytest.raises(errors.ModelError) as raised:
        ml.gpu.load_model(model(graph([onnx_node("Add", "x w", "y")], initializers=[weights])))
    assert str(raised.value).isprintable()
