"""The search for the first node of a model that a device computes differently.

Each node is fed with the reference's own values, so that no difference comes from the nodes before
it. A node may be right by itself and wrong in a kernel that computes it together with others: so
the nodes that may be fused with it are tried together as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from dala.devices import Device, find_device
from dala.errors import ArgumentError, DalaError
from dala.ml.comparison.deviations import STEPS, Deviation, deviation
from dala.ml.comparison.report import Fault, Report, Row
from dala.ml.comparison.runners import (
    computed,
    has_onnx_runtime,
    values_by_kernels,
    values_by_onnx_runtime,
)
from dala.ml.comparison.subgraphs import Parts, Subgraph, label, write_model
from dala.ml.onnx.contents import Contents, read_contents
from dala.ml.onnx.file import checked_model
from dala.ml.onnx.signature import check_inputs

Source = str | os.PathLike[str] | bytes


def parity(
    model: Source,
    inputs: Mapping[str, np.ndarray] | None = None,
    *,
    devices: Sequence[str] = ("cpu", "webgpu"),
    out: str | os.PathLike[str] | None = None,
    every: bool = False,
    seed: int = 0,
) -> Report:
    """Runs every node of an ONNX model on devices; returns what differs, and which node first.

    What is right is what ONNX Runtime computes, where it is installed, else the first device.
    Without `inputs`, random ones are fed. With `out`, a folder, the smallest model that shows the
    first fault is written there as an ONNX file, with what it is fed as .npz. The search ends at
    the first fault, unless `every` node is wanted.
    """
    checked = checked_model(model)
    if not isinstance(checked, bytes):
        raise ArgumentError("parity takes a model in one file: store its tensors inside of it.")
    name = "model" if isinstance(model, bytes) else Path(model).stem
    contents = read_contents(name, checked)
    given = _random(contents, seed) if inputs is None else dict(inputs)
    _check(name, contents, given)
    opened = [find_device(item) for item in devices]
    reference = "onnxruntime" if has_onnx_runtime() else opened[0].id
    if reference == "onnxruntime":
        values = values_by_onnx_runtime(checked, contents, given)
    else:
        values = values_by_kernels(opened[0], contents, given)
    compared = [item for item in opened if item.id != reference]
    return Search(name, checked, Parts(contents, values), compared, reference).run(out, every)


class Search:
    """One search through one model, whose values are known."""

    def __init__(
        self, name: str, data: bytes, parts: Parts, devices: Sequence[Device], reference: str
    ) -> None:
        self._name = name
        self._data = data
        self._parts = parts
        self._devices = devices
        self._reference = reference

    def run(self, out: str | os.PathLike[str] | None, every: bool) -> Report:
        """Returns what was found; the first fault is written into the folder `out`."""
        rows: list[Row] = []
        first: Fault | None = None
        for row, device, part in self._rows():
            rows.append(row)
            if not row.fits and first is None:
                first = self._fault(row, device, part, out)
                if not every:
                    break
        return Report(self._name, self._reference, tuple(rows), first, self._accumulated)

    def _rows(self) -> Iterator[tuple[Row, Device, Subgraph]]:
        """Yields each node on each device, by itself and then with those it may be fused with."""
        for number, node in enumerate(self._parts.contents.nodes):
            if self._parts.known.issuperset(node.outputs):
                continue
            region = self._parts.region(number)
            tried = [(number,), region] if len(region) > 1 else [(number,)]
            for numbers in tried:
                part = self._parts.of(numbers)
                if len(numbers) > 1 and part.operators & STEPS:
                    continue
                for device in self._devices:
                    yield self._row(device, part), device, part

    def _row(self, device: Device, part: Subgraph) -> Row:
        nodes = part.contents.nodes
        found, refused = self._tried(device, part)
        return Row(
            node=label(nodes[-1]),
            number=part.numbers[-1],
            operator=" → ".join(node.op for node in nodes),
            device=device.id,
            fused=len(nodes) > 1,
            shapes=tuple(item.shape for item in part.inputs.values()),
            deviation=found,
            refused=refused,
        )

    def _tried(self, device: Device, part: Subgraph) -> tuple[Deviation | None, str]:
        """How far a part is from the reference at worst; or why the device refuses it."""
        try:
            made = computed(device, part.contents, part.inputs)
        except DalaError as error:
            return None, str(error)
        found = [
            deviation(made[item.name], self._parts.values[item.name], part.operators)
            for item in part.contents.outputs
        ]
        return max(found, key=lambda item: (not item.fits, item.relative), default=None), ""

    def _fault(
        self, row: Row, device: Device, part: Subgraph, out: str | os.PathLike[str] | None
    ) -> Fault:
        part = self._shrunk(device, part)
        path = None
        if out is not None:
            safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in row.node)[:60]
            path = Path(out) / f"{self._name}-{safe or 'node'}.onnx"
            write_model(path, self._data, part, self._parts.values)
        return Fault(row, tuple(label(node) for node in part.contents.nodes), path)

    def _shrunk(self, device: Device, part: Subgraph) -> Subgraph:
        """Returns the part without the nodes that it differs without as well."""
        for number in part.numbers[:-1]:
            fewer = self._parts.of(n for n in part.numbers if n != number)
            found, _ = self._tried(device, fewer)
            if found is not None and not found.fits:
                part = fewer
        return part

    def _accumulated(self) -> dict[str, str]:
        """Where each device's own values first differ, fed with its own; "" where none does."""
        found: dict[str, str] = {}
        contents, values = self._parts.contents, self._parts.values
        inputs = {item.name: values[item.name] for item in contents.inputs}
        for device in self._devices:
            try:
                own = values_by_kernels(device, contents, inputs, values)
            except DalaError as error:
                found[device.id] = f"it cannot be run as a whole: {error}"
                continue
            differing = (
                label(node)
                for node in contents.nodes
                for name in node.outputs
                if name in own and name in values
                if not deviation(own[name], values[name], {node.op, "Conv"}).fits
            )
            found[device.id] = next(differing, "")
        return found


def _random(contents: Contents, seed: int) -> dict[str, np.ndarray]:
    """Returns random inputs; an axis that is open has one element."""
    draw = np.random.default_rng(seed)
    made = {}
    for item in contents.inputs:
        shape = tuple(axis if isinstance(axis, int) else 1 for axis in item.shape or ())
        if item.numpy.kind == "f":
            made[item.name] = draw.standard_normal(shape).astype(item.numpy)
        else:
            made[item.name] = draw.integers(0, 2, shape).astype(item.numpy)
    return made


def _check(name: str, contents: Contents, given: Mapping[str, np.ndarray]) -> None:
    names = [item.name for item in contents.inputs]
    if sorted(names) != sorted(given):
        raise ArgumentError(
            f"{name} takes {', '.join(names) or 'nothing'}, but {', '.join(given) or 'nothing'} "
            f"was given."
        )
    kinds = [(given[item].shape, given[item].dtype) for item in names]
    check_inputs(name, contents.inputs, kinds)
