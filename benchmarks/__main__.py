"""Prints the table of benchmarks: each row with its bar, and whether it holds."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from statistics import geometric_mean

from benchmarks import commands, filters, language, models, pipelines, surfaces, video, webgpu
from benchmarks.compute import ROWS as CPU_ROWS
from benchmarks.harness import Missing, Result, table_head, table_line
from benchmarks.peers import measured
from dala.devices import find_device
from dala.errors import DeviceError
from dala.gpu import compute

ROUNDS = 21
QUICK_ROUNDS = 5
GROUPS = {
    "compute": CPU_ROWS,
    "pipelines": pipelines.ROWS,
    "commands": commands.ROWS,
    "filters": filters.ROWS,
    "language": language.ROWS,
    "videos": video.ROWS,
    "models": models.ROWS,
    "webgpu": webgpu.ROWS,
    "surfaces": surfaces.ROWS,
}
ON_WEBGPU = {*webgpu.ROWS, *surfaces.ON_WEBGPU}
ROWS = {name: row for group in GROUPS.values() for name, row in group.items()}


def main() -> None:
    arguments = parse_arguments()
    rounds = QUICK_ROUNDS if arguments.quick else ROUNDS
    names = measurable(chosen(arguments.rows))
    results: dict[str, Result | Missing] = {}
    if not arguments.json:
        print(table_head())
    for name in names:
        with compute.device("webgpu" if name in ON_WEBGPU else "cpu"):
            # Made one at a time: a row's buffers are gone before the next one's are made.
            results[name] = measured(name, ROWS[name], rounds)
        if not arguments.json:
            print(table_line(results[name]), flush=True)
    found = [results.get(name) for name in filters.ROWS]
    ratios = [item.ratio for item in found if isinstance(item, Result) and item.ratio]
    if not arguments.json and len(ratios) == len(filters.ROWS):
        print(f"all filters: {geometric_mean(ratios):.3f} on (geometric) average, bar ≤ 0.70 ×")
    if arguments.json:
        print(json.dumps({name: asdict(result) for name, result in results.items()}, indent=2))


def chosen(given: list[str]) -> list[str]:
    """The rows that are named, by themselves or by their group; all if none is."""
    return [row for name in given or list(GROUPS) for row in GROUPS.get(name, {name: None})]


def measurable(names: list[str]) -> list[str]:
    """The rows that can be measured here; says which WebGPU adapter is used, or why none is."""
    needing = [name for name in names if name in ON_WEBGPU]
    if not needing:
        return names
    try:
        said = f"WebGPU rows run on {find_device('webgpu').name}."
    except DeviceError as error:
        said = f"No WebGPU adapter, so {', '.join(needing)} are left out: {error}"
        names = [name for name in names if name not in needing]
    print(said, file=sys.stderr)
    return names


def parse_arguments() -> argparse.Namespace:
    known = f"{', '.join(GROUPS)} (groups), {', '.join(ROWS)}"
    parser = argparse.ArgumentParser(
        prog="dala bench",
        description=__doc__,
        epilog="A bar that does not hold is no failure, nor is a peer that is not installed: the "
        "exit code tells whether it ran.",
    )
    parser.add_argument("rows", nargs="*", metavar="row", help=f"only these: {known}")
    parser.add_argument("--json", action="store_true", help="for machines; times in seconds")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, the same work")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.rows if name not in {**GROUPS, **ROWS}]:
        parser.error(f"no row {unknown[0]!r}; there are: {known}")
    return arguments


if __name__ == "__main__":
    main()
