"""Image filters against the fastest of OpenCV and Pillow that shares the definition.

All on 1080p RGBA u8 unless a row says otherwise, with the same number of threads on both sides and
destinations that are there already; Pillow, which has one thread, makes its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Comparison, Row, repeats_for, seconds_per_call
from benchmarks.pipelines import HEIGHT, SHAPE, WIDTH, image
from dala.gpu import compute

Peer = Callable[[np.ndarray, np.ndarray], Any]
"""Filters an image into another; or gives the result, where it cannot write into the other."""
BAR = 1.0
CUBE = 33


@dataclass(frozen=True)
class Case:
    """A filter, and others that do the same."""

    kernel: str
    params: dict[str, Any]
    peers: dict[str, Peer]
    source: Callable[[], np.ndarray] = image
    shape: tuple[int, ...] = SHAPE
    within: float = 1
    """By how many levels the results may differ: some peers round on the way."""
    on_average: float = field(default=0.5)


def comparison(work: str, case: Case) -> Comparison:
    import cv2

    cv2.setNumThreads(compute.device_info()["threads"])
    pixels = case.source()
    source, out = compute.from_numpy(pixels), compute.buffer_zeros(case.shape, "u8")
    made = np.empty(case.shape, np.uint8)
    calls = {name: partial(peer, pixels, made) for name, peer in case.peers.items()}
    fastest = min(calls, key=lambda name: _seconds(calls[name]))
    peer = calls[fastest]

    def check() -> None:
        result = peer()
        theirs = made if result is None else np.asarray(result)
        apart = np.abs(np.asarray(out).astype(int) - theirs)
        assert apart.max() <= case.within, f"{work}: {apart.max()} levels off {fastest}"
        assert apart.mean() <= case.on_average, f"{work}: {apart.mean()} levels off {fastest}"

    ours = partial(compute.run_kernel, case.kernel, [source], out, case.params)
    return Comparison(f"{work} : {fastest}", BAR, ours, peer, check)


def _seconds(call: Callable[[], Any]) -> float:
    call()
    repeats = repeats_for(call)
    return min(seconds_per_call(call, repeats) for _ in range(3))


# -- peers -----------------------------------------------------------------------------------------


def opencv(name: str, *given: Any, **named: Any) -> Peer:
    """A function of OpenCV that takes an image, these arguments and a destination."""

    def call(pixels: np.ndarray, out: np.ndarray) -> None:
        import cv2

        getattr(cv2, name)(pixels, *given, dst=out, **named)

    return call


def pillow(call: Callable[[Any], Any]) -> Peer:
    """What Pillow makes of an image, which is made before the clock starts."""
    images: dict[int, Any] = {}

    def run(pixels: np.ndarray, out: np.ndarray) -> Any:
        from PIL import Image

        if id(pixels) not in images:
            images[id(pixels)] = Image.fromarray(pixels)
        return call(images[id(pixels)])

    return run


def pillow_filter(name: str, *given: Any) -> Peer:
    from PIL import ImageFilter

    made = getattr(ImageFilter, name)(*given)
    return pillow(lambda shown: shown.filter(made))


def sobel(pixels: np.ndarray, out: np.ndarray) -> None:
    import cv2

    gray = cv2.cvtColor(pixels, cv2.COLOR_RGBA2GRAY)
    edge = cv2.BORDER_REPLICATE
    across = cv2.Sobel(gray, cv2.CV_32F, 1, 0, borderType=edge)
    down = cv2.Sobel(gray, cv2.CV_32F, 0, 1, borderType=edge)
    cv2.convertScaleAbs(cv2.magnitude(across, down), dst=out)


def lookup_table() -> np.ndarray:
    """A table (blue, green, red, channel) that bends and mixes colors."""
    axis = np.linspace(0, 1, CUBE, dtype=np.float32)
    b, g, r = np.meshgrid(axis, axis, axis, indexing="ij")
    return np.stack([r**0.8, 0.9 * g + 0.1 * r, b**1.2], -1)


def pillow_table() -> Peer:
    return pillow_filter("Color3DLUT", CUBE, lookup_table().reshape(-1))


def yuv_frame() -> np.ndarray:
    import cv2

    return cv2.cvtColor(image(), cv2.COLOR_RGBA2YUV_I420)


# -- rows ------------------------------------------------------------------------------------------


def cases() -> dict[str, tuple[str, Callable[[], Case]]]:
    """Each row's name, what it says, and its case, which loads the peers."""
    import cv2
    from PIL import Image

    edge = cv2.BORDER_REPLICATE
    cross = np.array([[0, -0.5, 0], [-0.5, 3, -0.5], [0, -0.5, 0]], np.float32)
    mixed = np.array([[0.4, 0.5, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])
    with_alpha = np.eye(4, dtype=np.float32)
    with_alpha[:3, :3] = mixed
    gray, half, hd = (HEIGHT, WIDTH), (HEIGHT // 2, WIDTH // 2, 4), (720, 1280, 4)
    square = np.ones((3, 3), np.uint8)
    # OpenCV blurs bytes in fixed point, up to 2.3 levels off its own result in floats.
    gaussian = {"within": 3, "on_average": 1}
    return {
        "blur": (
            "blur 3",
            lambda: Case(
                "blur",
                {"radius": 3, "sigma": 1.5},
                {"OpenCV": opencv("GaussianBlur", (7, 7), 1.5, borderType=edge)},
                **gaussian,
            ),
        ),
        "blur-20": (
            "blur 20",
            lambda: Case(
                "blur",
                {"radius": 20, "sigma": 6.7},
                {"OpenCV": opencv("GaussianBlur", (41, 41), 6.7, borderType=edge)},
                **gaussian,
            ),
        ),
        "box-blur": (
            "box_blur 5",
            lambda: Case(
                "box_blur",
                {"radius": 5},
                {
                    "OpenCV": opencv("blur", (11, 11), borderType=edge),
                    "Pillow": pillow_filter("BoxBlur", 5),
                },
            ),
        ),
        "sharpen": (
            "sharpen",
            lambda: Case("sharpen", {}, {"OpenCV": opencv("filter2D", -1, cross, borderType=edge)}),
        ),
        "grayscale": (
            "grayscale",
            lambda: Case(
                "grayscale",
                {},
                {
                    "OpenCV": opencv("cvtColor", cv2.COLOR_RGBA2GRAY),
                    "Pillow": pillow(lambda shown: shown.convert("L")),
                },
                shape=gray,
            ),
        ),
        "brightness": (
            "brightness",
            lambda: Case(
                "brightness", {"value": 0.2}, {"OpenCV": opencv("add", (51.0, 51.0, 51.0, 0.0))}
            ),
        ),
        "color-matrix": (
            "color_matrix",
            lambda: Case(
                "color_matrix",
                {"matrix": mixed.tolist()},
                {"OpenCV": opencv("transform", with_alpha)},
            ),
        ),
        "lut": (
            "lut 33³, trilinear",
            lambda: Case(
                "lut",
                {"table": lookup_table(), "interpolation": "trilinear"},
                {"Pillow": pillow_table()},
            ),
        ),
        "edge-detect": (
            "edge_detect",
            lambda: Case(
                "edge_detect", {}, {"OpenCV": sobel}, shape=gray, within=6, on_average=1.5
            ),
        ),
        "bilateral": (
            "bilateral, RGB",
            lambda: Case(
                "bilateral",
                {"radius": 2, "sigma_color": 0.1, "sigma_space": 2.0},
                {"OpenCV": opencv("bilateralFilter", 5, 25.5, 2.0, borderType=edge)},
                source=lambda: np.ascontiguousarray(image()[..., :3]),
                shape=(HEIGHT, WIDTH, 3),
            ),
        ),
        "median": (
            "median 1",
            lambda: Case(
                "median",
                {"radius": 1},
                {"OpenCV": opencv("medianBlur", 3), "Pillow": pillow_filter("MedianFilter", 3)},
            ),
        ),
        "erode": (
            "erode 1",
            lambda: Case(
                "erode",
                {"radius": 1},
                {
                    "OpenCV": opencv("erode", square, borderType=edge),
                    "Pillow": pillow_filter("MinFilter", 3),
                },
            ),
        ),
        "resize-area": (
            "resize ½, area",
            lambda: Case(
                "resize",
                {"method": "area"},
                {
                    "OpenCV": opencv("resize", half[1::-1], interpolation=cv2.INTER_AREA),
                    "Pillow": pillow(lambda shown: shown.reduce(2)),
                },
                shape=half,
            ),
        ),
        "resize-bilinear": (
            "resize to 720p, bilinear",
            lambda: Case(
                "resize",
                {"method": "bilinear"},
                {"Pillow": pillow(_resized(hd, Image.Resampling.BILINEAR))},
                shape=hd,
            ),
        ),
        "resize-lanczos": (
            "resize to 720p, lanczos",
            lambda: Case(
                "resize",
                {"method": "lanczos"},
                {"Pillow": pillow(_resized(hd, Image.Resampling.LANCZOS))},
                shape=hd,
                within=16,  # Pillow cuts what overshoots between its passes
            ),
        ),
        "convert": (
            "convert yuv420p → rgba",
            lambda: Case(
                "convert",
                {"from": "yuv420p", "to": "rgba"},
                {"OpenCV": opencv("cvtColor", cv2.COLOR_YUV2RGBA_I420)},
                source=yuv_frame,
            ),
        ),
    }


def _resized(shape: tuple[int, ...], method: Any) -> Callable[[Any], Any]:
    """Pillow multiplies colors by alpha first; bands resized one by one are left as they are."""

    def resize(shown: Any) -> Any:
        from PIL import Image

        size = (shape[1], shape[0])
        return Image.merge("RGBA", [band.resize(size, method) for band in shown.split()])

    return resize


def _row(name: str) -> Comparison:
    work, case = cases()[name]
    return comparison(work, case())


NAMES = [
    "blur", "blur-20", "box-blur", "sharpen", "grayscale", "brightness", "color-matrix", "lut",
    "edge-detect", "bilateral", "median", "erode", "resize-area", "resize-bilinear",
    "resize-lanczos", "convert",
]  # fmt: skip
ROWS: dict[str, Callable[[], Row]] = {name: partial(_row, name) for name in NAMES}
