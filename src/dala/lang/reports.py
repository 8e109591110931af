"""Lowers `dala.check` and `dala.print`: what a position says, and the values in it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dala.errors import KernelTypeError
from dala.ir.nodes import Block, If, Report, Site
from dala.ir.types import BOOL, F32, S32, U32, Scalar
from dala.lang.arithmetic import Mismatch, decided
from dala.lang.language_names import INTRINSICS, Intrinsic
from dala.lang.signature import static_object
from dala.lang.values import Literal, Local, LoweredValue, Number, Pixel, Tuple, Vector, describe

if TYPE_CHECKING:
    from dala.lang.statements import Statements

REPORTS = {INTRINSICS[name]: name for name in ("check", "print")}
"""The intrinsics that are statements of their own."""
MOST_VALUES = 32
"""The most values that a line shows."""

Part = str | Literal | Number


def lower_report(lower: Statements, call: ast.Call, name: str) -> None:
    """Lowers a call of `dala.check` or `dala.print`."""
    if call.keywords:
        usage = "Write dala.print('x is', x): values are set apart by blanks."
        usage = usage if name == "print" else "Write dala.check(condition, 'what is wrong')."
        raise lower.error(call, f"dala.{name} takes no keyword arguments.", usage)
    if name == "print":
        _report(lower, call, "print", "", shown(lower, call.args))
    else:
        _check(lower, call)


def report_name(lower: Statements, call: ast.Call) -> str | None:
    """Returns "check" or "print" if it is one of them that is called."""
    called = static_object(lower.frame.source, call.func)
    return REPORTS.get(called) if isinstance(called, Intrinsic) else None


def shown(lower: Statements, nodes: list[ast.expr]) -> list[Part]:
    """Returns the text and the values of a line, in order."""
    parts: list[Part] = []
    for i, node in enumerate(nodes):
        parts += [" "] * (i > 0)
        text = _text(lower, node)
        parts += parts_of(lower.operand(node)) if text is None else [text]
    return parts


def parts_of(lowered: LoweredValue) -> list[Part]:
    """Returns the text and the numbers that show a value, as plain Python would."""
    match lowered:
        case Literal() | Number():
            return [lowered]
        case Pixel():
            return _listed("rgba(", lowered.channels, ")")
        case Vector():
            return _listed(f"vec{len(lowered.items)}(", lowered.items, ")")
        case Local():
            return _listed("[", lowered.items, "]")
        case Tuple():
            return _listed("(", lowered.items, ",)" if len(lowered.items) == 1 else ")")
    raise Mismatch(
        f"{describe(lowered)} cannot be shown.", "Show numbers, vectors, pixels or tuples of them."
    )


def _listed(head: str, items: tuple[LoweredValue, ...], tail: str) -> list[Part]:
    parts: list[Part] = [head]
    for i, item in enumerate(items):
        parts += [*([", "] if i else []), *parts_of(item)]
    return [*parts, tail]


def _text(lower: Statements, node: ast.expr) -> str | None:
    """Returns what a string says; None where the node is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [
            repr(part.value) if isinstance(part, ast.Constant) else ast.unparse(part.value)
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        ]
        raise lower.error(
            node,
            "an f-string is made by Python, which does not run at a position.",
            f"Give its parts one by one: dala.print({', '.join(parts)}).",
        )
    if isinstance(node, ast.Name) and node.id not in lower.frame.variables:
        found = lower.frame.source.resolve(node.id)
        return found if isinstance(found, str) else None
    return None


def _check(lower: Statements, call: ast.Call) -> None:
    usage = "Write dala.check(condition, 'what is wrong'), and values to show after it."
    text = _text(lower, call.args[1]) if len(call.args) > 1 else None
    if text is None:
        raise lower.error(
            call, "dala.check takes a condition and a text that says what is wrong.", usage
        )
    condition = lower.condition(call.args[0])
    parts = shown(lower, call.args[2:]) or _operands(lower, call.args[0])
    if not lower.checks or decided(condition) is True:
        return
    with lower.build.block() as failed:
        _report(lower, call, "check", text, parts)
    lower.build.results(If(condition.value, Block(), failed))


def _operands(lower: Statements, condition: ast.expr) -> list[Part]:
    """Returns the operands of a comparison that are not written as numbers, with their names."""
    parts: list[Part] = []
    if isinstance(condition, ast.Compare):
        for node in (condition.left, *condition.comparators):
            if not isinstance(node, ast.Constant):
                value = parts_of(lower.operand(node))
                parts += [", " if parts else "", f"{ast.unparse(node)} is ", *value]
    return parts


def _report(lower: Statements, call: ast.Call, kind: Any, text: str, parts: list[Part]) -> None:
    texts: list[str | Scalar] = []
    values = []
    for part in parts:
        piece: str | Scalar = part if isinstance(part, str) else str(part)
        if isinstance(part, Literal):
            piece = str(part.value)
        elif isinstance(part, Number):
            piece = part.type
            values.append(lower.build.convert(part.value, _carried(part.type)))
        if isinstance(piece, str) and texts and isinstance(texts[-1], str):
            texts[-1] += piece
        else:
            texts.append(piece)
    if len(values) > MOST_VALUES:
        raise lower.error(
            call,
            f"dala.{kind} shows {len(values)} values here (at most {MOST_VALUES}).",
            "Show fewer, or in several lines.",
            KernelTypeError,
        )
    source = lower.frame.source
    line = source.first_line + call.lineno - 1
    site = Site(kind, tuple(texts), text, f'"{source.file}", line {line}, in {source.name}')
    number = lower.sites.setdefault(site, len(lower.sites))
    lower.build.append(Report(number, tuple(values)))


def _carried(type: Scalar) -> Scalar:
    """Returns the type in which a value leaves the device: of 32 or 64 bits."""
    if type == BOOL or (type.bits < 32 and type.kind == "u"):
        return U32
    if type.bits < 32:
        return F32 if type.is_float else S32
    return type
