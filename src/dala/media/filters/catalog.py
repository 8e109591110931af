"""Every filter, with what its parameters may be: for command lines, pages and documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dala.base.record import record
from dala.ir.nodes import BORDERS
from dala.kernels.base.limits import LIMITS, Limit
from dala.kernels.image.compositing import MODES
from dala.kernels.image.geometry import DIRECTIONS
from dala.kernels.image.interpolation import METHODS as POINT_METHODS
from dala.kernels.image.lookup_tables import INTERPOLATIONS
from dala.kernels.image.pixel_formats import FORMATS
from dala.kernels.image.resizing import METHODS
from dala.media.filters.model_filters import filter_kernel, filter_params, optional_images
from dala.ml.catalog.entries import MODELS


@record
class Param:
    """What a parameter is, and between which values a slider for it would go.

    A slider is no limit: those are in `dala.kernels.base.limits`.
    """

    kind: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    usual: float | None = None
    relative: bool = False
    """Whether a size may be one that follows from the image's own."""
    rule: str = ""
    """What it is instead of the usual value where something else says how large it has to be."""

    def describe(self) -> dict[str, Any]:
        """The kind, with the range or the choices where there are any, and the rule."""
        described: dict[str, Any] = {"kind": self.kind}
        if self.least is not None:
            described |= {"least": self.least, "most": self.most}
        if self.choices:
            described["choices"] = list(self.choices)
        if self.relative:
            described["relative"] = True
        if self.rule:
            described |= {"default": self.usual, "rule": self.rule}
        return described


def number(least: float, most: float) -> Param:
    return Param("number", least, most)


def whole(least: int, most: int) -> Param:
    return Param("whole", least, most)


def choice(*names: str) -> Param:
    return Param("choice", choices=names)


FLAG, COLOR, MATRIX, TABLE = map(Param, ("flag", "color", "matrix", "table"))
SIZED = {"size": Param("size"), "shape": Param("shape")}
MODEL = Param("model")
EVERY = whole(1, 100)
BORDER = choice(*BORDERS)


@record
class Filter:
    """Where a filter belongs, and its parameters."""

    group: str
    params: dict[str, Param]


def _filter(group: str, **params: Param) -> Filter:
    return Filter(group, params)


def _spread(radius: int) -> dict[str, Param]:
    """The radius and the sigma of a Gaussian, each of which follows from the other."""
    from_sigma = "3 · sigma, rounded up, where only sigma is given"
    from_radius = "radius / 2, at least 0.5, where only the radius is given"
    return {
        "radius": Param("whole", 0, 100, usual=radius, rule=from_sigma),
        "sigma": Param("number", 0.1, 50, usual=radius / 2, rule=from_radius),
    }


AROUND = {"border": BORDER, "premultiply": FLAG}
RESAMPLED = {"method": choice(*METHODS), "premultiply": FLAG}

