"""The order of the layers, the size of modules, and what an import loads."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
MODULES = sorted((SOURCE / "dala").rglob("*.py"))

# Lowest first; the public surface is the last layer. Modules of one layer may import each other.
LAYERS = [
    {"printable"},
    {"errors"},
    {"ir"},
    {"lang"},
    {"plan"},
    {"emit"},
    {"devices"},
    {"runtime"},
    {"kernels"},
    {"images"},
    {"ml"},
    {"media"},
    {"surfaces"},
    {"__init__", "__main__", "_typing", "cli", "demo", "gpu"},
]
RANKS = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}

LONGEST_MODULE_LINES = 400


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def rank_of(module: str) -> int:
    part = module.split(".")[1]
    assert part in RANKS, f"{module} is in no layer: give {part!r} its place in LAYERS"
    return RANKS[part]


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
        if rank_of(target) > rank_of(importer)
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
        "if TYPE_CHECKING:\n    from dala.runtime.buffer import Buffer",
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
