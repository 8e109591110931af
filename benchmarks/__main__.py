"""Prints the table of benchmarks: each row with its bar, and whether it holds."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict

from benchmarks import (
    commands,
    filters,
    language,
    machine,
    models,
    own_engine,
    page,
    pipelines,
    roofline,
    surfaces,
    tensors,
    video,
    webgpu,
)
from benchmarks.compute import ROWS as CPU_ROWS
from benchmarks.harness import Outcome, Wrong, table_head, table_line
from benchmarks.peers import checked, measured
from benchmarks.report import summary, worst
from benchmarks.selection import chosen, unknown
from dala.devices import find_device
from dala.errors import DeviceError
from dala.gpu import compute

ROUNDS = 21
QUICK_ROUNDS = 5
QUICK_FILTER_ROUNDS = 3
"""Of filters there are hundreds of rows."""
GROUPS = {
    "compute": {**CPU_ROWS, **tensors.ROWS},
    "pipelines": pipelines.ROWS,
    "commands": commands.ROWS,
    "filters": filters.ROWS,
    "language": language.ROWS,
    "videos": video.ROWS,
    "models": {**models.ROWS, **own_engine.ROWS},
    "webgpu": webgpu.ROWS,
    "surfaces": surfaces.ROWS,
}
ON_WEBGPU = {*webgpu.ROWS, *surfaces.ON_WEBGPU}
ROWS = {name: row for group in GROUPS.values() for name, row in group.items()}
CHECKS = {**filters.CHECKS, **tensors.CHECKS}
"""What compares the sides of a row on small inputs."""
MEAN_BARS = {"filters": filters.MEAN_BAR, "compute": tensors.MEAN_BAR}


def main() -> None:
    arguments = parse_arguments()
    if arguments.roofline:
        roofline.write()
        print(f"written to {page.PAGE}")
        return
    names = chosen(GROUPS, arguments.rows, arguments.format, filters.FORMAT_OF)
    if arguments.list:
        print(*names, sep="\n")
        return
    if arguments.check:
        names = [name for name in names if name in CHECKS]
    names = measurable(names)
    shown = not (arguments.json or arguments.worst)
    if shown:
        print(table_head())
    results: dict[str, Outcome] = {}
    for number, name in enumerate(names):
        with compute.device("webgpu" if name in ON_WEBGPU else "cpu"):
            # Made one at a time: a row's buffers are gone before the next one's are made.
            results[name] = outcome(name, arguments)
        if shown:
            print(table_line(results[name]), flush=True)
        elif sys.stderr.isatty():
            print(f"\r{number + 1} of {len(names)}: {name:<50}", end="", file=sys.stderr)
    finish(results, arguments)
    if any(isinstance(result, Wrong) for result in results.values()):
        raise SystemExit(1)


def outcome(name: str, arguments: argparse.Namespace) -> Outcome:
    if arguments.check:
        return checked(name, CHECKS[name])
    quick = QUICK_FILTER_ROUNDS if name in filters.ROWS else QUICK_ROUNDS
    return measured(name, ROWS[name], quick if arguments.quick else ROUNDS)


def finish(results: Mapping[str, Outcome], arguments: argparse.Namespace) -> None:
    """All that is said when the last row is measured."""
    if arguments.json:
        print(json.dumps({name: asdict(result) for name, result in results.items()}, indent=2))
        return
    if arguments.worst:
        wrong = [name for name, result in results.items() if isinstance(result, Wrong)]
        print(table_head())
        for name in (*wrong, *worst(results)):
            print(table_line(results[name]))
    parts = {
        group: {name: results[name] for name in rows if name in results}
        for group, rows in GROUPS.items()
    }
    lines = {group: summary_of(group, part) for group, part in parts.items() if part}
    for line in (line for part in lines.values() for line in part):
        print(line)
    if parts["filters"] and (missing := machine.not_installed()):
        print(f"not installed, and no peer here: {', '.join(missing)}")
    if arguments.write:
        page.write({group: part for group, part in parts.items() if part}, lines)
        print(f"written to {page.PAGE}")


def summary_of(group: str, results: Mapping[str, Outcome]) -> list[str]:
    formats = filters.FORMAT_OF if group == "filters" else None
    lines = summary(group, results, formats, MEAN_BARS.get(group))
    if group == "filters" and lines:
        without = [f"{name} ({why})" for name, why in filters.NOT_MEASURED.items()]
        lines.append(f"filters without a row: {', '.join(without)}")
    return lines


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
    parser = argparse.ArgumentParser(
        prog="dala bench",
        description=__doc__,
        epilog="A bar that does not hold is no failure, nor is a peer that is not installed; that "
        "the sides of a row make something else is one.",
    )
    parser.add_argument(
        "rows",
        nargs="*",
        metavar="row",
        help=f"only these: names of rows, or how they begin, or patterns such as 'blur-*-gray'; "
        f"of these groups, if any is named: {', '.join(GROUPS)}",
    )
    parser.add_argument(
        "--format",
        action="append",
        choices=list(dict.fromkeys(filters.FORMAT_OF.values())),
        help="only filters of images of this format; may be given several times",
    )
    parser.add_argument("--json", action="store_true", help="for machines; times in seconds")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, the same work")
    parser.add_argument(
        "--worst", action="store_true", help="only rows in which a peer is faster, worst first"
    )
    parser.add_argument("--write", action="store_true", help=f"write {page.PAGE.name}, too")
    parser.add_argument(
        "--roofline",
        action="store_true",
        help="measure nothing; write what published GPUs could do at best, computed",
    )
    parser.add_argument("--list", action="store_true", help="name the rows, and measure nothing")
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare the outputs of filters and kernels on small inputs, and measure nothing",
    )
    arguments = parser.parse_args()
    if strange := unknown(GROUPS, arguments.rows):
        parser.error(f"no row or group is called {strange[0]!r}, or begins so; see --list.")
    if arguments.write and (arguments.format or set(arguments.rows) - set(GROUPS)):
        parser.error("--write takes whole groups, as its page has every row of a group.")
    return arguments


if __name__ == "__main__":
    main()
