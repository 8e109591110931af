"""The order of the layers, the size of modules, and what an import loads."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
MODULES = sorted((SOURCE / "dala").rglob("*.py"))

# Lowest first. A module imports from its own room and from those above it here; rooms of one
# line do not import from each other.
LAYERS: list[tuple[str, ...]] = [
    ("base", "errors"),
    ("ir",),
    ("lang",),
    ("plan",),
    ("emit",),
    ("emit.llvm", "emit.wgsl"),
    ("devices.device", "devices.registry", "devices.result_comparison"),
    ("devices.cpu", "devices.webgpu"),
    ("devices",),
    ("runtime.profiling",),
    ("runtime.buffers",),
    ("runtime.kernels",),
    ("runtime.commands",),
    ("runtime.pipelines",),
    ("kernels.base",),
    ("kernels.tensor",),
    ("kernels.image", "kernels.vision"),
    ("kernels",),
    ("images",),
    ("ml.catalog", "ml.onnx"),
    ("ml.importers",),
    ("ml.sources",),
    ("ml.executor", "ml.results"),
    ("ml.tasks",),
    ("ml.models",),
    ("ml.comparison",),
    ("ml",),
    ("media.pictures",),
    ("media.filters",),
    ("media.video.reading",),
    ("media.video.filtering",),
    ("media.video.writing",),
    ("media.video.composing",),
    ("media.video",),
    ("media",),
    ("media.showcase",),
    ("media.clip",),
    ("surfaces",),
    ("__init__", "__main__", "_typing", "cli", "compute", "demo", "filters", "gpu", "models"),
]
RANKS = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}
TOGETHER = [LAYERS[0], LAYERS[-1], ("devices.device", "devices.registry")]
"""Rooms of one line that are one thing."""

LONGEST_MODULE_LINES = 400


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def room_of(module: str) -> str:
    """The most special room that a module is in."""
    parts = module.split(".")[1:]
    for count in range(len(parts), 0, -1):
        if ".".join(parts[:count]) in RANKS:
            return ".".join(parts[:count])
    raise AssertionError(f"{module} is in no layer: give it a place in LAYERS")


def may_import(importer: str, target: str) -> bool:
    """Whether the target lies below the importer, or in the same room."""
    here, there = room_of(importer), room_of(target)
    together = any({here, there} <= set(rooms) for rooms in TOGETHER)
    return here == there or RANKS[there] < RANKS[here] or together


def targets_of_from(node: ast.ImportFrom, importer: str) -> Iterator[str]:
    base = importer.split(".")[: -node.level] if node.level else []
    module = ".".join([*base, *(node.module or "").split(".")]).strip(".")
    if module != "dala":
        yield module
        return
    for alias in node.names:
        is_module = (SOURCE / "dala" / alias.name).exists() or alias.name in RANKS
        # The version is a constant that any layer may name.
        if alias.name != "__version__":
            yield f"dala.{alias.name}" if is_module else "dala.__init__"


def imported_modules(tree: ast.AST, importer: str) -> Iterator[tuple[int, str]]:
    """Every module of dala that is imported anywhere in the tree, with the line."""
    for node in ast.walk(tree):
        targets: list[str] = []
        match node:
            case ast.Import(names=names):
                targets = [
                    "dala.__init__" if alias.name == "dala" else alias.name for alias in names
                ]
            case ast.ImportFrom():
                targets = list(targets_of_from(node, importer))
            case ast.Call(
                func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(target)), *_],
            ):
                targets = [target]
        yield from ((node.lineno, target) for target in targets if target.startswith("dala."))


def violations(source: str, importer: str) -> list[str]:
    return [
        f"{importer}:{line} imports {target}"
        for line, target in imported_modules(ast.parse(source), importer)
        if not may_import(importer, target)
    ]


def test_no_module_imports_from_a_layer_above_its_own():
    assert MODULES
    found = [
        violation
        for path in MODULES
        for violation in violations(path.read_text(encoding="utf-8"), module_name(path))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("importer", "target", "allowed"),
    [
        ("dala.ml.tasks.faces", "dala.ml.models.model", False),
        ("dala.ml.models.model", "dala.ml.tasks", True),
        ("dala.ml.sources.store", "dala.ml.gpu", False),
        ("dala.media.video.reading.video_file", "dala.media.video.writing.sink", False),
        ("dala.kernels.image.blurs", "dala.kernels", False),
        ("dala.emit.wgsl.grid", "dala.emit.llvm.ir_writer", False),
        ("dala.devices.webgpu.device", "dala.devices.cpu.memory", False),
    ],
)
def test_rooms_inside_of_a_layer_have_an_order_too(importer, target, allowed):
    assert may_import(importer, target) is allowed


@pytest.mark.parametrize(
    "source",
    [
        "import dala",
        "import dala.gpu.compute",
        "from dala import gpu",
        "from dala import kernel",
        "from dala.gpu import compute",
        "from .. import gpu",
        "from ..gpu.compute import run_kernel",
        "def load():\n    from dala.kernels import reduce",
        "if TYPE_CHECKING:\n    from dala.runtime.buffers.buffer import Buffer",
        "importlib.import_module('dala.gpu')",
    ],
)
def test_an_import_from_above_is_noticed_however_it_is_written(source):
    assert violations(source, "dala.emit.loops")


@pytest.mark.parametrize(
    "source",
    [
        "from dala import errors",
        "from dala import __version__",
        "from dala.ir import types",
        "from ..lang import parse",
        "from . import names",
        "import numpy",
    ],
)
def test_an_import_from_below_or_beside_is_allowed(source):
    assert not violations(source, "dala.emit.loops")


def test_no_module_is_too_long():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    long = {module_name(p): n for p, n in lengths.items() if n > LONGEST_MODULE_LINES}
    assert not long, f"more than {LONGEST_MODULE_LINES} lines: {long}"


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("dala", {"numpy", "llvmlite", "wgpu"}),
        ("dala.gpu.compute", {"llvmlite", "wgpu"}),
    ],
)
def test_an_import_does_not_load_what_it_may_never_need(module, heavy):
    program = f"import sys, {module}; print(*({heavy!r} & sys.modules.keys()))"
    fresh = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert fresh.returncode == 0, fresh.stderr
    assert fresh.stdout.split() == []


# -- the tour in docs/architecture.md --------------------------------------------------------------

TOUR = (SOURCE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")


def toured_rooms() -> list[str]:
    """The rooms of the table, in its order, as folders."""
    table = TOUR.partition("| room |")[2].partition("\n\n")[0]
    firsts = [line.split("|")[1] for line in table.splitlines()[2:]]
    return [name for first in firsts for name in re.findall(r"`([^`]+)`", first)]


def test_the_tour_shows_every_room_and_no_other():
    rooms = {room.replace(".", "/") for room in RANKS}
    folders = {room for room in rooms if (SOURCE / "dala" / room).is_dir()}
    assert {name for name in toured_rooms() if not name.endswith(".py")} == folders


def test_the_tour_follows_the_order_of_the_layers():
    ranks = [RANKS[name.removesuffix(".py").replace("/", ".")] for name in toured_rooms()]
    assert ranks == sorted(ranks)


def test_every_path_of_the_tour_exists():
    named = set(re.findall(r"`((?:\w+/)+\w*(?:\.py)?)`", TOUR))
    assert len(named) > 30
    missing = [name for name in named if not (SOURCE / "dala" / name).exists()]
    assert missing == []
