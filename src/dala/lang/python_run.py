"""Runs a kernel as plain Python, position by position: for a debugger, which sees every line."""

from __future__ import annotations

import ast
import copy
import linecache
from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from types import ModuleType
from typing import Any

import numpy as np

from dala.errors import KernelCheckError
from dala.ir.builder import Builder
from dala.ir.nodes import OUTPUT, Border, Const, Input, Output, Program, domain_of
from dala.ir.types import BOOL, F32, F64, S32, S64, U32, U64, Scalar
from dala.lang.calls import Function, source_of
from dala.lang.composites import FieldType, bundled, conform, flattened, leaves
from dala.lang.expressions import Domain
from dala.lang.intrinsics import PYTHON_EQUALS, PYTHON_TYPES
from dala.lang.language_names import Intrinsic, MatrixMarker, ScalarMarker, VectorMarker
from dala.lang.loops import Lowering
from dala.lang.lower import Definition, float_literals
from dala.lang.matrices import matrix
from dala.lang.outputs import returned_items, stored, white_of
from dala.lang.python_composites import Components, Rows
from dala.lang.python_output import WrittenOutput
from dala.lang.python_values import Conversion, Evaluator, LocalList, Neutral, inside
from dala.lang.reductions import summed_type
from dala.lang.reports import parts_of
from dala.lang.sampling import METHODS, from_uv
from dala.lang.signature import Parameter, static_object
from dala.lang.source import MISSING, UNBOUND, Source
from dala.lang.structs import is_struct, struct_of
from dala.lang.values import InputRef, LoweredValue, Number
from dala.lang.vectors import vector

Arrays = Mapping[str, np.ndarray]
_CHOOSE, _ITEM = "·choose", "·item"


def run_python(
    definition: Definition,
    program: Program,
    inputs: Arrays,
    values: Mapping[str, Any],
    outputs: Sequence[np.ndarray],
) -> None:
    """Fills the outputs with what the kernel's own function returns at each position."""
    _Run(definition, program, inputs, values, outputs).fill()


