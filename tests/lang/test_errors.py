"""What a mistake in a kernel looks like: the user's file, line, a caret, and what to write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dala
from dala import errors
from dala.gpu import compute

HERE = Path(__file__)


def complaint(source: str, kind: type[errors.KernelError] = errors.KernelError) -> str:
    with pytest.raises(kind) as caught:
        compute.Kernel.register("wrong", source)
    return str(caught.value)


def test_a_complaint_shows_file_line_source_caret_and_advice():
    with pytest.raises(errors.KernelSyntaxError) as caught:

        @dala.kernel
        def wrong(x):
            y = x * 2.0
            return y + undefined_name  # noqa: F821

    text = str(caught.value)
    line = 1 + HERE.read_text().splitlines().index(
        "            return y + undefined_name  # noqa: F821"
    )
    assert text.splitlines() == [
        "nothing here is called `undefined_name`.",
        f'  File "{HERE}", line {line}, in wrong',
        "    return y + undefined_name  # noqa: F821",
        "               ^^^^^^^^^^^^^^",
        "  Assign it, or make it an argument.",
    ]


def test_a_mistake_in_a_function_shows_how_the_kernel_came_there():
    @dala.function
    def inner(x):
        return x & 1.5

    with pytest.raises(errors.KernelTypeError) as caught:

        @dala.kernel
        def outer(x):
            return inner(x) + 1.0

    assert re.findall(r"in (\w+)\n", str(caught.value)) == ["outer", "inner"]


CASES = {
    "def wrong(x):\n    if -x:\n        return 1.0\n    return 2.0": "Compare it: write `… != 0`",
    "def wrong(x):\n    return x[0.5]": "an index is an integer",
    "def wrong(x):\n    return x[0, 1, 2] + x[0]": "is indexed by",
    "def wrong(x, n: u32):\n    return s32(x) + n": "s32 and u32 do not mix",
    "def wrong(x):\n    return u8(x) * 300": "300 does not fit u8",
    "def wrong(x):\n    if x > 0.0:\n        y = 1.0\n    return y": "only one side",
    "def wrong(x):\n    for i in range(3):\n        y = x\n    return y": "only inside a loop",
    "def wrong(x):\n    for i in range(3):\n        pass\n    return i": "counts a loop",
    "def wrong(x):\n    z = y\n    y = x\n    return z": "used before",
    "def wrong(x):\n    while x > 0.0:\n        return x": "not every path",
    "def wrong(x):\n    for k in (1, 2):\n      if x > k:\n        return k, x\n    return x": (
        "differ in kind"
    ),
    "def wrong(x, out: Out):\n    for k in range(3):\n        return x": "returns nothing",
    "def wrong(x):\n    if x > 0.0:\n        return x": "not every path",
    "def wrong(x):\n    x[0] = 1.0\n    return x": "cannot be written",
    "def wrong(x, out: Out):\n    out[0] = out[1]": "cannot be read",
    "def wrong(x, out: Out):\n    return x": "returns nothing",
    "def wrong(x, out: Out, o2: Out):\n    out[0] = x": "one output",
    "def wrong(x=1):\n    return x": "has a default",
    "def wrong(x, n: str):\n    return x": "does not annotate",
    "def wrong(x, n: f32 = 'a'):\n    return x": "not a number",
    "def wrong(x):\n    return sqrt(x, x)": "takes 1 argument",
    "def wrong(x):\n    a, b = position(1)\n    return x": "cannot be unpacked",
    "def wrong(x):\n    i = position(3)\n    (j,) = position(1)\n    return x": "axes",
    "def wrong(x):\n    return x.pixel": "annotated with dala.Image",
    "def wrong(image: Image):\n    return image.pixel.x": "It has r, g, b and a",
    "def wrong(x):\n    for i in range(0, 3, 0):\n        pass\n    return x": "step",
    "def wrong(x):\n    for i in x:\n        pass\n    return x": "`for k in range(len(x)):`",
    "def wrong(x):\n    for i in 3:\n        pass\n    return x": "not the number 3",
    "def wrong(x):\n    for a in zip((1, 2), (1, 2, 3)):\n        pass\n    return x": "of 2 and 3",
    "def wrong(x):\n    for a in enumerate((1, 2), x):\n        pass\n    return x": "starts at a",
    "def wrong(x):\n    for a, b, c in enumerate((1, 2)):\n        pass\n    return x": "3 names",
    "def wrong(x):\n    for a in (1, 2):\n        pass\n    return a": "loop that is over",
    "def wrong(x):\n    return any(x > 0.0)": "`any` takes a tuple",
    "def wrong(x):\n    return any((x + 1, x))": "Compare it",
    "def wrong(x):\n    return all(x * k for k in range(3))": "Compare it",
    "def wrong(x):\n    return sum(x)": "not the input x",
    "def wrong(x):\n    return min(k for k in ())": "empty tuple",
    "def wrong(x):\n    return enumerate((1, 2))": "over tuples",
    "def wrong(x, n: s32):\n    for a, b in zip(range(n), (1, 2)):\n        pass\n    return x": (
        "no length that is known"
    ),
    "def wrong(x):\n    return x if x > 0.0 else (x, x)": "number is needed",
    "def wrong(x):\n    return x is x": "compare with",
    "def wrong(x):\n    x + 1.0\n    return x": "goes nowhere",
    "def wrong(x):\n    return flor(x)": "Did you mean `floor`",
    "def wrong(x):\n    return dala.flor(x)": "Did you mean `dala.floor`",
    "def wrong(x): return (": "this is not Python",
    "x = 1": "exactly one def",
    "": "holds nothing",
}


@pytest.mark.parametrize("source", CASES)
def test_every_mistake_is_found_and_says_what_to_do(source):
    text = complaint(source)
    assert CASES[source] in text
    assert "wrong" not in compute.Kernel.list()


@pytest.mark.parametrize("column", [1, 4])
def test_the_caret_counts_characters_not_bytes(column):
    text = complaint(f"def wrong(x):\n    {'é' * column} = x\n    return {'é' * column} + q")
    *_, source, caret, _ = text.splitlines()
    assert source[caret.index("^")] == "q"


def test_the_rank_of_the_buffers_is_checked_when_it_is_run():
    @dala.kernel
    def k(x):
        i, j = dala.position(2)
        return x[i, j]

    x, out = compute.buffer_zeros((4,), "f32"), compute.buffer_zeros((4,), "f32")
    with pytest.raises(errors.KernelTypeError, match=r"asks for 2 axes.*runs over 1"):
        compute.run_kernel(k, [x], out)


def test_calling_a_kernel_or_a_mark_from_python_says_what_to_do():
    @dala.kernel
    def k(x):
        return x

    @dala.function
    def f(x):
        return x

    for call in (lambda: k(1.0), lambda: f(1.0), lambda: dala.exp(1.0), lambda: dala.f32(1)):
        with pytest.raises(errors.DalaError, match="kernel"):
            call()


def made(make):
    with pytest.raises(errors.KernelError) as caught:
        make()
    return str(caught.value)


HUGE = 10**400
TOO_MANY = list(range(1000))


def test_numbers_that_cannot_be_written_down_are_refused():
    for source in (
        "def k(x):\n    return x + 9**9**8",
        "def k(x):\n    return x + (1 << 10**12)",
    ):
        assert "too large" in complaint(source)

    def closure():
        @dala.kernel
        def k(x):
            return x * HUGE

    def table():
        @dala.kernel
        def k(x):
            return x * TOO_MANY[3]

    assert "too large for a float" in made(closure)
    assert "1000 elements is too large" in made(table)


def test_what_is_nested_too_deeply_is_refused():
    assert "nested too deeply" in complaint("def k(x):\n    return " + "-" * 800 + "x")
    lines = [f"{'    ' * (i + 1)}for i{i} in range(2):" for i in range(12)]
    body = "\n".join(lines) + "\n" + "    " * 13 + "t += x\n    return t"
    assert "nested more than 8 deep" in complaint("def k(x):\n    t = 0.0\n" + body)


def test_a_variable_that_has_no_value_yet_is_refused():
    def make():
        @dala.kernel
        def k(x):
            return x + later

        later = 10.0
        return k, later

    assert "has no value yet" in made(make)


def test_a_file_that_changed_after_its_import_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "changing.py"
    text = "import dala\ndef make():\n    @dala.kernel\n    def k(x):\n        return x + 1.0\n"
    path.write_text(text + "    return k\n")
    monkeypatch.syspath_prepend(tmp_path)
    changing = __import__("changing")
    assert changing.make().name == "k"
    path.write_text(text.replace("1.0", "999.0") + "    return k  # longer\n")
    with pytest.raises(errors.KernelSourceError, match="was changed"):
        changing.make()


def test_defaults_fit_their_types():
    for annotation in ("u8 = 300", "s32 = 1.5", "bool = 2"):
        assert "does not fit" in complaint(f"def k(x, a: {annotation}):\n    return x * a")


def test_indexing_twice_and_using_a_position_whole_are_explained():
    assert "x[i, j]" in complaint("def k(x):\n    i, j = position(2)\n    return x[i, j][j]")
    text = complaint("def k(x):\n    i = position(1)\n    return x[i + 1]")
    assert "(i,) = dala.position(1)" in text
    assert "cannot be called" in complaint("def k(x):\n    input(x)\n    return x")
