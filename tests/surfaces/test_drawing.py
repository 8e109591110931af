"""Drawing on surfaces: against Pillow's, in which order, under clips, and what is refused."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest
from PIL import Image, ImageDraw

from dala import gpu
from dala.errors import ArgumentError, DtypeError, FreedError, ShapeError
from dala.gpu import compute
from dala.images.text_rendering import opened_font
from dala.ml.results.results import Detection, Segmentation
from dala.surfaces import drawing

FINE = 16
"""How much finer Pillow draws what is compared: it has no antialiasing of its own."""
TOLERANCE, MEAN_TOLERANCE = 0.1, 0.02
"""Of a pixel: the distance to an edge is not quite the area beyond it."""
W, H = 90, 70
RED, GREEN, BLUE = (255, 0, 0, 255), (0, 255, 0, 255), (0, 0, 255, 255)


def surface_of(width=W, height=H):
    return gpu.create_surface(width, height, kind="offscreen")


def noise(width=W, height=H):
    levels = np.random.default_rng(8).integers(0, 256, (height, width, 4), dtype=np.uint8)
    levels[..., 3] = 255
    return levels


def filled(surface, color):
    gpu.fill_rect(surface, 0, 0, surface.width, surface.height, color)


def pixel(surface, x, y):
    return tuple(gpu.get_pixels(surface)[y, x].tolist())


def pillow(paint):
    """How far what Pillow paints covers each pixel."""
    fine = Image.new("L", (W * FINE, H * FINE))
    paint(ImageDraw.Draw(fine))
    return np.asarray(fine).reshape(H, FINE, W, FINE).mean((1, 3)) / 255


def fine_box(left, top, right, bottom):
    # Pillow's boxes end with their last pixel.
    return [left * FINE, top * FINE, right * FINE - 1, bottom * FINE - 1]


def ring(canvas, shape, box, half, *radius):
    left, top, right, bottom = box
    for by, level in ((half, 255), (-half, 0)):
        corner = [(item + by) * FINE for item in radius]
        edges = fine_box(left - by, top - by, right + by, bottom + by)
        getattr(canvas, shape)(edges, *corner, fill=level)


def thick_line(canvas, ends, width):
    fine, half = [(x * FINE, y * FINE) for x, y in ends], width * FINE / 2
    canvas.line(fine, 255, round(width * FINE))
    for x, y in fine:
        canvas.ellipse([x - half, y - half, x + half - 1, y + half - 1], 255)


PILLOWS = {
    "fill_rect": (
        (10.25, 8.5, 50, 40),
        (),
        lambda c: c.rectangle(fine_box(10.25, 8.5, 60.25, 48.5), 255),
    ),
    "draw_rect": (
        (12.25, 8.5, 50, 40),
        (1.5,),
        lambda c: ring(c, "rectangle", (12.25, 8.5, 62.25, 48.5), 0.75),
    ),
    "fill_circle": (
        (40.25, 31.5, 17.5),
        (),
        lambda c: c.ellipse(fine_box(22.75, 14, 57.75, 49), 255),
    ),
    "draw_circle": ((40, 31, 20), (3,), lambda c: ring(c, "ellipse", (20, 11, 60, 51), 1.5)),
    "fill_round_rect": (
        (10.5, 8.25, 50, 40, 11),
        (),
        lambda c: c.rounded_rectangle(fine_box(10.5, 8.25, 60.5, 48.25), 11 * FINE, 255),
    ),
    "draw_round_rect": (
        (12, 8, 50, 40, 10),
        (4,),
        lambda c: ring(c, "rounded_rectangle", (12, 8, 62, 48), 2, 10),
    ),
    "draw_line": ((8, 10, 75, 52), (5,), lambda c: thick_line(c, [(8, 10), (75, 52)], 5)),
}


@pytest.mark.parametrize("name", PILLOWS)
def test_a_shape_mixes_in_where_pillows_covers(device, name):
    place, width, paint = PILLOWS[name]
    surface, color = surface_of(), (0.9, 0.1, 0.4, 0.75)
    gpu.set_pixels(surface, noise())
    getattr(gpu, name)(surface, *place, color, *width)
    covered = pillow(paint)[..., None]
    share, levels = covered * 0.75, np.multiply(color[:3], 255)
    want = noise()[..., :3] * (1 - share) + levels * share
    got = gpu.get_pixels(surface)
    difference = np.abs(got[..., :3] - want)
    assert difference.max() <= TOLERANCE * 255
    assert difference[covered[..., 0] > 0].mean() <= MEAN_TOLERANCE * 255
    assert (got[..., 3] == 255).all()
    np.testing.assert_array_equal(got[covered[..., 0] == 0], noise()[covered[..., 0] == 0])


def test_text_is_pillows(device):
    surface = surface_of()
    gpu.draw_text(surface, "Quick 8", 6, 9, size=20, color="#ffffff")
    want = Image.new("L", (W, H))
    ImageDraw.Draw(want).text((6, 9), "Quick 8", 255, opened_font("test", None, 20))
    got = gpu.get_pixels(surface)
    np.testing.assert_allclose(got[..., 3], np.asarray(want), atol=1)
    assert got[..., 3].max() > 200


def test_a_background_lies_behind_text(device):
    surface = surface_of()
    gpu.draw_text(surface, "8", 10, 10, size=24, color="#00ff00", background="#ff0000")
    assert pixel(surface, 10, 10) == RED
    assert (gpu.get_pixels(surface) == GREEN).all(2).any()


@pytest.mark.parametrize("below", [0, 60, 255])
def test_alpha_is_composed_as_pillow_does(device, below):
    under = noise()
    under[..., 3] = below
    surface = surface_of()
    gpu.set_pixels(surface, under)
    filled(surface, "#4080c099")
    over = Image.new("RGBA", (W, H), (0x40, 0x80, 0xC0, 0x99))
    want = Image.alpha_composite(Image.fromarray(under), over)
    difference = gpu.get_pixels(surface).astype(int) - np.asarray(want)
    assert np.abs(difference).max() <= 1


# -- images ----------------------------------------------------------------------------------------


def image_kinds():
    pixels = noise(20, 10)
    yield "RGBA array", pixels, pixels
    yield "RGB array", pixels[..., :3], pixels
    yield "Pillow image", Image.fromarray(pixels), pixels
    gray = np.dstack([pixels[..., 0]] * 3 + [pixels[..., 3]])
    yield "gray array", pixels[..., 0], gray
    yield "f32 array", (pixels / 255).astype(np.float32), pixels


@pytest.mark.parametrize(("image", "want"), [pytest.param(*k[1:], id=k[0]) for k in image_kinds()])
def test_an_image_in_its_own_size_is_copied(device, image, want):
    surface = surface_of()
    gpu.draw_image(surface, image, 30, 40)
    np.testing.assert_array_equal(gpu.get_pixels(surface)[40:50, 30:50], want)
    assert np.count_nonzero(gpu.get_pixels(surface)[..., 3]) == 200


def test_an_image_is_found_by_the_name_it_was_loaded_under(device):
    surface, pixels = surface_of(), noise(20, 10)
    gpu.load_image(surface, "icon", pixels)
    pixels[:] = 0
    for x, y in ((3, 4), (60, 50)):
        gpu.draw_image(surface, "icon", x, y)
        np.testing.assert_array_equal(
            gpu.get_pixels(surface)[y : y + 10, x : x + 20], noise(20, 10)
        )


def test_a_name_means_the_image_loaded_last(device):
    surface = surface_of()
    for levels in (RED, BLUE):
        gpu.load_image(surface, "icon", np.full((4, 4, 4), levels, np.uint8))
        gpu.draw_image(surface, "icon", 0 if levels is RED else 10, 0)
    assert [pixel(surface, 2, 2), pixel(surface, 12, 2)] == [RED, BLUE]


def test_an_image_fills_the_rectangle_that_is_given(device):
    surface, pixels = surface_of(), noise(80, 60)
    gpu.draw_image(surface, pixels, 5, 6, 40, 30)
    want = Image.fromarray(pixels).resize((40, 30), Image.Resampling.BOX)
    difference = gpu.get_pixels(surface)[6:36, 5:45].astype(int) - np.asarray(want)
    assert np.abs(difference).max() <= 1


def test_an_image_is_mixed_in_by_alpha(device):
    surface = surface_of()
    filled(surface, "#000000")
    gpu.draw_image(surface, np.full((H, W, 3), 200, np.uint8), 0, 0, alpha=0.25)
    assert pixel(surface, 9, 9) == (50, 50, 50, 255)


@pytest.mark.parametrize(
    "hold", [lambda array: array, compute.from_dlpack], ids=["array", "buffer"]
)
def test_an_image_is_taken_as_it_is_when_it_is_given(device, hold):
    surface, pixels = surface_of(), np.full((H, W, 4), 255, np.uint8)
    given = hold(pixels)
    gpu.draw_image(surface, given, 0, 0)
    if given is pixels:
        pixels[:] = 7
    else:
        compute.run_kernel("generate_gradient", [], given)
    assert (gpu.get_pixels(surface) == 255).all()


def test_a_buffer_of_another_device_is_drawn(webgpu):
    surface = surface_of()
    with compute.device("cpu"):
        image = compute.from_numpy(noise())
    gpu.draw_image(surface, image, 0, 0)
    np.testing.assert_array_equal(gpu.get_pixels(surface), noise())


# -- order -----------------------------------------------------------------------------------------


def test_later_shapes_lie_over_earlier_ones(device):
    surface = surface_of()
    for color in ("#ff0000", "#00ff00", "#0000ff"):
        filled(surface, color)
    assert pixel(surface, 5, 5) == BLUE


def test_images_and_shapes_keep_their_order(device):
    surface = surface_of()
    filled(surface, "#ff0000")
    gpu.draw_image(surface, np.full((H, W, 4), GREEN, np.uint8), 0, 0)
    gpu.fill_rect(surface, 0, 0, 10, 10, "#0000ff")
    assert [pixel(surface, 5, 5), pixel(surface, 20, 20)] == [BLUE, GREEN]


REPLACED = {
    "clear": lambda surface: gpu.clear(surface, "#00ff00"),
    "set_pixels": lambda surface: gpu.set_pixels(surface, np.full((H, W, 4), GREEN, np.uint8)),
    "show": lambda surface: surface.show(compute.from_numpy(np.full((H, W, 4), GREEN, np.uint8))),
    "run_to_surface": lambda surface: compute.run_to_surface(
        "elementwise_add",
        [compute.from_numpy(np.full((H, W, 4), GREEN, np.uint8))] * 2,
        compute.buffer_zeros((H, W, 4), "u8"),
        surface,
    ),
}


@pytest.mark.parametrize("name", REPLACED)
def test_what_replaces_all_pixels_covers_what_was_drawn_before_only(device, name):
    surface = surface_of()
    filled(surface, "#ff0000")
    REPLACED[name](surface)
    replaced = pixel(surface, 50, 50)
    gpu.fill_rect(surface, 0, 0, 10, 10, "#0000ff")
    assert replaced[0] == 0
    assert replaced[1] > 0
    assert [pixel(surface, 5, 5), pixel(surface, 50, 50)] == [BLUE, replaced]


def test_a_resized_surface_has_nothing_of_what_was_drawn_before(device):
    surface = surface_of()
    filled(surface, "#ff0000")
    gpu.resize_surface(surface, 40, 30)
    assert not gpu.get_pixels(surface).any()


def test_the_buffer_of_a_surface_has_what_was_drawn(device):
    surface = surface_of()
    filled(surface, "#ff0000")
    assert (compute.read(surface.buffer()) == RED).all()


def test_a_kernel_reads_what_was_drawn(device):
    surface, output = surface_of(), compute.buffer_zeros((H, W, 4), "u8")
    filled(surface, "#ff0000")
    compute.run_to_surface("invert", [surface.buffer()], output, surface)
    assert pixel(surface, 5, 5) == (0, 255, 255, 255)


def test_two_surfaces_are_drawn_on_apart(device):
    one, other = surface_of(), surface_of(20, 10)
    filled(one, "#ff0000")
    filled(other, "#0000ff")
    gpu.set_clip(one, 0, 0, 1, 1)
    filled(other, "#00ff00")
    assert [pixel(one, 15, 5), pixel(other, 15, 5)] == [RED, GREEN]


# -- clips and batches -----------------------------------------------------------------------------


def test_nothing_outside_of_a_clip_is_changed(device):
    surface = surface_of()
    gpu.set_pixels(surface, noise())
    gpu.set_clip(surface, 20, 10, 30, 25)
    filled(surface, "#ff0000")
    gpu.draw_image(surface, np.full((H, 40, 4), BLUE, np.uint8), 0, 0)
    want = noise()
    want[10:35, 20:50] = RED
    want[10:35, 20:40] = BLUE
    np.testing.assert_array_equal(gpu.get_pixels(surface), want)


@pytest.mark.parametrize("nowhere", [(), (None,)])
def test_a_clip_holds_over_reads_until_it_is_taken_away(device, nowhere):
    surface = surface_of()
    gpu.set_clip(surface, 0, 0, 10, 10)
    for color in ("#ff0000", "#0000ff"):
        filled(surface, color)
        gpu.present(surface)
    assert [pixel(surface, 9, 9), pixel(surface, 10, 10)] == [BLUE, (0, 0, 0, 0)]
    gpu.set_clip(surface, *nowhere)
    filled(surface, "#00ff00")
    assert pixel(surface, 50, 50) == GREEN


def test_a_clip_that_is_refused_changes_nothing(device):
    surface = surface_of()
    gpu.set_clip(surface, 0, 0, 10, 10)
    with pytest.raises(ArgumentError, match="set_clip: width is a finite number"):
        gpu.set_clip(surface, 0, 0, math.nan, 10)
    filled(surface, "#ff0000")
    assert pixel(surface, 20, 20) == (0, 0, 0, 0)


def test_a_clip_of_a_batch_ends_with_it(device):
    surface = surface_of()
    with gpu.batch(surface):
        gpu.set_clip(surface, 0, 0, 10, 10)
        filled(surface, "#ff0000")
    filled(surface, "#0000ff80")
    assert pixel(surface, 50, 50) == (0, 0, 255, 128)
    assert pixel(surface, 5, 5) == (127, 0, 128, 255)


@pytest.fixture
def passes(monkeypatch):
    """The number of shapes of each pass over a surface's pixels."""
    counts = []

    def counted(image, gathered):
        counts.append(len(gathered))
        draw(image, gathered)

    draw = drawing.draw
    monkeypatch.setattr(drawing, "draw", counted)
    return counts


