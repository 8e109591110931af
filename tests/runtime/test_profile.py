"""Profiles: what they see, and what they write."""

from __future__ import annotations

import inspect
import json
import math
import re
import subprocess
import sys
import textwrap
import threading
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import dala
from dala import errors
from dala.devices import current_device
from dala.devices.fault_injection import Faulty
from dala.gpu import compute
from dala.runtime.pipelines.composite import HostCallKernel
from dala.runtime.profiling import profile as profiles

COUNT = 1000
BYTES = 4 * COUNT


@dala.kernel
def shift(x):
    (i,) = dala.position(1)
    return x[i - 1] + 2.0 * x[i + 1]


@pytest.fixture(autouse=True)
def closed():
    """No profile is left open by a test."""
    yield
    assert profiles.ACTIVE == []


def zeros(count=COUNT):
    return compute.buffer_zeros((count,), "f32")


def chain(x, y, out):
    pipeline = compute.pipeline()
    pipeline.add(kernel="scale", inputs=[x], output=y, params={"factor": 2.0})
    return pipeline.add(kernel=shift, inputs=[y], output=out)


def seen(profile):
    return [(item.name, item.bytes_read, item.bytes_written) for item in profile.records]


def test_a_kernel_is_seen_with_its_bytes(device):
    x, y, out = zeros(), zeros(), zeros()
    compute.run_kernel("relu", [x], out)
    with compute.profile() as p:
        compute.run_kernel("elementwise_add", [x, y], out)
        compute.run_kernel("elementwise_add", [x, x], x)
    compute.run_kernel("relu", [x], out)
    assert seen(p) == [
        ("elementwise_add", 2 * BYTES, BYTES),
        ("elementwise_add", BYTES, BYTES),
    ]
    for item in p.records:
        assert item.device == device
        assert item.thread_id == threading.get_ident()
        assert item.start_s >= 0
        assert item.duration_s >= 0
        assert math.isfinite(item.start_s + item.duration_s + item.bandwidth)
        assert item.bytes_moved == item.bytes_read + item.bytes_written
    assert p.records[0].start_s <= p.records[1].start_s


def test_the_clock_is_the_devices_own_where_it_has_one(device):
    features = current_device().info().get("features", [])
    with compute.profile() as p:
        compute.run_kernel("relu", [zeros()], zeros())
    assert p.records[0].clock == ("device" if "timestamp-query" in features else "host")


def test_more_passes_than_can_be_timed_are_timed_by_the_host(webgpu, monkeypatch):
    device = current_device()
    if "timestamp-query" not in device.gpu.features:
        pytest.skip(f"{webgpu} has no timestamps")
    x, y, out = compute.from_numpy(np.ones(COUNT, np.float32)), zeros(), zeros()

    def two_passes():
        compute.run_kernel("relu", [x], y)
        compute.run_kernel("elementwise_add", [x, y], out)

    for most, clock in ((2, "device"), (1, "host")):
        monkeypatch.setattr("dala.devices.webgpu.pass_clock.MOST_PASSES", most)
        timing = device.timed(two_passes)
        assert timing.clock == clock
        assert timing.duration_s > 0
        assert compute.read_list(out) == [2.0] * COUNT
    assert device._clock is None


@pytest.mark.usefixtures("webgpu")
def test_without_timestamps_the_host_waits_for_the_device(monkeypatch):
    device = current_device()
    synchronized = []
    monkeypatch.setattr(device.gpu, "_features", set())
    monkeypatch.setattr(device, "synchronize", lambda: synchronized.append(True))
    with compute.profile() as p:
        compute.run_kernel("relu", [zeros()], zeros())
    assert [item.clock for item in p.records] == ["host"]
    assert synchronized == [True]


def test_bandwidth_is_bytes_by_time():
    fields = {"name": "k", "device": "cpu", "clock": "host", "thread_id": 1, "thread": "main"}
    item = compute.Record(
        start_s=0.0, duration_s=0.5, bytes_read=10**9, bytes_written=5 * 10**8, **fields
    )
    assert item.bandwidth == 3.0
    instant = compute.Record(start_s=0.0, duration_s=0.0, bytes_read=8, bytes_written=8, **fields)
    assert instant.bandwidth == 0.0


