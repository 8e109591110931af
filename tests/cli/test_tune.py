"""`dala tune`: tiles are measured, kept for each adapter, used next time, and never trusted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from dala.devices import find_device
from dala.devices.webgpu import kept_tiles
from dala.devices.webgpu.products import candidates, products_of, usual_of
from dala.emit.wgsl.products import ProductTile, ProductTiles
from dala.kernels.tensor import product_tuning

OTHER = ProductTile(4, 8, 4, 4, 8)
"""A tile that no adapter has by its kind, and that all can compute."""


@pytest.fixture
def gpu(webgpu, tmp_path, monkeypatch):
    """The WebGPU device, with a cache folder of its own."""
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path))
    return find_device(webgpu)


@pytest.fixture
def kept(gpu) -> Path:
    """The file of an adapter whose tiles are kept."""
    return kept_tiles.keep(gpu.adapter, ProductTiles(OTHER, OTHER))


def test_tiles_are_measured_and_kept(gpu, answer):
    found = answer("tune", "--seconds", "0", "--size", "32")
    assert [row["size"] for row in found["measured"]] == [32, 32]
    assert all(row["gflops"] > 0 for row in found["measured"])
    assert json.loads(Path(found["kept"]).read_text())["large"] == found["large"]
    assert products_of(gpu.adapter) == ProductTiles(
        ProductTile(**found["large"]), ProductTile(**found["small"])
    )


def test_the_fastest_tile_is_chosen_among_those_that_are_right(gpu, monkeypatch):
    speeds = dict(zip(candidates(gpu.adapter), [3.0, None, 1.0, 2.0], strict=False))

    def measured(device, size, tile):
        return product_tuning.Measured(size, tile, speeds.get(tile, 4.0))

    monkeypatch.setattr(product_tuning, "_measured", measured)
    best = product_tuning.tune(gpu, 9.0, (32, 16))
    assert best.large == best.small == candidates(gpu.adapter)[2]


@pytest.mark.usefixtures("kept")
def test_what_is_kept_is_used_by_the_next_process(gpu):
    program = (
        "from dala.devices import find_device\n"
        f"print(find_device({gpu.id!r}).products.large == {_text(OTHER)})"
    )
    head = "from dala.emit.wgsl.products import ProductTile\n"
    ran = subprocess.run(
        [sys.executable, "-c", head + program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "True\n"


def _text(tile: ProductTile) -> str:
    return f"ProductTile({tile.rows}, {tile.columns}, {tile.down}, {tile.across}, {tile.depth})"


def _changed(text: str, **large: object) -> str:
    found = json.loads(text)
    found["large"] |= large
    return json.dumps(found)


DAMAGED = {
    "cut short": lambda text: text[:40],
    "no object": lambda text: "[1]",
    "no number": lambda text: _changed(text, rows="4"),
    "a truth": lambda text: _changed(text, rows=True),
    "too many invocations": lambda text: _changed(text, down=1 << 20),
    "too much memory": lambda text: _changed(text, depth=2048),
    "no multiple of four": lambda text: _changed(text, columns=6),
    "nothing": lambda text: _changed(text, rows=0),
    "another subgroup": lambda text: _changed(text, lanes=5),
    "something more": lambda text: _changed(text, code="x"),
    "another adapter": lambda text: text.replace('"api": "', '"api": "Other'),
}


@pytest.mark.parametrize("fault", DAMAGED)
def test_a_damaged_file_is_ignored_and_that_is_said_once(gpu, kept, fault):
    kept.write_text(DAMAGED[fault](kept.read_text()))
    with pytest.warns(RuntimeWarning, match="are not used, because it is damaged") as said:
        assert products_of(gpu.adapter) == usual_of(gpu.adapter)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert products_of(gpu.adapter) == usual_of(gpu.adapter)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners here")
@pytest.mark.parametrize("fault", ["others may write it", "owns it", "no small file"])
def test_a_file_that_is_not_ones_own_is_ignored(gpu, kept, monkeypatch, fault):
    if fault == "others may write it":
        kept.chmod(0o666)
    elif fault == "owns it":
        monkeypatch.setattr(os, "getuid", lambda: 12_345)
    else:
        kept.write_bytes(b" " * (kept_tiles.MOST_BYTES + 1))
    with pytest.warns(RuntimeWarning, match=fault):
        assert products_of(gpu.adapter) == usual_of(gpu.adapter)


def test_reset_forgets_what_was_kept(gpu, kept, answer):
    assert products_of(gpu.adapter).large == OTHER
    assert answer("tune", "--reset")["forgotten"] is True
    assert not kept.exists()
    assert answer("tune", "--reset")["forgotten"] is False
    assert products_of(gpu.adapter) == usual_of(gpu.adapter)


def test_nothing_is_kept_where_it_is_interrupted(gpu, kept, told, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    before, text = gpu.products, kept.read_text()
    monkeypatch.setattr(product_tuning, "_measured", interrupted)
    assert told("tune", "--size", "16")[0] == 130
    assert kept.read_text() == text
    assert list(kept.parent.iterdir()) == [kept]
    assert gpu.products == before


def test_a_driver_that_multiplies_wrongly_is_refused(gpu, told, monkeypatch):
    monkeypatch.setattr(product_tuning.np, "allclose", lambda *_, **__: False)
    code, out, err = told("tune", "--seconds", "0", "--size", "16")
    assert (code, out) == (1, "")
    assert "wrongly in every tile" in err
    assert not kept_tiles.path_of(gpu.adapter).exists()


@pytest.mark.usefixtures("gpu")
def test_a_device_without_tiles_is_refused(refused):
    assert "cpu multiplies without tiles" in refused("tune", "--device", "cpu", code=2)


@pytest.mark.usefixtures("webgpu")
def test_it_says_that_nothing_can_be_kept(refused, monkeypatch):
    monkeypatch.setenv("DALA_CACHE_DIR", "off")
    assert "DALA_CACHE_DIR" in refused("tune", code=2)
