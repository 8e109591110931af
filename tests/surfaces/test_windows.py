"""Windows: what they show is what the surface holds, and what happens to them is told.

Each program has a process of its own, on an X server of this module's own without a screen: GLFW
ends the process whose server goes away.
"""

import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from dala.surfaces.events import Box, Close, Key, Pointer, Resize, fitted, translated
from dala.surfaces.presenters import letterboxed

PRELUDE = """
import os, subprocess, sys, time, warnings
warnings.simplefilter("error")
import glfw
import numpy as np
import dala
from dala import gpu
from dala.gpu import compute

compute.use_device(os.environ["TEST_DEVICE"])

def open_surface(width, height, **options):
    surface = gpu.create_surface(width, height, kind="window", **options)
    glfw.set_window_pos(handle(surface), 0, 0)
    return surface

def handle(surface):
    return surface._canvas.canvas._window

def screenshot(width, height):
    grab = ["ffmpeg", "-loglevel", "error", "-f", "x11grab", "-draw_mouse", "0", "-video_size",
            f"{width}x{height}", "-i", os.environ["DISPLAY"], "-frames:v", "1", "-f", "rawvideo",
            "-pix_fmt", "rgb24", "-"]
    return np.frombuffer(subprocess.check_output(grab), np.uint8).reshape(height, width, 3)

def shown(surface, want):
    # A server shows what was presented when it comes to it.
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        surface.present()
        seen = screenshot(want.shape[1], want.shape[0])
        if (seen == want[..., :3]).all():
            return True
    return False

def until(surface, reached):
    deadline = time.monotonic() + 20
    while not reached() and time.monotonic() < deadline:
        surface.present()
        time.sleep(0.01)
    assert reached()

def noise(width, height, seed=1):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)
"""


@pytest.fixture(scope="module")
def display():
    """The name of an X server that nobody sees; in CI there has to be one."""
    if not all(shutil.which(program) for program in ("Xvfb", "ffmpeg")):
        assert "CI" not in os.environ, "CI has no Xvfb or ffmpeg: see .ci/setup"
        pytest.skip("no Xvfb or no ffmpeg: apt install xvfb ffmpeg")
    pytest.importorskip("rendercanvas.base", reason="pip install dala-gpu[window]")
    read, write = os.pipe()
    arguments = ["-screen", "0", "800x600x24", "-nolisten", "tcp", "-displayfd", str(write)]
    server = subprocess.Popen(
        ["Xvfb", *arguments], pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(write)
    try:
        with os.fdopen(read) as told:
            yield f":{told.readline().strip()}"
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def run(display, device):
    """Runs the text of a program on the display and the device, and gives what it printed."""

    def runs(program):
        text = PRELUDE + textwrap.dedent(program)
        ran = subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "DISPLAY": display, "TEST_DEVICE": device},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran

    return runs


@pytest.mark.slow
def test_a_screenshot_of_the_window_shows_the_pixels(run):
    run("""
        surface = open_surface(200, 120, title="noise")
        pixels = noise(200, 120)
        surface.set_pixels(pixels)
        assert shown(surface, pixels)

        out = compute.buffer_zeros(surface.shape, "u8")
        compute.run_to_surface("generate_gradient", [], out, surface)
        assert shown(surface, compute.read(out))
        assert surface.kind == "window" and surface._canvas.size == (200, 120)
        """)


@pytest.mark.slow
def test_a_window_of_other_proportions_shows_the_whole_picture_between_black_bars(run):
    run("""
        surface = open_surface(50, 40)
        pixels = noise(50, 40)
        surface.set_pixels(pixels)
        events = []
        surface.on("resize", events.append)
        surface._canvas.canvas.set_logical_size(200, 120)
        until(surface, lambda: events)
        assert (events[-1].width, events[-1].height) == (200, 120)
        assert surface.shape == (40, 50, 4)

        # Each pixel is three wide and three high, from 25 on.
        want = np.zeros((120, 200, 4), np.uint8)
        want[:, 25:175] = pixels.repeat(3, axis=0).repeat(3, axis=1)
        assert shown(surface, want)
        """)


@pytest.mark.slow
def test_a_size_that_was_told_is_not_told_again(run):
    run("""
        surface = open_surface(50, 40)
        events = []
        surface.on("resize", events.append)
        told = {"event_type": "resize", "width": 50, "height": 40, "pixel_ratio": 1.0}
        surface._canvas.canvas.submit_event(told)
        surface.present()
        assert events == []
        """)


