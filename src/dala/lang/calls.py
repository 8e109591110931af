"""Lowers calls: intrinsics, conversions, inlined functions and reductions."""

from __future__ import annotations

import ast
import functools
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from dala.errors import KernelSyntaxError, KernelTypeError
from dala.ir.nodes import BORDERS
from dala.ir.types import F32
from dala.lang.arithmetic import Mismatch
from dala.lang.composites import conform
from dala.lang.expressions import Frame
from dala.lang.hints import instead_of_call
from dala.lang.intrinsics import PYTHON_EQUALS, PYTHON_TYPES, call_intrinsic
from dala.lang.language_names import (
    Annotation,
    Intrinsic,
    MatrixMarker,
    ScalarMarker,
    VectorMarker,
)
from dala.lang.matrices import matrix
from dala.lang.reductions import REDUCTIONS, Reductions
from dala.lang.sampling import METHODS, from_uv
from dala.lang.signature import static_object, static_value
from dala.lang.source import MISSING, Source, from_function
from dala.lang.structs import changed, fields_of, is_struct, made, method_of, struct_of
from dala.lang.values import (
    Componentwise,
    InputRef,
    Literal,
    Local,
    LoweredValue,
    Matrix,
    Number,
    Tuple,
    Vector,
    describe,
)
from dala.lang.vectors import vector

_DEEPEST_CALL = 64
SAMPLING = ("sample", "sample_uv")
"""The methods of inputs."""


class Function:
    """A function that kernels may call; it is inlined at each call."""

    def __init__(self, function: Any) -> None:
        if isinstance(function, Source):
            self.source = function
            return
        self.source = from_function(function)
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise KernelSyntaxError(
            f"{self.source.name} is a @dala.function: it is called from kernels only."
        )

    def __repr__(self) -> str:
        return f"<dala.function {self.source.name}>"


@functools.cache
def source_of(function: Any) -> Source:
    """Returns the source of one of our own functions of the language, read once."""
    return from_function(function)


