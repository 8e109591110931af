"""ONNX's own node tests through dala's executor: how many pass, and what stops the others.

    python -m benchmarks.onnx_nodes                       all of them, on the CPU
    python -m benchmarks.onnx_nodes --device webgpu --why 'test_reduce_*'

A test has passed if its outputs have the dtype, the shape and, within the test's own tolerance, the
values that ONNX expects. It was refused if an error of dala's said why not, wrong if other values
came, and crashed at anything else: another exception, a dead process, no end.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from fnmatch import fnmatch
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

TIMEOUT_S = 120
OUTCOMES = ("passed", "refused", "wrong", "crashed")
LEAST_TOLERANCE = 1e-6
"""What values around zero may be off by: expected ones were computed in another order."""

ROUNDED = {"float16": 2**-9, "bfloat16": 2**-6}
"""Two units of the last place: these are computed in f32, and expected ones in their own."""


def cases(pattern: str = "*") -> list[Any]:
    """Returns the node tests of the installed onnx whose names match, in their order."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    return [case for case in found if fnmatch(case.name, pattern) or pattern in case.name]


def outcome_of(case: Any) -> tuple[str, str]:
    """Returns what became of a test on the current device, and why."""
    from dala import ml
    from dala.errors import DalaError

    try:
        model = ml.gpu.load_model(case.model.SerializeToString(), engine="dala")
        for inputs, expected in case.data_sets:
            names = [item.name for item in model.takes]
            given = dict(zip(names, map(_array, inputs), strict=True))
            # Arrays in the order of the graph's outputs, whatever predict makes of a single one.
            made = model.outputs([given[name] for name in names])
            reason = difference(case, list(made.values()), expected)
            if reason:
                return "wrong", reason
    except DalaError as error:
        return "refused", str(error)
    except Exception as error:
        return "crashed", f"{type(error).__name__}: {error}"
    return "passed", ""


def difference(case: Any, made: list[np.ndarray], expected: list[Any]) -> str:
    """Returns in what outputs differ from those that a test expects; empty if they do not."""
    if len(made) != len(expected):
        return f"{len(made)} outputs for {len(expected)}"
    for got, want in zip(made, map(_array, expected), strict=True):
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"{got.dtype} {got.shape} for {want.dtype} {want.shape}"
        if want.dtype.kind in "fV":
            rtol = max(case.rtol, ROUNDED.get(want.dtype.name, 0))
            atol = max(case.atol, LEAST_TOLERANCE)
            near = np.isclose(_f64(got), _f64(want), rtol, atol, equal_nan=True)
        else:
            near = got == want
        if not near.all():
            return f"{got[~near][:3]} for {want[~near][:3]}"
    return ""


def _array(given: Any) -> np.ndarray:
    """Returns what a test gives or expects: an array, a number, or a tensor as files have it."""
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(given) if isinstance(given, TensorProto) else np.asarray(given)


def _f64(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def outcomes(chosen: list[Any], device: str) -> Iterator[tuple[str, str, str]]:
    """Yields each test's name, outcome and reason; a process that dies takes one test with it."""
    done = 0
    while done < len(chosen):
        ours, theirs = multiprocessing.get_context("fork").Pipe()
        worker = multiprocessing.get_context("fork").Process(
            target=_work, args=(theirs, chosen[done:], device), daemon=True
        )
        worker.start()
        theirs.close()
        try:
            while done < len(chosen):
                name, result = chosen[done].name, ("crashed", f"no answer in {TIMEOUT_S} s")
                if ours.poll(TIMEOUT_S):
                    result = ours.recv()
                    done += 1
                    yield name, *result
                else:
                    worker.kill()
                    done += 1
                    yield name, *result
                    break
        except EOFError:
            worker.join()
            done += 1
            yield name, "crashed", f"the process ended with {worker.exitcode}"
        worker.join()


def _work(pipe: Connection, chosen: list[Any], device: str) -> None:
    from dala.gpu import compute

    warnings.simplefilter("ignore")
    with compute.device(device):
        for case in chosen:
            pipe.send(outcome_of(case))


def reason_group(reason: str) -> str:
    """Returns a reason without what is particular to one test: names in brackets, numbers."""
    for lead in ("own kernels cannot compute ", "model: "):
        reason = reason.split(lead, 1)[-1]
    reason = re.sub(r" \([^)]*\)(?=:)", "", reason)
    return re.sub(r"\d+", "#", reason.split(". ")[0].split("; ")[0])[:150]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.onnx_nodes", description=__doc__)
    parser.add_argument("pattern", nargs="?", default="*", help="names, such as 'test_reduce_*'")
    parser.add_argument("--device", default="cpu", help="cpu or webgpu")
    parser.add_argument("--why", action="store_true", help="each test that did not pass, and why")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, outcome, reason in outcomes(cases(arguments.pattern), arguments.device):
        counts[outcome] += 1
        if outcome != "passed":
            groups[outcome, reason_group(reason)].append(name)
            if arguments.why or outcome != "refused":
                print(f"{outcome:8} {name}: {reason}", flush=True)
    for (outcome, reason), names in sorted(groups.items(), key=lambda item: len(item[1])):
        print(f"{outcome:8} {len(names):4}  {reason}  ({names[0]})")
    total = sum(counts.values())
    print(
        f"{total} tests on {arguments.device}: " + ", ".join(f"{counts[o]} {o}" for o in OUTCOMES)
    )


if __name__ == "__main__":
    main()