def test_a_batch_is_drawn_in_one_pass_at_its_end(device, passes):
    surface = surface_of()
    with gpu.batch(surface) as same:
        assert same is surface
        for x in range(40):
            gpu.fill_rect(surface, x, 0, 1, 10, "#ff0000")
        with gpu.batch(surface):
            gpu.draw_image(surface, noise(10, 10), 50, 50)
        assert passes == []
    assert passes == [41]


def test_shapes_outside_of_a_batch_are_drawn_together_when_someone_looks(device, passes):
    surface = surface_of()
    for x in range(40):
        gpu.fill_rect(surface, x, 0, 1, 10, "#ff0000")
    assert passes == []
    gpu.present(surface)
    gpu.present(surface)
    assert passes == [40]


def test_what_a_batch_drew_before_an_error_is_there(device):
    surface = surface_of()

    def fail():
        with gpu.batch(surface):
            filled(surface, "#ff0000")
            gpu.set_clip(surface, 0, 0, 1, 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    gpu.fill_rect(surface, 0, 0, 20, 20, "#0000ff")
    assert [pixel(surface, 10, 10), pixel(surface, 50, 50)] == [BLUE, RED]


def test_a_surface_may_be_destroyed_within_a_batch(device):
    surface = surface_of()
    with gpu.batch(surface):
        filled(surface, "#ff0000")
        gpu.destroy_surface(surface)
    assert surface.destroyed


# -- memory ----------------------------------------------------------------------------------------


def test_nothing_is_read_back_while_drawing(webgpu, monkeypatch):
    from dala.devices.webgpu.transfer import Transfers

    mapped_bytes = []
    read = Transfers.read

    def counted(self, device, memory):
        mapped_bytes.append(memory.size_bytes)
        return read(self, device, memory)

    monkeypatch.setattr(Transfers, "read", counted)
    surface = surface_of()
    gpu.load_image(surface, "icon", noise(20, 10))
    buffer = compute.from_numpy(noise(20, 10))
    with gpu.batch(surface):
        filled(surface, "#ff0000")
        gpu.draw_text(surface, "text", 5, 5)
        gpu.draw_image(surface, "icon", 5, 5)
        gpu.draw_image(surface, buffer, 30, 5, 10, 5)
    gpu.draw_circle(surface, 20, 20, 9, "#00ff00")
    gpu.annotate(surface, Detection((5, 5, 40, 40), "thing", 0.5))
    gpu.present(surface)
    assert sum(mapped_bytes) == 0
    gpu.get_pixels(surface)
    assert sum(mapped_bytes) >= W * H * 4


@pytest.mark.parametrize("limit", [{"MOST_SHAPES": 10}, {"MOST_BYTES": 10 * 4 * 16}])
def test_what_nobody_looks_at_does_not_pile_up(monkeypatch, passes, limit):
    for name, most in limit.items():
        monkeypatch.setattr(drawing, name, most)
    surface, dot = surface_of(), np.full((4, 4, 4), RED, np.uint8)
    for x in range(25):
        gpu.draw_image(surface, dot, x, 0)
    assert passes == [10, 10]
    assert (gpu.get_pixels(surface)[0, :28] == RED).all()


def test_masks_that_nobody_looks_at_do_not_pile_up(monkeypatch, passes):
    monkeypatch.setattr(drawing, "MOST_BYTES", 10 * 4 * 16)
    surface = surface_of()
    for _ in range(25):
        gpu.annotate(surface, Segmentation(np.ones((4, 4), np.float32), ("background", "cat")))
    assert passes == [10, 10]


def test_a_surface_that_is_destroyed_lets_its_images_go():
    surface = surface_of()
    gpu.load_image(surface, "icon", noise(20, 10))
    gpu.draw_image(surface, "icon", 0, 0)
    image = weakref.ref(surface.kept.images["icon"])
    gpu.destroy_surface(surface)
    gc.collect()
    assert image() is None


# -- what is refused -------------------------------------------------------------------------------

WHITE = "#ffffff"
CALLS = {
    "fill_rect": (1, 2, 3, 4, WHITE),
    "draw_rect": (1, 2, 3, 4, WHITE),
    "fill_round_rect": (1, 2, 3, 4, 1, WHITE),
    "draw_round_rect": (1, 2, 3, 4, 1, WHITE),
    "fill_circle": (1, 2, 3, WHITE),
    "draw_circle": (1, 2, 3, WHITE),
    "draw_line": (1, 2, 3, 4, WHITE),
    "draw_text": ("text", 1, 2),
    "load_image": ("icon", np.zeros((2, 2), np.uint8)),
    "draw_image": (np.zeros((2, 2), np.uint8), 1, 2),
    "annotate": ([],),
    "set_clip": (1, 2, 3, 4),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_destroyed_surface_is_not_drawn_on(device, name):
    surface = surface_of()
    gpu.destroy_surface(surface)
    with pytest.raises(FreedError, match="it was destroyed"):
        getattr(gpu, name)(surface, *CALLS[name])


def test_a_destroyed_surface_has_no_batch(device):
    surface = surface_of()
    gpu.destroy_surface(surface)
    with pytest.raises(FreedError, match="it was destroyed"), gpu.batch(surface):
        pass


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_surface_is_refused(name):
    with pytest.raises(ArgumentError, match="a surface is needed, but ndarray was given"):
        getattr(gpu, name)(noise(), *CALLS[name])


NUMBERS = {name: given for name, given in CALLS.items() if isinstance(given[0], int)}


@pytest.mark.parametrize("number", [math.nan, math.inf, "1", None])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_are_none_are_refused_and_nothing_is_drawn(name, number):
    surface, given = surface_of(), NUMBERS[name]
    with pytest.raises(ArgumentError, match=f"^{name}: .* is a finite number.*, not "):
        getattr(gpu, name)(surface, number, *given[1:])
    assert not gpu.get_pixels(surface).any()


@pytest.mark.parametrize("color", ["no color", "#12345", (1, 0), (0, 0, 2.0), math.nan, None])
@pytest.mark.parametrize("name", [name for name, given in CALLS.items() if given[-1] is WHITE])
def test_bad_colors_are_refused_and_nothing_is_drawn(name, color):
    surface = surface_of()
    with pytest.raises(ArgumentError, match=f"^{name}: color "):
        getattr(gpu, name)(surface, *CALLS[name][:-1], color)
    assert not gpu.get_pixels(surface).any()


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (("draw_image", "icn", 0, 0), ArgumentError, "no image 'icn' was loaded .* but 'icon':"),
        (("draw_image", b"1234", 0, 0), ArgumentError, "bytes have no size"),
        (("draw_image", [1], 0, 0), ArgumentError, "an array, .* not list"),
        (("draw_image", np.zeros((2, 2, 2), np.uint8), 0, 0), ShapeError, r"\(2, 2, 2\) is not"),
        (("draw_image", np.zeros((2, 2)), 0, 0), DtypeError, "float64, but images are u8"),
        (("draw_image", "icon", 0, 0, -1, 2), ArgumentError, "width is a finite number from 0"),
        (("draw_image", "icon", 0, 0, 1, 2, 1.5), ArgumentError, "alpha .* not 1.5"),
        (("load_image", 8, np.zeros((2, 2), np.uint8)), ArgumentError, "name is a text, not 8"),
        (("load_image", "", np.zeros((2, 2), np.uint8)), ArgumentError, "name is a text, not ''"),
        (("draw_text", "", 0, 0), ArgumentError, "text is what to show"),
        (("draw_text", "text", 0, 0, 2), ArgumentError, "size is 4 to 1000 pixels, not 2"),
        (("draw_line", 0, 0, 9, 9, "#ffffff", -1), ArgumentError, "line_width .* not -1"),
        (("set_clip", 1, 2), ArgumentError, "width is a finite number .* not None"),
    ],
)
def test_mistakes_are_refused_and_nothing_is_drawn(call, error, says):
    surface = surface_of()
    gpu.load_image(surface, "icon", np.zeros((2, 2), np.uint8))
    with pytest.raises(error, match=f"^{call[0]}: .*{says}|^{call[0]}: {says}"):
        getattr(gpu, call[0])(surface, *call[1:])
    assert not gpu.get_pixels(surface).any()
