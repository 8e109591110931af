"""Emits a fusion group as one compute shader, whose workgroups compute a tile of every step.

The invocations of a workgroup share the positions of a step's tile and halo, with a barrier after
each step; what is the same for all positions is computed before them. Beyond the edge of the domain
a tile holds what the border answers, so that reads of it are at constant distances, and test
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from dala.base.record import record
from dala.emit.wgsl.arguments import Arguments
from dala.emit.wgsl.functions import FUNCTIONS
from dala.emit.wgsl.grid import GROUP
from dala.emit.wgsl.memory import Memory, element_type
from dala.emit.wgsl.ops import Ops
from dala.emit.wgsl.output_elements import joined, spread
from dala.emit.wgsl.packing import bit_offset, field, is_packed, packed, unpacked
from dala.emit.wgsl.shader import ENTRY
from dala.emit.wgsl.tiling import Member, Tiling, shares_words
from dala.errors import InternalError
from dala.ir.access import accesses, offsets_of
from dala.ir.nodes import (
    Apply,
    Const,
    Extent,
    Load,
    Output,
    Param,
    Report,
    Value,
    by_output,
    operands_of,
)
from dala.ir.types import U32, Scalar

ROW_COLUMN = ("row", "column")


@record
class TileShader:
    """A module as text, the numbers of the buffers that are bound, and each member's arguments."""

    text: str
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]
    arguments: tuple[Arguments, ...]


def emit_tiles(tiling: Tiling) -> TileShader:
    """Emits the shader of a group in tiles."""
    return _Module(tiling).shader()


class _Bindings:
    """The buffers of a group: each output once, each input once for each type it is read as."""

    def __init__(self, tiling: Tiling) -> None:
        self.outputs: dict[int, str] = {}
        self.inputs: dict[tuple[int, str], str] = {}
        self._types: dict[int, str] = {}
        for member in tiling.members:
            step = member.step
            for number, output in zip(step.outputs, step.program.outputs, strict=True):
                if number in tiling.stored:
                    self.outputs[number] = f"out_{len(self.outputs)}"
                    in_parts = shares_words(output) and not _fills_words(tiling, output)
                    self._types[number] = "atomic<u32>" if in_parts else element_type(output)
            read = accesses(step.program)
            for item, number in zip(step.program.inputs, step.inputs, strict=True):
                if number not in tiling.tiles and read[item.name].kind != "unused":
                    self.inputs.setdefault((number, element_type(item)), f"in_{len(self.inputs)}")

    def texts(self) -> list[str]:
        variables = [
            f"var<storage, read_write> {name}: array<{self._types[number]}>;"
            for number, name in self.outputs.items()
        ]
        variables += [
            f"var<storage, read> {name}: array<{type}>;" for (_, type), name in self.inputs.items()
        ]
        return [f"@group(0) @binding({i}) {text}" for i, text in enumerate(variables, 1)]


def _fills_words(tiling: Tiling, output: Output) -> bool:
    """Whether each row of an output begins with a word; so does then each row of a tile."""
    return not tiling.width * (output.channels or 1) % output.type.per_word


