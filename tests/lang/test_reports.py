"""Checks and lines that kernels print: in the order of positions, on every device and in Python."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import need_webgpu

import dala
from dala.errors import KernelCheckError, KernelSyntaxError, KernelTypeError
from dala.gpu import compute
from dala.plan.reports import MOST_LINES


@dala.kernel(checks=True)
def root(x):
    dala.check(x >= 0.0, "a root of what is negative")
    return dala.sqrt(x)


@dala.kernel
def show(x):
    i, j = dala.position(2)
    if x > 2.5:
        dala.print("x is", x, "at", (i, j))
    return x


@dala.kernel
def many(x):
    (i,) = dala.position(1)
    for k in range(i % 3):
        dala.print(i, k)
    return x


def test_a_check_that_holds_says_nothing(device):
    x = np.array([4.0, 9.0], np.float32)
    assert root(x).tolist() == [2.0, 3.0]


def test_a_check_raises_the_first_position_the_text_and_the_values(device):
    x = np.ones((50, 70), np.float32)
    x[31, 5], x[31, 6], x[40, 0] = -2.5, -3.0, -4.0
    with pytest.raises(KernelCheckError) as caught:
        root(x)
    assert caught.value.position == (31, 5)
    assert caught.value.text == "a root of what is negative"
    assert "root: a check failed at position (31, 5): a root of what is negative" in str(
        caught.value
    )
    assert "(x is -2.5)" in str(caught.value)
    assert "test_reports.py" in str(caught.value)
    assert isinstance(caught.value, AssertionError)


def test_a_failed_check_leaves_the_output_as_it_was(device):
    x = compute.from_numpy(np.array([1.0, -1.0], np.float32))
    out = compute.from_numpy(np.array([7.0, 8.0], np.float32))
    with pytest.raises(KernelCheckError):
        compute.run_kernel(root, [x], out)
    assert compute.read_list(out) == [7.0, 8.0]
    compute.run_kernel(root, [compute.from_numpy(np.array([1.0, 4.0], np.float32))], out)
    assert compute.read_list(out) == [1.0, 2.0]


def test_a_check_of_a_command_is_raised_by_wait(device):
    x = compute.from_numpy(np.array([1.0, -1.0], np.float32))
    command = compute.run_kernel_async(root, [x], compute.buffer_zeros((2,), "f32"))
    with pytest.raises(KernelCheckError, match=r"position \(1,\)"):
        compute.wait(command)


def test_checks_are_off_unless_they_are_asked_for(monkeypatch):
    text = "def k(x):\n    check(x > 0.0, 'not positive')\n    return x + 1.0"

    def made(name, **said):
        kernel = compute.Kernel.register(name, text, **said)
        compute.Kernel.unregister(name)
        return kernel

    x = np.array([-1.0], np.float32)
    monkeypatch.delenv("DALA_DEBUG", raising=False)
    off = made("off")
    assert off(x).tolist() == [0.0]
    plain = compute.Kernel.register("plain", "def k(x):\n    return x + 1.0")
    compute.Kernel.unregister("plain")
    assert off.explain() == plain.explain()
    with pytest.raises(KernelCheckError):
        made("on", checks=True)(x)
    monkeypatch.setenv("DALA_DEBUG", "1")
    with pytest.raises(KernelCheckError):
        made("debugged")(x)
    assert made("never", checks=False)(x).tolist() == [0.0]


def test_values_after_the_text_are_shown_instead_of_operands(device):
    @dala.kernel(checks=True)
    def k(x, limit: dala.s32):
        (i,) = dala.position(1)
        dala.check(i < limit, "too far:", i, dala.vec2(x, 0.5))
        return x

    with pytest.raises(KernelCheckError, match=r"too far: \(3 vec2\(2.0, 0.5\)\)"):
        k(np.full(9, 2.0, np.float32), limit=3)


def test_lines_are_printed_in_the_order_of_positions(device, capsys):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(show(x), x)
    want = "x is 3.0 at (1, 0)\nx is 4.0 at (1, 1)\nx is 5.0 at (1, 2)\n"
    assert capsys.readouterr().out == want
    assert np.array_equal(show.python(x), x)
    assert capsys.readouterr().out == want


def test_the_first_lines_are_printed_and_the_others_counted(device, capsys):
    size = 5000
    many(np.zeros(size, np.float32))
    *lines, last = capsys.readouterr().out.splitlines()
    want = [f"{i} {k}" for i in range(size) for k in range(i % 3)]
    assert lines == want[:MOST_LINES]
    assert last == (
        f"… {len(want) - MOST_LINES:,} more lines of many are not shown: the first 1,000 by "
        f"position are."
    )


def test_values_of_every_type_are_printed_as_python_would(device, capsys):
    @dala.kernel
    def k(a, b, c):
        dala.print(
            a, b, c, a > 1.0, -0.5, 7, dala.u8(c), dala.f32(1) / 3.0, dala.u32(b) + 4000000000
        )
        dala.print()
        dala.print("τ", (a, (b, c)), dala.vec3(a, 2.0, 0.1))
        return a

    given = [np.array([2.25], np.float32), np.array([-7], np.int32), np.array([200], np.uint8)]
    k(*given, shape=(1,), dtype="f32")
    said = capsys.readouterr().out
    assert said == (
        "2.25 -7 200 True -0.5 7 200 0.33333334 3999999993\n\n"
        "τ (2.25, (-7, 200)) vec3(2.25, 2.0, 0.1)\n"
    )
    k.python(*given, shape=(1,), dtype="f32")
    assert capsys.readouterr().out == said


def test_pixels_and_local_arrays_are_printed(device, capsys):
    @dala.kernel
    def k(image: dala.Image):
        near = dala.local(2, dala.s32)
        near[1] = 5
        dala.print(image.pixel, near)
        return image.pixel

    k(np.full((1, 1, 3), 0.5, np.float32))
    assert capsys.readouterr().out == "rgba(0.5, 0.5, 0.5, 1.0) [0, 5]\n"


def test_wide_values_are_printed_whole(capsys):
    @dala.kernel
    def k(x, y):
        dala.print(x, y, x * 3)
        return x

    with compute.device("cpu"):
        k(np.array([-(2**40)]), np.array([0.1]), dtype="s64")
    assert capsys.readouterr().out == f"{-(2**40)} 0.1 {-3 * 2**40}\n"


def test_lines_and_checks_of_a_scattering_kernel(device, capsys):
    @dala.kernel(accumulate=True, checks=True)
    def k(x, out: dala.Out):
        (i,) = dala.position(1)
        dala.check(x < 10, "too much")
        if x == 3:
            dala.print("three at", i)
        out.add(x % 2, 1)

    out = np.array([100, 100], np.int32)
    k(np.array([1, 3, 4], np.int32), out=out)
    assert out.tolist() == [101, 102]
    assert capsys.readouterr().out == "three at 1\n"
    with pytest.raises(KernelCheckError, match=r"position \(2,\)"):
        k(np.array([3, 3, 10, 11], np.int32), out=out)
    assert out.tolist() == [101, 102]
    assert capsys.readouterr().out == "three at 0\nthree at 1\n"


def test_functions_check_and_print_too(device, capsys):
    @dala.function
    def half(v):
        dala.print("half of", v)
        return v / 2.0

    @dala.kernel
    def k(x):
        i, _ = dala.position(2)
        return sum(half(x[i, k]) for k in range(2))

    k(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
    twice = ["half of 1.0", "half of 2.0"] * 2 + ["half of 3.0", "half of 4.0"] * 2
    assert capsys.readouterr().out.splitlines() == twice


def test_stages_that_print_run_by_themselves_in_every_run(device, capsys):
    x, out = (
        compute.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3)),
        compute.buffer_zeros((2, 3), "f32"),
    )
    between = compute.scratch((2, 3), "f32")
    pipeline = compute.pipeline()
    pipeline.add(kernel="scale", inputs=[x], output=between, params={"factor": 0.6})
    pipeline.add(kernel=show, inputs=[between], output=out)
    for _ in range(3):
        pipeline.run()
        assert capsys.readouterr().out == "x is 3.0 at (1, 2)\n"
    pipeline.explain()
    assert "show checks or prints" in capsys.readouterr().out


def test_parity_mode_prints_once(capsys):
    need_webgpu()
    with compute.device("parity"):
        show(np.full((1, 1), 3.0, np.float32))
    assert capsys.readouterr().out == "x is 3.0 at (0, 0)\n"


def test_a_check_fails_in_python_too():
    with pytest.raises(KernelCheckError, match=r"position \(1,\): a root of what is negative"):
        root.python(np.array([1.0, -1.0], np.float32))


def test_a_document_keeps_that_a_kernel_checks(tmp_path):
    with compute.device("cpu"):
        x, out = compute.buffer([-1.0], 1, "f32"), compute.buffer_zeros((1,), "f32")
        pipeline = compute.pipeline().add(kernel=root, inputs=[x], output=out)
        pipeline.save(tmp_path / "checked.json", {"x": x, "out": out})
        again = compute.load_pipeline(tmp_path / "checked.json", {"x": x, "out": out})
        with pytest.raises(KernelCheckError):
            again.run()


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        ("dala.print(f'x is {x}')", KernelSyntaxError, r"dala.print\('x is ', x\)"),
        ("dala.print(x, sep=', ')", KernelSyntaxError, "takes no keyword arguments"),
        ("y = dala.print(x)", KernelSyntaxError, "dala.print gives no value"),
        ("dala.check(x > 0)", KernelSyntaxError, "a text that says what is wrong"),
        ("dala.check(x + 1, 'wrong')", KernelTypeError, "condition"),
        ("dala.print(dala)", KernelTypeError, "cannot be shown"),
        ("print(x)", KernelSyntaxError, r"Write dala.print\(…\)"),
    ],
)
def test_what_cannot_be_said_is_refused_with_what_can(line, kind, said):
    text = f"def k(x):\n    {line}\n    return x"
    if line.startswith("print"):

        def k(x):
            print(x)
            return x

        with pytest.raises(kind, match=said):
            dala.kernel(k)
        return
    with pytest.raises(kind, match=said):
        compute.Kernel.register("refused", text)