@pytest.mark.slow
def test_the_window_follows_a_surface_that_is_resized(run):
    run("""
        surface = open_surface(50, 40)
        gpu.resize_surface(surface, 90, 70)
        pixels = noise(90, 70)
        surface.set_pixels(pixels)
        until(surface, lambda: surface._canvas.size == (90, 70))
        assert shown(surface, pixels)
        """)


@pytest.mark.slow
def test_a_surface_can_follow_its_window(run):
    run("""
        surface = open_surface(50, 40)
        surface.on("resize", lambda event: surface.resize(event.width, event.height))
        surface._canvas.canvas.set_logical_size(70, 30)
        until(surface, lambda: surface.width == 70)
        pixels = noise(70, 30)
        surface.set_pixels(pixels)
        assert shown(surface, pixels)
        """)


@pytest.mark.slow
def test_pointer_and_keys_are_told_in_pixels_of_the_surface(run):
    run("""
        surface = open_surface(100, 50)
        surface._canvas.canvas.set_logical_size(300, 300)
        pointed, pressed = [], []
        surface.on("pointer", pointed.append)
        surface.on("key", pressed.append)
        until(surface, lambda: surface._canvas.size == (300, 300))

        # The picture is 300 × 150, from 75 on.
        until(surface, lambda: glfw.set_cursor_pos(handle(surface), 150, 150) or any(
            (event.action, event.x, event.y) == ("move", 50, 25) for event in pointed))

        surface._canvas.canvas._on_key(handle(surface), glfw.KEY_A, 0, glfw.PRESS, 0)
        surface.present()
        assert [(event.action, event.key) for event in pressed] == [("down", "a")]
        """)


@pytest.mark.slow
def test_closing_the_window_ends_the_loop_and_not_the_program(run):
    ran = run("""
        surface = open_surface(20, 10)
        surface.on("close", lambda event: print(event))

        def fn(frame):
            surface.clear("red")
            if frame.number == 3:
                glfw.set_window_should_close(handle(surface), True)

        stats = gpu.loop(surface, fn)
        print(stats.frames, stats.ended, surface.closed)
        surface.present()
        print(surface.pixels()[0, 0].tolist())
        print(gpu.loop(surface, fn).frames)
        gpu.destroy_surface(surface)
        """)
    assert ran.stdout.splitlines() == ["Close()", "4 closed True", "[255, 0, 0, 255]", "0"]


@pytest.mark.slow
def test_a_window_that_is_closed_between_slow_frames_ends_the_loop_at_once(run):
    ran = run("""
        import threading
        surface = open_surface(20, 10)
        close = lambda: glfw.set_window_should_close(handle(surface), True)
        stats = gpu.loop(surface, lambda frame: threading.Timer(0.3, close).start(), fps=0.2)
        print(stats.frames, stats.ended)
        """)
    assert ran.stdout.split() == ["1", "closed"]


@pytest.mark.slow
def test_what_a_handler_raises_reaches_who_presents(run):
    run("""
        surface = open_surface(20, 10)
        surface.on("key", lambda event: 1 / 0)
        surface._canvas.canvas.submit_event({"event_type": "key_down", "key": "a"})
        try:
            surface.present()
        except ZeroDivisionError:
            surface.present()
        else:
            sys.exit("nothing was raised")
        """)


@pytest.mark.slow
def test_a_device_that_is_lost_is_told_to_who_presents(run, device):
    if device == "cpu":
        pytest.skip("nobody loses a CPU")
    run("""
        from dala.errors import DeviceLostError
        surface = open_surface(20, 10)
        surface.present()
        surface._device.lose()
        try:
            surface.present()
        except DeviceLostError:
            surface.destroy()
        else:
            sys.exit("nothing was raised")
        """)


@pytest.mark.slow
def test_a_destroyed_surface_has_closed_its_window_and_told_nobody(run):
    ran = run("""
        surface, other = open_surface(20, 10), open_surface(30, 10)
        surface.on("close", print)
        canvas = surface._canvas
        gpu.destroy_surface(surface)
        assert canvas.closed and not other.closed
        canvas.close()
        pixels = noise(30, 10)
        other.set_pixels(pixels)
        assert shown(other, pixels)
        """)
    assert ran.stdout == ""


@pytest.mark.slow
def test_where_the_gpu_cannot_draw_into_windows_frames_are_bitmaps_and_the_log_says_so(run, device):
    if device == "cpu":
        pytest.skip("its frames are bitmaps anyway")
    ran = run("""
        from rendercanvas.contexts import WgpuContextToScreen

        def refuse(self, config):
            raise RuntimeError("no queue of this device can present")

        WgpuContextToScreen._configure = refuse
        surface = open_surface(60, 40)
        pixels = noise(60, 40)
        surface.set_pixels(pixels)
        assert shown(surface, pixels)
        """)
    assert "no queue of this device can present. Every frame is read back" in ran.stderr