FILTERS: dict[str, Filter] = {
    "grayscale": _filter("color"),
    "brightness": _filter("color", value=number(-1, 1)),
    "contrast": _filter("color", value=number(-1, 2)),
    "saturation": _filter("color", value=number(-1, 2)),
    "hue": _filter("color", degrees=number(-180, 180)),
    "gamma": _filter("color", value=number(0.1, 5)),
    "exposure": _filter("color", stops=number(-4, 4)),
    "white_balance": _filter("color", temperature=number(2000, 12000), tint=number(-1, 1)),
    "sepia": _filter("color", intensity=number(0, 1)),
    "invert": _filter("color"),
    "threshold": _filter("color", value=number(0, 1)),
    "hdr": _filter("color", exposure=number(0.1, 10)),
    "vignette": _filter(
        "color", intensity=number(0, 1), radius=number(0, 1.5), softness=number(0.01, 1)
    ),
    "color_matrix": _filter("color", matrix=MATRIX),
    "lut": _filter("color", table=TABLE, interpolation=choice(*INTERPOLATIONS)),
    "blur": _filter("smoothing", **_spread(3), **AROUND),
    "box_blur": _filter("smoothing", radius=whole(0, 100), **AROUND),
    "median": _filter("smoothing", radius=whole(1, 2), **AROUND),
    "bilateral": _filter(
        "smoothing",
        radius=whole(0, 10),
        sigma_color=number(0.01, 1),
        sigma_space=number(0.1, 10),
        **AROUND,
    ),
    "denoise": _filter("smoothing", strength=number(0, 1), **AROUND),
    "beauty": _filter("smoothing", strength=number(0, 1)),
    "sharpen": _filter("detail", amount=number(0, 3), **AROUND),
    "unsharp": _filter(
        "detail",
        radius=whole(0, 50),
        sigma=number(0.1, 25),
        amount=number(0, 5),
        threshold=number(0, 1),
        **AROUND,
    ),
    "edge_detect": _filter("detail", border=BORDER),
    "erode": _filter("detail", radius=whole(0, 50), **AROUND),
    "dilate": _filter("detail", radius=whole(0, 50), **AROUND),
    "overlay": _filter(
        "compositing", x=whole(-4096, 4096), y=whole(-4096, 4096), alpha=number(0, 1)
    ),
    "blend": _filter("compositing", mode=choice(*MODES), alpha=number(0, 1)),
    "chroma_key": _filter(
        "compositing", color=COLOR, similarity=number(0.01, 1), blend=number(0, 1)
    ),
    "background_blur": _filter(
        "compositing", **_spread(15), border=BORDER, model=MODEL, every=EVERY
    ),
    "background_replace": _filter("compositing", model=MODEL, every=EVERY),
    "resize": _filter("geometry", **SIZED | {"size": Param("size", relative=True)}, **RESAMPLED),
    "letterbox": _filter("geometry", **SIZED, color=COLOR, **RESAMPLED),
    "crop": _filter(
        "geometry", x=whole(0, 8192), y=whole(0, 8192), width=whole(1, 8192), height=whole(1, 8192)
    ),
    "flip": _filter("geometry", direction=choice(*DIRECTIONS)),
    "rotate": _filter(
        "geometry",
        degrees=number(-180, 180),
        expand=FLAG,
        method=choice(*POINT_METHODS),
        **AROUND,
    ),
    "warp_affine": _filter(
        "geometry",
        matrix=MATRIX,
        inverse=FLAG,
        **SIZED,
        method=choice(*POINT_METHODS),
        **AROUND,
    ),
    "convert": Filter(
        "geometry",
        {
            "from": choice(*FORMATS),
            "to": choice(*FORMATS),
            "matrix": choice("bt601", "bt709"),
            "range": choice("limited", "full"),
            "width": whole(1, 8192),
            "height": whole(1, 8192),
        },
    ),
    "detect": _filter(
        "models", model=MODEL, threshold=number(0, 1), like=choice(*MODELS), every=EVERY
    ),
}


def filters() -> dict[str, dict[str, Any]]:
    """Every filter by name: its group, its images, its parameters, and what it does.

    A parameter has a kind (number, whole, choice, flag, color, matrix, table, size, shape, model),
    a default unless it must be given, and `least` and `most`, between which a slider would go, or
    `choices`. What is beyond its `limits` (`least` or `above`, and `most`) is refused. A `relative`
    size may be a text such as "50%". A `rule` says what it is instead of the default where others
    are given without it. `optional` are the images that it can do without.

    >>> from dala.media import gpu
    >>> gpu.filters()["gamma"]["params"]["value"]
    {'kind': 'number', 'least': 0.1, 'most': 5, 'limits': {'above': 0}}
    """
    return {name: _described(name, item) for name, item in FILTERS.items()}


def range_of(param: Mapping[str, Any]) -> str:
    """What a described number can be, and what it usually is, in words; "" for any number.

    >>> range_of(filters()["gamma"]["params"]["value"])
    'above 0, usually 0.1 to 5'
    """
    usual = f"usually {param['least']:g} to {param['most']:g}" if "least" in param else ""
    if "limits" not in param:
        return usual
    limit = str(Limit.described(param["limits"]))
    return limit if usual in ("", f"usually {limit}") else f"{limit}, {usual}"


def _described(name: str, item: Filter) -> dict[str, Any]:
    kernel, limits = filter_kernel(name), LIMITS.get(name, {})
    params = {}
    for declared in filter_params(name):
        params[declared.name] = item.params[declared.name].describe()
        if declared.name in limits:
            params[declared.name]["limits"] = limits[declared.name].describe()
        if not declared.required:
            params[declared.name].setdefault("default", declared.default)
    return {
        "group": item.group,
        "inputs": list(kernel.inputs),
        "optional": list(optional_images(name)),
        "params": params,
        "doc": kernel.describe()["doc"],
    }
