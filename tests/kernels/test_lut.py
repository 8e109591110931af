"""Colours looked up in tables, against their formulas."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
from kernels.pictures import LUMA, SHAPES, check, in_units, picture

from dala import errors
from dala.gpu import compute
from dala.kernels.image import lookup_tables
from dala.lang.lower import Definition

ZEROS, ONES = (0, 0, 0), (1, 1, 1)


def cube_of(size, seed=2):
    """A random table, beyond black and white in places."""
    return np.random.default_rng(seed).uniform(-0.1, 1.1, (size, size, size, 3)).astype(np.float32)


def curves_of(size):
    return np.random.default_rng(4).uniform(-0.1, 1.1, (size, 3)).astype(np.float32)


def places(x, size, least, most):
    """The entry before each channel, and how far behind it the channel lies."""
    x = (x - np.array(least)) / (np.array(most) - least)
    place = x.clip(0, 1) * (size - 1)
    before = np.minimum(np.floor(place).astype(int), size - 2)
    return before, place - before


def trilinear(x, table, least=ZEROS, most=ONES):
    (r, g, b), (red, green, blue) = (
        np.moveaxis(item, -1, 0) for item in places(x, len(table), least, most)
    )
    total = 0
    for k, j, i in itertools.product((0, 1), repeat=3):
        weight = abs(1 - k - blue) * abs(1 - j - green) * abs(1 - i - red)
        total += weight[..., None] * table[b + k, g + j, r + i].astype(float)
    return total


def tetrahedral(x, table, least=ZEROS, most=ONES):
    """Pixel by pixel, along the axes in the order of the fractions."""
    before, behind = places(x, len(table), least, most)
    result = np.empty(x.shape)
    for place in np.ndindex(x.shape[:-1]):
        corner, fractions = list(before[place]), behind[place]
        order = sorted(range(3), key=lambda axis: -fractions[axis])
        falling = [1, *(fractions[axis] for axis in order), 0]
        total = np.zeros(3)
        for step in range(4):
            if step:
                corner[order[step - 1]] += 1
            red, green, blue = corner
            total += (falling[step] - falling[step + 1]) * table[blue, green, red].astype(float)
        result[place] = total
    return result


def linear(x, table, least=ZEROS, most=ONES):
    before, behind = places(x, len(table), least, most)
    channels = range(3)
    low, high = (table[before + step, channels].astype(float) for step in (0, 1))
    return low + behind * (high - low)


def looked_up(image, formula, *arguments):
    """What a table makes of the colours of an image; alpha stays, gray is a luma."""
    x = in_units(image)
    if image.ndim == 2:
        return formula(np.repeat(x[..., None], 3, -1), *arguments) @ LUMA
    return np.concatenate([formula(x[..., :3], *arguments), x[..., 3:]], -1)


TABLES = [
    ("tetrahedral", tetrahedral, cube_of(9)),
    ("trilinear", trilinear, cube_of(9)),
    ("tetrahedral", linear, curves_of(60)),
]


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(("interpolation", "formula", "table"), TABLES)
def test_tables_follow_their_formula(run, interpolation, formula, table, dtype):
    for shape in SHAPES:
        image = picture(shape, dtype)
        got = run("lut", [image], shape, dtype, table=table, interpolation=interpolation)
        check(got, looked_up(image, formula, table), tolerance=1e-5)
        if shape[2:] == (4,):
            np.testing.assert_array_equal(got[..., 3], image[..., 3])


def test_it_is_tetrahedral_unless_told(run):
    image, table = picture((6, 9, 3), "u8"), cube_of(5)
    got = run("lut", [image], image.shape, "u8", table=table)
    check(got, looked_up(image, tetrahedral, table), tolerance=1e-5)


@pytest.mark.parametrize("interpolation", ["tetrahedral", "trilinear"])
@pytest.mark.parametrize("size", [2, 52, 65])
def test_what_maps_each_colour_to_itself_changes_nothing(run, size, interpolation):
    axis = np.linspace(0, 1, size)
    blue, green, red = np.meshgrid(axis, axis, axis, indexing="ij")
    table = np.stack([red, green, blue], -1)
    levels = np.arange(256, dtype=np.uint8)
    image = np.stack([levels, levels[::-1], np.roll(levels, 77)], -1)[None]
    got = run("lut", [image], image.shape, "u8", table=table, interpolation=interpolation)
    np.testing.assert_array_equal(got, image)


@pytest.mark.parametrize("interpolation", ["tetrahedral", "trilinear"])
def test_entries_themselves_are_met(run, interpolation):
    table = cube_of(5)
    steps = np.linspace(0, 1, 5, dtype=np.float32)
    blue, green, red = np.meshgrid(steps, steps, steps, indexing="ij")
    image = np.stack([red, green, blue], -1).reshape(25, 5, 3)
    got = run("lut", [image], image.shape, "f32", table=table, interpolation=interpolation)
    np.testing.assert_allclose(got.reshape(table.shape), table, atol=1e-6)


@pytest.mark.parametrize("table", [cube_of(4), curves_of(7)])
def test_a_table_converts_between_dtypes(run, table):
    formula = tetrahedral if table.ndim == 4 else linear
    for given, made in (("u8", "f32"), ("f32", "u8")):
        image = picture((9, 21, 4), given)
        got = run("lut", [image], image.shape, made, table=table)
        check(got, looked_up(image, formula, table), tolerance=1e-5)


@pytest.mark.parametrize("table", [cube_of(4), curves_of(7)])
def test_what_lies_outside_is_the_nearest_inside(run, table):
    image = np.array([[[-3, 0.5, 9], [2, -np.inf, np.inf], [1e30, 0, -0.001]]], np.float32)
    got = run("lut", [image], image.shape, "f32", table=table)
    inside = run("lut", [image.clip(0, 1)], image.shape, "f32", table=table)
    np.testing.assert_array_equal(got, inside)


def written(path, table, *lines):
    size = len(table)
    rows = [" ".join(map(repr, map(float, row))) for row in table.reshape(-1, 3)]
    head = f"LUT_{3 if table.ndim == 4 else 1}D_SIZE {size}"
    path.write_text("\n".join([*lines, head, *rows]))
    return path


@pytest.mark.parametrize("table", [cube_of(4), curves_of(7)])
def test_files_are_looked_up_over_their_domain(run, tmp_path, table):
    formula = tetrahedral if table.ndim == 4 else linear
    least, most = (-0.5, 0.25, 0), (1, 0.75, 2)
    lines = ["# x", "DOMAIN_MIN -0.5 0.25 0", "DOMAIN_MAX 1 0.75 2"]
    path = written(tmp_path / "a.cube", table, *lines)
    for dtype in ("u8", "f32"):
        image = picture((9, 21, 4), dtype)
        want = looked_up(image, formula, table, least, most)
        for given in (path, str(path)):
            got = run("lut", [image], image.shape, dtype, table=given)
            check(got, want, tolerance=1e-5)


def test_a_file_is_read_once_until_it_changes(run, tmp_path, monkeypatch):
    image, path = picture((4, 5, 3), "u8"), tmp_path / "a.cube"
    written(path, cube_of(3, seed=1))
    first = run("lut", [image], image.shape, "u8", table=path)
    with monkeypatch.context() as patched:
        patched.setattr(lookup_tables, "read_cube", lambda _: pytest.fail("it was read again"))
        np.testing.assert_array_equal(run("lut", [image], image.shape, "u8", table=path), first)
    written(path, cube_of(3, seed=8))
    os.utime(path, ns=(1, 1))
    changed = run("lut", [image], image.shape, "u8", table=path)
    check(changed, looked_up(image, tetrahedral, cube_of(3, seed=8)), tolerance=1e-5)
    assert (changed != first).any()


def test_an_array_is_put_on_the_device_once_until_it_is_written_to(run, monkeypatch):
    image, table = picture((4, 5, 3), "u8"), cube_of(3)
    first = run("lut", [image], image.shape, "u8", table=table)
    with monkeypatch.context() as patched:
        patched.setattr(lookup_tables, "from_numpy", lambda _: pytest.fail("it was sent again"))
        np.testing.assert_array_equal(run("lut", [image], image.shape, "u8", table=table), first)
    table[:] = table[::-1].copy()
    got = run("lut", [image], image.shape, "u8", table=table)
    check(got, looked_up(image, tetrahedral, table), tolerance=1e-5)
    assert (got != first).any()


def test_few_tables_are_remembered(run):
    image = picture((4, 5, 3), "u8")
    for seed in range(12):
        table = cube_of(2, seed)
        got = run("lut", [image], image.shape, "u8", table=table.tolist())
        check(got, looked_up(image, tetrahedral, table), tolerance=1e-5)
    assert len(lookup_tables._tables) <= lookup_tables.MOST_TABLES


def test_another_table_is_not_compiled_anew(run, monkeypatch):
    image = picture((4, 5, 4), "u8")
    first = run("lut", [image], image.shape, "u8", table=cube_of(3))
    monkeypatch.setattr(Definition, "lower", lambda *_: pytest.fail("it was compiled again"))
    assert (run("lut", [image], image.shape, "u8", table=cube_of(3, seed=6)) != first).any()


def test_tables_in_pipelines_give_what_they_give_alone(run, device):
    image, table = picture((9, 21, 4), "u8"), cube_of(5)
    steps = [("brightness", {"value": 0.1}), ("lut", {"table": table}), ("grayscale", {})]
    want = image
    for name, params in steps:
        want = run(name, [want], image.shape, "u8", **params)
    pipeline, source = compute.pipeline(), compute.from_numpy(image)
    target = compute.buffer_zeros(image.shape, "u8")
    for i, (name, params) in enumerate(steps):
        made = target if i == len(steps) - 1 else compute.scratch(image.shape, "u8")
        pipeline.add(kernel=name, inputs=[source], output=made, params=params)
        source = made
    pipeline.run()
    np.testing.assert_allclose(compute.read(target), want, atol=0 if device == "cpu" else 1)


def test_images_without_pixels_stay_so(run):
    for table in (cube_of(3), curves_of(3)):
        assert run("lut", [np.zeros((0, 5, 3), np.uint8)], (0, 5, 3), "u8", table=table).size == 0


IMAGE = ((4, 4, 3), "u8")
WANTED = (
    "lut: table is the path of a .cube file, or an array of numbers: (n, n, n, 3) with n from 2"
)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "parameter 'table' is missing"),
        ({"table": None}, WANTED),
        ({"table": np.zeros((1, 1, 1, 3))}, "not an array (1, 1, 1, 3)"),
        ({"table": np.zeros((66, 66, 66, 3))}, "2 to 65, or (n, 3) with n from 2 to 65536; not"),
        ({"table": np.zeros((3, 3, 2, 3))}, "not an array (3, 3, 2, 3)"),
        ({"table": np.zeros((4, 4))}, "not an array (4, 4)"),
        ({"table": [[0, 0, 0], [1, 1]]}, "not list [[0, 0, 0], [1, 1]]"),
        ({"table": np.zeros((2, 3), bool)}, WANTED),
        ({"table": np.full((2, 3), np.nan)}, "lut: table has an entry that is no finite number"),
        ({"table": np.full((2, 3), 1e300)}, "lut: table has an entry that is no finite number"),
        (
            {"table": np.zeros((2, 3)), "interpolation": "cubic"},
            "lut: interpolation 'cubic' is not known: give tetrahedral, trilinear.",
        ),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fail, params, words):
    assert words in fail(errors.ArgumentError, "lut", [IMAGE], IMAGE, **params)


def test_a_file_that_is_not_there_is_refused(fail):
    given = {"table": "nowhere/to.cube"}
    assert "nowhere/to.cube cannot be read" in fail(
        errors.FileError, "lut", [IMAGE], IMAGE, **given
    )


def test_buffers_that_do_not_fit_are_refused(fail):
    given = {"table": cube_of(2)}
    for shape, dtype in (((4, 4, 2), "u8"), ((4,), "u8"), ((4, 4), "s32")):
        for image, output in (((shape, dtype), IMAGE), (IMAGE, (shape, dtype))):
            found = fail(errors.ShapeError, "lut", [image], output, **given)
            assert "which is not an image" in found
    assert "(4, 4)" in fail(errors.ShapeError, "lut", [IMAGE], ((4, 4), "u8"), **given)