class Calls(Reductions):
    """Lowers calls; `run_function` lowers the statements of an inlined function."""

    @abstractmethod
    def run_function(self, call: ast.AST) -> LoweredValue:
        """Returns the return value of the innermost frame's function."""

    def call(self, node: ast.Call) -> LoweredValue:
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            if isinstance(owner, InputRef) and node.func.attr in SAMPLING:
                return self._sample(node, owner, node.func.attr)
            if isinstance(owner, Tuple) and owner.named is not None:
                return self._method(node, owner, node.func.attr)
        target = self.target_of(node)
        if is_struct(target):
            struct = struct_of(target, self.frame.source.resolve)
            return made(self, struct, self._arguments(node), self._named_arguments(node))
        if node.keywords and not isinstance(target, Function):
            raise self.error(
                node, "keyword arguments are only for your own functions.", "Leave them out."
            )
        if isinstance(target, Intrinsic) or _equal(target):
            name = target.name if isinstance(target, Intrinsic) else PYTHON_EQUALS[target]
            if name in ("check", "print"):
                raise self.error(
                    node, f"dala.{name} gives no value.", f"Write dala.{name}(…) on its own line."
                )
            if name in ("min", "max") and _is_generator(node):
                return self.reduce(node, *REDUCTIONS[min if name == "min" else max])
            return call_intrinsic(self, name, self._arguments(node))
        if target is sum or target is any or target is all:
            if _is_generator(node):
                return self.reduce(node, *REDUCTIONS[target])
            return self.reduce_tuple(node, target)
        if isinstance(target, ScalarMarker) or any(target is item for item in PYTHON_TYPES):
            return self._conversion(node, target)
        if isinstance(target, VectorMarker):
            return vector(self, target, self._arguments(node))
        if isinstance(target, MatrixMarker):
            return matrix(self, target, self._arguments(node))
        if isinstance(target, Function):
            return self._inline(node, target.source)
        if target is len:
            return self._length(node)
        raise self._refused(node, target)

    def intrinsic(self, name: str, args: list[LoweredValue]) -> LoweredValue:
        return call_intrinsic(self, name, args)

    def inline_python(
        self, function: Any, args: list[LoweredValue], *, contracts: bool = False
    ) -> LoweredValue:
        """Inlines one of our own functions of the language and returns its result."""
        source = source_of(function)
        names = [arg.arg for arg in source.tree.args.args]
        variables = dict(zip(names, args, strict=True))
        self.frames.append(Frame(source, variables, contracts=contracts))
        try:
            return self.run_function(source.tree)
        finally:
            self.frames.pop()

    def _method(self, node: ast.Call, owner: Tuple, name: str) -> LoweredValue:
        """Returns what a method of a named tuple gives: `_replace`, or one of its class."""
        method = method_of(owner.named, name)
        if method is not None:
            source = method.source if isinstance(method, Function) else source_of(method)
            return self._inline(node, source, [owner])
        if name != "_replace":
            raise self.error(
                node,
                f"{describe(owner)} has no method `{name}`.",
                "It has _replace(field=…), and those that its class defines.",
                KernelTypeError,
            )
        if node.args:
            raise self.error(
                node, "_replace takes fields by name.", "Write _replace(field=…).", KernelTypeError
            )
        struct = struct_of(owner.named, self.frame.source.resolve)
        return changed(self, struct, {**fields_of(owner), **self._named_arguments(node)})

    def _named_arguments(self, node: ast.Call) -> dict[str, LoweredValue]:
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.error(node, "`**` is not part of the kernel language.", "Name each.")
        return {str(keyword.arg): self.operand(keyword.value) for keyword in node.keywords}

    def _arguments(self, node: ast.Call) -> list[LoweredValue]:
        return [self.operand(arg) for arg in node.args]

    def _sample(self, node: ast.Call, source: InputRef, name: str) -> LoweredValue:
        """Returns what an input of two axes has between its elements."""
        usage = f"Write image.{name}(y, x), or with method='nearest' and a border."
        self.findings.indexed[source.input.name] = 2
        if source.input.rank != 2:
            raise self.error(
                node,
                f"`{source.input.name}` has {source.input.rank} axes: only inputs of two are read "
                f"between their elements.",
                "Index it, and weigh the elements around.",
                KernelTypeError,
            )
        if len(node.args) != 2:
            raise self.error(
                node, f"{name} takes two coordinates, not {len(node.args)}.", usage, KernelTypeError
            )
        words = {"method": "bilinear", "border": self.border}
        for keyword in node.keywords:
            if keyword.arg not in words:
                raise self.error(node, f"{name} does not take `{keyword.arg}`.", usage)
            allowed = BORDERS if keyword.arg == "border" else tuple(METHODS)
            words[keyword.arg] = self._word(keyword.value, keyword.arg, allowed)
        floats = source.input.type.computed if source.input.type.is_float else F32
        places = [
            self.arithmetic.convert(self.arithmetic.typed(self.operand(arg)), floats)
            for arg in node.args
        ]
        if name == "sample_uv":
            extents = self.extents(source.input.name, 2).items
            places = [
                self.inline_python(from_uv, [extent, place])  # type: ignore[misc]
                for extent, place in zip(extents, places, strict=True)
            ]
        before, self.border = self.border, words["border"]  # type: ignore[assignment]
        try:
            return self.inline_python(METHODS[words["method"]], [source, *places])
        finally:
            self.border = before

    def _word(self, node: ast.expr, name: str, allowed: tuple[str, ...]) -> str:
        """Returns one of the words that are allowed: a literal, or what a name stands for."""
        found = static_object(self.frame.source, node)
        word = node.value if isinstance(node, ast.Constant) else found
        if not isinstance(word, str) or word not in allowed:
            raise self.error(
                node, f"{name} is one of {', '.join(allowed)}.", f"Write {name}={allowed[0]!r}."
            )
        return word

    def _refused(self, node: ast.Call, target: Any) -> Exception:
        name = ast.unparse(node.func)
        if target is range:
            instead = "Write `for k in range(…):`."
        elif target is enumerate or target is zip:
            instead = f"Write `for … in {name}(…):`, over tuples."
        elif isinstance(target, Annotation):
            instead = f"`{name}` annotates an argument of the kernel."
        else:
            instead = instead_of_call(target)
        return self.error(node, f"`{name}` cannot be called in a kernel.", instead)

    def _conversion(self, node: ast.Call, target: Any) -> LoweredValue:
        if len(node.args) != 1:
            raise self.error(node, "a conversion takes one value.", "Write e.g. dala.f32(x).")
        lowered = self.operand(node.args[0])
        if isinstance(target, ScalarMarker):
            scalar = target.scalar
            if isinstance(lowered, Componentwise):
                return self.arithmetic.by_component(
                    lambda channel: self.arithmetic.convert(channel, scalar), lowered
                )
            if scalar == F32 and isinstance(lowered, Number) and lowered.type == F32:
                self.findings.asks_f32 = True
            return self.arithmetic.convert(lowered, scalar)
        if target is int:
            lowered = call_intrinsic(self, "trunc", [lowered])
        if isinstance(lowered, Literal):
            return Literal(target(lowered.value))
        return self.arithmetic.convert(lowered, PYTHON_TYPES[target])

    def _length(self, node: ast.Call) -> LoweredValue:
        lowered = self.value(node.args[0]) if len(node.args) == 1 else None
        if isinstance(lowered, InputRef):
            return Number(self.build.extent(lowered.input.name, 0))
        if isinstance(lowered, Tuple | Vector | Local):
            return Literal(len(lowered.items))
        if isinstance(lowered, Matrix):
            return Literal(len(lowered.rows))
        raise self.error(node, "len takes an input or a tuple.", "Write len(x).", KernelTypeError)

    def _inline(
        self, node: ast.Call, source: Source, first: Sequence[LoweredValue] = ()
    ) -> LoweredValue:
        if any(frame.source is source for frame in self.frames):
            raise self.error(
                node,
                f"`{source.name}` calls itself: kernels have no recursion.",
                "Write a loop.",
            )
        if len(self.frames) > _DEEPEST_CALL:
            raise self.error(node, "functions are nested too deeply.", "Call fewer.")
        args = source.tree.args
        if args.vararg or args.kwarg:
            raise self.error(node, f"`{source.name}` takes * arguments.", "Name each argument.")
        names = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
        given = [*first, *map(self.value, node.args)]
        if len(given) > len(names):
            raise self.error(
                node,
                f"`{source.name}` takes {len(names)} arguments, not {len(given)}.",
                f"It is {source.name}({', '.join(names)}).",
                KernelTypeError,
            )
        values = dict(zip(names, given, strict=False))
        for keyword in node.keywords:
            if keyword.arg not in names or keyword.arg in values:
                raise self.error(
                    node,
                    f"`{source.name}` does not take `{keyword.arg}` here.",
                    f"It is {source.name}({', '.join(names)}).",
                    KernelTypeError,
                )
            values[keyword.arg] = self.value(keyword.value)
        values = {**self._defaults(source), **values}
        missing = [name for name in names if name not in values]
        if missing:
            raise self.error(
                node,
                f"`{source.name}` also needs {', '.join(missing)}.",
                f"It is {source.name}({', '.join(names)}).",
                KernelTypeError,
            )
        self._annotate(source, values, node)
        self.frames.append(Frame(source, values, call=node))
        try:
            return self.run_function(node)
        finally:
            self.frames.pop()

    def _defaults(self, source: Source) -> dict[str, LoweredValue]:
        args = source.tree.args
        plain = [*args.posonlyargs, *args.args]
        pairs = [*zip(plain[len(plain) - len(args.defaults) :], args.defaults, strict=True)]
        pairs += [
            (arg, default)
            for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
            if default is not None
        ]
        found = {arg.arg: (static_value(source, default), default) for arg, default in pairs}
        return {name: self.static(*pair) for name, pair in found.items() if pair[0] is not MISSING}

    def _annotate(self, source: Source, values: dict[str, LoweredValue], node: ast.Call) -> None:
        """Converts the arguments that are annotated with a type."""
        args = source.tree.args
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
            mark = static_object(source, arg.annotation) if arg.annotation else None
            if isinstance(mark, ScalarMarker | VectorMarker | MatrixMarker) or is_struct(mark):
                try:
                    type = struct_of(mark, source.resolve) if is_struct(mark) else mark
                    given = self.element(values[arg.arg])
                    values[arg.arg] = conform(self, type, given, f"`{arg.arg}` of {source.name}")
                except Mismatch as mismatch:
                    raise self.error(
                        node, mismatch.what, mismatch.instead, KernelTypeError
                    ) from None


def _is_generator(node: ast.Call) -> bool:
    return len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp)


def _equal(target: Any) -> bool:
    try:
        return target in PYTHON_EQUALS
    except TypeError:
        return False
