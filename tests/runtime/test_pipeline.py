"""Pipelines: what they refuse, what they compute, what changes without a new plan."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import dala
from dala import errors
from dala.gpu import compute
from dala.ir.types import U32
from dala.lang.lower import Definition


@dala.kernel
def shift(x):
    (i,) = dala.position(1)
    return x[i - 1] + 2.0 * x[i + 1]


def vector(*values):
    return compute.buffer(list(values), (len(values),), "f32")


def zeros(count=3):
    return compute.buffer_zeros((count,), "f32")


@pytest.mark.parametrize("fuse", [True, False])
def test_stages_run_in_order(device, fuse):
    x, y, z = vector(1.0, -2.0, 3.0), zeros(), zeros()
    pipeline = compute.pipeline(fuse=fuse)
    pipeline.add(kernel="scale", inputs=[x], output=y, params={"factor": 2.0})
    pipeline.add({"op": "run_kernel", "kernel": "relu", "inputs": [y], "output": z})
    pipeline.add(op="copy_buffer", inputs=[z], output=x)
    assert len(pipeline) == 3
    pipeline.run()
    assert compute.read_list(y) == [2.0, -4.0, 6.0]
    assert compute.read_list(z) == compute.read_list(x) == [2.0, 0.0, 6.0]
    pipeline.run()
    assert compute.read_list(x) == [4.0, 0.0, 12.0]


@pytest.mark.parametrize("fuse", [True, False])
def test_scratch_between_stages_gives_the_same_result(device, fuse):
    x, out = vector(1.0, 2.0, 3.0), zeros()
    between = [compute.scratch((3,), "f32") for _ in range(3)]
    pipeline = compute.pipeline(fuse=fuse)
    pipeline.add(kernel="scale", inputs=[x], output=between[0], params={"factor": 2.0})
    pipeline.add(kernel=shift, inputs=[between[0]], output=between[1])
    pipeline.add(kernel="elementwise_add", inputs=[between[0], between[1]], output=between[2])
    pipeline.add(kernel="elementwise_mul", inputs=[between[2], between[2]], output=out).run()
    doubled = np.array([2.0, 4.0, 6.0])
    moved = np.array([2.0, 2.0, 4.0]) + 2.0 * np.array([4.0, 6.0, 6.0])
    assert compute.read_list(out) == ((doubled + moved) ** 2).tolist()


def test_scratch_that_is_never_needed_never_exists():
    x, out = vector(1.0, 2.0, 3.0), zeros()
    between = compute.scratch((3,), "f32")
    pipeline = compute.pipeline()
    pipeline.add(kernel="scale", inputs=[x], output=between, params={"factor": 2.0})
    pipeline.add(kernel="relu", inputs=[between], output=out).run()
    assert between.place._memory is None
    assert compute.read_list(out) == [2.0, 4.0, 6.0]


def test_scratch_cannot_be_read_or_written(device):
    between = compute.scratch((3,), "f32")
    for use in (compute.read, compute.read_list, compute.read_binary):
        with pytest.raises(errors.ArgumentError, match="between stages"):
            use(between)
    with pytest.raises(errors.ArgumentError, match="between stages"):
        compute.write(between, [1.0, 2.0, 3.0])


def test_a_barrier_cuts_a_group():
    x, y, z = vector(1.0, 2.0, 3.0), zeros(), zeros()
    pipeline = compute.pipeline()
    pipeline.add(kernel="scale", inputs=[x], output=y, params={"factor": 2.0})
    assert "scale" in pipeline.explain()
    pipeline.add(op="barrier").add(kernel="relu", inputs=[y], output=z)
    explained = pipeline.explain()
    assert "0: scale" in explained
    assert "1: relu" in explained
    pipeline.run()
    assert compute.read_list(z) == [2.0, 4.0, 6.0]


def test_stages_in_place_and_written_again_are_right(device):
    x, y = vector(1.0, 2.0, 3.0), zeros()
    pipeline = compute.pipeline()
    pipeline.add(kernel=shift, inputs=[x], output=x)
    pipeline.add(kernel="scale", inputs=[x], output=y, params={"factor": 2.0})
    pipeline.add(kernel=shift, inputs=[y], output=x)
    pipeline.add(kernel="scale", inputs=[x], output=y, params={"factor": 0.5})
    pipeline.run()
    step = lambda v: np.pad(v, 1, mode="edge")[:-2] + 2 * np.pad(v, 1, mode="edge")[2:]  # noqa: E731
    want = step(2 * step(np.array([1.0, 2.0, 3.0]))) * 0.5
    assert compute.read_list(y) == want.tolist()


def test_composite_kernels_and_host_calls_are_stages_too(device):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((8, 8)).astype(np.float32)
    x, y, z = compute.from_numpy(a), compute.scratch((8, 8), "f32"), compute.scratch((8, 8), "f32")
    out = compute.buffer_zeros((8, 8), "f32")
    pipeline = compute.pipeline()
    pipeline.add(kernel="matmul", inputs=[x, x], output=y)
    pipeline.add(kernel="softmax", inputs=[y], output=z, params={"axis": 0})
    pipeline.add(kernel="transpose", inputs=[z], output=out).run()
    product = a.astype(np.float64) @ a
    powers = np.exp(product - product.max(0))
    np.testing.assert_allclose(compute.read(out), (powers / powers.sum(0)).T, rtol=1e-4, atol=1e-7)


def test_stages_are_counted_with_barriers():
    x, out = vector(1.0, 2.0, 3.0), zeros()
    pipeline = compute.pipeline()
    assert pipeline.stage_count == 0
    pipeline.add(kernel="abs", inputs=[x], output=out).add(op="barrier")
    assert pipeline.stage_count == len(pipeline) == len(pipeline.stages) == 2


# -- what changes ----------------------------------------------------------------------------------


def test_a_parameter_changes_without_a_new_plan(device):
    x, out = vector(1.0, 2.0, 3.0), zeros()
    pipeline = compute.pipeline()
    pipeline.add(kernel="scale", inputs=[x], output=out, params={"factor": 2.0}, name="gain")
    pipeline.run()
    plan = pipeline._plan
    pipeline.set("gain", factor=3.0).run()
    assert compute.read_list(out) == [3.0, 6.0, 9.0]
    pipeline.run(params={"gain": {"factor": 5.0}})
    assert compute.read_list(out) == [5.0, 10.0, 15.0]
    pipeline.run()
    assert compute.read_list(out) == [3.0, 6.0, 9.0]
    pipeline.set(0, factor=4.0).run()
    assert compute.read_list(out) == [4.0, 8.0, 12.0]
    assert pipeline._plan is plan


def test_another_sigma_of_a_blur_makes_no_new_plan(device):
    image = compute.from_numpy(np.random.default_rng(0).integers(0, 256, (9, 7, 4), np.uint8))
    out, want = (compute.buffer_zeros((9, 7, 4), "u8") for _ in range(2))
    pipeline = compute.pipeline()
    pipeline.add(kernel="blur", inputs=[image], output=out, params={"radius": 3})
    pipeline.run()
    plan = pipeline._plan
    pipeline.set("blur", sigma=0.7).run()
    assert pipeline._plan is plan
    compute.run_kernel("blur", [image], want, {"radius": 3, "sigma": 0.7})
    assert np.array_equal(compute.read(out), compute.read(want))


@pytest.fixture
def lowered(monkeypatch):
    """The names of the kernels that are lowered from here on."""
    names = []
    lower = Definition.lower
    monkeypatch.setattr(
        Definition,
        "lower",
        lambda self, *args, **kw: names.append(self.name) or lower(self, *args, **kw),
    )
    return names


def three_filters(size=9):
    image = compute.from_numpy(np.random.default_rng(0).integers(0, 256, (size, 7, 4), np.uint8))
    blurred, sharp = (compute.scratch((size, 7, 4), "u8") for _ in range(2))
    gray = compute.buffer_zeros((size, 7), "u8")
    pipeline = compute.pipeline()
    pipeline.add(kernel="blur", inputs=[image], output=blurred, params={"radius": 2})
    pipeline.add(kernel="sharpen", inputs=[blurred], output=sharp)
    pipeline.add(kernel="grayscale", inputs=[sharp], output=gray)
    return pipeline, gray


def test_set_binds_other_values_and_lowers_nothing(device, lowered):
    pipeline, gray = three_filters()
    pipeline.run()
    before = compute.read(gray)
    del lowered[:]
    for sigma in (0.5, 0.9):
        pipeline.set("blur", sigma=sigma).set("sharpen", amount=sigma).run()
    assert lowered == []
    want, expected = three_filters()
    want.run({"blur": {"sigma": 0.9}, "sharpen": {"amount": 0.9}})
    assert np.array_equal(compute.read(gray), compute.read(expected))
    assert not np.array_equal(compute.read(gray), before)


def test_an_identical_pipeline_is_neither_lowered_nor_planned_again(device, lowered):
    first, gray = three_filters()
    first.run()
    del lowered[:]
    second, other = three_filters()
    second.run()
    assert lowered == []
    assert second._plan is first._plan
    assert np.array_equal(compute.read(gray), compute.read(other))


def test_a_parameter_that_changes_the_code_is_checked_when_it_is_set(device):
    pipeline, gray = three_filters()
    pipeline.run()
    with pytest.raises(errors.ArgumentError, match=r"stage 0 \(blur\)"):
        pipeline.set("blur", radius=-1)
    pipeline.set("blur", radius=1, sigma=0.5).run()
    expected, want = three_filters()
    expected.run({"blur": {"radius": 1, "sigma": 0.5}})
    assert np.array_equal(compute.read(gray), compute.read(want))


def test_a_constant_of_another_type_is_another_program(device):
    source = "def k(x, n: const):\n    return x * n / 2"
    kernel = compute.Kernel.register("k", source, replace=True)
    x = compute.buffer([3], (1,), "s32")
    found = []
    for n in (1, 1.0, True):
        out = compute.buffer_zeros((1,), "f32")
        compute.pipeline().add(kernel=kernel, inputs=[x], output=out, params={"n": n}).run()
        found.append(compute.read_list(out))
    compute.Kernel.unregister("k")
    assert found == [[1.5]] * 3


def test_scratch_that_is_also_read_as_another_dtype_is_written(device):
    x = vector(1.0, 2.0, 3.0)
    between = compute.scratch((3,), "f32")
    bits = compute.Buffer(between.place, U32, (3,))
    out, seen = zeros(), compute.buffer_zeros((3,), "u32")
    pipeline = compute.pipeline()
    pipeline.add(kernel="scale", inputs=[x], output=between, params={"factor": 2.0})
    pipeline.add(kernel="relu", inputs=[between], output=out)
    pipeline.add(kernel="cast", inputs=[bits], output=seen)
    pipeline.run()
    assert compute.read(seen).view(np.float32).tolist() == [2.0, 4.0, 6.0]


def test_parameters_of_a_stage_that_stays_whole_can_be_set(device):
    x = compute.from_numpy(np.full((2, 2, 3), 0.5, np.float32))
    half = {"matrix": np.eye(3) * 0.5}
    pipeline = compute.pipeline()
    for name in ("first", "second"):
        pipeline.add(kernel="color_matrix", inputs=[x], output=x, params=half, name=name)
    pipeline.run()
    assert compute.read(x)[0, 0].tolist() == [0.125] * 3
    pipeline.set("second", matrix=np.eye(3) * 4.0).run()
    assert compute.read(x)[0, 0].tolist() == [0.25] * 3


def test_a_stage_that_is_added_after_a_run_is_run_too(device):
    x, y, z = vector(1.0, 2.0, 3.0), zeros(), zeros()
    pipeline = compute.pipeline()
    pipeline.add(kernel="scale", inputs=[x], output=y, params={"factor": 2.0}).run()
    pipeline.add(kernel="elementwise_add", inputs=[y, y], output=z).run()
    assert compute.read_list(z) == [4.0, 8.0, 12.0]


def test_a_buffer_is_swapped_for_another(device):
    x, other, out = vector(1.0, 2.0, 3.0), vector(4.0, 5.0, 6.0), zeros()
    pipeline = compute.pipeline()
    pipeline.add(kernel="elementwise_add", inputs=[x, x], output=out).run()
    plan = pipeline._plan
    pipeline.bind(x, other).run()
    assert compute.read_list(out) == [8.0, 10.0, 12.0]
    assert pipeline._plan is plan
    with pytest.raises(errors.ShapeError, match="shapes differ"):
        pipeline.bind(other, zeros(4))
    with pytest.raises(errors.DtypeError, match="dtypes differ"):
        pipeline.bind(other, compute.buffer_zeros((3,), "s32"))
    with pytest.raises(errors.ArgumentError, match="no stage uses"):
        pipeline.bind(x, other)


def overlapping(reads_first):
    """Stages on two buffers that share all rows but one: what one writes, the other sees."""
    memory = np.random.default_rng(4).normal(size=(401, 300)).astype(np.float32)
    upper, lower = (compute.from_dlpack(memory[i : i + 400]) for i in (0, 1))
    x = compute.from_numpy(np.random.default_rng(5).normal(size=(400, 300)).astype(np.float32))
    out = compute.buffer_zeros((400, 300), "f32")
    # In this order a few rows at a time would meet rows too early, or too late.
    written, read = (lower, upper) if reads_first else (upper, lower)
    stages = [("scale", [x], written, {"factor": 2.0}), ("scale", [read], out, {"factor": 3.0})]
    return memory, out, stages[::-1] if reads_first else stages


@pytest.mark.parametrize("reads_first", [True, False])
def test_memory_that_two_stages_share_in_part_is_written_and_read_in_order(reads_first):
    results = []
    for fuse in (True, False):
        with compute.device("cpu"):
            memory, out, stages = overlapping(reads_first)
            pipeline = compute.pipeline(fuse=fuse)
            for kernel, inputs, output, params in stages:
                pipeline.add(kernel=kernel, inputs=inputs, output=output, params=params)
            pipeline.run()
            results.append((memory, compute.read(out)))
    for fused, alone in zip(*results, strict=True):
        np.testing.assert_array_equal(fused, alone)


# -- commands --------------------------------------------------------------------------------------


def test_buffers_stand_in_for_others_in_one_run(device):
    x, between, out = vector(1.0, 2.0), compute.scratch((2,), "f32"), zeros(2)
    pipeline = compute.pipeline()
    pipeline.add(kernel="scale", inputs=[x], output=between, params={"factor": 3.0})
    pipeline.add(kernel="relu", inputs=[between], output=out)
    other, there = vector(-1.0, 5.0), zeros(2)
    pipeline.run({"scale": {"factor": 2.0}}, {x: other, out: there})
    assert compute.read_list(there) == [0.0, 10.0]
    assert compute.read_list(out) == [0.0, 0.0]
    pipeline.run(buffers={out: other, x: other})
    assert compute.read_list(other) == [0.0, 15.0]
    pipeline.run()
    assert compute.read_list(out) == [3.0, 6.0]
    with pytest.raises(errors.ShapeError, match="the shapes differ"):
        pipeline.run(buffers={x: zeros(3)})


def test_a_pipeline_can_be_submitted_and_awaited(device):
    x, out = vector(1.0, 2.0, 3.0), zeros()
    pipeline = compute.pipeline()
    pipeline.add(kernel="scale", inputs=[x], output=out, params={"factor": 2.0})
    compute.submit(pipeline).wait()
    assert compute.read_list(out) == [2.0, 4.0, 6.0]

    async def main():
        await pipeline.run_async(params={"scale": {"factor": 7.0}})

    asyncio.run(main())
    assert compute.read_list(out) == [7.0, 14.0, 21.0]


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "error", "said"),
    [
        ({"op": "teleport"}, errors.ArgumentError, "stage 1: op 'teleport'"),
        ({"kernel": "relu"}, errors.ArgumentError, "also needs inputs, output"),
        ({"kernel": "rellu", "inputs": [], "output": None}, errors.UnknownKernelError, "rellu"),
        ({"kernel": "relu", "input": []}, errors.ArgumentError, "not 'input'"),
        ({"op": "barrier", "kernel": "relu"}, errors.ArgumentError, "not 'kernel'"),
    ],
)
def test_a_wrong_stage_is_refused_when_it_is_added(stage, error, said):
    x, out = vector(1.0, 2.0, 3.0), zeros()
    pipeline = compute.pipeline().add(kernel="relu", inputs=[x], output=out)
    with pytest.raises(error, match=said):
        pipeline.add(stage)
    assert len(pipeline) == 1
    pipeline.run()
    assert compute.read_list(out) == [1.0, 2.0, 3.0]


def test_a_mistake_names_its_stage(device):
    x, out = vector(1.0, 2.0, 3.0), zeros()
    pipeline = compute.pipeline().add(kernel="relu", inputs=[x], output=out)
    wrong = [
        ({"inputs": [x], "output": zeros(4), "kernel": "relu"}, errors.ShapeError),
        ({"inputs": [x, x], "output": out, "kernel": "relu"}, errors.ArgumentError),
        (
            {"inputs": [x], "output": out, "kernel": "scale", "params": {"factr": 2.0}},
            errors.ArgumentError,
        ),
        ({"inputs": [x], "output": zeros(4), "op": "copy_buffer"}, errors.ShapeError),
    ]
    for stage, error in wrong:
        with pytest.raises(error, match=r"^stage 1 \("):
            pipeline.add(stage)


def test_a_freed_buffer_is_refused_by_the_stage_that_uses_it(device):
    x, out = vector(1.0, 2.0, 3.0), zeros()
    pipeline = compute.pipeline().add(kernel="relu", inputs=[x], output=out)
    pipeline.run()
    compute.free(x)
    with pytest.raises(errors.FreedError, match=r"stage 0 \(relu\)"):
        pipeline.run()


def test_a_freed_pipeline_is_refused():
    x, out = vector(1.0, 2.0, 3.0), zeros()
    pipeline = compute.pipeline().add(kernel="relu", inputs=[x], output=out)
    compute.free_pipeline(pipeline)
    compute.free_pipeline(pipeline)
    with pytest.raises(errors.FreedError, match="pipeline was freed"):
        pipeline.run()


def test_names_of_stages_are_suggested():
    x, out = vector(1.0, 2.0, 3.0), zeros()
    pipeline = compute.pipeline().add(kernel="relu", inputs=[x], output=out)
    with pytest.raises(errors.ArgumentError, match="Did you mean 'relu'"):
        pipeline.set("rellu", slope=0.5)
    with pytest.raises(errors.ArgumentError, match="there are 1"):
        pipeline.set(3, slope=0.5)


@pytest.mark.usefixtures("webgpu")
def test_a_pipeline_has_one_device():
    with compute.device("cpu"):
        x, out = vector(1.0, 2.0, 3.0), zeros()
    pipeline = compute.pipeline().add(kernel="relu", inputs=[x], output=out)
    with pytest.raises(errors.ArgumentError, match="a pipeline has one device"):
        pipeline.add(kernel="relu", inputs=[vector(1.0)], output=zeros(1))


def test_a_stage_that_fails_leaves_later_ones_unrun(device):
    endless = compute.Kernel.register(
        "endless", "def k(x):\n    while x == x:\n        x = x + 1.0\n    return x"
    )
    x, y, z = vector(1.0), zeros(1), vector(9.0)
    pipeline = compute.pipeline()
    pipeline.add(kernel=endless, inputs=[x], output=y).add(kernel="relu", inputs=[y], output=z)
    with pytest.raises(errors.KernelTimeoutError, match="endless"):
        pipeline.run()
    assert compute.read_list(z) == [9.0]


def test_a_parameter_that_is_part_of_the_code_has_it_made_anew(device):
    maps = compute.from_numpy(np.array([1.0, 3.0, 2.0], np.float32).reshape(1, 3, 1))
    out = compute.buffer_zeros((1, 3, 1), "f32")
    pipeline = compute.pipeline()
    pipeline.add(name="peaks", kernel="heatmap_peaks", inputs=[maps], output=out)
    pipeline.run()
    assert np.count_nonzero(compute.read(out)) == 1
    pipeline.run(params={"peaks": {"radius": 0}})
    assert np.count_nonzero(compute.read(out)) == 3


def test_a_run_that_is_replayed_sees_other_values_and_other_buffers(device):
    pipeline, gray = three_filters()
    image = pipeline.stages[0].inputs[0]
    others = [
        compute.from_numpy(np.random.default_rng(seed).integers(0, 256, (9, 7, 4), np.uint8))
        for seed in range(3)
    ]
    for amount in (0.1, 0.7, 0.1):
        for other in (image, *others, image):
            pipeline.run({"sharpen": {"amount": amount}}, {image: other})
            fresh, want = three_filters()
            fresh.run({"sharpen": {"amount": amount}}, {fresh.stages[0].inputs[0]: other})
            assert np.array_equal(compute.read(gray), compute.read(want))


def test_what_lies_between_stages_shares_memory_when_its_time_is_over(device):
    x, out = (compute.buffer_zeros((64, 1024), "f32") for _ in range(2))
    pipeline, at = compute.pipeline(fuse=False), x
    for _ in range(6):
        to = compute.scratch((64, 1024), "f32")
        pipeline.add(kernel="sigmoid", inputs=[at], output=to)
        at = to
    pipeline.add(kernel="sigmoid", inputs=[at], output=out)
    before = compute.memory().live_bytes
    pipeline.run()
    assert compute.memory().live_bytes - before == 2 * x.size
