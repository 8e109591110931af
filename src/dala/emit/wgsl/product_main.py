"""Emits a program whose only reduction is a matrix product: its sums, then what is made of them."""

from __future__ import annotations

from collections.abc import Sequence

from dala.emit.variance import Variance
from dala.emit.wgsl.memory import COMPONENTS, output_array
from dala.emit.wgsl.product_terms import ProductBody, emit_sums
from dala.emit.wgsl.products import QUAD
from dala.ir.nodes import Apply, Const, Load, Position, Statement


def emit_product(body: ProductBody) -> list[str]:
    """Emits what an invocation does; returns the declarations of workgroup memory.

    What follows the sums stands in a loop: written out for each of them it would take drivers
    seconds to compile. What is the same for four columns is computed once for them.
    """
    declared = emit_sums(body)
    program, plan = body.program, body.plan
    last = program.rank - 1
    of_row, of_position = _parted(body)
    step = plan.tile.across * QUAD
    with body.inside(f"for (var n = 0u; n < {body.sums}u; n += 1u)"):
        body.line(f"let row = first_row + n / {body.vectors}u;")
        body.line(f"let column = first_column + n % {body.vectors}u * {step}u;")
        with body.inside(f"if ((row < args.size_{last - 1}) & (column < args.size_{last}))"):
            body.line(f"let p{last - 1} = i32(row);")
            body.line(f"let start = (group.z * args.size_{last - 1} + row) * args.size_{last};")
            body.line("let sum = sums[n];")
            body.statements(of_row)
            wide = _wide_reads(body, of_position) if plan.wide_output else {}
            if plan.wide_output:
                body.line("var made: vec4<f32>;")
            for i, component in enumerate(COMPONENTS):
                place = f"column + {i}u * apart"
                test = "" if plan.wide_output else f"if ({place} < args.size_{last})"
                with body.inside(test):
                    body.line(f"let p{last} = i32({place});")
                    body.line(f"let here = start + {place};")
                    body.values[body.product.node] = f"sum.{component}"
                    for item in of_position:
                        if item in wide:
                            body.values[item] = f"{wide[item]}.{component}"
                        else:
                            body.statement(item)
                    _store(body, component)
            if plan.wide_output:
                body.line(f"{output_array(0)}[(start + column) >> 2u] = made;")
    return declared


def _parted(body: ProductBody) -> tuple[list[Statement], list[Statement]]:
    """Returns the statements that are the same along a row, and the others."""
    varies = Variance(body.program)
    of_row: list[Statement] = []
    of_position: list[Statement] = []
    for item in body.program.body.statements:
        if item is body.product.node:
            continue
        same = isinstance(item, Apply | Load) and item not in varies
        (of_row if same and not _is_own(item) else of_position).append(item)
    return of_row, of_position


def _is_own(item: Statement) -> bool:
    return isinstance(item, Load) and item.index is None


def _wide_reads(body: ProductBody, statements: Sequence[Statement]) -> dict[Statement, str]:
    """Emits reads of four columns at once, of inputs that have as many columns as the output."""
    found: dict[Statement, str] = {}
    last = body.program.rank - 1
    for item in statements:
        if not isinstance(item, Load) or not body.is_wide(item.source):
            continue
        if item.index is None:
            element = "start + column"
        elif _is_plain(item, last):
            sizes = [f"args.in_{body.source(item.source)}_size_{i}" for i in range(len(item.index))]
            element = ""
            for value, size in zip(item.index[:-1], sizes, strict=False):
                place = f"min(u32({body.value(value)}), {size} - 1u)"
                element = f"({element}) * {size} + {place}" if element else place
            element = f"({element}) * {sizes[-1]} + column" if element else "column"
        else:
            continue
        name = body.name("w")
        body.line(f"let {name} = {body.array(item.source)}[({element}) >> 2u];")
        found[item] = name
    return found


def _is_plain(load: Load, last: int) -> bool:
    """Whether a read is at positions, the last of them in its last place, and never leaves."""
    *outer, final = load.index or ()
    if not isinstance(final, Position) or final.axis != last:
        return False
    for item in outer:
        if isinstance(item, Const) and item.value == 0:
            continue
        if not isinstance(item, Position) or item.axis == last or load.border != "clamp":
            return False
    return True


def _store(body: ProductBody, component: str) -> None:
    """Emits the store of a position's results."""
    results = [body.value(item) for item in body.program.body.results]
    if body.plan.wide_output:
        body.line(f"made.{component} = {results[0]};")
        return
    for number, text in enumerate(results):
        body.line(f"{output_array(number)}[here] = {text};")
