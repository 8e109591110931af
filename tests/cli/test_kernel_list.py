"""`dala kernels NAME`: one kernel with all that it takes, and a call that works."""

from __future__ import annotations

import numpy as np
import pytest

from dala.gpu import compute

IMAGES = {
    "image": (40, 48, 4),
    "layer": (40, 48, 4),
    "background": (40, 48, 4),
    "mask": (40, 48),
}
ON_IMAGES = [
    name
    for name in compute.Kernel.list()
    if compute.Kernel.lookup(name).inputs and {*compute.Kernel.lookup(name).inputs} <= {*IMAGES}
    if name not in ("class_mask", "soft_mask", "preprocess")
]
POINTWISE = [
    name
    for name in compute.Kernel.list()
    if compute.Kernel.lookup(name).inputs in (("x",), ("a", "b"))
    and not any(item.kind == "host" for item in compute.Kernel.lookup(name).params)
]


def example_of(told, name: str) -> str:
    code, out, _ = told("kernels", name)
    assert code == 0
    (line,) = [line.strip() for line in out.splitlines() if "compute.run_kernel" in line]
    return line


def test_a_kernel_is_shown_with_its_inputs_parameters_and_text(told):
    code, out, err = told("kernels", "leaky_relu")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "leaky_relu(x, slope: number = 0.01)"
    assert "    x      a buffer that is read\n" in out
    assert "    slope  what negative elements are multiplied by: a number of the inputs'" in out
    assert "dtype; default 0.01\n" in out
    assert compute.Kernel.lookup("leaky_relu").doc.partition("\n")[0] in out
    _, out, _ = told("kernels", "conv2d")
    assert "weight_and_bias  buffers that are read, one or more: weight, bias" in out
    _, out, _ = told("kernels", "threshold")
    assert "a pixel is white: a number, 0 to 1;" in out
    assert "As a filter: dala filters threshold" in out


@pytest.mark.parametrize("name", compute.Kernel.list())
def test_every_kernel_has_a_page(told, name):
    code, out, _ = told("kernels", name)
    assert code == 0
    assert out.startswith(f"{name}(")
    for item in compute.Kernel.lookup(name).params:
        assert f"\n    {item.name}" in out


@pytest.mark.parametrize("name", ON_IMAGES)
def test_the_example_of_a_filter_runs(told, folder, name):
    (folder / "warm.cube").write_text(
        "LUT_3D_SIZE 2\n" + "\n".join(f"{r} {g} {b}" for b in "01" for g in "01" for r in "01")
    )
    example = example_of(told, name)
    kernel = compute.Kernel.lookup(name)
    shapes = [(40, 48, 3)] if name == "convert" else [IMAGES[item] for item in kernel.inputs]
    with compute.device("cpu"):
        buffers = [compute.from_numpy(np.full(shape, 90, np.uint8)) for shape in shapes]
        params = eval(example.partition("output, ")[2].rstrip(")") or "{}")
        output = compute.buffer_zeros(kernel.output_shape(shapes, params), "u8")
        given = dict(zip(kernel.inputs, buffers, strict=True))
        exec(example, {"compute": compute, "output": output, **given})


@pytest.mark.parametrize("name", POINTWISE)
def test_the_example_of_a_formula_runs(told, name):
    example = example_of(told, name)
    with compute.device("cpu"):
        given = {item: compute.from_numpy(np.full(4, 0.75, np.float32)) for item in "xab"}
        if name == "matmul":
            given = {item: compute.from_numpy(np.eye(2, dtype=np.float32)) for item in "xab"}
        output = compute.buffer_zeros(given["a"].shape, "f32")
        exec(example, {"compute": compute, "output": output, **given})
        assert np.isfinite(compute.read(output)).all()


def test_a_kernel_is_told_to_programs_too(answer):
    said = answer("kernels", "scale")
    assert said["name"] == "scale"
    assert said["inputs"] == ["x"]
    assert said["params"] == {
        "factor": {"type": "number", "doc": "what each element is multiplied by"}
    }
    assert said["example"] == "compute.run_kernel(\"scale\", [x], output, {'factor': 0.5})"


def test_a_kernel_of_ones_own_is_shown(told, folder):
    (folder / "mine.py").write_text(
        'import dala\n\n@dala.kernel\ndef dim(x, by: dala.f32 = 0.5):\n    """x · by"""\n'
        "    return x * by\n"
    )
    try:
        code, out, _ = told("kernels", "dim", "-k", "mine.py")
    finally:
        compute.Kernel.unregister("dim")
    assert code == 0
    assert "    by  a number, f32; default 0.5\n" in out


def test_an_unknown_kernel_is_refused_with_a_hint(refused):
    assert "Did you mean 'blur'" in refused("kernels", "blurr")
