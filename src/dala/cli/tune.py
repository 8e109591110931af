"""`dala tune`: in which tiles a GPU multiplies matrices fastest, measured once and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dala.cli import options
from dala.cli.terminal import print_json, say, tell
from dala.errors import ArgumentError, FileError, argument

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu

Seconds = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.0, max=3600.0, help="How long it may take, about.")
]
Size = Annotated[
    int,
    typer.Option(metavar="COUNT", min=16, max=8192, help="Rows and columns that are multiplied."),
]
Reset = Annotated[bool, typer.Option("--reset", help="Forget what was kept, and measure nothing.")]


def tune(
    device: options.Device = None,
    seconds: Seconds = 20.0,
    size: Size = 512,
    reset: Reset = False,
    json: options.Json = False,
) -> None:
    """Measure in which tiles a GPU multiplies matrices fastest, and keep that for later runs.

    What is kept is used from the next process on. Nothing is kept if it is interrupted.
    """
    from dala.devices.webgpu import kept_tiles
    from dala.kernels.tensor.product_tuning import SMALL_SIZE, Measured
    from dala.kernels.tensor.product_tuning import tune as measure

    opened = _gpu(device)
    path = kept_tiles.path_of(opened.adapter)
    if path is None:
        raise ArgumentError("nothing can be kept, because DALA_CACHE_DIR turns the cache off.")
    if reset:
        forgotten = kept_tiles.forget(opened.adapter)
        said = "forgotten" if forgotten else "nothing was kept"
        print_json(_facts(opened) | {"forgotten": forgotten}) if json else tell(f"{said}: {path}")
        return
    rows: list[dict[str, Any]] = []

    def told(found: Measured) -> None:
        rows.append({"size": found.size, **vars(found.tile), "gflops": round(found.gflops, 2)})
        speed = f"{found.gflops:.1f} GFLOP/s" if found.seconds else "wrong, not used"
        if not json:
            say(f"{found.size} × {found.size} in {_shown(found.tile)}: {speed}")

    best = measure(opened, seconds, (size, min(size, SMALL_SIZE)), told)
    try:
        kept_tiles.keep(opened.adapter, best)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from error
    if json:
        found = {"large": vars(best.large), "small": vars(best.small)}
        print_json(_facts(opened) | found | {"measured": rows, "kept": str(path)})
        return
    tell(
        f"{opened.id} ({opened.name}): large products in {_shown(best.large)}, small ones in "
        f"{_shown(best.small)}; kept in {path}"
    )


def _gpu(device: str | None) -> WebGpu:
    """Returns the WebGPU device that is asked for, or else the first."""
    from dala.devices import find_device
    from dala.devices.webgpu.device import WebGpu

    found = find_device(device or "webgpu")
    if not isinstance(found, WebGpu):
        raise ArgumentError(
            f"{argument('device')}: {found.id} multiplies without tiles; give a WebGPU device, "
            f"such as webgpu."
        )
    return found


def _facts(device: WebGpu) -> dict[str, Any]:
    return {"device": device.id, "name": device.name, "driver": device.adapter.driver}


def _shown(tile: Any) -> str:
    by = "a subgroup" if tile.lanes else f"{tile.down * tile.across} invocations"
    return f"{tile.height} × {tile.width}, {tile.rows} × {tile.columns} each, by {by}"
