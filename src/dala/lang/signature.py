"""A kernel's signature: its inputs, its parameters and their defaults."""

from __future__ import annotations

import ast
from typing import Any, Literal

from dala.base.record import value
from dala.errors import KernelSyntaxError
from dala.ir.types import F32, Scalar
from dala.lang.language_names import (
    CONST,
    IMAGE,
    OUT,
    SCALARS,
    Annotation,
    ScalarMarker,
    VectorMarker,
)
from dala.lang.source import MISSING, Source

PYTHON_SCALARS = ((float, "f32"), (int, "s32"), (bool, "bool"))
"""What Python's own types mean as annotations."""
REQUIRED = MISSING
"""The default of a required parameter."""


@value
class InputArgument:
    """An input; an image input yields pixels."""

    name: str
    image: bool = False


@value
class Parameter:
    """A parameter: of a fixed type, a compile-time constant, or typed like a literal.

    A `host` parameter (an axis, a layout) is for the code that plans a kernel, not for the kernel.
    """

    name: str
    kind: Literal["typed", "const", "number", "host"]
    type: Scalar | None
    default: Any = REQUIRED
    size: int = 0
    """The number of components of a vector; 0 for a number."""

    @property
    def components(self) -> tuple[str, ...]:
        """The names of its numbers in a program: its own, or one for each component."""
        return tuple(f"{self.name}.{i}" for i in range(self.size)) or (self.name,)

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def describe(self) -> dict[str, Any]:
        """Returns its type, and its default if it has one."""
        kind = self.type.name if self.type else "any" if self.kind == "host" else self.kind
        kind = f"vec{self.size}" if self.size else kind
        return {"type": kind} if self.required else {"type": kind, "default": self.default}

    def __str__(self) -> str:
        kind = "" if self.kind == "host" else f": {self.describe()['type']}"
        return f"{self.name}{kind}" if self.required else f"{self.name}{kind} = {self.default!r}"


@value
class Signature:
    """What a kernel takes, in order of declaration."""

    inputs: tuple[InputArgument, ...]
    params: tuple[Parameter, ...]
    out: str | None
    returns: Scalar | tuple[Scalar | None, ...] | None = None
    """The dtype that the return annotation names, or that of each output."""


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
        elif mark is None or mark is IMAGE:
            if default is not None:
                raise source.error(
                    KernelSyntaxError,
                    default,
                    f"input `{arg.arg}` has a default: an input is always given.",
                    f"A parameter has a scalar annotation: `{arg.arg}: dala.f32 = …`.",
                )
            inputs.append(InputArgument(arg.arg, image=mark is IMAGE))
        else:
            params.append(_parameter(source, arg, mark, default))
    return Signature(tuple(inputs), tuple(params), out, _returns(source))


def _returns(source: Source) -> Scalar | tuple[Scalar | None, ...] | None:
    """Returns the dtype that the return annotation names, or those of a tuple."""
    annotation = source.tree.returns
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = _parsed(annotation, annotation.value)
    match annotation:
        case None:
            return None
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=items)):
            return tuple(_returned_dtype(source, item) for item in items)
    return _returned_dtype(source, annotation)


def _returned_dtype(source: Source, annotation: ast.expr) -> Scalar | None:
    mark = _mark(source, annotation)
    if isinstance(mark, ScalarMarker):
        return mark.scalar
    if mark is None or mark is IMAGE:
        return None
    raise source.error(
        KernelSyntaxError,
        annotation,
        f"`{ast.unparse(annotation)}` does not say what a kernel returns.",
        "Name the dtype of a call's result, as in `-> dala.u8` or, for several outputs, `-> "
        "tuple[dala.f32, dala.u8]`; or leave it out: then it is that of the expression.",
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
    mark = static_object(source, annotation)
    for python_type, scalar in PYTHON_SCALARS:
        if mark is python_type:
            return SCALARS[scalar]
    return None if mark is Any else mark


def _annotation(source: Source, arg: ast.arg) -> Any:
    if arg.annotation is None:
        return None
    mark = _mark(source, arg.annotation)
    if mark is None:
        return None
    if isinstance(mark, Annotation | ScalarMarker | VectorMarker):
        return mark
    raise source.error(
        KernelSyntaxError,
        arg.annotation,
        f"`{ast.unparse(arg.annotation)}` does not annotate a kernel's argument.",
        "Allowed: none or Any (an input), dala.Image, dala.Out, dala.const, dala.number, or a "
        f"scalar type: dala.{', '.join(SCALARS)} (float and int are dala.f32 and dala.s32), or "
        f"dala.vec2, vec3, vec4.",
    )


def _vector_parameter(
    source: Source, arg: ast.arg, mark: VectorMarker, default: ast.expr | None
) -> Parameter:
    value: Any = REQUIRED
    if default is not None:
        items = default.elts if isinstance(default, ast.Tuple) else []
        value = tuple(static_number(source, item) for item in items)
        if len(value) != mark.size or MISSING in value:
            raise source.error(
                KernelSyntaxError,
                default,
                f"the default of `{arg.arg}` is not {mark.size} numbers.",
                f"Write e.g. ({', '.join(['0.0'] * mark.size)}), or leave the default out.",
            )
    return Parameter(arg.arg, "typed", F32, value, mark.size)


def _parameter(source: Source, arg: ast.arg, mark: Any, default: ast.expr | None) -> Parameter:
    if isinstance(mark, VectorMarker):
        return _vector_parameter(source, arg, mark, default)
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