class _Module:
    def __init__(self, tiling: Tiling) -> None:
        self.tiling = tiling
        self.ops = Ops()
        self.bindings = _Bindings(tiling)
        self.arguments = tuple(
            Arguments(member.step.program, f"Args{i}") for i, member in enumerate(tiling.members)
        )

    def shader(self) -> TileShader:
        main = self._main()
        names = ", ".join(member.step.name for member in self.tiling.members)
        members = [f"  @align(16) m{i}: Args{i}," for i in range(len(self.arguments))]
        slots = [
            f"var<workgroup> slot_{i}: array<{_pixel(slot.words)}, {slot.pixels}>;"
            for i, slot in enumerate(self.tiling.slots)
        ]
        text = "\n".join(
            [
                f"// {names!r}".encode("ascii", "replace").decode(),
                *[item.text for item in self.arguments],
                *["struct Args {", "  zero: u32,", *members, "}"],
                "@group(0) @binding(0) var<uniform> args: Args;",
                *self.bindings.texts(),
                *slots,
                *[FUNCTIONS[name].text for name in self.ops.functions],
                main,
            ]
        )
        inputs = tuple(number for number, _ in self.bindings.inputs)
        return TileShader(text, tuple(self.bindings.outputs), inputs, self.arguments)

    def _main(self) -> str:
        lines = [
            f"let top = i32(group.y + group.z * groups.y) * {self.tiling.rows};",
            f"let left = i32(group.x) * {self.tiling.columns};",
        ]
        stores: list[str] = []
        for place, member in enumerate(self.tiling.members):
            lines += [*stores, *self._positions(place, member), "workgroupBarrier();"]
            stores = self._shared_words(place, member)
        if not stores:
            lines.pop()
        head = (
            f"@compute @workgroup_size({GROUP}, 1, 1)\n"
            f"fn {ENTRY}(@builtin(workgroup_id) group: vec3<u32>, "
            "@builtin(num_workgroups) groups: vec3<u32>, "
            "@builtin(local_invocation_index) local: u32) {"
        )
        return "\n".join([head, *[f"  {line}" for line in (*lines, *stores)], "}"])

    # -- the positions of a step -----------------------------------------------------------------

    def _positions(self, place: int, member: Member) -> list[str]:
        """Emits a step at all positions of its tile, some of which are outside the domain."""
        tiling, (above, below), (before, after) = self.tiling, member.rows, member.columns
        width = tiling.columns + before + after
        body = _Element(place, member, tiling, self.bindings, self.ops)
        rows, columns = (f"args.m{place}.size_{axis}" for axis in (0, 1))
        if member.border in (None, "zero"):
            test, places = _within(("0", "0"), (f"i32({rows})", f"i32({columns})")), [*ROW_COLUMN]
        else:
            test = f"(row < i32({rows}) + {below}) & (column < i32({columns}) + {after})"
            sizes = zip(ROW_COLUMN, (rows, columns), strict=True)
            rule = f"{member.border}_i32"
            places = [f"i32({self.ops.call(rule, *each)})" for each in sizes]
        with body.inside(""):
            body.begin()
            with body.inside(_shared(width * (tiling.rows + above + below))):
                body.line(f"let row = top - {above} + i32(n / {width}u);")
                body.line(f"let column = left - {before} + i32(n % {width}u);")
                with body.inside(f"if ({test})"):
                    for axis, text in enumerate(places):
                        body.line(f"let p{axis} = {text};")
                    self._position(body, member)
                if member.border == "zero":
                    with body.inside("else"):
                        for tile in body.made.values():
                            body.line(f"slot_{tile.slot}[n] = {_pixel(tile.words)}();")
        return body.lines

    def _position(self, body: _Element, member: Member) -> None:
        """Emits the elements of one position, and where they are kept."""
        step, outputs = member.step, member.step.program.outputs
        results = by_output(outputs, body.at_position())
        for number, output, channels in zip(step.outputs, outputs, results, strict=True):
            if number in body.made:
                words = _words(self.ops, output.type, channels)
                pixel = f"{_pixel(len(words))}({', '.join(words)})" if len(words) > 1 else words[0]
                body.line(f"slot_{body.made[number].slot}[n] = {pixel};")
            if number in self.tiling.stored and not shares_words(output):
                ends = [
                    f"min({first} + {count}, i32({body.arguments}.size_{axis}))"
                    for axis, (first, count) in enumerate(
                        (("top", self.tiling.rows), ("left", self.tiling.columns))
                    )
                ]
                with body.inside(f"if ({_within(('top', 'left'), ends)})"):
                    _store(body, self.bindings.outputs[number], output, channels)

    # -- words that positions share --------------------------------------------------------------

    def _shared_words(self, place: int, member: Member) -> list[str]:
        """Emits the stores of outputs whose positions share words, from their tiles."""
        outputs = zip(member.step.outputs, member.step.program.outputs, strict=True)
        return [
            line
            for number, output in outputs
            if number in self.tiling.stored and shares_words(output)
            for line in self._row_words(place, number, output)
        ]

    def _row_words(self, place: int, number: int, output: Output) -> list[str]:
        """Emits the words of the workgroup's part of each row; others may share the outer ones."""
        tiling, array, scalar = self.tiling, self.bindings.outputs[number], output.type
        channels, per_word = output.channels or 1, scalar.per_word
        whole = _fills_words(tiling, output)
        words = tiling.columns * channels // per_word + (not whole)
        row = f"(args.m{place}.size_1 * {channels}u)"
        lines = [
            f"let row = u32(top) + n / {words}u;",
            f"let first = row * {row} + u32(left) * {channels}u;",
            f"let last = row * {row} + min(u32(left + {tiling.columns}) * {channels}u, {row});",
            f"let word = first / {per_word}u + n % {words}u;",
            f"if ((row < args.m{place}.size_0) & (word * {per_word}u < last)) {{",
            "  var bits = 0u;",
            "  var mask = 0u;",
        ]
        for k in range(per_word):
            shift = f"{8 * scalar.size_bytes * k}u"
            test = f"if ((e{k} >= first) & (e{k} < last)) " if not whole else ""
            lines += [
                f"  let e{k} = word * {per_word}u + {k}u;",
                f"  {test}{{",
                f"    bits |= ({self._stored_bits(number, output, words, k)}) << {shift};",
                f"    mask |= {field(scalar)} << {shift};",
                "  }",
            ]
        if whole:
            lines.append(f"  {array}[word] = bits;")
        else:
            lines += [
                f"  if (mask == 0xffffffffu) {{ atomicStore(&{array}[word], bits); }} else {{",
                f"    atomicAnd(&{array}[word], ~mask);",
                f"    atomicOr(&{array}[word], bits);",
                "  }",
            ]
        return [f"{_shared(tiling.rows * words)} {{", *[f"  {line}" for line in (*lines, "}")], "}"]

    def _stored_bits(self, number: int, output: Output, words: int, k: int) -> str:
        """Returns the bits of element `k` of a word, from the tile."""
        tile, channels = self.tiling.tiles[number], output.channels or 1
        pixel, channel = f"(e{k} - first) / {channels}u", f"((e{k} - first) % {channels}u)"
        index = f"(n / {words}u + {tile.above}u) * {tile.pitch}u"
        word = f"slot_{tile.slot}[{index} + {pixel} + {tile.before}u]"
        if tile.words > 1:
            word += f"[{channel} / {output.type.per_word}u]"
        return f"({word} >> {bit_offset(output.type, channel)}) & {field(output.type)}"


