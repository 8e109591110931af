"""A kernel's signature: its inputs, its parameters and their defaults."""

from __future__ import annotations

import ast
from typing import Any, Literal

from dala.base.record import value
from dala.errors import KernelSyntaxError
from dala.ir.types import Scalar
from dala.lang.arithmetic import Mismatch
from dala.lang.composites import Composite, Struct, flattened, leaves
from dala.lang.language_names import (
    ARRAY,
    CONST,
    IMAGE,
    OUT,
    SCALARS,
    Annotation,
    ArrayMarker,
    MatrixMarker,
    ScalarMarker,
    VectorMarker,
    meant_by,
)
from dala.lang.source import MISSING, Source
from dala.lang.structs import is_struct, struct_of, untyped

REQUIRED = MISSING
"""The default of a required parameter."""


@value
class InputArgument:
    """An input; an image input yields pixels, one of vectors has their size."""

    name: str
    image: bool = False
    vector: int | None = None


@value
class Parameter:
    """A parameter: of a fixed type, a compile-time constant, or typed like a literal.

    A `host` parameter (an axis, a layout) is for the code that plans a kernel, not for the kernel.
    """

    name: str
    kind: Literal["typed", "const", "number", "host"]
    type: Scalar | None
    default: Any = REQUIRED
    composite: Composite | None = None
    """What it is if not a number: a vector, a matrix, a named tuple."""

    @property
    def leaves(self) -> list[tuple[str, Scalar | None]]:
        """The names of its numbers in a program, and their types: None where inputs decide."""
        if self.composite is None:
            return [(self.name, self.type)]
        return [*leaves(self.composite, self.name)]

    @property
    def components(self) -> tuple[str, ...]:
        """The names of its numbers in a program."""
        return tuple(name for name, _ in self.leaves)

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def describe(self) -> dict[str, Any]:
        """Returns its type, and its default if it has one."""
        kind = self.type.name if self.type else "any" if self.kind == "host" else self.kind
        kind = self.composite.name if self.composite else kind
        return {"type": kind} if self.required else {"type": kind, "default": self.default}

    def __str__(self) -> str:
        kind = "" if self.kind == "host" else f": {self.describe()['type']}"
        return f"{self.name}{kind}" if self.required else f"{self.name}{kind} = {self.default!r}"


ReturnType = tuple[Scalar | None, int | None]
"""What an annotation says of a value that is returned: its dtype, or the size of its vectors."""


@value
class Signature:
    """What a kernel takes, in order of declaration."""

    inputs: tuple[InputArgument, ...]
    params: tuple[Parameter, ...]
    out: str | None
    returns: tuple[ReturnType, ...] = ((None, None),)
    """What the return annotation names, for each output; one stands for all of them."""


def read_signature(source: Source) -> Signature:
    """Returns the signature; raises an error that points at the argument."""
    args = source.tree.args
    for extra, what in ((args.vararg, "*"), (args.kwarg, "**")):
        if extra is not None:
            raise source.error(
                KernelSyntaxError,
                extra,
                f"`{what}{extra.arg}`: a kernel has a fixed number of arguments.",
                "Name each input and each parameter.",
            )
    plain = [*args.posonlyargs, *args.args]
    given = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
    pairs = [*zip(plain, given, strict=True), *zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    inputs: list[InputArgument] = []
    params: list[Parameter] = []
    out: str | None = None
    for arg, default in pairs:
        mark = _annotation(source, arg)
        if mark is OUT:
            if out is not None:
                raise source.error(
                    KernelSyntaxError,
                    arg,
                    f"a kernel writes one output where it likes, but `{out}` is one already.",
                    "Write a kernel for each; or, for several values at the kernel's own position, "
                    "return them: `return a, b`.",
                )
            out = arg.arg
        elif mark is None or mark is IMAGE or isinstance(mark, ArrayMarker):
            if default is not None:
                raise source.error(
                    KernelSyntaxError,
                    default,
                    f"input `{arg.arg}` has a default: an input is always given.",
                    f"A parameter has a scalar annotation: `{arg.arg}: dala.f32 = …`.",
                )
            size = _vector_size(source, arg, mark) if isinstance(mark, ArrayMarker) else None
            inputs.append(InputArgument(arg.arg, image=mark is IMAGE, vector=size))
        else:
            params.append(_parameter(source, arg, mark, default))
    return Signature(tuple(inputs), tuple(params), out, _returns(source))


def _vector_size(source: Source, arg: ast.arg, mark: ArrayMarker) -> int | None:
    """Returns the size of the vectors that an input's elements are; None for numbers."""
    if mark.element is None:
        return None
    if isinstance(mark.element, VectorMarker):
        return mark.element.size
    raise source.error(
        KernelSyntaxError,
        arg.annotation or arg,
        f"the elements of `{arg.arg}` are to be {mark.element!r}; they can be numbers or vectors.",
        "Write dala.Array[dala.vec3], or dala.Array for numbers, whose dtype is the buffer's.",
    )


def _returns(source: Source) -> tuple[ReturnType, ...]:
    """Returns what the return annotation names: one type, or those of a tuple."""
    annotation = source.tree.returns
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = _parsed(annotation, annotation.value)
    match annotation:
        case None:
            return ((None, None),)
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=items)):
            return tuple(_return_type(source, item) for item in items)
    return (_return_type(source, annotation),)


