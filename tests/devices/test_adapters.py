"""Which adapters there are, in which order, and how a device is found among them."""

import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dala import devices
from dala.devices import CPU, find_device
from dala.devices.registry import preferred_listing
from dala.devices.webgpu import adapters
from dala.errors import DeviceError
from dala.gpu import compute

LIMITS = {
    "max-buffer-size": 1 << 31,
    "max-storage-buffer-binding-size": 1 << 27,
    "max-compute-workgroup-storage-size": 16384,
    "max-compute-invocations-per-workgroup": 256,
}


def handle(device, kind, api="Vulkan", features=()):
    """What wgpu gives for an adapter, as far as it is looked at."""
    info = {
        "device": device,
        "vendor": "",
        "description": "driver 1",
        "adapter_type": kind,
        "backend_type": api,
    }
    return SimpleNamespace(info=info, limits=LIMITS, features=set(features))


@pytest.fixture
def found(monkeypatch):
    """Replaces what wgpu finds; opening a device gives the adapter itself."""

    def replace(*handles):
        catalogue = adapters.AdapterCatalog()
        catalogue.device = lambda adapter: adapter
        monkeypatch.setattr(adapters, "CATALOG", catalogue)
        monkeypatch.setattr(adapters, "_enumerated", lambda: list(handles))

    return replace


@pytest.fixture
def undecided(monkeypatch):
    """As in a process that has not chosen a device yet."""
    monkeypatch.setattr(devices, "_default", None)
    monkeypatch.delenv("DALA_DEVICE", raising=False)


def test_adapters_are_listed_best_first(found):
    found(
        handle("soft", "CPU"),
        handle("other", "Unknown"),
        handle("big", "DiscreteGPU", "OpenGL"),
        handle("small", "IntegratedGPU"),
        handle("big", "DiscreteGPU"),
    )
    infos = compute.devices()[1:]
    assert [(info["name"], info["api"]) for info in infos] == [
        ("big", "Vulkan"),
        ("big", "OpenGL"),
        ("small", "Vulkan"),
        ("other", "Vulkan"),
        ("soft", "Vulkan"),
    ]
    assert [info["id"] for info in infos] == [
        "webgpu",
        *(f"webgpu:{i}" for i in range(1, 5)),
    ]


def test_the_facts_of_an_adapter_are_told(found):
    found(handle("big", "DiscreteGPU", features={"shader-f64", "texture-compression-bc"}))
    assert compute.devices()[1:] == [
        {
            "id": "webgpu",
            "name": "big",
            "backend": "webgpu",
            "kind": "Vulkan",
            "api": "Vulkan",
            "driver": "driver 1",
            "gpu": True,
            "hardware": True,
            "has_f64": True,
            "has_s64": False,
            "max_buffer_bytes": 1 << 27,
            "max_shared_bytes": 16384,
            "max_group_threads": 256,
            "features": ["shader-f64"],
        }
    ]


def test_an_adapter_in_software_is_neither_gpu_nor_hardware(found):
    found(handle("soft", "CPU"))
    info = compute.devices()[1]
    assert not info["gpu"]
    assert not info["hardware"]


@pytest.mark.parametrize(
    ("which", "id"),
    [
        ("webgpu", "webgpu"),
        ("webgpu:0", "webgpu"),
        ("webgpu:1", "webgpu:1"),
        ("WebGPU:2", "webgpu:2"),
        ("geforce", "webgpu"),
        ("Iris", "webgpu:1"),
        ("opengl", "webgpu:2"),
    ],
)
def test_a_device_is_found_by_its_id_or_by_part_of_a_name(found, which, id):
    found(
        handle("GeForce RTX", "DiscreteGPU"),
        handle("Intel Iris", "IntegratedGPU"),
        handle("llvmpipe", "CPU", "OpenGL"),
    )
    assert find_device(which).id == id


def test_part_of_the_name_of_the_cpu_is_the_cpu(found):
    found(handle("GeForce RTX", "DiscreteGPU"))
    assert find_device(CPU.name[2:].upper()) is CPU


def test_a_name_that_an_adapter_and_the_cpu_share_is_the_adapter(found):
    found(handle(f"{CPU.name} Graphics", "IntegratedGPU"))
    assert find_device(CPU.name).id == "webgpu"


