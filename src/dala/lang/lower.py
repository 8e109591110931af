"""Lowers a kernel's source to a program for given dtypes, ranks and constants."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from functools import cached_property

from dala.base.record import value
from dala.errors import KernelSyntaxError, KernelTypeError
from dala.ir.builder import Builder
from dala.ir.nodes import OUTPUT, Border, Input, Output, Param, Program
from dala.ir.simplify import simplify
from dala.ir.types import F32, F64, S64, U64, Scalar
from dala.ir.verify import verify
from dala.lang.composites import bundled
from dala.lang.early_exits import assigned, structured
from dala.lang.expressions import Domain
from dala.lang.findings import Findings, Returned
from dala.lang.language_names import INTRINSICS
from dala.lang.loops import Lowering
from dala.lang.outputs import Spec, output_of, return_of, returned_items, stored, white_of
from dala.lang.references import referred
from dala.lang.signature import ReturnType, Signature, read_signature
from dala.lang.source import Source
from dala.lang.values import (
    InputRef,
    Literal,
    LoweredValue,
    Number,
    OutRef,
    Pixel,
    Vector,
)


@value
class Specialization:
    """What a kernel is compiled for: its buffers, constants and parameter types.

    A buffer is given by dtype, rank, and channels if it is, or an output may be, an image, or if
    its elements are vectors.
    """

    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    consts: tuple[tuple[str, bool | int | float], ...] = ()
    types: tuple[tuple[str, Scalar], ...] = ()
    broadcast: tuple[tuple[str, tuple[bool, ...]], ...] = ()
    """The inputs that are smaller than the domain; of each axis, whether it is stretched."""


@dataclass(eq=False)
class Definition:
    """A kernel as written: its source and signature, its border rule, how its output starts."""

    source: Source
    border: Border = "clamp"
    accumulate: bool = False
    """Whether `out: dala.Out` starts from what it holds instead of zeros."""
    checks: bool | None = None
    """Whether `dala.check` checks anything; if it is not said, DALA_DEBUG says it."""

    @cached_property
    def signature(self) -> Signature:
        return read_signature(self.source)

    @cached_property
    def is_checked(self) -> bool:
        """Whether `dala.check` checks anything, from the first lowering on."""
        return bool(os.environ.get("DALA_DEBUG")) if self.checks is None else self.checks

    @cached_property
    def input_names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.signature.inputs)

    @property
    def name(self) -> str:
        return self.source.name

    def returned_dtypes(self, count: int) -> tuple[Scalar | None, ...]:
        """Returns the dtype that the return annotation names for each output; None for none."""
        return tuple(scalar for scalar, _ in self._annotated(count))

    def returned_vectors(self, count: int) -> tuple[int | None, ...]:
        """Returns the size of vectors that the annotation names for each output; None for none."""
        return tuple(size for _, size in self._annotated(count))

    def _annotated(self, count: int) -> tuple[ReturnType, ...]:
        said = self.signature.returns
        if len(said) == 1:
            return said * count
        if len(said) != count:
            raise self.source.error(
                KernelTypeError,
                self.source.tree.returns or self.source.tree,
                f"the annotation names {len(said)} dtypes, but `{self.name}` returns "
                f"{count} value{'s' * (count != 1)}.",
                "Name one dtype for each value that is returned, or one for all of them.",
            )
        return said

    def lower(
        self,
        specialization: Specialization,
        *,
        fold: bool = True,
        findings: Findings | None = None,
    ) -> Program:
        """Returns the program for a specialization; `fold=False` keeps every statement.

        `findings` receives what is learned on the way, even on failure.
        """
        try:
            program = _lower(self, specialization, Builder(fold=fold), findings or Findings())
            return verify(simplify(program)) if fold else verify(program)
        except RecursionError:
            raise self.source.error(
                KernelSyntaxError,
                self.source.tree,
                "this kernel is nested too deeply.",
                "Write long expressions and chains of elif as loops, or in several functions.",
            ) from None

    @cached_property
    def is_image(self) -> bool:
        """Whether the kernel's domain is the pixels of an image."""
        images = any(item.image for item in self.signature.inputs)
        if images or self.signature.out is not None:
            return images
        return any(found is INTRINSICS["rgba"] for found in referred(self.source))


