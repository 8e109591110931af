"""Emits a program as one WGSL module: a compute shader over a grid."""

from __future__ import annotations

from dala.base.record import record
from dala.emit.partition import Partition
from dala.emit.wgsl.arguments import Arguments
from dala.emit.wgsl.body import Loops
from dala.emit.wgsl.functions import FUNCTIONS
from dala.emit.wgsl.grid import SERIAL, Grid
from dala.emit.wgsl.memory import Memory, atomic_type, element_type, output_array
from dala.emit.wgsl.ops import Ops
from dala.emit.wgsl.output_elements import joined, store_element, store_words, structure, type_of
from dala.emit.wgsl.packing import is_packed
from dala.emit.wgsl.product_main import emit_product
from dala.emit.wgsl.product_terms import ProductBody
from dala.emit.wgsl.products import find_product
from dala.emit.wgsl.reports import BEGIN, END, PRIVATE, Reports
from dala.emit.wgsl.tiled_reduction import TILE, find_tileable, tiled_reduction
from dala.ir.nodes import AtomicUpdate, Output, Program, Reduce, by_output, walk
from dala.ir.types import U32
from dala.plan.task import InPlace
from dala.plan.watchdog import ALL_TOO_FAR, MOST_SLICES, SLICE, STEP_LIMIT, TOO_FAR

ENTRY = "main"
_FAILED = "var<private> failed: bool;"
_FIRST_ITERATIONS = 1 << 12
"""Iterations per position that are not counted globally: most loops take no more."""
_WATCHDOG = f"""\
var<private> budget: u32;
var<private> slices: u32;
fn spend(iterations: u32) -> u32 {{
  if (iterations <= budget) {{
    budget -= iterations;
    return iterations;
  }}
  let more = (iterations - budget - 1u) / {SLICE}u + 1u;
  if ((more > slices) | (atomicLoad(&status[0]) != 0u)) {{
    failed = true;
  }} else if (atomicAdd(&status[1], more) >= {MOST_SLICES}u) {{
    failed = true;
    atomicOr(&status[0], {ALL_TOO_FAR}u);
  }}
  if (failed) {{
    budget = 0u;
    slices = 0u;
    return 0u;
  }}
  slices -= more;
  budget += more * {SLICE}u - iterations;
  return iterations;
}}"""
_REFUEL = f"budget = {_FIRST_ITERATIONS}u; slices = {STEP_LIMIT // SLICE - 1}u;"
_REPORT = f"if (failed) {{ atomicOr(&status[0], {TOO_FAR}u); }}"


@record
class Shader:
    """A module as text, its bindings, and the layout of its arguments."""

    text: str
    outputs: int
    """How many outputs are bound, before the inputs."""
    inputs: tuple[int, ...]
    """The indices of the inputs that are bound; those computed in place are not."""
    reports: bool
    """Whether a binding is a status: exceeded limits, and iterations of all positions."""
    says: bool
    """Whether the last binding is what positions say: checks that failed, and lines."""
    arguments: Arguments


def emit(program: Program, grid: Grid, in_place: InPlace, loops: Loops) -> Shader:
    """Emits the shader of a program for a grid; `in_place` inputs share an output's memory."""
    return _Module(program, grid, in_place, loops).shader()


