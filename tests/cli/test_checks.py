"""`dala kernel check`, `dala doctor`, `dala bench` and `dala gallery`."""

from __future__ import annotations

import re

import pytest

import dala
from dala.cli import doctor
from dala.devices.webgpu import adapters
from dala.gpu import compute

FILE = """
import dala
from dala import floor, kernel


@kernel
def fine(image: dala.Image, strength: dala.f32 = 0.5):
    return image.pixel * strength


@dala.kernel
def soften(x):
    return flor(x * 4.0) / 4.0


@dala.kernel(border="wrap")
def shout(x):
    return x + "text"


@kernel
def count(x, out: dala.Out):
    out.add(x, 1)
"""


def test_every_kernel_of_a_file_is_checked(told, answer, folder):
    (folder / "mine.py").write_text(FILE, encoding="utf-8")
    code, out, _ = told("kernel", "check", "mine.py")
    assert code == 1
    assert "ok     fine(image, strength: f32 = 0.5)\n       CPU and WGSL (" in out
    assert "for u8 gray, u8 RGB, u8 RGBA, f32 gray, f32 RGB, f32 RGBA\n" in out
    assert "ok     count(x)" in out
    assert "wrong  soften\n" in out
    assert "return flor(x * 4.0) / 4.0\n                  ^^^^\n" in out
    assert "Did you mean `floor`?" in out
    assert "wrong  shout\n" in out
    found = answer("kernel", "check", "mine.py", code=1)
    assert {item["name"]: item["ok"] for item in found["kernels"]} == {
        "fine": True,
        "count": True,
        "soften": False,
        "shout": False,
    }


def test_checking_leaves_the_language_as_it_was(told, folder):
    before = dala.kernel
    (folder / "mine.py").write_text(FILE, encoding="utf-8")
    told("kernel", "check", "mine.py")
    assert dala.kernel is before


def test_no_device_is_needed_to_check(told, folder, monkeypatch):
    monkeypatch.setattr(adapters, "_enumerated", lambda: pytest.fail("looked for a GPU"))
    (folder / "mine.py").write_text("import dala\n@dala.kernel\ndef f(x):\n    return x + 1\n")
    assert told("kernel", "check", "mine.py")[0] == 0


def test_a_file_without_kernels_is_refused(refused, folder):
    (folder / "mine.py").write_text("x = 1\n", encoding="utf-8")
    assert "has no kernels: decorate a function" in refused("kernel", "check", "mine.py")
    assert "cannot be read" in refused("kernel", "check", "nowhere.py", code=1)


def test_a_text_in_wgsl_is_checked(told, folder):
    (folder / "mine.wgsl").write_text("fn main() {}", encoding="utf-8")
    code, out, _ = told("kernel", "check", "mine.wgsl")
    assert code == 1
    assert out.startswith("wrong  mine\n")


# -- doctor ----------------------------------------------------------------------------------------


def test_the_doctor_names_what_is_there(told, answer):
    code, out, err = told("doctor")
    assert (code, err) == (0, "")
    for name in ("Python", "dala", "NumPy", "llvmlite", "wgpu", "Pillow", "PyAV", "cpu", "cache"):
        assert any(line.split()[1] == name for line in out.splitlines() if line), name
    assert answer("doctor")["ok"] is True


def test_what_is_missing_comes_with_how_to_get_it(told, monkeypatch):
    extra = ("no_such_module", "Crystal", "ball", "fortunes")
    monkeypatch.setattr(doctor, "LIBRARIES", (*doctor.LIBRARIES, extra))
    code, out, _ = told("doctor")
    assert code == 0
    assert "missing Crystal" in out
    assert 'pip install "dala-gpu[ball]"' in out


def test_what_is_needed_and_not_there_is_broken(told, monkeypatch):
    monkeypatch.setattr(doctor, "LIBRARIES", (("no_such_module", "Crystal", None, "fortunes"),))
    code, out, _ = told("doctor")
    assert code == 1
    assert "broken  Crystal" in out
    assert out.endswith("1 thing is broken.\n")


def test_a_device_that_computes_wrongly_is_broken(told, monkeypatch):
    monkeypatch.setattr(compute, "add", lambda a, b, out: None)
    code, out, _ = told("doctor")
    assert code == 1
    assert re.search("^broken  cpu .*: 2 \\+ 3 is 0.0 there$", out, re.M)


def test_a_default_device_that_is_not_there_is_broken(told, monkeypatch):
    monkeypatch.setattr("dala.devices._default", None)
    monkeypatch.setenv("DALA_DEVICE", "abacus")
    code, out, _ = told("doctor")
    assert code == 1
    assert "Change or unset DALA_DEVICE." in out


def test_no_adapter_is_missing_not_broken(told, monkeypatch):
    monkeypatch.setattr(adapters, "CATALOG", adapters.AdapterCatalog())
    monkeypatch.setattr(adapters, "_enumerated", list)
    code, out, _ = told("doctor")
    assert code == 0
    assert "WebGPU finds no GPU" in out


# -- the others ------------------------------------------------------------------------------------


def test_bench_needs_a_clone(refused, monkeypatch, tmp_path):
    monkeypatch.setattr(dala, "__file__", str(tmp_path / "a" / "b" / "dala.py"))
    assert "./dala bench in a clone" in refused("bench", "--quick", code=1)


def test_bench_takes_its_own_options(told, monkeypatch):
    calls = []
    monkeypatch.setattr("subprocess.call", lambda *given, **named: calls.append(given) or 3)
    assert told("bench", "--quick", "--help", "rows")[0] == 3
    assert calls[0][0][1:] == ["-m", "benchmarks", "--quick", "--help", "rows"]


def test_a_gallery_says_where_it_is(told, answer, folder, monkeypatch):
    page = folder / "index.html"
    monkeypatch.setattr("dala.media.showcase.gallery.write_gallery", lambda where: page)
    assert told("gallery", "g") == (0, "", f"The gallery is in {folder / 'index.html'}\n")
    assert answer("gallery", "g")["page"].endswith("index.html")
