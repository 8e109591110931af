"""How far f32 runs of the catalog's models are from a run in f64: ours on each device, and others.

./dala bench accuracy                        the models that are kept here
python -m benchmarks.accuracy FOLDER         those in a folder, as NAME.onnx
python -m benchmarks.accuracy --write …      and put the table into docs/models.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from benchmarks.double_precision import run_in_f64
from dala import ml
from dala.devices import find_device, using
from dala.media.showcase import sample
from dala.ml.catalog.entries import MODELS, Entry
from dala.ml.models.recognition import preparation
from dala.ml.sources import store

PAGE = Path(__file__).parent.parent / "docs" / "models.md"
BEGIN, END = "<!-- accuracy -->", "<!-- end of accuracy -->"
DEVICES = ("cpu", "webgpu")


def main(arguments: list[str]) -> int:
    """Print the table; 1 where ours is more than twice as far off as ONNX Runtime."""
    folders = [Path(item) for item in arguments if item != "--write"]
    rows = [row for entry in MODELS.values() for row in _rows(entry, folders)]
    table = ["| model, output | ONNX Runtime | " + " | ".join(f"dala, {d}" for d in DEVICES) + " |"]
    table.append("|---|" + "---|" * (1 + len(DEVICES)))
    table += [f"| {name} | {' | '.join(map(_shown, found))} |" for name, found in rows]
    print("\n".join(table))
    if "--write" in arguments:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        text = "\n".join([BEGIN, *table, END])
        PAGE.write_text(f"{before}{text}{after}", encoding="utf-8")
    worse = [name for name, (peer, *own) in rows if max(own) > 2 * peer + 1e-7]
    if worse:
        print(f"more than twice as far off as ONNX Runtime: {', '.join(worse)}")
    return 1 if worse else 0


def _rows(entry: Entry, folders: list[Path]) -> Iterator[tuple[str, list[float]]]:
    """Each output of a model, with its error by ONNX Runtime and by ours on each device."""
    places = [folder / f"{entry.name}.onnx" for folder in folders] or [store.path_of(entry)]
    path = next((place for place in places if place.exists()), None)
    if path is None:
        print(f"{entry.name} is not here: run dala models get {entry.name}", file=sys.stderr)
        return
    data = path.read_bytes()
    image = sample.picture(480, 640)
    height, width = entry.shape
    tensor = np.asarray(
        ml.preprocess(image, size=(width, height), dtype=entry.dtype, **preparation(entry))
    )
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (name,) = (item.name for item in session.get_inputs())
    exact = run_in_f64(data, {name: tensor})
    peer = dict(zip(exact, session.run([*exact], {name: tensor}), strict=True))
    own = []
    for device in DEVICES:
        with using(find_device(device)):
            made = ml.gpu.predict(ml.gpu.load_model(data, engine="dala"), tensor)
            own.append(made if isinstance(made, dict) else {next(iter(exact)): made})
    for output, wanted in exact.items():
        each = [peer[output], *(item[output] for item in own)]
        yield f"`{entry.name}`, {output.partition(':')[0]}", [_error(x, wanted) for x in each]


def _error(got: np.ndarray, wanted: np.ndarray) -> float:
    """The largest error, as a part of the largest value; of classes, the part that is another."""
    if wanted.dtype.kind != "f":
        return float(np.mean(got != wanted))
    return float(np.abs(got.astype(np.float64) - wanted).max() / np.abs(wanted).max())


def _shown(error: Any) -> str:
    return f"{error:.1e}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