def test_an_unknown_name_lists_what_there_is(found):
    found(handle("GeForce RTX", "DiscreteGPU"))
    with pytest.raises(DeviceError) as raised:
        find_device("webgpu:3")
    for part in ("'webgpu:3'", f"cpu ({CPU.name})", "webgpu (GeForce RTX, Vulkan)"):
        assert part in str(raised.value)


def test_without_wgpu_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(adapters, "CATALOG", adapters.AdapterCatalog())
    monkeypatch.setitem(sys.modules, "wgpu", None)
    with pytest.raises(DeviceError, match=r"pip install dala-gpu\[gpu\]"):
        find_device("webgpu")
    assert find_device(CPU.name) is CPU
    assert [info["id"] for info in compute.devices()] == ["cpu"]


def test_a_hardware_adapter_is_the_default(found, monkeypatch):
    monkeypatch.setattr(adapters, "may_have_gpu", lambda: True)
    found(handle("soft", "CPU"), handle("small", "IntegratedGPU"))
    assert preferred_listing().id == "webgpu"
    found(handle("soft", "CPU"))
    assert preferred_listing().id == "cpu"


@pytest.mark.parametrize("handles", [[], [handle("soft", "CPU")]], ids=["none", "software"])
def test_18_without_a_gpu_the_cpu_computes_and_says_so(found, undecided, monkeypatch, handles):
    monkeypatch.setattr(adapters, "may_have_gpu", lambda: True)
    found(*handles)
    info = compute.device_info()
    assert (info["id"], info["backend"], info["gpu"]) == ("cpu", "cpu", False)
    assert not compute.gpu_available()


def test_18_asking_for_an_adapter_where_none_is_is_a_clear_error(found):
    found()
    with pytest.raises(DeviceError, match="WebGPU found no adapter"):
        find_device("webgpu")


def test_18_without_wgpu_the_cpu_computes(undecided, monkeypatch):
    monkeypatch.setattr(adapters, "may_have_gpu", lambda: True)
    monkeypatch.setattr(adapters, "CATALOG", adapters.AdapterCatalog())
    monkeypatch.setitem(sys.modules, "wgpu", None)
    assert compute.device_info()["backend"] == "cpu"


@pytest.mark.skipif(sys.platform != "linux", reason="device nodes are looked at on Linux only")
def test_a_gpu_takes_a_device_node(tmp_path):
    assert not adapters.may_have_gpu(tmp_path)
    (tmp_path / "dri").mkdir()
    assert not adapters.may_have_gpu(tmp_path)
    (tmp_path / "dri/renderD128").touch()
    assert adapters.may_have_gpu(tmp_path)


def run(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def test_where_no_gpu_can_be_wgpu_is_not_loaded():
    ended = run(
        "import sys; from dala.devices import current_device\n"
        "from dala.devices.webgpu import adapters\n"
        "adapters.may_have_gpu = lambda: False\n"
        "print(current_device().id, 'wgpu' in sys.modules)",
        DALA_DEVICE="",
    )
    assert ended.stdout.split() == ["cpu", "False"], ended.stderr


def test_nothing_is_printed_where_there_is_no_display(gpu):
    ended = run(
        "from dala.gpu import compute; print(compute.device_info()['id'])",
        DALA_DEVICE="webgpu",
        XDG_RUNTIME_DIR="",
    )
    assert (ended.stdout.strip(), ended.stderr) == ("webgpu", "")


@pytest.mark.parametrize("runtime", [None, "", "/nowhere", str(Path(__file__).parent)])
def test_what_is_changed_to_be_quiet_is_put_back(monkeypatch, runtime):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    if runtime is not None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    before = logging.getLogger("wgpu").level
    with adapters.quiet():
        assert Path(os.environ["XDG_RUNTIME_DIR"]).is_dir()
        assert logging.getLogger("wgpu").level >= logging.ERROR
    assert os.environ.get("XDG_RUNTIME_DIR") == runtime
    assert logging.getLogger("wgpu").level == before


def test_a_device_is_opened_once(gpu):
    assert find_device("webgpu") is gpu
    assert find_device(gpu.name) is gpu


def test_a_lost_device_is_opened_anew(gpu):
    gpu.lose()
    again = find_device("webgpu")
    assert again is not gpu
    assert not again.lost
    assert again.name == gpu.name