def _return_type(source: Source, annotation: ast.expr) -> ReturnType:
    mark = _mark(source, annotation)
    if isinstance(mark, ScalarMarker):
        return mark.scalar, None
    if isinstance(mark, VectorMarker):
        return None, mark.size
    if mark is None or mark is IMAGE:
        return None, None
    raise source.error(
        KernelSyntaxError,
        annotation,
        f"`{ast.unparse(annotation)}` does not say what a kernel returns.",
        "Name the dtype of a call's result, as in `-> dala.u8`, its vectors, as in `-> dala.vec3`, "
        "or those of several outputs, as in `-> tuple[dala.f32, dala.u8]`; or leave it out: then "
        "it is as the expression is.",
    )


def _parsed(annotation: ast.Constant, text: str) -> ast.expr:
    """Returns the expression of an annotation that is a text; itself if it is none."""
    try:
        parsed = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return annotation
    for node in ast.walk(parsed):
        ast.copy_location(node, annotation)
    return parsed


def _mark(source: Source, annotation: ast.expr) -> Any:
    """Returns the marker that an annotation stands for, or None for `Any` and `None`."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except (SyntaxError, ValueError):
            return MISSING
    if isinstance(annotation, ast.Constant) and annotation.value is None:
        return None
    if isinstance(annotation, ast.Subscript):
        owner = static_object(source, annotation.value)
        element = static_object(source, annotation.slice)
        return owner[element] if owner is ARRAY and element is not MISSING else MISSING
    mark = meant_by(static_object(source, annotation))
    return None if mark is Any else mark


def _annotation(source: Source, arg: ast.arg) -> Any:
    if arg.annotation is None:
        return None
    mark = _mark(source, arg.annotation)
    if mark is None:
        return None
    if isinstance(mark, Annotation | ScalarMarker | VectorMarker | MatrixMarker):
        return mark
    if is_struct(mark):
        return _parameter_struct(source, arg, mark)
    written = ast.unparse(arg.annotation)
    if isinstance(arg.annotation, ast.Name) and mark is MISSING:
        raise source.error(
            KernelSyntaxError,
            arg.annotation,
            f"`{written}` does not annotate a kernel's argument: it is not known here.",
            f"Did you misspell it? A class that a function defines is known to a kernel inside "
            f"only if the kernel's statements use it, too: define `{written}` outside.",
        )
    raise source.error(
        KernelSyntaxError,
        arg.annotation,
        f"`{written}` does not annotate a kernel's argument.",
        "Allowed: none or Any (an input), dala.Array[dala.vec3], dala.Image, dala.Out, dala.const, "
        f"dala.number, or a scalar type: dala.{', '.join(SCALARS)} (float and int are dala.f32 "
        f"and dala.s32), or dala.vec2 to vec4, dala.mat2 to mat4, or a class of named tuples.",
    )


def _parameter_struct(source: Source, arg: ast.arg, mark: Any) -> Struct:
    try:
        struct = struct_of(mark, source.resolve)
    except Mismatch as mismatch:
        raise source.error(
            KernelSyntaxError, arg.annotation or arg, mismatch.what, mismatch.instead
        ) from None
    for inner, name in untyped(struct):
        raise source.error(
            KernelSyntaxError,
            arg.annotation or arg,
            f"`{name}` of {inner} has no type, which a parameter's fields need.",
            f"Annotate it, in class {inner}(NamedTuple): `{name}: dala.f32`.",
        )
    return struct


def _composite_parameter(
    source: Source, arg: ast.arg, mark: Composite, default: ast.expr | None
) -> Parameter:
    value: Any = REQUIRED
    if default is not None:
        value = static_value(source, default)
        try:
            numbers = flattened(mark, value, f"`{arg.arg}`")
            kinds = [scalar for _, scalar in leaves(mark, arg.arg)]
            pairs = zip(numbers, kinds, strict=True)
            fits = all(
                isinstance(item, bool | int | float) and _fits(item, to) for item, to in pairs
            )
        except Mismatch:
            fits = False
        if not fits:
            raise source.error(
                KernelSyntaxError,
                default,
                f"the default of `{arg.arg}` is not {_written(mark)}.",
                "Write numbers of that form, or leave the default out.",
            )
    return Parameter(arg.arg, "typed", None, value, mark)


def _written(mark: Composite) -> str:
    match mark:
        case VectorMarker():
            return f"{mark.size} numbers"
        case MatrixMarker():
            return f"{mark.size} rows of {mark.size} numbers"
    return f"a {mark.call}"


def _parameter(source: Source, arg: ast.arg, mark: Any, default: ast.expr | None) -> Parameter:
    if isinstance(mark, Composite):
        return _composite_parameter(source, arg, mark, default)
    value = REQUIRED if default is None else static_number(source, default)
    if default is not None and value is MISSING:
        raise source.error(
            KernelSyntaxError,
            default,
            f"the default of `{arg.arg}` is not a number.",
            "Write a number, or leave the default out.",
        )
    if isinstance(mark, ScalarMarker):
        if value is not REQUIRED and not _fits(value, mark.scalar):
            raise source.error(
                KernelSyntaxError,
                default or arg,
                f"the default of `{arg.arg}` does not fit {mark.scalar}.",
                "Write a number of that type.",
            )
        return Parameter(arg.arg, "typed", mark.scalar, value)
    return Parameter(arg.arg, "const" if mark is CONST else "number", None, value)


def _fits(value: Any, scalar: Scalar) -> bool:
    if scalar.is_integer:
        return bool(value == int(value) and scalar.lowest <= value <= scalar.highest)
    return scalar.is_float or value in (0, 1)


def static_object(source: Source, node: ast.expr) -> Any:
    """Returns the Python object that a dotted name refers to, or MISSING."""
    if isinstance(node, ast.Name):
        return source.resolve(node.id)
    if isinstance(node, ast.Attribute):
        owner = static_object(source, node.value)
        return MISSING if owner is MISSING else getattr(owner, node.attr, MISSING)
    return MISSING


def static_number(source: Source, node: ast.expr) -> Any:
    """Returns the number that a default evaluates to, or MISSING."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        number = static_number(source, node.operand)
        if number is MISSING:
            return MISSING
        return -number if isinstance(node.op, ast.USub) else number
    value = node.value if isinstance(node, ast.Constant) else static_object(source, node)
    return value if isinstance(value, bool | int | float) else MISSING


def static_value(source: Source, node: ast.expr) -> Any:
    """Returns the number, or the tuples and named tuples of numbers, of a default, or MISSING."""
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(static_value(source, item) for item in node.elts)
    if isinstance(node, ast.Call):
        cls = static_object(source, node.func)
        named = {item.arg: static_value(source, item.value) for item in node.keywords if item.arg}
        try:
            given = [static_value(source, item) for item in node.args]
            return cls(*given, **named) if is_struct(cls) else MISSING
        except TypeError:
            return MISSING
    number = static_number(source, node)
    return static_object(source, node) if number is MISSING else number