def _lower(
    definition: Definition, specialization: Specialization, build: Builder, findings: Findings
) -> Program:
    source, signature = definition.source, definition.signature
    inputs = tuple(
        Input(item.name, *given)
        for item, given in zip(signature.inputs, specialization.inputs, strict=True)
    )
    scalar, rank, _ = specialization.outputs[0]
    output = Output(
        scalar, rank, scattered=signature.out is not None, accumulates=definition.accumulate
    )
    domain = inputs[0].rank if output.scattered and inputs else 2 if definition.is_image else rank
    runs_over = inputs[0].name if output.scattered and inputs else OUTPUT
    lowering = Lowering(
        build,
        source,
        definition.border,
        Domain(domain, runs_over, dict(specialization.broadcast)),
        _floats(specialization, signature),
    )
    lowering.findings, lowering.arithmetic.conditions = findings, findings.conditions
    lowering.checks, lowering.white = definition.is_checked, white_of(inputs)
    variables: dict[str, LoweredValue] = {
        item.name: InputRef(item, vectors=argument.vector is not None)
        for item, argument in zip(inputs, signature.inputs, strict=True)
    }
    if signature.out is not None:
        variables[signature.out] = OutRef(output, signature.out)
    consts, types = dict(specialization.consts), dict(specialization.types)
    params: list[Param] = []
    for item in signature.params:
        if item.kind == "const":
            variables[item.name] = Literal(consts[item.name])
        else:
            leaves = [(name, (type or types[name]).computed) for name, type in item.leaves]
            found = [build.param(type, name) for name, type in leaves]
            params += found
            numbers = map(Number, found)
            made = bundled(item.composite, numbers) if item.composite else next(numbers)
            variables[item.name] = made
    lowering.frame.variables = variables
    lowering.frame.assigned = frozenset(assigned(source.tree.body))
    outputs: tuple[Output, ...] = (output,)
    with build.block() as body:
        if output.scattered:
            _check_count(lowering, source.tree, 1, len(specialization.outputs))
            _run_scattered(lowering, source)
        else:
            returned = returned_items(lowering.settled(lowering.run_function(source.tree)))
            for each in returned:
                _note(lowering, each)
            definition.returned_dtypes(len(returned))
            _check_count(lowering, source.tree, len(returned), len(specialization.outputs))
            sizes = definition.returned_vectors(len(returned))
            each_of = zip(returned, specialization.outputs, sizes, strict=True)
            outputs = tuple(
                output_of(lowering, source.tree, definition.is_image, *each) for each in each_of
            )
            body.results = tuple(
                value
                for each, made in zip(returned, outputs, strict=True)
                for value in stored(lowering, source.tree, each, made, gray=definition.is_image)
            )
    sites = tuple(lowering.sites)
    return Program(definition.name, inputs, tuple(params), outputs, domain, body, sites)


def _check_count(lowering: Lowering, tree: ast.FunctionDef, returned: int, given: int) -> None:
    """Refuses another number of outputs than the kernel returns values."""
    if returned != given:
        kernel = lowering.frame.source.name
        names = ", ".join(f"out{i}" for i in range(returned))
        values = "one value" if returned == 1 else f"{returned} values"
        raise lowering.error(
            return_of(tree),
            f"`{kernel}` gives {values}, but has {given} output{'s' * (given != 1)} here.",
            f"Give as many outputs as values: {names if returned == 1 else f'[{names}]'}.",
            KernelTypeError,
        )


def float_literals(program: Program, signature: Signature) -> Scalar:
    """Returns the type of float literals among themselves in a program."""
    buffers = tuple((item.type, item.rank, None) for item in program.inputs)
    types = tuple((item.name, item.type) for item in program.params)
    outputs = tuple((item.type, 1, None) for item in program.outputs)
    return _floats(Specialization(buffers, outputs, (), types), signature)


def _floats(specialization: Specialization, signature: Signature) -> Scalar:
    """Returns the type of float literals among themselves: f64 if the kernel uses f64 or s64."""
    given = [scalar for scalar, *_ in (*specialization.inputs, *specialization.outputs)]
    given += [type for item in signature.params for _, type in item.leaves if type]
    given += [scalar for _, scalar in specialization.types]
    return F64 if any(scalar in given for scalar in (F64, S64, U64)) else F32


def _note(lowering: Lowering, returned: LoweredValue) -> None:
    """Notes what the kernel returns; what cannot be stored is refused where it is converted."""
    size = len(returned.items) if isinstance(returned, Vector) else None
    element = returned.items[0] if isinstance(returned, Vector) else returned
    type = None
    if isinstance(element, Literal | Number):
        type = lowering.arithmetic.type_of(element)
    lowering.findings.returned.append(Returned(type, isinstance(returned, Pixel), size))


def _run_scattered(lowering: Lowering, source: Source) -> None:
    found = next((item for item in ast.walk(source.tree) if isinstance(item, ast.Return)), None)
    if found is not None:
        raise lowering.error(
            found, "a kernel with `out: dala.Out` returns nothing.", "Write `out[i] = …`."
        )
    lowering.block(structured(source.tree.body))