class _Module:
    def __init__(self, program: Program, grid: Grid, in_place: InPlace, loops: Loops) -> None:
        self.program = program
        self.grid = grid
        self.loops = loops
        self.reports = loops != "free"
        self.says = bool(program.sites)
        self.in_place = in_place
        self.ops = Ops()
        self.arguments = Arguments(program)
        self.atomic = [self._is_atomic(output) for output in program.outputs]
        self.several = len(program.outputs) > 1
        self.shared: list[str] = []

    def _is_atomic(self, output: Output) -> bool:
        """Whether several invocations write to the same words of an output."""
        if output.scattered:
            updates = any(isinstance(item, AtomicUpdate) for item in walk(self.program.body))
            alone = self.grid.own_elements or self.grid.kind == "serial"
            return is_packed(output.type) or (updates and not alone)
        shared = self.grid.kind in ("rows", "tiles")
        return shared and is_packed(output.type) and output.channels != 4

    def shader(self) -> Shader:
        if self.grid.kind == "rows":
            parts = [self._row_main()]
        elif self.grid.kind == "tiles":
            parts = [self._tile_main()]
        elif self.grid.kind == "products":
            parts = [self._product_main()]
        else:
            parts = [self._element(), self._main()]
        shared = dict(self.in_place)
        bound = tuple(i for i, item in enumerate(self.program.inputs) if item.name not in shared)
        functions = [FUNCTIONS[name].text for name in self.ops.functions]
        text = "\n".join(
            [
                f"// {self.program.name!r}".encode("ascii", "replace").decode(),
                self.arguments.text,
                *self._bindings(bound),
                *([_FAILED] if self.reports else []),
                *([PRIVATE] if self.says else []),
                *([_WATCHDOG] if self.loops == "counted" else []),
                *dict.fromkeys(self.shared),
                *([structure(self.program.outputs)] if self.several else []),
                *functions,
                *parts,
            ]
        )
        return Shader(text, len(self.atomic), bound, self.reports, self.says, self.arguments)

    def _bindings(self, bound: tuple[int, ...]) -> list[str]:
        lines = ["@group(0) @binding(0) var<uniform> args: Args;"]
        for number, output in enumerate(self.program.outputs):
            element = atomic_type(output.type) if self.atomic[number] else element_type(output)
            if self.grid.product is not None and self.grid.product.wide_output:
                element = "vec4<f32>"
            variable = f"var<storage, read_write> {output_array(number)}: array<{element}>;"
            lines.append(f"@group(0) @binding({number + 1}) {variable}")
        first = 1 + len(self.program.outputs)
        for place, i in enumerate(bound, first):
            type = element_type(self.program.inputs[i])
            if (
                self.grid.product is not None
                and self.program.inputs[i].name in self.grid.product.wide
            ):
                type = "vec4<f32>"
            lines.append(f"@group(0) @binding({place}) var<storage, read> in_{i}: array<{type}>;")
        if self.reports:
            place = len(bound) + first
            words = "var<storage, read_write> status: array<atomic<u32>, 2>;"
            lines.append(f"@group(0) @binding({place}) {words}")
        if self.says:
            place = len(bound) + first + self.reports
            words = "var<storage, read_write> said: array<u32>;"
            lines.append(f"@group(0) @binding({place}) {words}")
        return lines

    def _body(self) -> Memory:
        body = Reports(self.program, self.ops, self.loops)
        body.in_place, body.atomic = self.in_place, self.atomic[0]
        return body

    # -- one position ----------------------------------------------------------------------------

    @property
    def _returned(self) -> str:
        """Returns the result type for one position: a structure if there are several outputs."""
        return "Element" if self.several else type_of(self.program.output)

    def _element(self) -> str:
        """Emits the function that computes the element of one position."""
        body = self._body()
        if self.loops == "counted":
            body.line(_REFUEL)
        if self.says:
            body.line(BEGIN)
        results = body.block(self.program.body)
        if self.says:
            body.line(END)
        if self.reports:
            body.line(_REPORT)
        positions = "".join(f", p{axis}: i32" for axis in range(self.program.rank))
        arrow = ""
        if not self.program.output.scattered:
            arrow = f" -> {self._returned}"
            outputs = self.program.outputs
            parts = [
                joined(*each) for each in zip(outputs, by_output(outputs, results), strict=True)
            ]
            text = f"Element({', '.join(parts)})" if self.several else parts[0]
            body.line(f"return {text};")
        return "\n".join([f"fn element(here: u32{positions}){arrow} {{", *body.lines, "}"])

    # -- the grid --------------------------------------------------------------------------------

    def _main(self) -> str:
        body = self._body()
        last = self.program.rank - 1
        if self.grid.kind == "serial":
            body.line(f"let stop = min(args.first + {SERIAL}u, args.count);")
            with body.inside("for (var here = args.first; here < stop; here++)"):
                self._outer_positions(body, "here", self.program.rank)
                self._store(body, "here", self._call())
        elif self.grid.kind == "flat":
            groups = "group.x + (group.y + group.z * groups.y) * groups.x"
            body.line(f"let unit = ({groups}) * {self.grid.columns}u + local;")
            if self.grid.step > 1:
                self._words(body, "args.count")
            else:
                body.line("let here = unit;")
                body.line("if (here >= args.count) { return; }")
                self._outer_positions(body, "here", self.program.rank)
                self._store(body, "here", self._call())
        else:
            columns, rows, step = self.grid.columns, self.grid.rows, self.grid.step
            width = f"args.size_{last}" if step == 1 else f"(args.size_{last} / {step}u)"
            body.line(f"let column = group.x * {columns}u + local % {columns}u;")
            body.line(f"let row = (group.y + group.z * groups.y) * {rows}u + local / {columns}u;")
            body.line(f"if ((column >= {width}) | (row >= args.rows)) {{ return; }}")
            self._outer_positions(body, "row", last)
            if step > 1:
                body.line(f"let unit = row * {width} + column;")
                self._words(body)
            else:
                body.line(f"let here = row * args.size_{last} + column;")
                body.line(f"let p{last} = i32(column);")
                self._store(body, "here", self._call())
        extra = self._flat_function() if self.grid.kind == "flat" and self.grid.step > 1 else ""
        return extra + self._entry(body)

    def _entry(self, body: Memory) -> str:
        size = self.grid.columns * self.grid.rows
        head = (
            f"@compute @workgroup_size({size}, 1, 1)\n"
            f"fn {ENTRY}(@builtin(workgroup_id) group: vec3<u32>, "
            "@builtin(num_workgroups) groups: vec3<u32>, "
            "@builtin(local_invocation_index) local: u32) {"
        )
        return "\n".join([head, *body.lines, "}"])

    def _call(self) -> str:
        positions = "".join(f", p{axis}" for axis in range(self.program.rank))
        return f"element(here{positions})"

    def _outer_positions(self, body: Memory, rest: str, count: int) -> None:
        """Emits the positions along the first `count` axes from their linear index."""
        for axis in range(count - 1, 0, -1):
            body.line(f"let p{axis} = i32({rest} % args.size_{axis});")
            body.line(f"let rest{axis} = {rest} / args.size_{axis};")
            rest = f"rest{axis}"
        if count:
            body.line(f"let p0 = i32({rest});")

    def _store(self, body: Memory, element: str, call: str) -> None:
        if self.program.output.scattered:
            body.line(f"{call};")
        elif self.several:
            body.line(f"let made = {call};")
            for number in range(len(self.program.outputs)):
                store_element(body, number, element, f"made.o{number}")
        else:
            store_element(body, 0, element, call)

    # -- words of packed elements ----------------------------------------------------------------

    def _flat_function(self) -> str:
        """Emits the function from a linear index to its element; 0 beyond the last one."""
        body = self._body()
        zero = "0u" if not self.several and self.program.output.type.wgsl == "u32" else ""
        body.line(f"if (here >= args.count) {{ return {self._returned}({zero}); }}")
        self._outer_positions(body, "here", self.program.rank)
        body.line(f"return {self._call()};")
        head = f"fn from_flat(here: u32) -> {self._returned} {{"
        return "\n".join([head, *body.lines, "}\n"])

    def _words(self, body: Memory, count: str = "") -> None:
        """Emits a word's elements, or as many pixels, and the writes of the words they fill."""
        last, step = self.program.rank - 1, self.grid.step
        if count:
            body.line(f"if (unit * {step}u >= {count}) {{ return; }}")
        body.line(f"let first = unit * {step}u;")
        outer = "".join(f", p{axis}" for axis in range(last))
        for k in range(step):
            if count:
                call = f"from_flat(first + {k}u)"
            else:
                call = f"element(first + {k}u{outer}, i32(column * {step}u + {k}u))"
            body.line(f"let b{k} = {call};")
        for number, output in enumerate(self.program.outputs):
            values = [f"b{k}.o{number}" if self.several else f"b{k}" for k in range(step)]
            if is_packed(output.type) and output.channels != 4:
                store_words(body, number, values, count)
                continue
            for k, text in enumerate(values):
                with body.inside(f"if (first + {k}u < {count})" if count and k else ""):
                    store_element(body, number, f"(first + {k}u)", text)

    # -- rows that a workgroup shares ------------------------------------------------------------

    def _row_main(self) -> str:
        """Emits one workgroup per row: it shares the row's reductions, then its positions."""
        body = self._body()
        partition = Partition(self.program, vector_bits=128, wide=False)
        last, size = self.program.rank - 1, self.grid.columns
        body.line("let row = group.x + (group.y + group.z * groups.y) * groups.x;")
        body.line("if (row >= args.rows) { return; }")
        self._outer_positions(body, "row", last)
        if self.loops == "counted":
            body.line(_REFUEL)
        for statement in partition.of_row:
            if isinstance(statement, Reduce):
                body.values[statement] = self._shared_reduce(body, statement)
            else:
                body.statement(statement)
        with body.iterations("local", f"args.size_{last}", size) as column:
            body.line(f"let column = {column};")
            body.line(f"let here = row * args.size_{last} + column;")
            body.line(f"let p{last} = i32(column);")
            if self.loops == "counted":
                body.line(_REFUEL)
            body.statements(partition.of_position)
            self._store_results(body)
        if self.reports:
            body.line(_REPORT)
        return self._entry(body)

    def _store_results(self, body: Memory) -> None:
        """Emits the stores of the results, atomic if other invocations write the same words."""
        results = [body.value(value) for value in self.program.body.results]
        outputs = self.program.outputs
        for number, channels in enumerate(by_output(outputs, results)):
            output = outputs[number]
            if not self.atomic[number]:
                store_element(body, number, "here", joined(output, channels))
                continue
            for i, text in enumerate(channels):
                element = body.let(U32, f"here * {len(channels)}u + {i}u", "e")
                body.put_own_part(output_array(number), output.type, element, text)

    # -- tiles -----------------------------------------------------------------------------------

    def _tile_main(self) -> str:
        """Emits one workgroup per tile; invocations outside the domain only help to load it."""
        body, tileable = self._body(), find_tileable(self.program)
        assert tileable is not None
        last = self.program.rank - 1
        body.line(f"let across = local % {TILE}u;")
        body.line(f"let down = local / {TILE}u;")
        body.line(f"let column = group.x * {TILE}u + across;")
        body.line(f"let row = group.y * {TILE}u + down;")
        self._outer_positions(body, "group.z", last - 1)
        body.line(f"let p{last - 1} = i32(row);")
        body.line(f"let p{last} = i32(column);")
        body.line(f"let here = (group.z * args.size_{last - 1} + row) * args.size_{last} + column;")
        if self.loops == "counted":
            body.line(_REFUEL)
        for statement in self.program.body.statements:
            if statement is tileable.node:
                body.values[statement], tiles = tiled_reduction(body, tileable)
                self.shared += tiles
            else:
                body.statement(statement)
        with body.inside(f"if ((column < args.size_{last}) & (row < args.size_{last - 1}))"):
            self._store_results(body)
        if self.reports:
            body.line(_REPORT)
        return self._entry(body)

    def _product_main(self) -> str:
        """Emits one workgroup per tile of a matrix product."""
        body = ProductBody(self.program, self.ops, self.loops)
        product, plan = find_product(self.program), self.grid.product
        assert product is not None
        assert plan is not None
        body.product, body.plan, body.in_place = product, plan, self.in_place
        self._outer_positions(body, "group.z", self.program.rank - 2)
        self.shared += emit_product(body)
        return self._entry(body)

    def _shared_reduce(self, body: Memory, node: Reduce) -> str:
        """Emits a reduction shared by the workgroup: partial results, then a tree reduction."""
        size, type = self.grid.columns, node.type.wgsl
        trips = body.trips(node, 1)
        (total,) = body.reduce_strided([node], trips, "local", size)
        half = body.name("n")
        parts = f"parts_{node.type}"
        self.shared.append(f"var<workgroup> {parts}: array<{type}, {size}>;")
        body.line(f"{parts}[local] = {total};")
        body.line("workgroupBarrier();")
        with body.inside(f"for (var {half} = {size // 2}u; {half} > 0u; {half} >>= 1u)"):
            with body.inside(f"if (local < {half})"):
                both = (f"{parts}[local]", f"{parts}[local + {half}]")
                body.line(f"{parts}[local] = {body.combined(node, *both)};")
            body.line("workgroupBarrier();")
        total = body.let(node.type, f"{parts}[0]")
        body.line("workgroupBarrier();")
        return total