def test_a_group_is_one_run_of_what_it_touches():
    x, y, out = zeros(), compute.scratch((COUNT,), "f32"), zeros()
    pipeline = compute.pipeline()
    pipeline.add(kernel="scale", inputs=[x], output=y, params={"factor": 2.0})
    pipeline.add(kernel="relu", inputs=[y], output=out)
    with compute.profile() as p:
        pipeline.run()
    assert seen(p) == [("scale → relu", BYTES, BYTES)]


def test_what_a_group_keeps_counts_as_written(device):
    image = compute.from_numpy(np.zeros((40, 30), np.float32))
    kept, out = (compute.buffer_zeros((40, 30), "f32") for _ in range(2))
    pipeline = compute.pipeline()
    pipeline.add(kernel="scale", inputs=[image], output=kept, params={"factor": 2.0})
    pipeline.add(kernel="elementwise_add", inputs=[image, kept], output=out)
    with compute.profile() as p:
        pipeline.run()
    assert seen(p) == [("scale → elementwise_add", 4800, 9600)]


def test_stages_that_are_not_fused_are_runs_of_their_own(device):
    x, y, out = zeros(), zeros(), zeros()
    pipeline = compute.pipeline(fuse=False)
    pipeline.add(kernel="scale", inputs=[x], output=y, params={"factor": 2.0})
    pipeline.add(kernel=shift, inputs=[y], output=out)
    with compute.profile() as p:
        pipeline.run()
    assert seen(p) == [("scale", BYTES, BYTES), ("shift", BYTES, BYTES)]


def test_a_pipeline_computes_the_same_while_it_is_watched(device):
    values = np.arange(COUNT, dtype=np.float32)
    x, y = compute.from_numpy(values), compute.scratch((COUNT,), "f32")
    plain, watched = zeros(), zeros()
    chain(x, y, plain).run()
    with compute.profile():
        chain(x, y, watched).run()
    assert np.array_equal(compute.read(plain), compute.read(watched))
    assert compute.read(plain).any()


def test_a_library_is_seen():
    twice = HostCallKernel("twice", ("x",), lambda x, out: np.multiply(x, 2, out=out))
    with compute.profile() as p:
        compute.run_kernel(twice, [zeros()], zeros())
    assert seen(p) == [("twice", BYTES, BYTES)]


def test_a_composite_kernel_shows_its_stages_and_its_copy(device):
    a = compute.from_numpy(np.zeros((16, 16, 4), np.uint8))
    out = compute.buffer_zeros((16, 16, 4), "u8")
    stages = [stage.kernel.name for stage in compute.Kernel.lookup("blur").stages([a], out)]
    with compute.profile() as p:
        compute.run_kernel("blur", [a], out)
    assert [item.name for item in p.records] == stages
    assert p.records[-1].bytes_written == 16 * 16 * 4
    with compute.profile() as p:
        compute.run_kernel("blur", [a], a)
    assert [item.name for item in p.records] == [*stages, "copy_buffer"]


def test_commands_on_their_threads_are_seen(device):
    x, y, out = zeros(), compute.scratch((COUNT,), "f32"), zeros()
    with compute.profile() as p:
        compute.wait(compute.run_kernel_async("relu", [x], out), 60)
        compute.wait(compute.submit(op="copy_buffer", inputs=[x], output=out), 60)
        compute.wait(chain(x, y, out).run_async(), 60)
    assert seen(p)[:2] == [("relu", BYTES, BYTES), ("copy_buffer", BYTES, BYTES)]
    assert seen(p)[-1][0].endswith("shift")
    assert threading.get_ident() not in {item.thread_id for item in p.records}


@pytest.mark.usefixtures("webgpu")
def test_a_text_in_wgsl_is_seen():
    text = compute.Kernel.register(
        "text",
        """
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> out: array<f32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) { out[id.x] = x[id.x] + 1.0; }
        """,
        language="wgsl",
    )
    out = zeros()
    with compute.profile() as p:
        compute.run_kernel(text, [zeros()], out)
    assert seen(p) == [("text", BYTES, BYTES)]
    assert compute.read(out).min() == 1.0
    features = current_device().info()["features"]
    assert p.records[0].clock == ("device" if "timestamp-query" in features else "host")


