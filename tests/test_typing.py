"""The public surface as type checkers and editors see it: mypy and pyright, on right and wrong."""

import ast
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import dala
from dala.ir.types import DTYPES, DtypeName, NumpyName
from dala.lang.language_names import NAMES
from dala.ml.catalog.entries import MODELS
from dala.ml.models import loading

ROOT = Path(__file__).parent.parent
TYPED = Path(__file__).parent / "typed"
PAGES = ("README.md", "docs/filters.md", "docs/models.md", "docs/surfaces.md", "docs/video.md")

Errors = dict[str, dict[int, str]]
"""What a checker says by file and line."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """A folder with the example files, and with the code of each page as one program."""
    folder = tmp_path_factory.mktemp("typed")
    for path in TYPED.glob("*.py"):
        (folder / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        assert blocks, page
        name = f"{Path(page).stem.lower()}_page.py"
        (folder / name).write_text("\n".join(blocks), encoding="utf-8")
    return folder


def checked_by_mypy(folder: Path) -> Errors:
    (folder / "mypy.ini").write_text("[mypy]\nignore_missing_imports = True\n", encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file", str(folder / "mypy.ini")),
            *("--cache-dir", str(ROOT / ".mypy_cache"), "--no-error-summary"),
            *(str(path) for path in sorted(folder.glob("*.py"))),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Errors = {}
    for path, line, said in re.findall(r"^(.*?):(\d+): error: (.*)$", done.stdout, re.MULTILINE):
        found.setdefault(Path(path).name, {})[int(line)] = said
    return found


def checked_by_pyright(folder: Path) -> Errors:
    # It takes no path for a program's own that lies outside of its project: so this is one.
    settings = {
        "include": ["."],
        "extraPaths": [str(ROOT / "src")],
        "pythonVersion": "3.11",
        "reportMissingImports": False,
        "reportMissingModuleSource": False,
        "reportUnusedExpression": False,
        "reportOptionalMemberAccess": False,
        "reportPossiblyUnboundVariable": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pyright", "--outputjson"),
            *("--pythonpath", sys.executable, "--project", str(folder)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright does not start: {done.stderr.strip() or done.stdout.strip():.200}")
    found: Errors = {}
    for item in json.loads(done.stdout)["generalDiagnostics"]:
        if item["severity"] == "error":
            line = item["range"]["start"]["line"] + 1
            found.setdefault(Path(item["file"]).name, {})[line] = item["message"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("check", [checked_by_mypy, checked_by_pyright])
def test_a_type_checker_refuses_exactly_the_marked_lines(programs, check):
    found = check(programs)
    for path in sorted(programs.glob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        marked = {i for i, line in enumerate(lines, 1) if line.endswith("# refused")}
        said = found.get(path.name, {})
        wrong = {i: (lines[i - 1], said.get(i, "accepted")) for i in marked ^ said.keys()}
        assert not wrong, (path.name, wrong)
    assert found.keys() == {"refused.py"}


def test_stubs_and_pages_are_as_the_declarations_make_them():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "generate"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}: run tools/generate"


def test_the_stub_of_the_language_has_its_names():
    tree = ast.parse((ROOT / "src/dala/_typing.pyi").read_text(encoding="utf-8"))
    names = [
        node.target.id if isinstance(node, ast.AnnAssign) else node.name
        for node in tree.body
        if isinstance(node, ast.AnnAssign | ast.FunctionDef)
    ]
    assert sorted(names) == sorted(NAMES)


def test_literals_for_type_checkers_name_what_there_is():
    assert get_args(DtypeName) == tuple(DTYPES)
    assert get_args(NumpyName) == tuple(item.numpy_name for item in DTYPES.values())
    by_task = {
        "classification": loading.Classifier,
        "detection": loading.Detector,
        "pose": loading.Poser,
        "segmentation": loading.Segmenter,
    }
    for task, names in by_task.items():
        assert set(get_args(names)) == {n for n, entry in MODELS.items() if entry.task == task}


SHORT = {"compute": "dala.gpu.compute", "filters": "dala.media.gpu", "models": "dala.ml.gpu"}


@pytest.mark.parametrize(("name", "real"), SHORT.items())
@pytest.mark.parametrize("statement", ["import dala", "import dala.{0}", "from dala import {0}"])
def test_a_short_name_is_the_module_itself(name, real, statement):
    program = f"{statement.format(name)}; import sys, dala; found = dala.{name}; import {real}\n"
    program += f"assert found is sys.modules['{real}'] is dala.{name}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_dir_shows_exactly_what_users_may_use():
    modules = {"compute", "errors", "filters", "gpu", "media", "ml", "models", "surfaces"}
    assert set(dir(dala)) == {*NAMES, *modules, "kernel", "function", "__version__"}
    for name in dir(dala):
        assert getattr(dala, name) is not None
    assert set(dir(dala.gpu)) == {"compute", *dir(dala.surfaces)}
    for module in pkgutil.iter_modules(dala.surfaces.__path__):
        assert module.name not in dir(dala.surfaces), "a module would hide what has its name"
    for name in dir(dala.surfaces):
        assert getattr(dala.gpu, name) is getattr(dala.surfaces, name)
