"""Kernels with several outputs in pipelines, commands, documents and parity mode."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import dala
from dala.devices import current_device
from dala.devices.result_comparison import compared
from dala.errors import LimitError, ParityError
from dala.gpu import compute

RANDOM = np.random.default_rng(6)


@dala.kernel
def gradients(x):
    i, j = dala.position(2)
    return x[i, j + 1] - x[i, j - 1], x[i + 1, j] - x[i - 1, j]


@dala.kernel
def magnitude(a, b):
    return dala.sqrt(a * a + b * b)


@dala.kernel
def doubled(x):
    return x * 2.0


@dala.kernel
def apart(x):
    return x + 1.0, x - 1.0


@dala.kernel
def shifted(x):
    i, j = dala.position(2)
    return x[i + 1, j] + x[i, j + 1]


def image(shape=(70, 130)):
    return RANDOM.random(shape, np.float32)


def stage_by_stage(pipeline_of, x, made):
    """What the stages give one by one, and fused."""
    found = []
    for fuse in (False, True):
        buffers = [compute.buffer_zeros(x.shape, "f32") for _ in range(made)]
        pipeline = pipeline_of(compute.from_numpy(x), buffers, compute.pipeline(fuse=fuse))
        for _ in range(2):
            pipeline.run()
        found.append(([compute.read(item) for item in buffers], pipeline.explain()))
    (plain, _), (fused, explained) = found
    for a, b in zip(plain, fused, strict=True):
        if current_device().is_host:
            assert np.array_equal(a, b)
        else:
            assert not compared(b, a)[0].any()
    return fused, explained


def scratch(count, shape=(70, 130)):
    return [compute.scratch(shape, "f32") for _ in range(count)]


def units(explained):
    return [line for line in explained.splitlines() if line[:1].isdigit()]


def test_a_consumer_of_both_outputs_is_one_launch_with_their_producer(device):
    def make(x, made, pipeline):
        a, b = scratch(2)
        return pipeline.add(gradients, [x], [a, b]).add(magnitude, [a, b], made[0])

    x = image()
    (got,), explained = stage_by_stage(make, x, 1)
    padded = np.pad(x, 1, "edge")
    across = padded[1:-1, 2:] - padded[1:-1, :-2]
    down = padded[2:, 1:-1] - padded[:-2, 1:-1]
    assert np.allclose(got, np.hypot(across, down), atol=1e-5)
    assert len(units(explained)) == 1
    assert f"{2 * x.nbytes:,} so" in explained


def test_of_two_outputs_the_one_that_is_kept_is_written_beside_its_consumers(device):
    def make(x, made, pipeline):
        (a,) = scratch(1)
        return pipeline.add(gradients, [x], [a, made[1]]).add(doubled, [a], made[0])

    x = image()
    (twice, down), explained = stage_by_stage(make, x, 2)
    across_only, down_only = gradients(x)
    assert np.allclose(twice, 2 * across_only, atol=1e-5)
    assert np.allclose(down, down_only, atol=1e-6)
    assert len(units(explained)) == 1
    assert f"{3 * x.nbytes:,} so" in explained


def test_two_consumers_of_one_output_each_are_one_launch(device):
    def make(x, made, pipeline):
        a, b = scratch(2)
        pipeline.add(apart, [x], [a, b])
        return pipeline.add(doubled, [a], made[0]).add(doubled, [b], made[1])

    x = image()
    (high, low), explained = stage_by_stage(make, x, 2)
    assert np.allclose(high, 2 * (x + 1))
    assert np.allclose(low, 2 * (x - 1))
    assert len(units(explained)) == 1
    assert f"{3 * x.nbytes:,} so" in explained


def test_a_chain_of_kernels_with_two_outputs_is_one_launch(device):
    @dala.kernel
    def turned(a, b):
        return 0.6 * a - 0.8 * b, 0.8 * a + 0.6 * b

    def make(x, made, pipeline):
        a, b, c, d = scratch(4)
        pipeline.add(apart, [x], [a, b]).add(turned, [a, b], [c, d])
        return pipeline.add(turned, [c, d], made)

    _, explained = stage_by_stage(make, image(), 2)
    assert len(units(explained)) == 1


def test_outputs_that_are_read_beside_their_position_stay_in_one_group_on_the_cpu(device):
    def make(x, made, pipeline):
        a, b = scratch(2)
        pipeline.add(gradients, [x], [a, b])
        return pipeline.add(shifted, [a], made[0]).add(shifted, [b], made[1])

    _, explained = stage_by_stage(make, image(), 2)
    assert len(units(explained)) == 1
    if device == "cpu":
        assert f"{3 * image().nbytes:,} so" in explained


def test_one_output_of_a_group_is_kept_and_the_other_is_not(device):
    def make(x, made, pipeline):
        (a,) = scratch(1)
        pipeline.add(gradients, [x], [a, made[0]])
        return pipeline.add(shifted, [a], made[1]).add(doubled, [made[0]], made[2])

    stage_by_stage(make, image(), 3)


def test_a_kept_output_is_written_before_it_is_overwritten(device):
    """The consumer comes after a stage that reads, and one that writes, the output that is kept."""

    def make(x, made, pipeline):
        (a,) = scratch(1)
        pipeline.add(apart, [x], [a, made[0]])
        pipeline.add(doubled, [made[0]], made[1])
        pipeline.add(doubled, [x], made[0])
        return pipeline.add(doubled, [a], made[2])

    x = image()
    (overwritten, twice, high), _ = stage_by_stage(make, x, 3)
    assert np.allclose(overwritten, 2 * x)
    assert np.allclose(twice, 2 * (x - 1))
    assert np.allclose(high, 2 * (x + 1))


def test_a_consumer_that_writes_over_the_other_output_comes_after_it(device):
    def make(x, made, pipeline):
        (a,) = scratch(1)
        return pipeline.add(apart, [x], [a, made[0]]).add(doubled, [a], made[0])

    x = image()
    (found,), _ = stage_by_stage(make, x, 1)
    assert np.allclose(found, 2 * (x + 1))


def test_a_pipeline_iterates_over_two_swapped_pairs(device):
    @dala.kernel
    def step(a, b):
        return 0.6 * a - 0.8 * b, 0.8 * a + 0.6 * b

    x, y = RANDOM.random((2, 33), np.float32)
    a, b, c, d = (compute.from_numpy(item.copy()) for item in (x, y, x, y))
    pipeline = compute.pipeline().add(step, [a, b], [c, d]).swap(a, c).swap(b, d)
    compute.repeat(pipeline, 5)
    turned = np.linalg.matrix_power(np.array([[0.6, -0.8], [0.8, 0.6]]), 5) @ np.stack([x, y])
    assert np.allclose(compute.read(a), turned[0], atol=1e-5)
    assert np.allclose(compute.read(b), turned[1], atol=1e-5)


def test_a_second_output_may_be_the_flag_of_until(device):
    @dala.kernel
    def halved(x):
        return x * 0.5, x < 0.1

    x, y = compute.buffer([1.0], (1,), "f32"), compute.buffer_zeros((1,), "f32")
    flag = compute.buffer_zeros((1,), "u8")
    pipeline = compute.pipeline().add(halved, [x], [y, flag]).swap(x, y)
    assert compute.until(pipeline, flag, every=1).steps == 5


def test_buffers_of_a_stage_with_two_outputs_are_bound_anew(device):
    x, a, b, other = (compute.buffer_zeros((4, 5), "f32") for _ in range(4))
    pipeline = compute.pipeline().add(apart, [x], [a, b])
    pipeline.run()
    pipeline.bind(b, other).run()
    assert compute.read(other).tolist() == [[-1.0] * 5] * 4
    assert compute.read(b).tolist() == [[-1.0] * 5] * 4
    pipeline.run(buffers={a: b})
    assert compute.read(b).tolist() == [[1.0] * 5] * 4


# -- commands -------------------------------------------------------------------------------------


def test_commands_wait_for_every_output(device):
    x = compute.from_numpy(image())
    a, b, c = (compute.buffer_zeros((70, 130), "f32") for _ in range(3))
    compute.submit(kernel=gradients, inputs=[x], output=[a, b])
    last = compute.submit(kernel=doubled, inputs=[b], output=c)
    compute.wait(last)
    assert np.allclose(compute.read(c), 2 * gradients(compute.read(x))[1], atol=1e-5)

    async def again():
        await compute.run_kernel_async(apart, [x], (a, b))

    asyncio.run(again())
    assert np.allclose(compute.read(a) - compute.read(b), 2)
    with compute.stream() as stream:
        stream.submit(kernel=apart, inputs=[c], output=[a, b])
    assert np.allclose(compute.read(b), compute.read(c) - 1)


def test_a_pipeline_runs_as_a_command_that_writes_both(device):
    x, a, b = (compute.from_numpy(image()) for _ in range(3))
    work = compute.pipeline().add(apart, [x], [a, b]).work()
    assert set(work.writes) == {a.memory, b.memory}
    compute.wait(compute.pipeline().add(apart, [x], [a, b]).run_async())
    assert np.allclose(compute.read(a) - compute.read(b), 2)


def test_the_profile_counts_the_bytes_of_every_output(device):
    x, a, b = (compute.from_numpy(image()) for _ in range(3))
    with compute.profile() as profile:
        compute.run_kernel(apart, [x], [a, b])
    (event,) = profile.records
    assert event.bytes_written == 2 * 70 * 130 * 4


# -- documents ------------------------------------------------------------------------------------


def test_a_document_names_every_output(device, tmp_path):
    x = image()
    given, first, second = compute.from_numpy(x), *(compute.from_numpy(image()) for _ in range(2))
    names = {"x": given, "first": first, "second": second}
    (between,) = scratch(1)
    pipeline = compute.pipeline().add(apart, [given], [between, second])
    pipeline.add(doubled, [between], first)
    document = pipeline.to_dict(names)
    assert document["stages"][0]["output"] == ["scratch0", "second"]
    assert document["stages"][1]["output"] == "first"
    pipeline.save(tmp_path / "two.json", names)
    loaded = compute.load_pipeline(tmp_path / "two.json", names)
    loaded.run()
    assert np.allclose(compute.read(first), 2 * (x + 1))
    assert np.allclose(compute.read(second), x - 1)
    assert loaded.to_dict(names) == document


def test_a_mistake_in_a_list_of_outputs_has_a_place(device, tmp_path):
    x, a, b = (compute.from_numpy(image()) for _ in range(3))
    path = tmp_path / "two.json"
    names = {"x": x, "a": a, "b": b}
    compute.pipeline().add(apart, [x], [a, b]).save(path, names)
    path.write_text(path.read_text().replace('"b"\n      ]', '"bb"\n      ]'))
    with pytest.raises(dala.errors.ArgumentError, match=r"\$\.stages\[0\]\.output\[1\].*'bb'"):
        compute.load_pipeline(path, names)


# -- devices --------------------------------------------------------------------------------------


def test_parity_compares_every_output():
    from dala.devices import CPU
    from dala.devices.fault_injection import Faulty, FaultyRunner
    from dala.devices.parity import Parity

    class Off(Faulty):
        def load(self, task):
            return OffRunner(self, task)

    class OffRunner(FaultyRunner):
        def run(self, inputs, outputs, params):
            super().run(inputs, outputs, params)
            self.device.write(outputs[1], np.full(outputs[1].size_bytes // 4, 9, np.float32))

    with compute.device(Parity(CPU, Off(CPU))):
        x, a, b = (compute.buffer_zeros((3, 4), "f32") for _ in range(3))
        with pytest.raises(ParityError, match=r"apart: element \(0, 0\) of output 1 is -1.0 on"):
            compute.run_kernel(apart, [x], [a, b])


@dala.kernel
def four(x):
    return x + 1.0, x + 2.0, x + 3.0, x + 4.0


def test_more_buffers_than_a_shader_can_bind_are_refused():
    with compute.device("webgpu"):
        x, *made = (compute.buffer_zeros((3, 4), "f32") for _ in range(5))
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(current_device().limits, "max-storage-buffers-per-shader-stage", 4)
            with pytest.raises(LimitError, match=r"5 buffers are bound .*4 written, 1 read.* 4 is"):
                compute.run_kernel(four, [x], made)
        compute.run_kernel(four, [x], made)
        assert compute.read(made[3]).tolist() == [[4.0] * 4] * 3


def test_stages_that_would_use_too_many_buffers_together_stay_apart():
    with compute.device("webgpu"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(current_device(), "most_buffers", 5)
        x, y, *made = (compute.buffer_zeros((3, 4), "f32") for _ in range(6))
        (between,) = scratch(1, (3, 4))
        pipeline = compute.pipeline().add(four, [x], [between, *made[1:]])
        pipeline.add(magnitude, [between, y], made[0])
        assert len(units(pipeline.explain())) == 1
        assert "four → magnitude" in pipeline.explain()
        pipeline.run()
        assert compute.read(made[0]).tolist() == [[1.0] * 4] * 3