def test_nested_profiles_both_see(device):
    x, out = zeros(), zeros()
    with compute.profile() as outer:
        compute.run_kernel("relu", [x], out)
        with compute.profile() as inner:
            compute.run_kernel("abs", [x], out)
        compute.run_kernel("relu", [x], out)
    assert [item.name for item in outer.records] == ["relu", "abs", "relu"]
    assert [item.name for item in inner.records] == ["abs"]
    assert inner.records[0].start_s <= outer.records[1].start_s


def test_all_threads_are_seen(device):
    def work():
        with compute.device(device):
            for _ in range(10):
                compute.run_kernel("relu", [zeros(8)], zeros(8))

    with compute.profile() as p:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(p.records) == 40
    assert len({item.thread for item in p.records}) == 4


def test_a_run_that_fails_is_no_run(device):
    faulty = Faulty(current_device(), submit=2)
    with compute.profile() as p:
        with compute.device(faulty):
            x, out = zeros(), zeros()
        compute.run_kernel("relu", [x], out)
        with pytest.raises(errors.DeviceLostError):
            compute.run_kernel("relu", [x], out)
    assert len(p.records) == 1


def test_what_ends_after_the_block_is_left_out():
    block, go = threading.Event(), threading.Event()

    def slow(x, out):
        block.set()
        assert go.wait(60)

    x, out = zeros(), zeros()
    with compute.profile() as p:
        command = compute.run_kernel_async(HostCallKernel("slow", ("x",), slow), [x], out)
        assert block.wait(60)
    go.set()
    compute.wait(command, 60)
    assert p.records == ()


def test_an_error_inside_the_block_ends_it():
    with pytest.raises(ZeroDivisionError), compute.profile() as p:
        raise ZeroDivisionError
    assert p.table().startswith("name")


# -- what is shown ---------------------------------------------------------------------------------


def collected(*runs):
    """A profile of runs that are (name, device, thread, start_s, duration_s, bytes)."""
    with compute.profile() as p:
        for name, device, thread, start_s, duration_s, count in runs:
            p.note(
                p._began_s + start_s,
                name=name,
                device=device,
                clock="host",
                duration_s=duration_s,
                bytes_read=count,
                bytes_written=count,
                thread_id=thread,
                thread=f"thread {thread}",
            )
    return p


RUNS = [
    ("blur", "cpu", 7, 0.0, 0.001, 10**6),
    ("a → b", "cpu", 8, 0.0, 0.006, 3 * 10**6),
    ("blur", "cpu", 7, 0.002, 0.003, 10**6),
    ("blur", "webgpu", 7, 0.004, 0.0, 10**6),
]


def test_the_table_adds_up_and_is_sorted_by_time():
    rows = [re.split(r"\s{2,}", line) for line in collected(*RUNS).table().splitlines()]
    assert rows == [
        ["name", "device", "clock", "count", "total ms", "mean ms", "share %", "GB/s"],
        ["a → b", "cpu", "host", "1", "6.000", "6.000", "60.0", "1.00"],
        ["blur", "cpu", "host", "2", "4.000", "2.000", "40.0", "1.00"],
        ["blur", "webgpu", "host", "1", "0.000", "0.000", "0.0", "0.00"],
    ]
    assert len({len(line) for line in collected(*RUNS).table().splitlines()}) == 1