@pytest.mark.slow
def test_a_display_that_is_not_there_is_an_error_or_off_screen_if_any_will_do(display):
    program = """
        import dala
        from dala import gpu
        from dala.errors import DeviceError
        try:
            gpu.create_surface(4, 2, kind="window")
        except DeviceError as error:
            print(error)
        surface = gpu.create_surface(4, 2)
        print(surface.kind, surface.why, sep="|")
        """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "DISPLAY": ":987654", "WAYLAND_DISPLAY": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    error, kind = ran.stdout.splitlines()
    assert "no window can be opened: GLFW does not start" in error
    assert ":987654" in error
    assert kind == f"offscreen|{error}"


@pytest.mark.slow
def test_a_window_outside_the_main_thread_is_refused(run):
    run("""
        import threading
        from dala.errors import DeviceError
        said = []

        def other():
            try:
                gpu.create_surface(4, 2, kind="window")
            except DeviceError as error:
                said.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert "main thread" in said[0]
        """)


@pytest.mark.slow
def test_a_window_without_glfw_is_refused_with_what_to_install(run):
    run("""
        from dala.errors import DeviceError
        sys.modules["glfw"] = None
        try:
            gpu.create_surface(4, 2, kind="window")
        except DeviceError as error:
            assert "pip install dala-gpu[window]" in str(error)
        else:
            sys.exit("a window was opened")
        """)


@pytest.mark.slow
def test_a_program_of_qt_has_windows_of_qt(run):
    pytest.importorskip("PySide6", reason="no PySide6")
    run("""
        from PySide6 import QtWidgets
        application = QtWidgets.QApplication([])
        surface = gpu.create_surface(60, 40, kind="window")
        surface._canvas.canvas.move(0, 0)
        pixels = noise(60, 40)
        surface.set_pixels(pixels)
        assert shown(surface, pixels)
        surface._canvas.canvas.close()
        assert gpu.loop(surface, sys.exit).ended == "closed"
        """)


# -- what needs no display -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("picture", "window", "box"),
    [
        ((100, 50), (100, 50), Box(0, 0, 100, 50)),
        ((100, 50), (300, 300), Box(0, 75, 300, 150)),
        ((50, 100), (300, 300), Box(75, 0, 150, 300)),
        ((640, 480), (320, 240), Box(0, 0, 320, 240)),
        ((1000, 1), (10, 10), Box(0, 4, 10, 1)),
    ],
)
def test_a_picture_is_fitted_as_large_as_it_can_be_in_the_middle(picture, window, box):
    assert fitted(picture, window) == box


@pytest.mark.parametrize("size", [(31, 23), (62, 46), (100, 20), (7, 40), (1, 1)])
def test_a_letterboxed_bitmap_has_the_nearest_pixels_and_is_opaque(size):
    pixels = np.random.default_rng(3).integers(0, 256, (23, 31, 4), np.uint8)
    box = fitted((31, 23), size)
    want = np.zeros((size[1], size[0], 3), np.uint8)
    for y in range(box.height):
        for x in range(box.width):
            row = int((y + 0.5) * 23 / box.height)
            column = int((x + 0.5) * 31 / box.width)
            want[box.y + y, box.x + x] = pixels[row, column, :3]
    framed = letterboxed(pixels.copy(), size)
    assert (framed[..., :3] == want).all()
    assert (framed[..., 3] == 255).all()


@pytest.mark.parametrize(
    ("given", "event"),
    [
        ({"event_type": "resize"}, Resize(400, 400)),
        ({"event_type": "close"}, Close()),
        (
            {"event_type": "key_up", "key": "ArrowUp", "modifiers": ("Shift",)},
            Key("up", "ArrowUp", ("Shift",)),
        ),
        (
            {"event_type": "pointer_down", "x": 100, "y": 100, "button": 1, "buttons": (1,)},
            Pointer("down", 50.0, 25.0, 1, (1,)),
        ),
        (
            {"event_type": "wheel", "x": 0, "y": 50, "dx": 0.0, "dy": -100.0},
            Pointer("wheel", 0.0, 0.0, dx=0.0, dy=-100.0),
        ),
    ],
)
def test_events_of_a_window_with_two_pixels_to_a_point_are_told_in_those_of_the_picture(
    given, event
):
    assert translated(given, (100, 50), (400, 400), 2.0) == event
