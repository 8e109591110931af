"""Lowers a kernel's source to a program for given dtypes, ranks and constants."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from dala.base.record import value
from dala.errors import KernelSyntaxError, KernelTypeError
from dala.ir.builder import Builder
from dala.ir.nodes import OUTPUT, Border, Input, Output, Param, Program, Value
from dala.ir.simplify import simplify
from dala.ir.types import F32, F64, N16, S64, U8, U16, U64, Scalar
from dala.ir.verify import verify
from dala.lang.arithmetic import Mismatch
from dala.lang.calls import Function
from dala.lang.early_exits import assigned, structured
from dala.lang.expressions import Domain
from dala.lang.findings import Findings
from dala.lang.language_names import INTRINSICS
from dala.lang.loops import Lowering
from dala.lang.signature import Signature, read_signature, static_object
from dala.lang.source import Source
from dala.lang.values import InputRef, Literal, LoweredValue, Number, OutRef, Pixel, Vector


@value
class Specialization:
    """What a kernel is compiled for: its buffers, constants and parameter types.

    A buffer is given by dtype, rank, and channels if it is, or the output may be, an image.
    """

    inputs: tuple[tuple[Scalar, int, int | None], ...]
    output: tuple[Scalar, int, int | None]
    consts: tuple[tuple[str, bool | int | float], ...] = ()
    types: tuple[tuple[str, Scalar], ...] = ()
    broadcast: tuple[tuple[str, tuple[bool, ...]], ...] = ()
    """The inputs that are smaller than the domain; of each axis, whether it is stretched."""


@dataclass(eq=False)
class Definition:
    """A kernel as written: its source, signature and border rule."""

    source: Source
    border: Border = "clamp"

    @cached_property
    def signature(self) -> Signature:
        return read_signature(self.source)

    @cached_property
    def input_names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.signature.inputs)

    @property
    def name(self) -> str:
        return self.source.name

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
        return images or (self.signature.out is None and _makes_pixels(self.source))


def _lower(
    definition: Definition, specialization: Specialization, build: Builder, findings: Findings
) -> Program:
    source, signature = definition.source, definition.signature
    inputs = tuple(
        Input(item.name, *given)
        for item, given in zip(signature.inputs, specialization.inputs, strict=True)
    )
    scalar, rank, _ = specialization.output
    output = Output(scalar, rank, scattered=signature.out is not None)
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
    lowering.white = white_of(inputs)
    variables: dict[str, LoweredValue] = {item.name: InputRef(item) for item in inputs}
    if signature.out is not None:
        variables[signature.out] = OutRef(output, signature.out)
    consts, types = dict(specialization.consts), dict(specialization.types)
    params: list[Param] = []
    for item in signature.params:
        if item.kind == "const":
            variables[item.name] = Literal(consts[item.name])
        else:
            type = (item.type or types[item.name]).computed
            found = [build.param(type, name) for name in item.components]
            params += found
            numbers = tuple(map(Number, found))
            variables[item.name] = Vector(numbers) if item.size else numbers[0]
    lowering.frame.variables = variables
    lowering.frame.assigned = frozenset(assigned(source.tree.body))
    with build.block() as body:
        if output.scattered:
            _run_scattered(lowering, source)
        else:
            returned = lowering.run_function(source.tree)
            _note(lowering, returned)
            if definition.is_image:
                output = _image_output(lowering, source.tree, returned, specialization)
            body.results = stored(lowering, source.tree, returned, output, gray=definition.is_image)
    return Program(definition.name, inputs, tuple(params), output, domain, body)


def float_literals(program: Program, signature: Signature) -> Scalar:
    """Returns the type of float literals among themselves in a program."""
    buffers = tuple((item.type, item.rank, None) for item in program.inputs)
    types = tuple((item.name, item.type) for item in program.params)
    return _floats(Specialization(buffers, (program.output.type, 1, None), (), types), signature)


def _floats(specialization: Specialization, signature: Signature) -> Scalar:
    """Returns the type of float literals among themselves: f64 if the kernel uses f64 or s64."""
    given = [scalar for scalar, *_ in (*specialization.inputs, specialization.output)]
    given += [item.type for item in signature.params if item.type]
    given += [scalar for _, scalar in specialization.types]
    return F64 if any(scalar in given for scalar in (F64, S64, U64)) else F32


def _note(lowering: Lowering, returned: LoweredValue) -> None:
    """Notes what the kernel returns; what cannot be stored is refused where it is converted."""
    lowering.findings.pixels = isinstance(returned, Pixel)
    if isinstance(returned, Literal | Number):
        lowering.findings.yielded.append(lowering.arithmetic.type_of(returned))


def _run_scattered(lowering: Lowering, source: Source) -> None:
    found = next((item for item in ast.walk(source.tree) if isinstance(item, ast.Return)), None)
    if found is not None:
        raise lowering.error(
            found, "a kernel with `out: dala.Out` returns nothing.", "Write `out[i] = …`."
        )
    lowering.block(structured(source.tree.body))


def _image_output(
    lowering: Lowering,
    tree: ast.FunctionDef,
    returned: LoweredValue,
    specialization: Specialization,
) -> Output:
    """Returns the output of an image kernel: an image, or one value per pixel."""
    scalar, rank, channels = specialization.output
    if isinstance(returned, Pixel) and channels is not None:
        return Output(scalar, 2, channels)
    if not isinstance(returned, Pixel) and rank == 2:
        return Output(scalar, 2)
    given, takes = "one value for each pixel", "one of (height, width)"
    if isinstance(returned, Pixel):
        given, takes = "pixels", "an image of u8, u16, f32 or f16"
    raise lowering.error(
        _place(tree),
        f"the kernel returns {given}, but its output is {scalar} of rank {rank}.",
        f"Give {takes} as the output; dala.rgba(…) makes a pixel.",
        KernelTypeError,
    )


def _place(tree: ast.FunctionDef) -> ast.AST:
    return next((item for item in ast.walk(tree) if isinstance(item, ast.Return)), tree)


def stored(
    lowering: Lowering, tree: ast.FunctionDef, returned: LoweredValue, output: Output, *, gray: bool
) -> tuple[Value, ...]:
    """Returns the values to store: pixels by channel, all others converted.

    A float returned by an image kernel is a gray pixel in 0..1.
    """
    try:
        if output.channels is None:
            levels = gray and output.type in (U8, U16)
            if levels and lowering.arithmetic.type_of(returned).is_float:
                return (_channel(lowering, lowering.arithmetic.typed(returned), output.type),)
            return (lowering.arithmetic.stored(returned, output.type),)
        assert isinstance(returned, Pixel)
        channels = (_gray(lowering, returned),) if output.channels == 1 else returned.channels
        return tuple(_channel(lowering, item, output.type) for item in channels[: output.channels])
    except Mismatch as mismatch:
        raise lowering.error(
            _place(tree), mismatch.what, mismatch.instead, KernelTypeError
        ) from None


def _gray(lowering: Lowering, pixel: Pixel) -> Number:
    luma = lowering.luma(pixel)
    of_levels = pixel.channels[0].type.is_integer and luma.type.is_float
    return _unit(lowering, luma) if of_levels else luma


def _unit(lowering: Lowering, level: Number) -> Number:
    """Converts a level to 0..1."""
    build = lowering.build
    value = build.convert(level.value, F32)
    return Number(build.apply("mul", value, build.const(F32, 1 / lowering.white)))


def _channel(lowering: Lowering, channel: Number, type: Scalar) -> Value:
    """Returns a channel (in 0..1, or an integer level) as stored: levels round and clamp."""
    has_levels = type in (U8, U16)
    if channel.type.is_integer and has_levels and type.white == lowering.white:
        build, level = lowering.build, channel.value
        if channel.type.kind == "s":
            level = build.apply("max", level, build.const(channel.type, 0))
        if channel.type.highest > type.white:
            level = build.apply("min", level, build.const(channel.type, type.white))
        return build.convert(level, type)
    if channel.type == type == N16:
        return channel.value
    if channel.type.is_integer:
        channel = _unit(lowering, channel)
    if has_levels:
        scaled = lowering.arithmetic.binary("mul", channel, Literal(float(type.white)))
        return lowering.arithmetic.stored(scaled, type)
    return lowering.arithmetic.stored(channel, type)


def white_of(inputs: tuple[Input, ...]) -> int:
    """Returns the level of white of a kernel's integer pixels: that of its first such image."""
    images = (item.type for item in inputs if item.channels and item.type in (U8, U16))
    return next(images, U8).white


def _makes_pixels(source: Source, seen: tuple[Source, ...] = ()) -> bool:
    """Whether the function, or one that it calls, calls `dala.rgba`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            called = static_object(source, node.func)
            if called is INTRINSICS["rgba"]:
                return True
            if (
                isinstance(called, Function)
                and called.source not in seen
                and _makes_pixels(called.source, (*seen, source))
            ):
                return True
    return False