def test_an_empty_profile_can_be_shown_too(tmp_path):
    p = collected()
    assert len(p.table().splitlines()) == 1
    p.save(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"] == []
    p.plot(tmp_path / "timeline.svg")
    ET.parse(tmp_path / "timeline.svg")


def test_a_trace_is_what_perfetto_reads(tmp_path):
    path = tmp_path / "trace.json"
    collected(*RUNS).save(path)
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    runs = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in runs] == [run[0] for run in RUNS]
    assert [round(event["ts"]) for event in runs] == [0, 0, 2000, 4000]
    assert [round(event["dur"]) for event in runs] == [1000, 6000, 3000, 0]
    assert [(event["pid"], event["tid"]) for event in runs] == [(1, 1), (1, 2), (1, 1), (2, 1)]
    assert runs[1]["args"]["bytes_read"] == runs[1]["args"]["bytes_written"] == 3 * 10**6
    assert runs[1]["args"]["GB/s"] == pytest.approx(1.0)
    names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names["process_name", 1, 1] == "cpu"
    assert names["process_name", 2, 1] == "webgpu"
    assert names["thread_name", 1, 2] == "thread 8"


def test_a_timeline_has_a_bar_for_each_run_where_it_belongs(tmp_path):
    path = tmp_path / "timeline.svg"
    collected(*RUNS, ("<&\x00>", "cpu", 7, 0.0055, 0.0005, 1)).plot(path)
    drawing = ET.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    bars = drawing.findall(f"{space}g/{space}rect")
    assert len(bars) == 5
    left = [float(bar.get("x")) for bar in bars]
    width = [float(bar.get("width")) for bar in bars]
    top = [float(bar.get("y")) for bar in bars]
    assert left[0] == left[1] < left[2] < left[3] < left[4]
    assert width[1] == pytest.approx(6 * width[0], rel=0.01)
    assert left[2] - left[0] == pytest.approx(2 * width[0], rel=0.01)
    assert max(x + w for x, w in zip(left, width, strict=True)) <= float(drawing.get("width"))
    assert top[0] == top[2] == top[4] != top[1] != top[3]
    assert bars[0].get("fill") == bars[2].get("fill") != bars[1].get("fill")
    titles = [item.text for item in drawing.findall(f"{space}g/{space}title")]
    assert titles[1] == "a → b: 6 ms (host clock), 6,000,000 bytes, 1.00 GB/s"
    assert titles[4].startswith("<& >:")
    said = [item.text for item in drawing.iter(f"{space}text")]
    assert "cpu · thread 7" in said
    assert "webgpu · thread 7" in said
    assert "5 runs, 10.5 ms of work in 6 ms" in said


def test_the_example_runs(tmp_path):
    said = inspect.getdoc(compute.profile)
    program = textwrap.dedent(said[said.index("    import numpy") :])
    printed = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=tmp_path)
    assert printed.startswith("name ")
    assert (tmp_path / "trace.json").exists()
    assert (tmp_path / "timeline.svg").exists()


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", ["save", "plot"])
def test_a_path_that_cannot_be_written_is_refused_and_nothing_is_left(tmp_path, write):
    p = collected(*RUNS)
    for path in (tmp_path / "missing" / "file", tmp_path):
        with pytest.raises(errors.FileError, match=rf"{path} cannot be written"):
            getattr(p, write)(path)
    for path in ("", 5, "a\0b"):
        with pytest.raises(errors.ArgumentError, match="file"):
            getattr(p, write)(path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "trace.json"
    path.write_text("old")

    def full(*_, **folders):
        raise OSError(28, "full")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(errors.FileError, match="full"):
            collected(*RUNS).save(path)
    assert [item.name for item in tmp_path.iterdir()] == ["trace.json"]
    assert path.read_text() == "old"
    collected(*RUNS).save(path)
    assert json.loads(path.read_text())


@pytest.mark.parametrize("show", ["table", "save", "plot"])
def test_a_profile_is_shown_after_its_block(tmp_path, show):
    arguments = () if show == "table" else (tmp_path / "file",)
    p = compute.profile()
    with pytest.raises(errors.ArgumentError, match=rf"{show}\(\) shows all"):
        getattr(p, show)(*arguments)
    with p:
        compute.run_kernel("relu", [zeros()], zeros())
        assert len(p.records) == 1
        with pytest.raises(errors.ArgumentError, match="after that block"):
            getattr(p, show)(*arguments)
    getattr(p, show)(*arguments)


def test_a_profile_is_of_one_block():
    p = compute.profile()
    with p:
        pass
    with pytest.raises(errors.ArgumentError, match="of one block"), p:
        pass
