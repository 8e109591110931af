"""Stencils that share tiles in workgroup memory give every bit of their stages run alone."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import need_webgpu

from dala.devices import using
from dala.devices.webgpu.adapters import CATALOG
from dala.devices.webgpu.device import WebGpu
from dala.errors import ArgumentError
from dala.gpu import compute

BORDERS = ("clamp", "mirror", "reflect", "wrap", "zero")
CHAIN = [("blur", {"radius": 3}), ("sharpen", {"amount": 0.5}), ("grayscale", {})]
SHAPES = [(67, 93, 4), (67, 93, 3), (35, 64, 3), (67, 93), (40, 128), (13, 11, 4), (9, 7)]
TILES = r"by tiles of (\d+) × (\d+) with a halo of (\d+) × (\d+), ([\d,]+) bytes of workgroup"


@pytest.fixture(scope="module")
def tiled():
    """A device of its own that computes in tiles, as hardware does, whatever it is."""
    need_webgpu()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DALA_TILES", "1")
        device = WebGpu(CATALOG.adapters()[0])
    with using(device):
        yield device


def pixels(shape, dtype, seed=1):
    random = np.random.default_rng(seed)
    if dtype in ("f32", "f16"):
        return random.random(shape, np.float32).astype(np.dtype(f"float{dtype[1:]}"))
    scalar = np.dtype({"u": "uint", "s": "int"}[dtype[0]] + dtype[1:])
    info = np.iinfo(scalar)
    return random.integers(info.min, info.max, shape, scalar, endpoint=True)


def chain(image, stages, *, fuse=True, kept=()):
    """A pipeline of (kernel, params) on one buffer after another, and the buffers that are left."""
    pipeline, at, left = compute.pipeline(fuse=fuse), compute.from_numpy(image), []
    for number, (kernel, params) in enumerate(stages):
        stays = number in kept or number == len(stages) - 1
        to = compute.scratch(at.shape, at.dtype)
        if stays:  # over something else
            to = compute.from_numpy(np.full_like(image, 77))
        pipeline.add(kernel, [at], to, params)
        left += [to] if stays else []
        at = to
    return pipeline, left


def require_equality(image, stages, kept=(), dispatches=None):
    found = []
    for fuse in (True, False):
        pipeline, left = chain(image, stages, fuse=fuse, kept=kept)
        pipeline.run()
        pipeline.run()  # replayed
        found.append([compute.read(item) for item in left])
    explained = chain(image, stages, kept=kept)[0].explain()
    for fused, alone in zip(*found, strict=True):
        np.testing.assert_array_equal(fused, alone, explained)
    if dispatches is not None:
        assert explained.count("in one dispatch") == dispatches, explained
    return explained


# -- every format ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u8", "f32", "u16", "f16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_chain_in_tiles_equals_its_stages(tiled, shape, dtype):
    stages = CHAIN if len(shape) == 3 else [*CHAIN[:2], ("invert", {})]
    require_equality(pixels(shape, dtype), [*stages, ("erode", {"radius": 1})])


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize(("shape", "dtype"), [((70, 41, 3), "u8"), ((37, 50, 4), "f32")], ids=str)
def test_borders_apply_to_what_lies_between(tiled, border, shape, dtype):
    stages = [(kernel, {**params, "border": border}) for kernel, params in CHAIN[:2]]
    require_equality(
        pixels(shape, dtype), [*stages, *stages], dispatches=0 if border == "wrap" else None
    )


def test_a_stencil_with_another_border_begins_another_group(tiled):
    stages = [("sharpen", {"amount": 0.5, "border": border}) for border in ("clamp", "zero")]
    explained = require_equality(pixels((40, 64, 4), "u8"), stages * 3, dispatches=1)
    assert "several borders" not in explained  # each result has one reader


def test_values_between_are_kept_as_their_buffers_would(tiled):
    """Halves are rounded, wrapped and cut off between two stages."""
    image = pixels((50, 61), "s16")
    near = compute.Kernel.register(
        "near",
        "def near(x):\n    i, j = dala.position(2)\n    return x[i - 1, j + 2] * 3 + x[i, j]",
    )
    require_equality(image, [(near, {})] * 3, dispatches=1)


# -- what shares tiles -----------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [4, 3])
def test_blur_sharpen_gray_moves_little_more_than_a_frame_in_and_out(tiled, channels):
    image = np.zeros((1080, 1920, channels), np.uint8)
    explained = chain(image, CHAIN)[0].explain()
    first, last = explained.splitlines()[1], explained.splitlines()[-1]
    rows, columns, above, beside, shared = (
        int(item.replace(",", "")) for item in re.search(TILES, first).groups()
    )
    moved = int(re.search(r"([\d,]+) so", last)[1].replace(",", ""))
    assert explained.count("in one dispatch") == len(explained.splitlines()) - 2 == 1
    assert moved <= 1.3 * 2 * image.nbytes
    assert (above, beside) == (4, 4)
    weights = 2 * 4 * np.dtype(np.float32).itemsize
    pixels_read = reached(1080, rows, above) * reached(1920, columns, beside)
    assert moved == pixels_read * channels + image.nbytes + weights
    assert shared <= tiled.limits["max-compute-workgroup-storage-size"]


def reached(size, tile, halo):
    """How many rows or columns all tiles have together, with halos within the picture."""
    return sum(
        len(range(max(0, at - halo), min(size, at + tile + halo))) for at in range(0, size, tile)
    )


@pytest.mark.parametrize("most", [16384, 4096, 512])
def test_tiles_fit_into_the_workgroup_memory_that_there_is(tiled, monkeypatch, most):
    monkeypatch.setitem(tiled.limits, "max-compute-workgroup-storage-size", most)
    image = pixels((61, 61 + most // 512, 4), "u8")  # of a size of its own: plans are remembered
    explained = require_equality(image, CHAIN)
    found = re.findall(TILES, explained)
    assert all(int(item[-1].replace(",", "")) <= most for item in found)
    if most == 512:
        assert not found
        assert "would not fit into workgroup memory" in explained


def test_a_users_kernels_share_tiles_with_points_between(tiled):
    source = """
    def spread(image: dala.Image, weight: dala.f32):
        y, x = dala.position(2)
        return image.pixel * (1.0 - weight) + (image[y - 2, x + 1] + image[y + 1, x - 3]) * weight
    """
    spread = compute.Kernel.register("spread", source)
    stages = [(spread, {"weight": 0.3}), ("brightness", {"value": 0.1}), (spread, {"weight": 0.2})]
    explained = require_equality(pixels((80, 101, 3), "u8"), stages, dispatches=1)
    assert "with a halo of 4 × 6" in explained


def test_a_stage_whose_result_is_kept_is_written_and_read_from_its_tile(tiled):
    for shape in ((45, 71, 3), (45, 71, 4), (40, 64)):
        stages = [("sharpen", {"amount": 0.5}), ("blur", {"radius": 2}), ("invert", {})]
        require_equality(pixels(shape, "u8"), stages, kept=(0,), dispatches=1)


def test_a_result_is_written_before_its_tile_holds_another(tiled):
    image, results = pixels((40, 61), "u8"), []
    for fuse in (True, False):
        x, kept, out = (compute.from_numpy(image) for _ in range(3))
        between = compute.scratch(image.shape, "u8")
        pipeline = compute.pipeline(fuse=fuse).add("sharpen", [x], kept, {"amount": 0.5})
        pipeline.add("erode", [x], between).add("dilate", [between], out).run()
        results.append([compute.read(kept), compute.read(out)])
        assert "in one dispatch" in pipeline.explain() or not fuse
    np.testing.assert_array_equal(*results)


def test_a_result_that_a_stage_is_given_but_never_reads_is_only_written(tiled):
    near, first = (
        compute.Kernel.register(
            f"near_{count}",
            f"def near({', '.join('xy'[:count])}):\n"
            "    i, j = dala.position(2)\n    return x[i - 1, j] + x[i, j + 1]",
        )
        for count in (1, 2)
    )
    image, results = pixels((40, 64), "f32"), []
    for fuse in (True, False):
        x, kept, out = (compute.from_numpy(image) for _ in range(3))
        between = compute.scratch(image.shape, "f32")
        pipeline = compute.pipeline(fuse=fuse).add(near, [x], between).add(near, [between], kept)
        pipeline.add(first, [between, kept], out).run()
        results.append([compute.read(kept), compute.read(out)])
    np.testing.assert_array_equal(*results)


def test_two_stencils_of_one_image_and_their_difference_share_tiles(tiled):
    image, results = pixels((60, 80, 4), "u8"), []
    for fuse in (True, False):
        x, out = compute.from_numpy(image), compute.buffer_zeros(image.shape, "u8")
        soft, sharp = (compute.scratch(image.shape, "u8") for _ in range(2))
        pipeline = compute.pipeline(fuse=fuse)
        pipeline.add("blur", [x], soft, {"radius": 1}).add("sharpen", [x], sharp, {"amount": 1.0})
        pipeline.add("blend", [soft, sharp], out, {"mode": "difference"}).run()
        results.append(compute.read(out))
    np.testing.assert_array_equal(*results)


def test_a_deep_chain_is_cut_where_halos_cost_more_than_they_save(tiled):
    explained = require_equality(pixels((90, 200, 4), "f32"), [("blur", {"radius": 5})] * 6)
    assert "again would take longer" in explained or "would not fit" in explained
    assert explained.count("in one dispatch") > 1


def test_a_scatter_ends_a_group(tiled):
    source = """
    def mirrored(x, out: dala.Out):
        i, j = dala.position(2)
        out[i, 63 - j] = x[i, j]
    """
    mirrored = compute.Kernel.register("mirrored", source)
    stages = [("sharpen", {"amount": 0.5}), ("erode", {}), (mirrored, {}), ("sharpen", {})]
    explained = require_equality(pixels((40, 64), "f32"), stages)
    assert "mirrored writes anywhere" in explained


def test_parameters_change_without_another_shader(tiled):
    image = pixels((40, 64, 4), "u8")
    pipeline, (out,) = chain(image, CHAIN)
    pipeline.run()
    before, made = compute.read(out), len(tiled.cache)
    pipeline.set(1, amount=1.5).run()
    assert len(tiled.cache) == made
    assert not np.array_equal(compute.read(out), before)
    expected, (again,) = chain(
        image, [CHAIN[0], ("sharpen", {"amount": 1.5}), CHAIN[2]], fuse=False
    )
    expected.run()
    np.testing.assert_array_equal(compute.read(out), compute.read(again))


def test_all_invocations_reach_all_barriers(tiled):
    """Browsers refuse barriers in branches and loops, and after a return, a break or a continue."""
    for shape in ((50, 70, 4), (50, 71, 3)):
        chain(pixels(shape, "u8"), CHAIN)[0].run()
    texts = [key[1] for key in tiled.cache if key[0] == "pipeline" and "var<workgroup>" in key[1]]
    assert len(texts) >= 2
    for text in texts:
        main = text[text.index("fn main(") :].splitlines()
        barriers = [line for line in main if "Barrier" in line]
        assert set(barriers) == {"  workgroupBarrier();"}
        assert not re.search(r"\b(return|break|continue|discard)\b", "\n".join(main))


def test_rows_that_are_longer_than_workgroups_reach_run(tiled):
    near = compute.Kernel.register(
        "near", "def near(x):\n    i, j = dala.position(2)\n    return x[i, j - 1] + x[i, j + 1]"
    )
    require_equality(pixels((1, 9_000_001), "u8"), [(near, {})] * 2, dispatches=0)


# -- which devices ---------------------------------------------------------------------------------


def test_tiles_are_for_hardware_unless_asked_for(webgpu, monkeypatch):
    adapter = CATALOG.adapters()[0]
    for asked, found in ((None, adapter.hardware), ("1", True), ("0", False)):
        monkeypatch.delenv("DALA_TILES", raising=False)
        if asked is not None:
            monkeypatch.setenv("DALA_TILES", asked)
        assert WebGpu(adapter).tiles == found


def test_tiles_are_asked_for_by_one_or_zero(webgpu, monkeypatch):
    monkeypatch.setenv("DALA_TILES", "yes")
    with pytest.raises(ArgumentError, match="DALA_TILES is 'yes'"):
        WebGpu(CATALOG.adapters()[0])


# -- at random -------------------------------------------------------------------------------------


def random_stencil(random, border):
    """A kernel that weighs a few elements around each."""
    terms = [
        f"x[i + {random.integers(-3, 4)}, j + {random.integers(-3, 4)}] * {random.integers(1, 5)}"
        for _ in range(random.integers(1, 5))
    ]
    body = (
        f"i, j = dala.position(2)\n    return ({' + '.join(terms)} + x) / {random.integers(3, 9)}"
    )
    return compute.Kernel.register(
        "stencil", f"def stencil(x):\n    {body}", border=border, replace=True
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_random_chains_equal_their_stages(tiled, seed):
    random = np.random.default_rng(seed)
    dtype = str(random.choice(["u8", "f32", "u16", "s32", "f16", "s8"]))
    shape = tuple(int(n) for n in random.integers(1, 90, 2))
    stages = [
        (random_stencil(random, str(random.choice(BORDERS))), {})
        if random.random() < 0.7
        else ("clamp", {"low": 1, "high": 100})
        for _ in range(random.integers(2, 7))
    ]
    kept = tuple(number for number in range(len(stages)) if random.random() < 0.2)
    require_equality(pixels(shape, dtype, seed), stages, kept)
