"""Filters that smooth and keep edges, against their formulas on images with a rim."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.pictures import SHAPES, check, in_units, picture
from kernels.test_neighbourhoods import blurred, shifted

from dala import errors
from dala.gpu import compute
from dala.kernels.image.medians import Network


def bilateral(x, radius, sigma_color, sigma_space, border="clamp", guide=None):
    """The mean over a circle, colours compared in the guide, which is the image by default."""
    guide = x if guide is None else guide
    at, seen = shifted(x, radius, border), shifted(guide, radius, border)
    total = weights = 0.0
    for k in range(-radius, radius + 1):
        for m in range(-radius, radius + 1):
            if k * k + m * m <= radius * radius:
                apart = np.abs(seen(k, m) - guide)
                apart = apart.sum(-1, keepdims=True) if x.ndim == 3 else apart
                near = (k * k + m * m) / (2 * sigma_space**2)
                weight = np.exp(-near - apart**2 / (2 * sigma_color**2))
                total, weights = total + at(k, m) * weight, weights + weight
    return total / weights


def unsharp(x, radius, sigma, amount, threshold, border="clamp"):
    detail = x - blurred(x, radius, sigma, border)
    return x + amount * detail * (np.abs(detail) > threshold)


def denoised(x, strength, border="clamp"):
    guide = blurred(x, 1, 1.0, border)
    return bilateral(x, 3, 0.3 * strength, 3 * strength, border, guide)


def median(x, radius, border="clamp"):
    at = shifted(x, radius, border)
    offsets = range(-radius, radius + 1)
    return np.median([at(k, m) for k in offsets for m in offsets], axis=0)


FORMULAS = [
    ("bilateral", {}, lambda x, border: bilateral(x, 2, 0.1, 2.0, border)),
    (
        "bilateral",
        {"radius": 1, "sigma_color": 1.5, "sigma_space": 0.7},
        lambda x, border: bilateral(x, 1, 1.5, 0.7, border),
    ),
    (
        "bilateral",
        {"radius": 5, "sigma_color": 0.3, "sigma_space": 3},
        lambda x, border: bilateral(x, 5, 0.3, 3, border),
    ),
    ("unsharp", {}, lambda x, border: unsharp(x, 2, 1.0, 1.0, 0, border)),
    (
        "unsharp",
        {"radius": 1, "sigma": 0.6, "amount": -0.5, "threshold": 0.0502},
        lambda x, border: unsharp(x, 1, 0.6, -0.5, 0.0502, border),
    ),
    ("unsharp", {"radius": 33, "sigma": 90}, lambda x, border: unsharp(x, 33, 90, 1, 0, border)),
    ("denoise", {}, lambda x, border: denoised(x, 0.5, border)),
    ("median", {}, lambda x, border: median(x, 1, border)),
    ("median", {"radius": 2}, lambda x, border: median(x, 2, border)),
]


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(("name", "params", "formula"), FORMULAS)
def test_smoothing_follows_its_formula(run, name, params, formula, dtype):
    for shape in SHAPES if dtype == "u8" else SHAPES[:2]:
        image = picture(shape, dtype)
        got = run(name, [image], shape, dtype, **params)
        check(got, formula(in_units(image), "clamp"), tolerance=4e-6)


@pytest.mark.parametrize("border", ["mirror", "wrap", "zero"])
@pytest.mark.parametrize(("name", "params", "formula"), FORMULAS)
def test_borders_are_as_asked_for(run, name, params, formula, border):
    """The image is not as high as filters reach, and wider than they do."""
    image = picture((2, 17, 3), "f32")
    got = run(name, [image], image.shape, "f32", **params, border=border)
    check(got, formula(in_units(image), border), tolerance=4e-6)


@pytest.mark.parametrize(("name", "params", "formula"), FORMULAS)
def test_smoothing_converts_between_dtypes(run, name, params, formula):
    for given, made in (("u8", "f32"), ("f32", "u8")):
        image = picture((9, 21, 4), given)
        got = run(name, [image], image.shape, made, **params)
        check(got, formula(in_units(image), "clamp"), tolerance=4e-6)


def test_smoothing_may_write_over_its_input(device):
    image = picture((9, 21, 4), "u8")
    for name, params, formula in FORMULAS:
        buffer = compute.from_numpy(image)
        compute.run_kernel(name, [buffer], buffer, params)
        check(compute.read(buffer), formula(in_units(image), "clamp"), tolerance=4e-6)


def test_images_without_pixels_stay_so(run):
    for name, params, _ in FORMULAS:
        for shape in ((0, 5, 3), (4, 0)):
            assert run(name, [np.zeros(shape, np.uint8)], shape, "u8", **params).size == 0


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("denoise", {"strength": 0}),
        ("unsharp", {"amount": 0}),
        ("unsharp", {"threshold": 2}),
        ("unsharp", {"radius": 0}),
        ("bilateral", {"radius": 0}),
        ("bilateral", {"sigma_space": 1e-200}),
    ],
)
def test_no_strength_changes_nothing(run, name, params, dtype):
    for shape in ((1, 1), (9, 21, 3), (9, 21, 4)):
        image = picture(shape, dtype)
        np.testing.assert_array_equal(run(name, [image], shape, dtype, **params), image)


def test_colours_that_differ_at_all_do_not_mix_at_a_vanishing_sigma(run):
    image = np.arange(9 * 21, dtype=np.uint8).reshape(9, 21)
    got = run("bilateral", [image], image.shape, "u8", sigma_color=1e-200)
    np.testing.assert_array_equal(got, image)


def test_noise_goes_and_edges_stay(run):
    random = np.random.default_rng(3)
    y, x = np.indices((64, 96))
    clean = 0.2 + 0.6 * ((x // 24 + y // 16) % 2)
    clean = np.stack([clean, 0.9 * clean, 0.5 + 0 * clean], -1)
    noisy = (clean + random.normal(0, 0.06, clean.shape)).clip(0, 1).astype(np.float32)

    def psnr(image):
        return -10 * np.log10(((image - clean) ** 2).mean())

    before = psnr(noisy)
    after = [
        psnr(run("denoise", [noisy], noisy.shape, "f32", strength=s)) for s in (0.25, 0.5, 0.8)
    ]
    assert before + 3 < after[0] < after[1]
    assert min(after[1:]) > before + 7
    assert after[1] > psnr(run("blur", [noisy], noisy.shape, "f32")) + 4


@pytest.mark.parametrize("size", [3, 5])
def test_networks_find_the_median_of_zeros_and_ones(size):
    """What does so for zeros and ones in any place does it for all values."""
    network, count = Network(size), size * size
    random = np.random.default_rng(1)
    ones = np.arange(1 << 9) if size == 3 else random.integers(0, 1 << 25, 200_000)
    values = dict(enumerate((ones >> k & 1).astype(bool) for k in range(count)))
    want = sum(item.astype(int) for item in values.values()) > count // 2
    for made, (name, a, b) in network.needed().items():
        values[made] = (values[a] & values[b]) if name == "min" else (values[a] | values[b])
    np.testing.assert_array_equal(values[network.median], want)
    assert len(network.needed()) == {3: 30, 5: 206}[size]


IMAGE = ((4, 4, 3), "u8")


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("bilateral", {"radius": -1}, "bilateral: radius is 0 to "),
        ("bilateral", {"radius": 257}, "bilateral: radius is 0 to 256, not 257: every pixel"),
        ("bilateral", {"sigma_color": 0}, "sigma_color is a finite number above 0, not 0"),
        ("bilateral", {"sigma_space": "far"}, "sigma_space is a finite number above 0, not 'far'"),
        ("unsharp", {"radius": 1.5}, "unsharp: radius is an integer, not 1.5"),
        ("unsharp", {"sigma": -1}, "unsharp: sigma is a finite number above 0, not -1"),
        ("unsharp", {"amount": float("inf")}, "unsharp: amount is a finite number, not inf"),
        ("unsharp", {"threshold": -0.1}, "threshold is a finite number from 0 on, not -0.1"),
        ("denoise", {"strength": 1.1}, "denoise: strength is a finite number from 0 to 1, not 1.1"),
        ("denoise", {"border": "none"}, "denoise: border 'none' is not known: give clamp, "),
        ("median", {"radius": 0}, "median: radius is 1 to 2, not 0"),
        ("median", {"radius": 3}, "median: radius is 1 to 2, not 3: a larger one"),
        ("median", {"radius": 1.0}, "median: radius is an integer, not 1.0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fail, name, params, words):
    assert words in fail(errors.ArgumentError, name, [IMAGE], IMAGE, **params)


@pytest.mark.parametrize("name", sorted({name for name, *_ in FORMULAS}))
def test_buffers_that_do_not_fit_are_refused(fail, name):
    for given, made in ((((4, 4), "s32"), IMAGE), (IMAGE, ((4, 4, 2), "u8"))):
        assert "which is not an image" in fail(errors.ShapeError, name, [given], made)
    assert "(4, 5, 3)" in fail(errors.ShapeError, name, [IMAGE], ((4, 5, 3), "u8"))
