"""Images from one format to another, against the formulas of the standards."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.pictures import LUMA, check, in_units, picture
from kernels.planes import expanded, planes, reduced, stored

from dala import errors
from dala.gpu import compute
from dala.kernels.image.pixel_formats import FORMATS
from dala.lang.lower import Definition
from dala.runtime.kernels.kernel import KERNELS

SIZES = [(6, 70), (2, 2), (5, 7), (1, 1), (2, 9)]
"""Of even numbers, which are gone through two by two on the CPU, and of odd ones."""
KINDS = [("bt601", "limited"), ("bt601", "full"), ("bt709", "limited"), ("bt709", "full")]
KINDS += [("bt2020", "limited"), ("bt2020", "full")]
CHANNELS = {"rgb": [0, 1, 2], "rgba": [0, 1, 2, 3], "bgr": [2, 1, 0], "bgra": [2, 1, 0, 3]}
NARROW = 0.06
"""Levels by which what is computed in 16 bits may be off before it is rounded."""


def shown(image, name):
    """RGBA in 0..1 of an image whose pixels lie side by side."""
    x = in_units(image)
    x = x[..., None].repeat(3, -1) if name == "gray" else x[..., CHANNELS[name]]
    return x if x.shape[-1] == 4 else np.concatenate([x, np.ones((*x.shape[:2], 1))], -1)


def packed(rgba, name):
    """The channels of a format, of RGBA in 0..1."""
    return rgba[..., :3] @ LUMA if name == "gray" else rgba[..., CHANNELS[name]]


def near(got, exact):
    assert got.shape == exact.shape
    assert np.abs(got - exact).max(initial=0) <= 0.5 + NARROW


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("source", [*CHANNELS, "gray"])
def test_channels_are_put_in_order(run, source, dtype):
    for size in ((5, 70), (5, 7)):
        shape = size if source == "gray" else (*size, len(CHANNELS[source]))
        image = picture(shape, dtype)
        for target in (*CHANNELS, "gray"):
            want = packed(shown(image, source), target)
            got = run("convert", [image], want.shape, dtype, **{"from": source, "to": target})
            check(got, want)


def test_channels_convert_between_dtypes(run):
    for given, made in (("u8", "f32"), ("f32", "u8")):
        image = picture((5, 7, 3), given)
        got = run("convert", [image], (5, 7, 4), made, **{"from": "rgb", "to": "bgra"})
        check(got, packed(shown(image, "rgb"), "bgra"))


@pytest.mark.parametrize(("matrix", "span"), KINDS)
@pytest.mark.parametrize("source", ["yuv420p", "nv12"])
def test_planes_are_expanded_by_the_formula(run, source, matrix, span):
    for size in SIZES:
        y, u, v = planes(*size)
        rgb = expanded(y, u, v, matrix, span)
        for target in ("rgb", "rgba", "bgr", "bgra"):
            params = {"from": source, "to": target, "matrix": matrix, "range": span}
            image = stored(y, u, v, source)
            if size == (6, 70):
                image = image.reshape(9, 70)
            got = run("convert", [image], (*size, len(CHANNELS[target])), "u8", **params)
            opaque = np.concatenate([rgb, np.ones((*size, 1))], -1)
            near(got, packed(opaque, target) * 255)


def test_planes_become_floats(run):
    for size in ((6, 8), (5, 7)):
        y, u, v = planes(*size)
        image, rgb = stored(y, u, v, "nv12"), expanded(y, u, v)
        got = run("convert", [image], (*size, 3), "f32", **{"from": "nv12", "to": "rgb"})
        # What a float stores may leave the range.
        check(got.clip(0, 1), rgb, tolerance=2e-6)


def test_every_level_of_luma_and_chroma_is_expanded(run):
    y = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16), 2, 0).repeat(2, 1)
    for matrix, span in KINDS:
        params = {"from": "yuv420p", "to": "rgb", "matrix": matrix, "range": span}
        for i in range(0, 256, 15):
            u, v = np.full((16, 16), i, np.uint8), np.full((16, 16), 255 - i // 2, np.uint8)
            image = stored(y, u, v, "yuv420p").reshape(48, 32)
            got = run("convert", [image], (32, 32, 3), "u8", **params)
            near(got, expanded(y, u, v, matrix, span) * 255)


@pytest.mark.parametrize("span", ["limited", "full"])
def test_gray_is_the_luma_of_planes(run, span):
    for size in ((6, 70), (5, 7)):
        y, u, v = planes(*size)
        black, most = (16, 219) if span == "limited" else (0, 255)
        want = ((y.astype(float) - black) / most).clip(0, 1)
        image = stored(y, u, v, "yuv420p")
        params = {"from": "yuv420p", "to": "gray", "range": span}
        near(run("convert", [image], size, "u8", **params), want * 255)


@pytest.mark.parametrize(("matrix", "span"), KINDS)
@pytest.mark.parametrize("target", ["yuv420p", "nv12"])
def test_planes_are_made_by_the_formula(run, target, matrix, span):
    for size in SIZES:
        for source in ("rgb", "rgba", "bgr", "bgra"):
            image = picture((*size, len(CHANNELS[source])), "u8")
            want = stored(*reduced(shown(image, source)[..., :3], matrix, span), target)
            params = {"from": source, "to": target, "matrix": matrix, "range": span}
            near(run("convert", [image], want.shape, "u8", **params), want)
    image = picture((4, 6, 3), "f32")
    want = stored(*reduced(in_units(image), matrix, span), target).reshape(6, 6)
    params = {"from": "rgb", "to": target, "matrix": matrix, "range": span}
    near(run("convert", [image], want.shape, "u8", **params), want)


@pytest.mark.parametrize(("matrix", "span"), KINDS)
def test_the_strongest_colours_stay_in_their_range(run, matrix, span):
    corners = np.array([[c >> 2, c >> 1 & 1, c & 1] for c in range(8)], np.uint8) * 255
    image = np.ascontiguousarray(corners.reshape(2, 4, 3).repeat(2, 0).repeat(2, 1))
    for target in ("yuv420p", "nv12"):
        want = stored(*reduced(in_units(image), matrix, span), target)
        params = {"from": "rgb", "to": target, "matrix": matrix, "range": span}
        near(run("convert", [image], want.shape, "u8", **params), want)


def test_gray_makes_planes_without_colour(run):
    for size in ((4, 6), (3, 5)):
        image = picture(size, "u8")
        params = {"from": "gray", "to": "yuv420p"}
        want = stored(*reduced(shown(image, "gray")[..., :3]), "yuv420p")
        got = run("convert", [image], want.shape, "u8", **params)
        near(got, want)
        assert (got[image.size :] == 128).all()


def test_planes_are_rearranged_as_they_are(run):
    for size in SIZES:
        parts = planes(*size)
        names = ("yuv420p", "nv12")
        for source in names:
            for target in names:
                image, want = stored(*parts, source), stored(*parts, target)
                params = {"from": source, "to": target, "height": size[0], "width": size[1]}
                got = run("convert", [image], image.shape, "u8", **params)
                np.testing.assert_array_equal(got, want)


def test_planes_go_through_a_pipeline_as_one_by_one(run, device):
    image = picture((6, 70, 4), "u8")
    there, back = {"from": "rgba", "to": "yuv420p"}, {"from": "yuv420p", "to": "rgba"}
    between = run("convert", [image], (9, 70), "u8", **there)
    want = 255 - run("convert", [between], image.shape, "u8", **back)[..., :3]
    pipeline = compute.Pipeline()
    given, made = compute.from_numpy(image), compute.buffer_zeros(image.shape, "u8")
    planes_, colours = compute.scratch((9, 70), "u8"), compute.scratch(image.shape, "u8")
    pipeline.add(kernel="convert", inputs=[given], output=planes_, params=there)
    pipeline.add(kernel="convert", inputs=[planes_], output=colours, params=back)
    pipeline.add(kernel="invert", inputs=[colours], output=made)
    pipeline.run()
    assert np.abs(compute.read(made)[..., :3].astype(int) - want).max() <= 1


def test_images_are_converted_in_place(device):
    image = picture((6, 4, 4), "u8")
    buffer = compute.from_numpy(image)
    compute.run_kernel("convert", [buffer], buffer, {"from": "rgba", "to": "bgra"})
    np.testing.assert_array_equal(compute.read(buffer), image[..., [2, 1, 0, 3]])
    parts = planes(4, 6)
    buffer = compute.from_numpy(stored(*parts, "nv12").reshape(6, 6))
    compute.run_kernel("convert", [buffer], buffer, {"from": "nv12", "to": "yuv420p"})
    np.testing.assert_array_equal(compute.read(buffer).ravel(), stored(*parts, "yuv420p"))


def test_images_without_pixels_stay_so(run):
    for shape, params, made in (
        ((0, 4, 3), {"from": "rgb", "to": "nv12"}, (0, 4)),
        ((0,), {"from": "nv12", "to": "rgba"}, (3, 0, 4)),
        ((0, 4, 3), {"from": "rgb", "to": "bgr"}, (0, 4, 3)),
        ((0, 4), {"from": "nv12", "to": "yuv420p"}, (0, 4)),
    ):
        assert run("convert", [np.zeros(shape, np.uint8)], made, "u8", **params).size == 0


def test_another_matrix_is_not_compiled_anew(run, monkeypatch):
    for image, shape in ((picture((6, 4), "u8"), (4, 4, 3)), (picture((17,), "u8"), (3, 3, 3))):
        params = {"from": "yuv420p", "to": "rgb"}
        first = run("convert", [image], shape, "u8", **params)
        with monkeypatch.context() as patch:
            patch.setattr(Definition, "lower", lambda *_: pytest.fail("it was compiled again"))
            other = {**params, "matrix": "bt709", "range": "full"}
            assert (run("convert", [image], shape, "u8", **other) != first).any()


@pytest.mark.parametrize(
    ("shape", "params", "made"),
    [
        ((5, 7, 3), {"from": "rgb", "to": "bgra"}, (5, 7, 4)),
        ((5, 7, 3), {"from": "rgb", "to": "gray"}, (5, 7)),
        ((4, 6), {"from": "gray", "to": "rgb"}, (4, 6, 3)),
        ((4, 6, 3), {"from": "rgb", "to": "nv12"}, (6, 6)),
        ((5, 7, 3), {"from": "rgb", "to": "nv12"}, (59,)),
        ((6, 6), {"from": "yuv420p", "to": "rgba"}, (4, 6, 4)),
        ((6, 6), {"from": "yuv420p", "to": "nv12"}, (6, 6)),
        ((59,), {"from": "nv12", "to": "rgb", "width": 7, "height": 5}, (5, 7, 3)),
        ((36,), {"from": "nv12", "to": "yuv420p", "width": 6, "height": 4}, (36,)),
    ],
)
def test_the_output_has_the_size_of_its_format(shape, params, made):
    assert KERNELS["convert"].output_shape([shape], params) == made


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"from": "rgb"}, "parameter 'to' is missing"),
        ({"from": "rgb", "to": "hsv"}, f"to 'hsv' is not known: give {', '.join(FORMATS)}."),
        ({"from": ["rgb"], "to": "bgr"}, "from ['rgb'] is not known"),
        ({"from": "rgb", "to": "nv12", "matrix": "bt470"}, "give bt601, bt709"),
        ({"from": "rgb", "to": "nv12", "range": []}, "range [] is not known: give limited, full"),
        ({"from": "rgb", "to": "bgr", "width": 1.5}, "width is an integer, not 1.5"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fail, params, words):
    image = ((4, 4, 3), "u8")
    assert words in fail(errors.ArgumentError, "convert", [image], image, **params)


def test_buffers_that_do_not_fit_are_refused(fail):
    def refused(error, source, image, target, output, **size):
        params = {"from": source, "to": target, **size}
        return fail(error, "convert", [(image, "u8")], (output, "u8"), **params)

    wrong = errors.ShapeError
    said = refused(wrong, "rgb", (4, 4), "bgr", (4, 4, 3))
    assert "the image is (4, 4), but a rgb image is (height, width, 3)" in said
    said = refused(wrong, "yuv420p", (7, 4), "rgb", (4, 4, 3))
    assert "(height · 3/2, width) for an even height and width, or has one axis" in said
    said = refused(wrong, "rgb", (4, 4, 3), "nv12", (4, 4))
    assert "the output is (4, 4), but a nv12 image of 4 × 4 pixels is (6, 4) or (24,)" in said
    said = refused(wrong, "nv12", (23,), "rgb", (4, 4, 3))
    assert "the image is (23,), but a nv12 image of 4 × 4 pixels is (6, 4) or (24,)" in said
    said = refused(wrong, "nv12", (6, 4), "rgb", (4, 4, 3), width=5)
    assert "width is given as 5, but the image's is 4" in said
    said = refused(errors.ArgumentError, "nv12", (24,), "yuv420p", (24,), width=4)
    assert "height is None and width is 4" in said
    fails = {"from": "nv12", "to": "rgb"}
    said = fail(errors.DtypeError, "convert", [((6, 4), "f32")], ((4, 4, 3), "u8"), **fails)
    assert "the image is f32, but nv12 images are u8" in said
    fails = {"from": "rgb", "to": "bgr"}
    said = fail(errors.DtypeError, "convert", [((4, 4, 3), "u8")], ((4, 4, 3), "s32"), **fails)
    assert "the output is s32, but bgr images are u8 or u16 or f32 or f16" in said
