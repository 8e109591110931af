"""Sizes as users write them, and what follows from an image's own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from kernels.pictures import picture

from dala import errors
from dala.gpu import compute
from dala.kernels.image.sizes import WantedSize, exact_size, wanted_size
from dala.media import gpu

WIDE, TALL = (1000, 563), (563, 1000)
TEXTS = [
    ("1280x720", WIDE, (1280, 720), (1280, 720)),
    ("1280X720", WIDE, (1280, 720), (1280, 720)),
    (" 1280×720 ", WIDE, (1280, 720), (1280, 720)),
    ("640x", WIDE, (640, 360), (640, 360)),
    ("640x", (1000, 565), (640, 362), (640, 362)),
    ("640x", (1000, 567), (640, 363), (640, 362)),
    ("x360", WIDE, (639, 360), (640, 360)),
    ("x360", TALL, (203, 360), (202, 360)),
    ("50%", WIDE, (500, 282), (500, 282)),
    ("12.5%", WIDE, (125, 70), (124, 70)),
    ("200%", WIDE, (2000, 1126), (2000, 1126)),
    ("fit:640x360", WIDE, (639, 360), (640, 360)),
    ("fit:640x360", TALL, (203, 360), (202, 360)),
    ("fit:2000x2000", WIDE, (2000, 1126), (2000, 1126)),
    ("fit:641x361", (641, 361), (641, 361), (640, 360)),
    ("fit:640x360", (3000, 1), (640, 1), (640, 2)),
    ("fill:640x360", WIDE, (640, 360), (640, 360)),
    ("fill:640x360", TALL, (640, 360), (640, 360)),
    ((640, 360), WIDE, (640, 360), (640, 360)),
    ([640, 360], WIDE, (640, 360), (640, 360)),
    ((640, None), WIDE, (640, 360), (640, 360)),
    ((None, 360), WIDE, (639, 360), (640, 360)),
    (np.array([640, 360]).tolist(), WIDE, (640, 360), (640, 360)),
]
"""What is given, the image's own size, and what is made of it, plain and for video."""


@pytest.mark.parametrize(("given", "own", "plain", "even"), TEXTS)
def test_a_size_follows_from_the_images_own(given, own, plain, even):
    wanted = wanted_size("it", given)
    assert wanted.of(*own) == plain
    assert wanted.of(*own, even=True) == even
    assert wanted_size("it", wanted) is wanted
    assert wanted_size("it", str(wanted)) == wanted


