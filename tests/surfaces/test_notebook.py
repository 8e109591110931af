"""Surfaces in notebooks: the picture, and the widget as far as it goes without a browser."""

import io
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from dala import gpu
from dala.gpu import compute
from dala.surfaces.events import Key, Pointer

pytest.importorskip("jupyter_rfb", reason="pip install dala-gpu[notebook]")

NOTEBOOK = """
import asyncio, sys
from dala import gpu
from dala.gpu import compute

compute.use_device(sys.argv[1])

async def notebook():
    surface = gpu.create_surface(20, 10, kind="notebook")
    told = []
    surface.on("key", told.append)
    surface.on("pointer", told.append)
    canvas = surface._canvas.canvas
    tell = canvas._rfb_handle_msg
    # As a browser does that shows it, with two pixels to a point.
    canvas._has_visible_views = True
    tell(canvas, {"type": "resize", "width": 20, "height": 10, "ratio": 2.0}, [])
    tell(canvas, {"type": "key_down", "key": "a", "modifiers": ["Shift"]}, [])
    place = {"x": 5, "y": 4, "button": 1, "buttons": [1], "modifiers": []}
    tell(canvas, {"type": "pointer_down", **place}, [])
    while len(told) < 2:
        await asyncio.sleep(0.01)
    print(*told, sep="\\n")
    surface.destroy()

asyncio.run(asyncio.wait_for(notebook(), 30))
"""


def noise(width, height):
    pixels = np.random.default_rng(1).integers(0, 256, (height, width, 4), np.uint8)
    pixels[..., 3] = 255
    return pixels


@pytest.fixture
def widget(device):
    """A surface in a notebook, whose frames are sent without loss into a list instead."""
    surface = gpu.create_surface(20, 10, title="noise", kind="notebook")
    surface._canvas.canvas.quality = 100
    surface._canvas.canvas.sent = []
    surface._canvas.canvas.send = lambda message, data: surface._canvas.canvas.sent.append(
        (message, data[0])
    )
    yield surface
    surface.destroy()


def opened(data):
    return np.array(Image.open(io.BytesIO(data)).convert("RGBA"))


def test_a_cell_that_ends_in_a_surface_displays_its_picture(device):
    from IPython.core.formatters import DisplayFormatter

    surface = gpu.create_surface(20, 10, kind="offscreen")
    surface.set_pixels(noise(20, 10))
    shown, _ = DisplayFormatter().format(surface)
    assert (opened(shown["image/png"]) == noise(20, 10)).all()


def test_presenting_sends_the_pixels_to_the_browser(widget):
    widget.set_pixels(noise(20, 10))
    widget.present()
    ((message, data),) = widget._canvas.canvas.sent
    assert message["type"] == "framebufferdata"
    assert (opened(data) == noise(20, 10)).all()


def test_a_loop_sends_each_frame(widget):
    gpu.loop(widget, lambda frame: widget.clear((0, frame.number / 5, 0, 1)), fps=None, frames=5)
    greens = [opened(data)[0, 0, 1] for _, data in widget._canvas.canvas.sent]
    assert greens == [0, 51, 102, 153, 204]


def test_the_widget_has_the_size_and_the_title_of_the_surface(widget):
    canvas = widget._canvas.canvas
    assert (widget.kind, canvas.title) == ("notebook", "noise")
    assert (canvas.css_width, canvas.css_height) == ("20.0px", "10.0px")
    gpu.resize_surface(widget, 30, 40)
    assert (canvas.css_width, canvas.css_height) == ("30.0px", "40.0px")


def test_a_cell_that_ends_in_a_surface_with_a_widget_displays_both(widget):
    from IPython.core.formatters import DisplayFormatter

    widget.set_pixels(noise(20, 10))
    shown, _ = DisplayFormatter().format(widget)
    assert "application/vnd.jupyter.widget-view+json" in shown
    assert (opened(shown["image/png"]) == noise(20, 10)).all()


@pytest.mark.slow
def test_what_a_browser_tells_reaches_the_handlers_when_no_cell_runs(device):
    # rendercanvas takes the loop that runs when a process makes its first widget.
    ran = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, device],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told = [line for line in ran.stdout.splitlines() if line.startswith(("Key", "Pointer"))]
    assert told == [
        repr(Key("down", "a", ("Shift",))),
        repr(Pointer("down", 5.0, 4.0, 1, (1,), (), 0.0, 0.0)),
    ]


def test_a_destroyed_surface_has_closed_its_widget(widget):
    canvas = widget._canvas.canvas
    widget.destroy()
    assert canvas.get_closed()


def test_a_surface_of_a_notebook_is_a_widget_unless_told_otherwise(monkeypatch):
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=object()))
    surface = gpu.create_surface(4, 2)
    assert surface.kind == "notebook"
    surface.destroy()


def test_without_the_library_of_widgets_a_surface_is_a_still_picture(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "jupyter_rfb", None)
    caplog.set_level("INFO", "dala")
    with compute.device("cpu"):
        surface = gpu.create_surface(4, 2, kind="notebook")
    assert (surface.kind, surface._canvas) == ("notebook", None)
    surface.present()
    assert surface._repr_png_().startswith(b"\x89PNG")
    assert "pip install dala-gpu[notebook]" in caplog.text
