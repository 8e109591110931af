"""Emits each IR operation as a WGSL expression, defined for all operands.

A driver may assume that no float is NaN; then `x != x` is false, and `min` loses it. So NaN is
tested in the bits, which no driver may ignore, and values that a driver must not know are hidden
behind an argument that is always 0.
"""

from __future__ import annotations

import math

import numpy as np

from dala.emit.wgsl.functions import FUNCTIONS
from dala.ir.evaluate import evaluate
from dala.ir.nodes import Apply, Const, Value
from dala.ir.ops import BITCAST, CONVERT, OPS, SELECT
from dala.ir.types import BOOL, F32, S8, S16, S64, U8, U16, U32, U64, Scalar

_COMPARISONS = {
    "eq": ("eq", False, False),
    "ne": ("eq", False, True),
    "lt": ("lt", False, False),
    "gt": ("lt", True, False),
    "le": ("lt", True, True),
    "ge": ("lt", False, True),
}
"""Each 64-bit comparison as a call: the function, whether operands are swapped, and negated."""
_UNSIGNED = {S8: U8, S16: U16}


def literal(scalar: Scalar, value: bool | int | float) -> str:
    """Returns a constant; one without a literal is made from bits hidden from const evaluation."""
    if scalar == BOOL:
        return "true" if value else "false"
    suffix = scalar.suffix
    if scalar.is_storage:
        return f"{int(scalar.numpy.type(value).view(np.uint16)):#x}u"
    if scalar.is_float:
        number = scalar.numpy.type(value)
        if scalar == F32 and abs(number) == np.finfo(np.float32).max:
            # Its shortest decimal is above it, and browsers refuse that before they round.
            return f"({'-' if number < 0 else ''}0x1.fffffep+127f)"
        if math.isfinite(number) and not (number == 0 and np.signbit(number)):
            return f"({number!s}{suffix})" if number < 0 else f"{number!s}{suffix}"
        if scalar == F32:
            return f"bitcast<f32>({int(number.view(np.uint32)):#x}u | args.zero)"
        return f"bitcast<f64>({int(number.view(np.uint64)):#x}lu | u64(args.zero))"
    if value == scalar.lowest and scalar.kind == "s":
        return f"({int(value) + 1}{suffix} - 1{suffix})"
    return f"({int(value)}{suffix})" if value < 0 else f"{int(value)}{suffix}"


def is_narrow(scalar: Scalar) -> bool:
    """Whether WGSL computes the integer in a wider type than its own."""
    return scalar.is_integer and scalar.bits < 32


def mask(scalar: Scalar) -> str:
    """Returns the bit mask of a narrow unsigned type, as a literal."""
    return f"{scalar.highest:#x}u"


def wrapped(scalar: Scalar, text: str) -> str:
    """Returns an integer expression wrapped to the bits of its type."""
    if not is_narrow(scalar):
        return text
    if scalar.kind == "s":
        spare = f"{32 - scalar.bits}u"
        return f"(({text}) << {spare}) >> {spare}"
    return f"({text}) & {mask(scalar)}"


