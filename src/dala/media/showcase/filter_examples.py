"""The gallery's examples: the image and parameters for each filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.base.record import record
from dala.media.showcase import sample
from dala.media.showcase.canvas import Canvas, color, disc

CUBE_NAME = "warm.cube"
"""The file name of the table for `lut`."""

_PARAMS: dict[str, dict[str, Any]] = {
    "background_blur": {"radius": 14, "sigma": 7.0},
    "beauty": {"strength": 0.8},
    "bilateral": {"radius": 5, "sigma_color": 0.12, "sigma_space": 4.0},
    "blend": {"mode": "overlay", "alpha": 0.8},
    "blur": {"radius": 12, "sigma": 6.0},
    "box_blur": {"radius": 7},
    "brightness": {"value": 0.2},
    "chroma_key": {"color": "#00b140", "similarity": 0.16, "blend": 0.08},
    "color_matrix": {"matrix": [[0.2, 0.8, 0.0], [0.1, 0.9, 0.0], [0.0, 0.3, 0.7]]},
    "contrast": {"value": 0.5},
    "convert": {"from": "rgba", "to": "bgra"},
    "denoise": {"strength": 0.8},
    "dilate": {"radius": 2},
    "erode": {"radius": 2},
    "exposure": {"stops": 0.8},
    "gamma": {"value": 1.8},
    "hdr": {"exposure": 2.5},
    "hue": {"degrees": 120.0},
    "lut": {"table": CUBE_NAME},
    "median": {"radius": 2},
    "rotate": {"degrees": 12.0},
    "saturation": {"value": 0.7},
    "sepia": {"intensity": 0.9},
    "sharpen": {"amount": 1.2},
    "threshold": {"value": 0.55},
    "unsharp": {"radius": 4, "sigma": 2.0, "amount": 1.5},
    "vignette": {"intensity": 0.8},
    "warp_affine": {"matrix": [[0.9, 0.25, -30.0], [-0.1, 0.9, 50.0]]},
    "white_balance": {"temperature": 4000},
}


@record
class Example:
    """An example of a filter: its image, its other inputs and its parameters."""

    image: np.ndarray
    others: dict[str, np.ndarray]
    params: dict[str, Any]


class Material:
    """The pictures that examples are made from, each painted once."""

    def __init__(self, height: int, width: int) -> None:
        self.picture = sample.picture(height, width)
        self.screen = sample.green_screen(height, width)
        self.mask = sample.person_mask(height, width)
        self.backdrop = backdrop(height, width)
        self.badge = badge(max(1, height // 3))

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.picture.shape[0], self.picture.shape[1]

    def example(self, name: str, described: Mapping[str, Any]) -> Example:
        """Returns the example for a filter, given its entry in `filters()`."""
        others = {other: self._other(name, other) for other in described["inputs"][1:]}
        params = {**self._sized(name), **_PARAMS.get(name, {})}
        for param, about in described["params"].items():
            if "default" not in about and param not in params:
                params[param] = self._value(about)
        known = {param: params[param] for param in described["params"] if param in params}
        return Example(self.screen if name == "chroma_key" else self.picture, others, known)

    def _other(self, name: str, other: str) -> np.ndarray:
        if "mask" in other:
            return self.mask
        return self.badge if name == "overlay" else self.backdrop

    def _sized(self, name: str) -> dict[str, Any]:
        """Returns the parameters that depend on the picture's size."""
        height, width = self.shape
        sized: dict[str, dict[str, Any]] = {
            "crop": {"x": width // 2, "y": height // 8, "width": width // 2, "height": height // 2},
            "letterbox": {"size": (height, height)},
            "overlay": {"x": width * 3 // 4, "y": height * 5 // 8, "alpha": 0.9},
            "resize": {"size": (width // 2 or 1, height // 2 or 1), "method": "lanczos"},
        }
        return sized.get(name, {})

    def _value(self, about: Mapping[str, Any]) -> Any:
        """Returns a value for a required parameter."""
        match about["kind"]:
            case "number":
                return about["least"] + 0.75 * (about["most"] - about["least"])
            case "integer":
                return about["least"] + (about["most"] - about["least"]) // 4
            case "choice":
                return about["choices"][0]
            case "flag":
                return True
            case "color":
                return "#00b140"
            case "table":
                return CUBE_NAME
            case "size":
                return self.shape[::-1]
        return np.eye(3).tolist()


def backdrop(height: int, width: int) -> np.ndarray:
    """Returns a background of evening light with soft discs, as opaque RGBA."""
    canvas = Canvas.blank(height, width, sample.HEIGHT, sample.WIDTH)
    along = np.clip((canvas.u / 720 + canvas.v / 480) / 2, 0.0, 1.0)[..., None]
    start, end = color("#2b1a5a"), color("#ff8a5c")
    canvas.fill(start + (end - start) * along)
    tints = ("#ffd27a", "#ff6fa3", "#8fd3ff", "#fff2c9")
    for k in range(26):
        u, v = (k * 211.7) % 760 - 20, (k * 127.3) % 500 - 10
        radius = 14 + (k * 17) % 44
        inside = canvas.cover(disc(canvas.u, canvas.v, u, v, radius), soft=4.0)
        canvas.paint(tints[k % 4], (0.16 + 0.05 * (k % 4)) * inside)
    return canvas.levels(noise=0.0, seed=0)


def badge(extent: int) -> np.ndarray:
    """Returns a round badge with a star on transparency, as square RGBA."""
    canvas = Canvas.blank(extent, extent, 100, 100)
    u, v = canvas.u - 50, canvas.v - 50
    round_ = disc(u, v, 0, 0, 46)
    canvas.fill(color("#d81e3f"))
    canvas.paint("#ffffff", canvas.cover(np.abs(disc(u, v, 0, 0, 40)) - 1.6))
    turn = np.abs((np.arctan2(u, -v) / (2 * np.pi) * 5 + 0.5) % 1.0 - 0.5) * 2 * np.pi / 5
    far = np.hypot(u, v)
    star = far * (np.cos(turn) + 1.35 * np.sin(turn))
    canvas.paint("#ffd84a", canvas.cover(star - 30))
    image = canvas.levels(noise=0.0, seed=0)
    image[..., 3] = np.rint(canvas.cover(round_) * 255)
    return image
