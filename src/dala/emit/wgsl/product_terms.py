"""Emits the loops of a matrix product: what is read of both factors, and the sums of products.

Sums are vectors of four columns, `s0` first: one for each row of an invocation and each four of its
columns. Each turn of a loop takes in four terms, or those that workgroup memory holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from dala.emit.wgsl.memory import COMPONENTS
from dala.emit.wgsl.products import QUAD, SUMMED_IN_ORDER, Product, ProductPlan
from dala.emit.wgsl.reports import Reports
from dala.ir.nodes import Load, Position
from dala.ir.types import U32

ZEROS = "vec4<f32>()"


class ProductBody(Reports):
    """A body some of whose inputs are read, and whose output is written, four elements at a time.

    `first_row` and `first_column` are those of the invocation; `apart` lies between its columns.
    """

    product: Product
    plan: ProductPlan

    def is_wide(self, source: str) -> bool:
        """Whether the array of an input has elements of four."""
        if source in dict(self.in_place):
            return self.plan.wide_output
        return source in self.plan.wide

    def _element(self, node: Load, source: object, element: str) -> str:
        if self.is_wide(node.source):
            return f"{self.array(node.source)}[{element} >> 2u][{element} & 3u]"
        return super()._element(node, source, element)  # type: ignore[arg-type]

    @property
    def vectors(self) -> int:
        """The sums of each row."""
        return self.plan.tile.columns // QUAD

    @property
    def sums(self) -> int:
        """The sums of an invocation."""
        return self.plan.tile.rows * self.vectors


class Factor:
    """One of the two inputs: where the element of a row, or a column, and a term is."""

    def __init__(self, body: ProductBody, load: Load, axis: int) -> None:
        self.body, self.axis = body, axis
        self.array = body.array(load.source)
        self.size = f"args.size_{axis}"
        index = load.index or ()
        counter = body.product.node.counter
        sizes = [f"args.in_{body.source(load.source)}_size_{i}" for i in range(len(index))]
        base, self.step, self.term = "0u", "1u", "1u"
        for i, item in enumerate(index):
            stride = " * ".join(sizes[i + 1 :]) or "1u"
            if item is counter:
                self.term = body.let(U32, stride, "t")
            elif isinstance(item, Position) and item.axis == axis:
                self.step = body.let(U32, stride, "t")
            elif isinstance(item, Position):
                base += f" + min(u32(p{item.axis}), {sizes[i]} - 1u) * {stride}"
        self.base = body.let(U32, base, "t")
        self.is_wide = body.is_wide(load.source)
        self.by_terms = self.is_wide and index[-1] is counter
        self.by_rows = self.is_wide and not self.by_terms

    def at(self, place: str) -> str:
        """Emits where a row, or a column, begins; the last one for those beyond it."""
        last = f"{self.size} - {QUAD}u" if self.by_rows else f"{self.size} - 1u"
        return self.body.let(U32, f"{self.base} + min({place}, {last}) * {self.step}", "e")

    def read(self, start: str, term: str) -> str:
        """Returns an element, or four of them where they are read so."""
        element = f"{start} + {term} * {self.term}"
        return f"{self.array}[({element}) >> 2u]" if self.is_wide else f"{self.array}[{element}]"


def emit_sums(body: ProductBody) -> list[str]:
    """Emits the sums into the array `sums`; returns declarations of workgroup memory."""
    plan, node = body.plan, body.product.node
    row, column = body.program.rank - 2, body.program.rank - 1
    terms = body.trips(node, 1)
    factors = (
        Factor(body, body.product.of_row, row),
        Factor(body, body.product.of_column, column),
    )
    within = _by_subgroup if plan.tile.lanes else _by_workgroup
    turn, declared = within(body, *factors, terms)
    names = [f"s{i}" for i in range(body.sums)]
    array = f"array<vec4<f32>, {body.sums}>"
    stop = terms
    outer: AbstractContextManager[None] = nullcontext()
    if plan.long:
        body.line(f"var sums = {array}();")
        outer = body.inside(f"for (var begin = 0u; begin < {terms}; begin += {SUMMED_IN_ORDER}u)")
    with outer:
        if plan.long:
            stop = body.let(U32, f"min(begin + {SUMMED_IN_ORDER}u, {terms})", "t")
        for name in names:
            body.line(f"var {name} = {ZEROS};")
        first, depth = "begin" if plan.long else "0u", plan.tile.depth
        with body.inside(f"for (var k = {first}; k < {stop}; k += {depth}u)"):
            turn()
        for i, name in enumerate(names if plan.long else ()):
            body.line(f"sums[{i}] = sums[{i}] + {name};")
    if not plan.long:
        body.line(f"var sums = {array}({', '.join(names)});")
    return declared


Turn = Callable[[], None]


def _multiply(body: ProductBody, a: Callable[[int, int], str], b: Sequence[Sequence[str]]) -> None:
    """Emits four products for each sum: of a's row and term, and of b's vector and term."""
    for i in range(body.plan.tile.rows):
        of_row = [a(i, k) for k in range(QUAD)]
        for v, of_column in enumerate(b):
            name = f"s{i * body.vectors + v}"
            pairs = zip(of_row, of_column, strict=True)
            body.line(f"{name} = {name} + ({' + '.join(f'{x} * {y}' for x, y in pairs)});")


# -- in a subgroup ---------------------------------------------------------------------------------


def _by_subgroup(
    body: ProductBody, rows: Factor, columns: Factor, terms: str
) -> tuple[Turn, list[str]]:
    """Each invocation holds some rows of four terms, and tells the others."""
    plan = body.plan
    tile, lanes = plan.tile, plan.tile.lanes
    body.line(f"let first_row = group.y * {tile.rows}u;")
    by_quads = columns.by_rows
    own = f"{QUAD}u * local" if by_quads else "local"
    body.line(f"let first_column = group.x * {tile.width}u + {own};")
    body.line(f"let apart = {1 if by_quads else lanes}u;")
    held = QUAD * lanes if rows.by_rows else lanes
    each = QUAD if rows.by_rows else 1
    starts = [
        rows.at(f"first_row + {first}u + local * {each}u") for first in range(0, tile.rows, held)
    ]
    ends = [columns.at("first_column")]
    if not by_quads:
        ends += [columns.at(f"first_column + {c * lanes}u") for c in range(1, QUAD)]

    def term(k: int) -> str:
        return f"k + {k}u" if plan.whole else f"min(k + {k}u, {terms} - 1u)"

    def kept(text: str, k: int, zero: str) -> str:
        return text if plan.whole or not k else f"select({zero}, {text}, k + {k}u < {terms})"

    def vector(texts: Sequence[str], name: str) -> str:
        body.line(f"let {name} = vec4<f32>({', '.join(texts)});")
        return name

    def turn() -> None:
        for r, start in enumerate(starts):
            if rows.by_terms:
                body.line(f"let a{r} = {rows.read(start, 'k')};")
                continue
            zero = ZEROS if rows.by_rows else "0.0"
            read = [kept(rows.read(start, f"({term(k)})"), k, zero) for k in range(QUAD)]
            if rows.by_rows:
                for k, text in enumerate(read):
                    body.line(f"let a{r}_{k} = {text};")
            else:
                vector(read, f"a{r}")
        if columns.by_terms:
            for c, end in enumerate(ends):
                body.line(f"let f{c} = {columns.read(end, 'k')};")
        for k in range(QUAD):
            if by_quads:
                body.line(f"let b{k} = {kept(columns.read(ends[0], f'({term(k)})'), k, ZEROS)};")
            elif columns.by_terms:
                vector([f"f{c}.{COMPONENTS[k]}" for c in range(QUAD)], f"b{k}")
            else:
                read = [columns.read(end, f"({term(k)})") for end in ends]
                vector([kept(text, k, "0.0") for text in read], f"b{k}")
        _multiply(body, told, [[f"b{k}" for k in range(QUAD)]])

    def told(i: int, k: int) -> str:
        part, place = divmod(i, held)
        if rows.by_rows:
            lane, component = divmod(place, QUAD)
            text = f"a{part}_{k}.{COMPONENTS[component]}"
        else:
            lane, text = place, f"a{part}.{COMPONENTS[k]}"
        body.line(f"let t{i}_{k} = subgroupBroadcast({text}, {lane}u);")
        return f"t{i}_{k}"

    return turn, []


# -- in workgroup memory ---------------------------------------------------------------------------


def _by_workgroup(
    body: ProductBody, rows: Factor, columns: Factor, terms: str
) -> tuple[Turn, list[str]]:
    """The workgroup loads a tile of each factor, zeros beyond their ends; each reads its part."""
    tile = body.plan.tile
    size, depth = tile.down * tile.across, tile.depth
    deep, wide = depth // QUAD, tile.width // QUAD
    body.line(f"let top = group.y * {tile.height}u;")
    body.line(f"let left = group.x * {tile.width}u;")
    body.line(f"let down = local / {tile.across}u * {tile.rows}u;")
    body.line(f"let across = local % {tile.across}u;")
    body.line("let first_row = top + down;")
    body.line("let first_column = left + across * 4u;")
    body.line("let apart = 1u;")

    def each(count: int) -> str:
        return f"for (var n = local; n < {count}u; n += {size}u)"

    def four(factor: Factor, start: str, term: str, by: str) -> None:
        """Emits four elements from a place and a term on, one by one: along rows, or terms."""
        for c in range(QUAD):
            place, k = (f"{start} + {c}u", term) if by == "row" else (start, f"{term} + {c}u")
            test = f"({place} < {factor.size}) & ({k} < {terms})"
            element = f"{factor.base} + ({place}) * {factor.step} + ({k}) * {factor.term}"
            text = f"{factor.array}[{element}]"
            if factor.is_wide:
                text = f"{factor.array}[({element}) >> 2u][({element}) & 3u]"
            body.line(f"if ({test}) {{ v.{COMPONENTS[c]} = {text}; }}")

    def load(factor: Factor, start: str, term: str, *, along: str) -> None:
        fits = factor.by_terms if along == "term" else factor.by_rows
        body.line(f"var v = {ZEROS};")
        if fits:
            element = f"{factor.base} + ({start}) * {factor.step} + ({term}) * {factor.term}"
            text = f"{factor.array}[({element}) >> 2u]"
            body.line(f"if (({start} < {factor.size}) & ({term} < {terms})) {{ v = {text}; }}")
        else:
            four(factor, start, term, along)

    def turn() -> None:
        with body.inside(each(tile.height * deep)):
            if rows.by_rows or not rows.is_wide:
                body.line(f"let i = n % {tile.height}u;")
                body.line(f"let q = n / {tile.height}u;")
            else:
                body.line(f"let i = n / {deep}u;")
                body.line(f"let q = n % {deep}u;")
            load(rows, "top + i", f"k + q * {QUAD}u", along="term")
            body.line(f"of_rows[i * {deep}u + q] = v;")
        with body.inside(each(wide * depth)):
            load(columns, f"left + n % {wide}u * {QUAD}u", f"k + n / {wide}u", along="row")
            body.line("of_columns[n] = v;")
        body.line("workgroupBarrier();")
        with body.inside(f"for (var q = 0u; q < {deep}u; q += 1u)"):
            for v in range(body.vectors):
                for k in range(QUAD):
                    place = f"(q * {QUAD}u + {k}u) * {wide}u + across + {v * tile.across}u"
                    body.line(f"let b{v}_{k} = of_columns[{place}];")
            for i in range(tile.rows):
                body.line(f"let a{i} = of_rows[(down + {i}u) * {deep}u + q];")
            _multiply(
                body,
                lambda i, k: f"a{i}.{COMPONENTS[k]}",
                [[f"b{v}_{k}" for k in range(QUAD)] for v in range(body.vectors)],
            )
        body.line("workgroupBarrier();")

    return turn, [
        f"var<workgroup> of_rows: array<vec4<f32>, {tile.height * deep}>;",
        f"var<workgroup> of_columns: array<vec4<f32>, {wide * depth}>;",
    ]