class _Element(Memory):
    """Emits one step at a position; what other steps made is read from their tiles."""

    def __init__(
        self, place: int, member: Member, tiling: Tiling, bindings: _Bindings, ops: Ops
    ) -> None:
        super().__init__(member.step.program, ops, "free")
        self._indent = 0
        self.arguments = f"args.m{place}"
        self.numbers = member.step.numbers()
        self.bindings = bindings
        read = accesses(self.program)
        self.tiles = {
            name: tiling.tiles[number]
            for name, number in self.numbers.items()
            if number in tiling.tiles and read[name].kind != "unused"
        }
        self.made = {n: tiling.tiles[n] for n in member.step.outputs if n in tiling.tiles}
        self.same: set[object] = set()

    def begin(self) -> None:
        """Emits what is the same for all positions."""
        for item in self.program.body.statements:
            is_read = isinstance(item, Load) and item.index and item.source not in self.tiles
            if (is_read or isinstance(item, Apply)) and all(map(self._is_same, operands_of(item))):
                self.same.add(item)
                self.statement(item)

    def _is_same(self, value: Value) -> bool:
        return isinstance(value, Const | Param | Extent) or value in self.same

    def at_position(self) -> list[str]:
        """Emits the rest, and returns the results."""
        self.line(f"let here = u32(p0) * {self.arguments}.size_1 + u32(p1);")
        for name, tile in self.tiles.items():
            row = f"(p0 - top + {tile.above}) * {tile.pitch}"
            self.line(f"let at_{self.source(name)} = {row} + p1 - left + {tile.before};")
        self.statements([item for item in self.program.body.statements if item not in self.same])
        return [self.value(value) for value in self.program.body.results]

    def array(self, source: str) -> str:
        """Returns the array of an input of the group."""
        item = self.program.input(source)
        return self.bindings.inputs[self.numbers[source], element_type(item)]

    def load(self, node: Load) -> str:
        if node.source not in self.tiles:
            return super().load(node)
        tile, scalar = self.tiles[node.source], self.program.input(node.source).type
        offsets = offsets_of(node, 2)
        if offsets is None:
            raise InternalError(f"{self.program.name} reads far from its own position.")
        word, place = divmod(node.channel or 0, scalar.per_word)
        index = f"at_{self.source(node.source)} + {offsets[0] * tile.pitch + offsets[1]}"
        found = self._known(index)
        if found is None:
            found = self.read[-1][index] = self.name("w")
            self.line(f"let {found} = slot_{tile.slot}[{index}];")
        if tile.words > 1:
            found = f"{found}[{word}]"
        if is_packed(scalar):
            return self.let(scalar, unpacked(scalar, found, f"{8 * scalar.size_bytes * place}u"))
        return self.let(scalar, self.ops.bitcast(found, U32, scalar))

    def report(self, node: Report) -> None:
        raise InternalError(f"{self.program.name} checks or prints.")


def _words(ops: Ops, scalar: Scalar, channels: Sequence[str]) -> list[str]:
    """Returns the words of a pixel in a tile."""
    count = scalar.per_word
    if count == 1:
        return [ops.bitcast(text, scalar, U32) for text in channels]
    return [packed(scalar, list(channels[i : i + count])) for i in range(0, len(channels), count)]


def _store(body: Memory, array: str, output: Output, channels: list[str]) -> None:
    """Emits the store of a position's element."""
    if count := spread(output):
        for i, text in enumerate(channels):
            body.line(f"{array}[here * {count}u + {i}u] = {text};")
    else:
        body.line(f"{array}[here] = {joined(output, channels)};")


def _within(first: Sequence[str], end: Sequence[str]) -> str:
    """Returns whether the row and the column lie between two corners."""
    limits = zip(ROW_COLUMN, first, end, strict=True)
    return " & ".join(f"({name} >= {low}) & ({name} < {high})" for name, low, high in limits)


def _pixel(words: int) -> str:
    """Returns the type of a pixel in a tile."""
    if words == 3:  # a vector would take as much as four
        return "array<u32, 3>"
    return f"vec{words}<u32>" if words > 1 else "u32"


def _shared(count: int) -> str:
    """Returns the head of a loop whose iterations the invocations of a workgroup share."""
    return f"for (var n = local; n < {count}u; n += {GROUP}u)"
