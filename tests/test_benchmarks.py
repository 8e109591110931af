"""The benchmarks where peers are not installed: rows say so, and the rest is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({modules!r}))
sys.argv[1:] = {arguments!r}
from benchmarks.__main__ import main
main()
"""
COLUMNS = 1
"""Lines before the first row."""


def run(program: str, **variables: str) -> str:
    """What a program prints, in a process of its own: benchmarks hold theirs to two processors."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done.stdout


def bench(*arguments: str, without: list[str] | None = None, **variables: str) -> str:
    program = WITHOUT.format(modules=without or [], arguments=[*arguments, "--quick"])
    return run(program, **variables)


def test_a_program_that_is_not_installed_is_a_row_that_says_so():
    lines = bench("video", "video-plain", PATH="/nowhere").splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["video", "video-plain"]
    for line in lines:
        assert "not measured: ffmpeg is not installed: apt install ffmpeg" in line


@pytest.mark.parametrize("rows", [["filters", "median-1-u16"], ["pipeline", "video-loop"]])
def test_a_library_that_is_not_installed_is_a_row_that_says_so(rows):
    lines = [line for line in bench(*rows, without=["cv2"]).splitlines()[1:] if ":" in line]
    rows = [line for line in lines if "not installed, and no peer here" not in line]
    assert rows
    for line in rows:
        assert "not measured: OpenCV is not installed: " in line
        assert "pip install opencv-python-headless" in line


def test_what_a_row_of_models_needs_is_said():
    said = bench("mobilenet", "load-model", without=["onnxruntime"])
    assert said.count("not measured: ONNX Runtime is not installed") == 2


@pytest.mark.slow
def test_rows_that_need_nothing_are_measured_beside_those_that_do():
    found = json.loads(bench("pipeline", "submit", "--json", without=["cv2"]))
    assert "missing" in found["pipeline"]
    assert found["submit"]["ours_s"] > 0


OTHERS = ["numba", "pyvips", "stringzilla", "torch"]
"""Peers of filters that take long to import, and are not installed everywhere."""


def test_a_row_is_measured_against_the_peers_that_are_there():
    found = json.loads(bench("brightness-128px-gray", "--json", without=["cv2", *OTHERS]))
    (row,) = found.values()
    assert row["ratio"] > 0
    assert sorted(row["others"]) == ["NumPy", "Pillow"]
    assert row["peer_name"] in row["others"]
    assert row["within"] == 1


MAKING = """
from benchmarks import filters, tensors
from benchmarks.filters.case import contest
from benchmarks.filters.formats import TINY
from benchmarks.peers import Absent
from benchmarks.tensors.case import contest as tensor_contest
from dala.gpu import compute
compute.use_device("cpu")
made = 0
for cases, make in ((filters.cases(TINY), contest), (tensors.cases(small=True), tensor_contest)):
    for name, case in cases.items():
        try:
            make(name, case)
        except Absent as error:
            assert " is not installed: " in str(error), (name, error)
        made += 1
print(made, filters.cases(TINY).keys() == filters.cases().keys())
"""


def test_every_row_can_be_made():
    count, same = run(MAKING).split()
    assert int(count) > 480
    assert same == "True"


@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.slow)])
def test_all_who_are_compared_make_the_same_of_small_inputs(every):
    """Some rows of each kind in another format, or all of them."""
    names = run("from benchmarks.__main__ import CHECKS; print(*CHECKS)").split()[::every]
    said = bench(*names, "--check", without=OTHERS).splitlines()[COLUMNS:]
    outcomes = {line.split()[0]: line for line in said}
    for name in names:
        assert "the same" in outcomes[name] or " is not installed: " in outcomes[name]


EVERY_FILTER = """
from benchmarks import filters
from dala.media import gpu
measured = {case.kernel for case in filters.cases().values()} | set(filters.NOT_MEASURED)
print([name for name in gpu.filters() if name not in measured])
"""


def test_every_filter_has_a_row_or_is_said_to_have_none():
    assert run(EVERY_FILTER).strip() == "[]"


WRONG = """
import numpy as np
from benchmarks import filters
from benchmarks.contest import Peer
from dataclasses import replace
import benchmarks.__main__ as bench
case = filters.cases(filters.TINY)["invert-gray"]
off = Peer("Someone", lambda images, out: lambda: np.maximum(253 - images[0].astype(int), 0))
filters.cases()["invert-gray"] = replace(case, peers=[off])
bench.sys.argv[1:] = ["invert-gray", "--quick"]
try:
    bench.main()
