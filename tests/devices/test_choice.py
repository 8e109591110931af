"""Which device new buffers go to: by default, in a block, in a thread, by the environment."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from dala import devices
from dala.devices import current_device
from dala.errors import ArgumentError, DeviceError
from dala.gpu import compute


@pytest.fixture
def default(monkeypatch):
    """The CPU as the default device, whatever a test makes of it."""
    monkeypatch.setattr(devices, "_default", None)
    compute.use_device("cpu")


def made_on():
    return compute.buffer_zeros((1,), "f32").device


def test_blocks_nest_and_end_where_they_began(default, webgpu):
    with compute.device("cpu"):
        assert made_on() == "cpu"
        with compute.device("webgpu") as inner:
            assert (made_on(), inner.id) == ("webgpu", "webgpu")
            with compute.device("parity"):
                assert made_on() == "parity"
            assert made_on() == "webgpu"
        assert made_on() == "cpu"
    assert made_on() == "webgpu"


def test_a_block_that_fails_gives_the_device_back(default, webgpu):
    with pytest.raises(ZeroDivisionError), compute.device("cpu"):
        raise ZeroDivisionError
    assert made_on() == "webgpu"
    with pytest.raises(DeviceError), compute.device("cpu"), compute.device("no such device"):
        pytest.fail("there is no such device")
    assert made_on() == "webgpu"


def test_other_threads_do_not_see_a_block(default, webgpu):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(made_on()))
    thread.start()
    thread.join()
    assert (seen, made_on()) == (["cpu"], "webgpu")


def test_threads_have_blocks_of_their_own(default, webgpu):
    seen = {}
    together = threading.Barrier(2)

    def work(name):
        with compute.device(name):
            together.wait(30)
            seen[name] = made_on()
            together.wait(30)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("cpu", "webgpu")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"cpu": "cpu", "webgpu": "webgpu"}


def test_tasks_have_blocks_of_their_own(default, webgpu):
    async def work(name):
        with compute.device(name):
            await asyncio.sleep(0)
            first = made_on()
            await asyncio.sleep(0)
            return first, made_on()

    async def main():
        with compute.device("cpu"):
            return await asyncio.gather(work("webgpu"), work("cpu"), work("webgpu"))

    assert asyncio.run(main()) == [("webgpu",) * 2, ("cpu",) * 2, ("webgpu",) * 2]


def test_the_default_is_for_every_thread_but_not_for_blocks(default, webgpu):
    assert compute.use_device("webgpu") is current_device()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(made_on()))
    thread.start()
    thread.join()
    assert seen == ["webgpu"]
    with compute.device("cpu"):
        compute.use_device("webgpu")
        assert made_on() == "cpu"


def test_a_device_that_is_refused_leaves_the_default(default):
    for wrong in ("no such device", "webgpu:99"):
        with pytest.raises(DeviceError, match=wrong):
            compute.use_device(wrong)
    for wrong in ("", None, 3):
        with pytest.raises(ArgumentError, match=r"'cpu' or 'webgpu'"):
            compute.use_device(wrong)
    assert made_on() == "cpu"


@pytest.mark.parametrize("own", ["cpu", "webgpu"])
@pytest.mark.parametrize("name", ["relu", "softmax", "layer_norm"])
def test_work_runs_where_its_buffers_are(default, webgpu, own, name):
    with compute.device(own):
        x, y = (compute.buffer([[0.0, 0.0]], (1, 2), "f32") for _ in range(2))
    other = {"cpu": "webgpu", "webgpu": "cpu"}[own]
    with compute.device(other):
        compute.run_kernel(name, [x], y)
        compute.write(y, [[9.0, 9.0]])
        command = compute.submit(kernel=name, inputs=[x], output=y)
    command.wait(30)
    assert y.device == own
    assert compute.read_list(y) == ([0.5, 0.5] if name == "softmax" else [0.0, 0.0])


PROGRAM = """
from dala.gpu import compute
x = compute.buffer([-1.0, 2.0], (2,), "f32")
compute.run_kernel("relu", [x], x)
print(x.device, compute.read_list(x), compute.device_info()["id"])
"""


def with_environment(device):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "DALA_DEVICE": device},
    )


@pytest.mark.parametrize("device", ["cpu", "webgpu", "parity"])
def test_the_environment_chooses_the_device(webgpu, device):
    ended = with_environment(device)
    assert (ended.stdout, ended.stderr) == (f"{device} [0.0, 2.0] {device}\n", "")


def test_an_environment_that_names_no_device_is_told_which_there_are(webgpu):
    ended = with_environment("abacus")
    assert ended.returncode == 1
    said = ended.stderr.splitlines()[-1]
    assert said.startswith("dala.errors.DeviceError: no device is called 'abacus'")
    for info in compute.devices():
        assert f"{info['id']} ({info['name']}" in said