@pytest.mark.parametrize("seed", range(5))
def test_what_fits_is_inside_of_its_box_and_touches_it(seed):
    random = np.random.default_rng(seed)
    for _ in range(200):
        width, height, wide, tall = (int(n) for n in random.integers(2, 3000, 4))
        made = wanted_size("it", f"fit:{wide}x{tall}").of(width, height)
        assert made[0] <= wide
        assert made[1] <= tall
        assert made[0] == wide or made[1] == tall
        even = wanted_size("it", f"fit:{wide}x{tall}").of(width, height, even=True)
        assert even[0] % 2 == even[1] % 2 == 0
        assert 2 <= even[0] <= wide
        assert 2 <= even[1] <= tall
        x, y, across, down = wanted_size("it", f"fill:{wide}x{tall}").part_of(width, height)
        assert across == width or down == height
        assert abs(Fraction(across * tall, wide) - down) <= max(1, Fraction(tall, wide))
        assert (x, y) == ((width - across) // 2, (height - down) // 2)


@pytest.mark.parametrize(
    "given",
    [
        "", "big", "0x9", "9x0", "0x", "x0", "x", "0%", "%", "fit:", "fit:9x", "fill:9", "fit:0x9",
        "-5x3", "1280x720x3", "1e3x5", "1000000x1", 640, 2.5, None, (1, 2, 3), (None, None), (0, 5),
        (5, -1), (0, None), b"640x360",
    ],
)  # fmt: skip
def test_what_is_no_size_is_refused_with_all_that_is_one(given):
    with pytest.raises(errors.ArgumentError) as caught:
        wanted_size("transcode", given)
    said = str(caught.value)
    assert said.startswith("transcode: size is (width, height), from 1 on, or a text: 1280x720, ")
    assert said.endswith(f"not {given!r}.")


@pytest.mark.parametrize("given", [(2.5, 3), ("4", 4), (True, 2)])
def test_sides_are_whole_numbers(given):
    with pytest.raises(errors.ArgumentError, match="size is an integer"):
        wanted_size("it", given)


def test_where_nothing_can_be_followed_a_size_is_exact():
    assert exact_size("writer", "64x48") == exact_size("writer", [64, 48]) == (64, 48)
    for given in ("64x", "50%", "fit:64x48", 64, (64,), WantedSize("exact", 6, 4)):
        with pytest.raises(errors.ArgumentError, match="a text such as '1280x720', not"):
            exact_size("writer", given)
    with pytest.raises(errors.ArgumentError, match="from 1 on, not"):
        exact_size("writer", (0, 5))
    with pytest.raises(errors.ArgumentError, match="1 to 100 pixels each way, not '101x5'"):
        exact_size("compose", "101x5", 100)


# -- the filter ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(
    ("size", "shape"),
    [("10x", (7, 10)), ("x5", (5, 7)), ("50%", (6, 8)), ("fit:8x8", (6, 8)), ("20x5", (5, 20))],
)
def test_resize_takes_sizes_that_follow(device, dtype, size, shape):
    image = picture((12, 17, 3), dtype)
    got = gpu.resize(image, size)
    assert got.shape == (*shape, 3)
    np.testing.assert_array_equal(got, gpu.resize(image, shape=shape))


@pytest.mark.parametrize(
    ("size", "part"),
    [
        ("fill:10x10", np.s_[:, 4:12]),
        ("fill:8x2", np.s_[4:8]),
        ("fill:3x3", np.s_[:, 4:12]),
    ],
)
def test_resize_fills_a_box_with_the_middle(device, size, part):
    image = picture((8, 16, 4) if size != "fill:8x2" else (12, 16, 4), "u8")
    box = exact_size("it", size.removeprefix("fill:"))
    want = gpu.resize(np.ascontiguousarray(image[part]), box)
    np.testing.assert_array_equal(gpu.resize(image, size), want)
    out = compute.buffer_zeros(want.shape, "u8")
    compute.run_kernel("resize", [compute.from_numpy(image)], out, {"size": size})
    np.testing.assert_array_equal(compute.read(out), want)
    kept = gpu.resize(image, size, premultiply=True)
    shown = gpu.resize(np.ascontiguousarray(image[part]), box, premultiply=True)
    np.testing.assert_array_equal(kept, shown)


def test_an_output_that_is_not_of_the_size_that_follows_is_refused(device):
    image = compute.from_numpy(picture((12, 17, 3), "u8"))
    out = compute.buffer_zeros((6, 9, 3), "u8")
    with pytest.raises(errors.ShapeError, match=r"size is '50%', which makes 8 × 6, but the outp"):
        compute.run_kernel("resize", [image], out, {"size": "50%"})
    with pytest.raises(errors.ShapeError, match=r"\(0, 5, 3\): no size follows from it"):
        compute.Kernel.lookup("resize").output_shape([(0, 5, 3)], {"size": "50%"})


@pytest.mark.parametrize("name", ["letterbox", "warp_affine", "preprocess"])
def test_only_resize_takes_sizes_that_follow(device, name):
    image, params = compute.from_numpy(picture((8, 8, 3), "u8")), {"size": "50%"}
    params |= {"matrix": np.eye(2, 3)} if name == "warp_affine" else {}
    out = compute.buffer_zeros((1, 3, 4, 4) if name == "preprocess" else (4, 4, 3), "f32")
    with pytest.raises(errors.ArgumentError, match=f"{name}: size is .width, height., or a text"):
        compute.run_kernel(name, [image], out, params)
    compute.run_kernel(name, [image], out, {**params, "size": "4x4"})