except SystemExit as error:
    print("exit code", error.code)
"""


def test_a_peer_that_makes_something_else_is_an_error():
    said = run(WRONG)
    assert "ERROR: invert-gray: 2 off Someone, more than 1" in said
    assert "exit code 1" in said


SUMMARY = """
from benchmarks.harness import Missing, Result
from benchmarks.report import summary, worst
def row(name, ratio):
    return Result(name, ratio, 1.0, ratio, 1.1, ratio <= 1.1, (ratio, ratio), "Someone")
results = {name: row(name, ratio) for name, ratio in
           {"a-rgb": 0.5, "b-rgb": 2.0, "a-gray": 4.0, "b-gray": 1.2}.items()}
results["c-gray"] = Missing("c-gray", "no one")
print(worst(results))
formats = {name: name[2:] for name in results}
print(*summary("filters", results, formats, 0.7), sep="\\n")
"""


def test_the_summary_counts_what_is_slow_and_the_worst_come_first():
    assert run(SUMMARY).splitlines() == [
        "['a-gray', 'b-rgb', 'b-gray']",
        "filters: 4 rows, 3 above 1.1 ×, 2 above 1.5 ×, 1 above 2 ×; 1.480 × on (geometric) "
        "average, bar ≤ 0.70 ×",
        "filters by format: rgb 1.000 × (2), gray 2.191 × (2)",
        "filters: 1 rows are not measured",
    ]


SELECTION = """
from benchmarks.selection import chosen, unknown
groups = {"filters": ["blur-3-rgb", "blur-3-gray", "box-blur-1-rgb"], "compute": ["exp", "exp-2"]}
formats = {name: name.rpartition("-")[2] for name in groups["filters"]}
for words, format in (["filters", "blur"], None), (["exp"], None), (["*-rgb"], None), \\
        (["filters"], ["gray"]), (["compute", "filters"], None), ([], None):
    print(*chosen(groups, words, format, formats))
print(unknown(groups, ["compute", "blur"]), unknown(groups, ["blur", "exp-"]))
"""


def test_rows_are_chosen_by_group_name_beginning_pattern_and_format():
    assert run(SELECTION).splitlines() == [
        "blur-3-rgb blur-3-gray",
        "exp",
        "blur-3-rgb box-blur-1-rgb",
        "blur-3-gray",
        "exp exp-2 blur-3-rgb blur-3-gray box-blur-1-rgb",
        "blur-3-rgb blur-3-gray box-blur-1-rgb exp exp-2",
        "['blur'] []",
    ]


PAGE = """
import sys
from pathlib import Path
from benchmarks import page
from benchmarks.harness import Result
page.PAGE = Path(sys.argv[1])
page.PAGE.write_text("# Title\\n\\n<!-- filters -->\\nold\\n<!-- end of filters -->\\n")
lost = Result("blur-3-rgb", 2e-3, 1e-3, 2.0, 1.1, False, (1.9, 2.1), "OpenCV", 3.0, ("OpenCV",))
page.write({"filters": {"blur-3-rgb": lost}, "compute": {}}, {"filters": ["filters: 1 rows"]})
print(page.PAGE.read_text())
"""


def test_the_page_has_every_row_with_its_losses(tmp_path):
    program = f"import sys; sys.argv[1:] = [{str(tmp_path / 'page.md')!r}]\n{PAGE}"
    said = run(program)
    line = "| blur-3-rgb | 2.00 ms | 1.00 ms OpenCV | **2.00** | 1.90 – 2.10 | ≤ 1.10 | 3 |"
    assert line in said
    assert said.startswith("# Title\n\n<!-- filters -->\n## Filters\n")
    assert "old" not in said
    assert "<!-- compute -->" in said
    assert "threads of" in said


def test_a_mistake_of_a_row_is_still_an_error():
    program = (
        "from benchmarks.peers import measured\n"
        "def make(): import dala.no_such_module\n"
        "measured('x', make, 1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "no_such_module" in done.stderr
