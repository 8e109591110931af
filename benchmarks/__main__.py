"""Prints the table of benchmarks: each row with its bar, and whether it holds."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from benchmarks.compute import ROWS
from benchmarks.harness import Result, table_head, table_line

ROUNDS = 21
QUICK_ROUNDS = 5


def main() -> None:
    arguments = parse_arguments()
    rounds = QUICK_ROUNDS if arguments.quick else ROUNDS
    results: dict[str, Result] = {}
    if not arguments.json:
        print(table_head())
    for name in arguments.rows or ROWS:
        # Made one at a time: a row's buffers are gone before the next one's are made.
        results[name] = ROWS[name]().measure(rounds)
        if not arguments.json:
            print(table_line(results[name]), flush=True)
    if arguments.json:
        print(json.dumps({name: asdict(result) for name, result in results.items()}, indent=2))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="dala bench",
        description=__doc__,
        epilog="A bar that does not hold is no failure: the exit code tells whether it ran.",
    )
    parser.add_argument("rows", nargs="*", metavar="row", help=f"only these: {', '.join(ROWS)}")
    parser.add_argument("--json", action="store_true", help="for machines; times in seconds")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, the same work")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.rows if name not in ROWS]:
        parser.error(f"no row {unknown[0]!r}; there are: {', '.join(ROWS)}")
    return arguments


if __name__ == "__main__":
    main()