class _Run(Evaluator):
    def __init__(
        self,
        definition: Definition,
        program: Program,
        inputs: Arrays,
        values: Mapping[str, Any],
        outputs: Sequence[np.ndarray],
    ) -> None:
        floats = float_literals(program, definition.signature)
        domain = Domain(program.rank, OUTPUT)
        super().__init__(Lowering(Builder(), definition.source, definition.border, domain, floats))
        self.definition, self.program, self.inputs = definition, program, inputs
        self.outputs, self.out = outputs, outputs[0]
        self.place: tuple[int, ...] = ()
        scattered = program.output.scattered and program.inputs
        over = inputs[program.inputs[0].name] if scattered else self.out
        channels = program.inputs[0].channels if scattered else program.output.channels
        self.domain = domain_of(over.shape, channels)
        self.functions: dict[Source, Any] = {}
        types = {param.name: param.type for param in program.params}
        self.given = {
            item.name: self._parameter(item, types, values[item.name])
            for item in definition.signature.params
        }
        self.border = definition.border
        self.vectors = {item.name for item in definition.signature.inputs if item.vector}
        self.lowering.white = white_of(program.inputs)
        self.readers = {item.name: self._reader(item) for item in program.inputs}

    def _parameter(self, item: Parameter, types: Mapping[str, Scalar], value: Any) -> Any:
        if item.composite is not None:
            numbers = flattened(item.composite, value, item.name)
            pairs = zip(numbers, leaves(item.composite, item.name), strict=True)
            build = self.lowering.build
            found = (Number(build.const(scalar, number)) for number, (_, scalar) in pairs)
            return self.raised(bundled(item.composite, found))
        scalar = types.get(item.name, BOOL)
        return value if scalar == BOOL else self.classes[scalar](value)

    def fill(self) -> None:
        """Runs the function at every position, in order."""
        function = self.rebuilt(self.definition.source)
        signature = self.definition.signature
        written = {}
        if signature.out is not None:
            written[signature.out] = WrittenOutput(self, self.out, self.program.output.type)
        for place in np.ndindex(*self.domain):
            self.restart()
            self.place = place
            elements = {name: reader() for name, reader in self.readers.items()}
            returned = function(**elements, **self.given, **written)
            if written:
                continue
            values = returned_items(self.lowered(returned))
            for value, output, out in zip(values, self.program.outputs, self.outputs, strict=True):
                self._store(place, value, output, out)

    def _store(
        self, place: tuple[int, ...], value: LoweredValue, output: Output, out: np.ndarray
    ) -> None:
        """Stores what was returned for an output at a position."""
        tree, gray = self.definition.source.tree, self.definition.is_image
        found = stored(self.lowering, tree, value, output, gray=gray)
        planes = out.reshape(*self.domain, len(found))
        for channel, element in enumerate(found):
            assert isinstance(element, Const)
            planes[(*place, channel)] = element.value

    # -- functions -------------------------------------------------------------------------------

    def rebuilt(self, source: Source) -> Any:
        """Returns a function of the same code and lines, whose names mean what kernels mean."""
        if source not in self.functions:
            tree = copy.deepcopy(source.tree)
            tree.decorator_list, tree.returns = [], None
            arguments = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
            marks = {arg.arg: arg.annotation for arg in arguments if arg.annotation is not None}
            for arg in arguments:
                arg.annotation = None
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            tree = _Choices().visit(tree)
            ast.increment_lineno(tree, source.first_line - 1)
            if source.file.startswith("<"):  # a debugger looks there for the lines of a text
                lines = [f"{line}\n" for line in source.lines]
                linecache.cache[source.file] = (len("".join(lines)), None, lines, source.file)
            scope: dict[str, Any] = {_CHOOSE: self.choose, _ITEM: self.item}
            for name in names:
                found = source.resolve(name)
                if found is not MISSING and found is not UNBOUND:
                    scope[name] = self.meant(found)
            exec(compile(ast.Module([tree], []), source.file, "exec"), scope)
            function = scope[source.name]
            types = self._types(source, marks)
            order = [arg.arg for arg in arguments]

            def call(*args: Any, **named: Any) -> Any:
                given = {**dict(zip(order, args, strict=False)), **named}
                for name, type_ in types.items():
                    if name in given:
                        given[name] = self.conformed(type_, given[name], f"`{name}`")
                return function(**given)

            self.functions[source] = function if source is self.definition.source else call
        return self.functions[source]

    def _types(self, source: Source, marks: Mapping[str, ast.expr]) -> dict[str, Any]:
        """Returns the types that arguments of a function are annotated with, by name."""
        found = {name: static_object(source, mark) for name, mark in marks.items()}
        return {
            name: struct_of(mark, source.resolve) if is_struct(mark) else mark
            for name, mark in found.items()
            if is_struct(mark) or isinstance(mark, ScalarMarker | VectorMarker | MatrixMarker)
        }

    def conformed(self, type_: FieldType, value: Any, what: str) -> Any:
        return self.attempt(lambda lower: conform(lower, type_, self.lowered(value), what))

    def meant(self, found: Any) -> Any:
        """Returns what an object from outside is inside a kernel."""
        if isinstance(found, ModuleType):
            return _Names(self, found)
        if isinstance(found, ScalarMarker):
            return Conversion(self, found)
        if isinstance(found, Function):
            return self.rebuilt(found.source)
        if isinstance(found, Intrinsic):
            return partial(self.intrinsic, found.name)
        if isinstance(found, VectorMarker):
            return partial(self.made_vector, found)
        if isinstance(found, MatrixMarker):
            return partial(self.made_matrix, found)
        if is_struct(found):
            return self.struct(found)
        if is_struct(type(found)):
            return self.raised(self.lowering.static(found, self.definition.source.tree))
        if isinstance(found, np.ndarray | np.generic):
            found = found.tolist()
        if isinstance(found, tuple | list):
            return tuple(map(self.meant, found))
        own = {range: self.counted, sum: self.summed, len: self.length, int: self.cut}
        for python, ours in own.items():
            if found is python:
                return ours
        if found is float or found is bool:
            return partial(self.converted, found)
        known = callable(found) and getattr(found, "__hash__", None) and found in PYTHON_EQUALS
        return partial(self.intrinsic, PYTHON_EQUALS[found]) if known else found

    # -- what kernels call -----------------------------------------------------------------------

    def intrinsic(self, name: str, *args: Any) -> Any:
        if name in ("position", "shape"):
            at = self.place if name == "position" else self.domain
            return tuple(self.classes[S32](number) for number in at)
        if name == "print":
            print(*map(self._text, args))
            return None
        if name == "check":
            return self._check(*args)
        if name == "local":
            return LocalList(self, args[0], args[1].marker.scalar)
        if name in ("min", "max") and len(args) == 1:
            items = list(args[0])
            if not items:
                return Neutral(name)
            return reduce(partial(self.binary, name), items)
        return self.call(name, *args)

    def _check(self, condition: Any, text: str, *values: Any) -> None:
        if not condition:
            shown, source = " ".join(map(self._text, values)), self.definition.source
            place = f'"{source.file}", in {source.name}'
            raise KernelCheckError.at(self.program.name, self.place, text, shown, place)

    def _text(self, value: Any) -> str:
        """Returns a value as devices print it."""
        if isinstance(value, str):
            return value
        parts = parts_of(self.lowered(value))
        return "".join(item if isinstance(item, str) else str(self.raised(item)) for item in parts)

    def made_vector(self, mark: VectorMarker, *args: Any) -> Any:
        return self.raised(vector(self.lowering, mark, [self.lowered(arg) for arg in args]))

    def made_matrix(self, mark: MatrixMarker, *args: Any) -> Any:
        return self.attempt(lambda lower: matrix(lower, mark, [self.lowered(arg) for arg in args]))

    def counted(self, *bounds: Any) -> Iterable[Any]:
        wide = any(self.scalar_of(end) in (S64, U32, U64) for end in bounds)
        return map(self.classes[S64 if wide else S32], range(*map(int, bounds)))

    def summed(self, values: Iterable[Any]) -> Any:
        items = list(values)
        if items and isinstance(items[0], Components):
            parts = (self.summed(part) for part in zip(*items, strict=True))
            return self.vector_class(self, tuple(parts))
        first = self.scalar_of(items[0]) if items else None
        if first == F32:
            wide = [self.convert(item, F64) for item in items]
            return self.convert(reduce(partial(self.binary, "add"), wide), F32)
        if first is not None:
            items = [self.convert(item, summed_type(first)) for item in items]
        return reduce(partial(self.binary, "add"), items) if items else 0

    def length(self, of: Any) -> Any:
        return len(of) if isinstance(of, tuple | list | Components | Rows) else of.shape[0]

    def cut(self, value: Any) -> Any:
        return self.converted(int, self.call("trunc", value))

    def converted(self, to: Any, value: Any) -> Any:
        if self.scalar_of(value) is None:
            return to(value)
        return self.convert(value, PYTHON_TYPES[to])

    def broadcast_place(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Returns where an input of a shape is read bare; None where it does not broadcast."""
        first = len(self.place) - len(shape)
        pairs = list(zip(shape, self.domain[first:], strict=True)) if first >= 0 else [(0, 1)]
        if any(size not in (1, wide) for size, wide in pairs):
            return None
        return tuple(
            0 if size == 1 else at for size, at in zip(shape, self.place[first:], strict=True)
        )

    # -- what kernels read -----------------------------------------------------------------------

    def _reader(self, item: Input) -> Any:
        array = self.inputs[item.name]
        vectors = item.name in self.vectors
        shape = domain_of(array.shape, item.channels)
        sizes = tuple(self.classes[S32](size) for size in shape)
        stored_ = array.reshape(*shape, item.channels or 1)

        def at(index: Any, levels: bool) -> Any:
            places = index if isinstance(index, tuple) else (index,)
            whole = [int(place) for place in places]
            outside = any(not 0 <= at < size for at, size in zip(whole, shape, strict=True))
            if array.size == 0 or (outside and self.border == "zero"):
                return element(np.zeros(item.channels or 1, array.dtype), levels)
            pairs = zip(whole, shape, strict=True)
            return element(stored_[tuple(inside(self.border, *pair) for pair in pairs)], levels)

        def element(values: np.ndarray, levels: bool) -> Any:
            if item.channels is None:
                return self.classes[item.type.computed](values[0])
            if vectors:
                made = self.classes[item.type.computed]
                return self.vector_class(self, tuple(map(made, values)))
            build = self.lowering.build
            constants = [build.const(item.type, value) for value in values.tolist()]
            return self.raised(self.lowering.pixel(InputRef(item, levels=levels), constants))

        def sample(
            owner: Any, y: Any, x: Any, *, method: str = "bilinear", border: Border | None = None
        ) -> Any:
            floats = item.type.computed if item.type.is_float else F32
            places = [self.convert(place, floats) for place in (y, x)]
            self.border = border or self.definition.border
            try:
                return self.rebuilt(source_of(METHODS[method]))(owner, *places)
            finally:
                self.border = self.definition.border

        def sample_uv(owner: Any, v: Any, u: Any, **how: Any) -> Any:
            pairs = zip(sizes, (v, u), strict=True)
            y, x = (self.rebuilt(source_of(from_uv))(size, share) for size, share in pairs)
            return sample(owner, y, x, **how)

        def members(levels: bool) -> dict[str, Any]:
            return {
                "shape": sizes,
                "size": sizes,
                "__getitem__": lambda _, index: at(index, levels),
                "__len__": lambda _: shape[0],
                "sample": sample,
                "sample_uv": sample_uv,
            }

        def here(levels: bool = False) -> Any:
            own = self.broadcast_place(shape)
            if item.channels is None:
                kind = type(item.name, (self.classes[item.type.computed],), members(False))
                return kind(at(own, False) if own is not None else 0)
            if vectors:
                kind = type(item.name, (self.vector_class,), members(False))
                zeros = np.zeros(item.channels, array.dtype)
                vector_ = element(zeros, False) if own is None else at(own, False)
                return kind(self, vector_.items)
            pixel = at(self.place, levels)
            kind = type(item.name, (self.pixel_class,), members(levels))
            made = kind(self, pixel.channels)
            made.pixel = pixel
            if not levels:
                made.levels = here(True)
            return made

        return here


class _Choices(ast.NodeTransformer):
    """Makes calls of conditional expressions and indices: all their values give them a type."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return self._call(_CHOOSE, node, node.test, node.body, node.orelse)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            self.generic_visit(node)
            return node
        return self._call(_ITEM, node, node.value, node.slice)

    def _call(self, name: str, node: ast.expr, *args: ast.expr) -> ast.expr:
        given = [self.visit(arg) for arg in args]
        call = ast.Call(ast.Name(name, ast.Load()), given, [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


class _Names:
    """A module as kernels see it."""

    def __init__(self, run: _Run, module: ModuleType) -> None:
        self._run, self._module = run, module

    def __getattr__(self, name: str) -> Any:
        return self._run.meant(getattr(self._module, name))