class Ops:
    """Emits operations; `functions` are the library functions that the module must define."""

    def __init__(self) -> None:
        self.functions: dict[str, None] = {}

    def call(self, name: str, *args: str) -> str:
        """Returns a call of a library function."""
        self._need(name)
        return f"{name}({', '.join(args)})"

    def _need(self, name: str) -> None:
        if name not in self.functions:
            for needed in FUNCTIONS[name].needs:
                self._need(needed)
            self.functions[name] = None

    def apply(self, node: Apply, args: list[str]) -> str:
        """Returns an operation on emitted operands."""
        scalar = node.args[-1].type
        if all(isinstance(arg, Const) for arg in node.args):
            return self._folded(node)
        if node.op == SELECT:
            return f"select({args[2]}, {args[1]}, {args[0]})"
        if node.op == CONVERT:
            return self.convert(args[0], scalar, node.type)
        if node.op == BITCAST:
            return self.bitcast(args[0], scalar, node.type)
        if OPS[node.op].compares:
            return self._compare(node, args)
        if OPS[node.op].arity == 1:
            return self._unary(node.op, scalar, args[0])
        if node.op == "fma":
            # Of its own `fma` Mesa moves factors elsewhere; sums of products drivers fuse anyway.
            return f"{args[0]} * {args[1]} + {args[2]}"
        if scalar.is_float:
            return self._float(node, args)
        if node.op in ("shl", "shr"):
            return self._shift(node, args[0], args[1])
        return self.integer(node.op, scalar, args[0], args[1])

    def _folded(self, node: Apply) -> str:
        """Folds an operation on constants: a shader compiler would reject it if it overflows."""
        given = [arg.type.numpy.type(arg.value) for arg in node.args if isinstance(arg, Const)]
        found = np.asarray(evaluate(node.op, node.type, *given)).item()
        return literal(node.type, found)

    # -- arithmetic ------------------------------------------------------------------------------

    def _float(self, node: Apply, args: list[str]) -> str:
        a, b = args
        if node.op in ("min", "max"):
            return self.extreme(node.op, node.type, a, b)
        if _hides(node):
            b = self.call(f"hidden_{node.type.wgsl}", b)
        return f"{a} {OPS[node.op].symbol} {b}"

    def extreme(self, op: str, scalar: Scalar, a: str, b: str) -> str:
        """Returns the minimum or maximum; NaN if either operand is."""
        if scalar.is_float:
            return self.call(f"{op}_{scalar.wgsl}", a, b)
        return f"{op}({a}, {b})"

    def integer(self, op: str, scalar: Scalar, a: str, b: str) -> str:
        type = scalar.wgsl
        if op in ("min", "max"):
            return f"{op}({a}, {b})"
        if op == "mulhi" and is_narrow(scalar):
            return f"({a} * {b}) >> {scalar.bits}u"
        if op in ("floordiv", "mod", "mulhi"):
            called = self.call(f"{op}_{type}", a, b)
            return wrapped(scalar, called) if scalar.kind == "s" else called
        if scalar == BOOL:
            return f"{a} {'!=' if op == 'xor' else OPS[op].symbol} {b}"
        result = f"{a} {OPS[op].symbol} {b}"
        return wrapped(scalar, result) if op in ("add", "sub", "mul") else result

    def _shift(self, node: Apply, a: str, b: str) -> str:
        """Returns a shift; its count is taken modulo the width."""
        most, count = node.type.bits - 1, node.args[1]
        by = f"{int(count.value) & most}u" if isinstance(count, Const) else f"(u32({b}) & {most}u)"
        shifted = f"{a} {OPS[node.op].symbol} {by}"
        return wrapped(node.type, shifted) if node.op == "shl" else shifted

    def _unary(self, op: str, scalar: Scalar, a: str) -> str:
        if op == "not":
            if scalar == BOOL:
                return f"!{a}"
            masked = is_narrow(scalar) and scalar.kind == "u"
            return f"~{a} & {mask(scalar)}" if masked else f"~{a}"
        if op == "neg":
            if scalar.kind != "u":
                return wrapped(scalar, f"-{a}")
            return wrapped(scalar, f"0{scalar.suffix} - {a}")
        if op == "abs" and scalar.kind == "u":
            return a
        if op == "abs" and is_narrow(scalar):
            return wrapped(scalar, f"abs({a})")
        if op in ("popcount", "clz", "reverse_bits"):
            return self._bitwise(op, scalar, a)
        return f"{op}({a})"

    def _bitwise(self, op: str, scalar: Scalar, a: str) -> str:
        """Returns an operation on the bits of an integer; the builtins take 32 of them."""
        if scalar.bits == 64:
            return self.call(f"{op}_{scalar.wgsl}", a)
        if is_narrow(scalar) and scalar.kind == "s":
            counted = self._bitwise(op, _UNSIGNED[scalar], f"({self.bitcast(a, scalar, U32)})")
            return wrapped(scalar, f"bitcast<i32>({counted})")
        if op == "popcount":
            return f"countOneBits({a})"
        if op == "clz":
            zeros = f"countLeadingZeros({a})"
            return f"{zeros} - {32 - scalar.bits}u" if is_narrow(scalar) else zeros
        reversed_ = f"reverseBits({a})"
        return f"{reversed_} >> {32 - scalar.bits}u" if is_narrow(scalar) else reversed_

    def _compare(self, node: Apply, args: list[str]) -> str:
        op, scalar = node.op, node.args[0].type
        a, b = args
        if not scalar.is_float:
            return self.compare(op, scalar, a, b)
        pairs = zip(node.args, args, strict=True)
        suspects = dict.fromkeys(text for arg, text in pairs if _may_be_nan(arg))
        tests = [self.call(f"nan_{scalar.wgsl}", text) for text in suspects]
        if node.args[0] is node.args[1]:
            always = "true" if op in ("eq", "le", "ge") else "false"
            tests = tests or ["false"]
            return f"!{tests[0]}" if always == "true" else tests[0] if op == "ne" else "false"
        test = f"({a} {OPS[op].symbol} {b})"
        if op == "ne":
            return " | ".join([test, *tests])
        return " & ".join([test, *(f"!{item}" for item in tests)])

    def compare(self, op: str, scalar: Scalar, a: str, b: str) -> str:
        """Returns a comparison of integers or bools."""
        if scalar.bits != 64:
            return f"{a} {OPS[op].symbol} {b}"
        name, turned, negated = _COMPARISONS[op]
        called = self.call(f"{name}_{scalar.wgsl}", *((b, a) if turned else (a, b)))
        return f"!{called}" if negated else called

    # -- conversions -----------------------------------------------------------------------------

    def convert(self, a: str, source: Scalar, to: Scalar) -> str:
        """Returns a conversion: floats round to even and saturate, integers wrap."""
        type = to.wgsl
        if source == to:
            return a
        if source.is_storage or to.is_storage:
            return self.call(f"{source.name}_to_{to.name}", a)
        if to == BOOL:
            zero = literal(source, 0)
            if source.is_float:
                return f"({a} != {zero}) | {self.call(f'nan_{source.wgsl}', a)}"
            return self.compare("ne", source, a, zero)
        if source == BOOL:
            number = f"select({literal(to, 0)}, {literal(to, 1)}, {a})"
            # Otherwise the driver turns infinity times this into 0.
            return self.call(f"hidden_{type}", number) if to.is_float else number
        if source.is_float and to.is_integer:
            return self.call(f"{source.wgsl}_to_{to.name}", a)
        if is_narrow(to) and (source.bits > to.bits or source.kind != to.kind):
            if to.kind == "u":
                return f"u32({a}) & {mask(to)}"
            return wrapped(to, a if source.wgsl == type else f"i32({a})")
        if to == S64 and source.kind == "u" and source != U64:
            return f"i64(u64({a}))"  # i64(…) would sign-extend a u32
        if to == U64 and source.kind == "s" and source != S64:
            return f"bitcast<u64>(i64({a}))"
        return a if type == source.wgsl else f"{type}({a})"

    def bitcast(self, a: str, source: Scalar, to: Scalar) -> str:
        """Returns the same bits as another type; those of narrow ones are in the lower part."""
        if source.bits < 32 and source.wgsl != to.wgsl:
            bits = f"bitcast<{to.wgsl}>({a})"
            return wrapped(to, bits) if to.kind == "s" else f"{bits} & {mask(_UNSIGNED[source])}"
        return a if source.wgsl == to.wgsl else f"bitcast<{to.wgsl}>({a})"


def _hides(node: Apply) -> bool:
    """Whether the second operand must be hidden from the driver.

    It would evaluate inf - inf, 0 * NaN, and divisions by a zero that it can prove, to 0.
    """
    a, b = node.args
    if node.op == "div":
        return not isinstance(b, Const) or _is_zero(b)
    return (node.op == "sub" and a is b) or (node.op == "mul" and (_is_zero(a) or _is_zero(b)))


def _is_zero(value: Value) -> bool:
    return isinstance(value, Const) and value.value == 0


def _may_be_nan(value: Value) -> bool:
    if isinstance(value, Const):
        return math.isnan(value.value)
    converted = isinstance(value, Apply) and value.op == CONVERT
    return not (converted and not value.args[0].type.is_float)  # type: ignore[attr-defined]
