"""Emits each IR operation as LLVM instructions, on scalars and vectors alike."""

from __future__ import annotations

import numpy as np

from dala.emit.llvm.half import narrowed, widened
from dala.emit.llvm.intervals import surely_fits, surely_rounds_to
from dala.emit.llvm.ir_writer import Operand, Writer, constant, llvm_type
from dala.ir.nodes import Apply
from dala.ir.ops import BITCAST, CONVERT, OPS, SELECT
from dala.ir.types import BOOL, S8, S16, S32, S64, U8, U16, Scalar

_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_ORDER = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_WHOLE = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "roundeven"}
_NARROW = (U8, U16, S8, S16)
_NAMES = {**_WHOLE, "popcount": "ctpop", "reverse_bits": "bitreverse"}


class Ops:
    """Emits operations; each is defined for all operands."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def apply(self, node: Apply, args: tuple[Operand, ...]) -> Operand:
        """Emits an IR operation on emitted operands."""
        scalar = node.args[-1].type
        if node.op == SELECT:
            return self.select(args[0], args[1], args[2])
        if node.op == CONVERT:
            whole = isinstance(node.args[0], Apply) and node.args[0].op in _WHOLE
            to_integer = node.type.is_integer and scalar.is_float
            fits = surely_rounds_to if node.type in _NARROW else surely_fits
            inside = to_integer and fits(node.args[0], node.type)
            return self.convert(args[0], scalar, node.type, whole=whole, fits=inside)
        if node.op == BITCAST:
            to = self.type_like(args[0], llvm_type(node.type))
            return self.emit(args[0], to, f"bitcast {args[0]} to {to}")
        args = self.writer.alike(*args)
        if OPS[node.op].compares:
            return self.compare(node.op, scalar, *args)
        if OPS[node.op].arity == 1:
            return self.unary(node.op, scalar, args[0])
        if node.op == "fma":
            return self.intrinsic("fmuladd", *args)
        return self.binary(node.op, scalar, *args)

    # -- helpers ---------------------------------------------------------------------------------

    def type_like(self, value: Operand, element: str) -> str:
        """Returns the type of `element` with as many lanes as the value."""
        return self.writer.vector_type(element) if value.vector else element

    def emit(self, like: Operand, type: str, text: str) -> Operand:
        return self.writer.emit(type, text, like.vector)

    def number(self, like: Operand, scalar: Scalar, value: bool | int | float) -> Operand:
        """Returns a constant with as many lanes as `like`."""
        number = constant(scalar, value)
        return self.writer.splat(number) if like.vector else number

    def intrinsic(self, name: str, *args: Operand) -> Operand:
        function = f"llvm.{name}.{self.writer.suffix(args[0])}"
        return self.writer.call(function, args[0].type, *args)

    # -- operations ------------------------------------------------------------------------------

    def binary(self, op: str, scalar: Scalar, a: Operand, b: Operand) -> Operand:
        if op in ("min", "max"):
            return self.extreme(op, scalar, a, b)
        if scalar.is_float:
            return self.emit(a, a.type, f"{_FLOAT[op]} {a}, {b.text}")
        if op == "mulhi":
            # In this form it becomes a single vector instruction.
            double = S32 if scalar.bits == 16 else S64
            wide = self.type_like(a, llvm_type(double))
            extend, shift = ("sext", "ashr") if scalar.kind == "s" else ("zext", "lshr")
            a_wide, b_wide = (
                self.emit(item, wide, f"{extend} {item} to {wide}") for item in (a, b)
            )
            product = self.emit(a, wide, f"mul {a_wide}, {b_wide.text}")
            upper = self.emit(
                a, wide, f"{shift} {product}, {self.number(product, double, scalar.bits).text}"
            )
            return self.emit(a, a.type, f"trunc {upper} to {a.type}")
        if op in ("floordiv", "mod"):
            return self._divide(op, scalar, a, b)
        if op in ("shl", "shr"):
            count = self.emit(b, b.type, f"and {b}, {self.number(b, scalar, scalar.bits - 1).text}")
            kind = "shl" if op == "shl" else "ashr" if scalar.kind == "s" else "lshr"
            return self.emit(a, a.type, f"{kind} {a}, {count.text}")
        return self.emit(a, a.type, f"{_INTEGER[op]} {a}, {b.text}")

    def extreme(self, op: str, scalar: Scalar, a: Operand, b: Operand) -> Operand:
        """Emits the minimum or maximum; NaN if either operand is."""
        if scalar.is_float:
            varies = a.text.startswith("%") and b.text.startswith("%")
            if a.vector and varies and not self.writer.has_extremes:
                return self._extreme_vector(op, scalar, a, b)
            return self.intrinsic("minimum" if op == "min" else "maximum", a, b)
        return self.intrinsic(f"{'s' if scalar.kind == 's' else 'u'}{op}", a, b)

    def _extreme_vector(self, op: str, scalar: Scalar, a: Operand, b: Operand) -> Operand:
        """Emits the minimum or maximum by an instruction that neither gives NaN nor orders zeros.

        Floats that are equal have the same bits, but for the sign of zeros; and all bits that are
        set in a NaN or in another float make a NaN.
        """
        nearer = "olt" if op == "min" else "ogt"
        found = self.select(self._compared(nearer, a, b), a, b)
        bits = S32 if scalar.bits == 32 else S64
        wide = self.type_like(a, llvm_type(bits))
        first, second = (self.emit(item, wide, f"bitcast {item} to {wide}") for item in (a, b))
        both = self.binary("or", bits, first, second)
        if op == "max":
            unsigned = self.number(both, bits, (1 << (scalar.bits - 1)) - 1)
            either = self.binary("and", bits, both, unsigned)
            both = self.binary("or", bits, either, self.binary("and", bits, first, second))
        same = self.emit(both, a.type, f"bitcast {both} to {a.type}")
        return self.select(self._compared("ueq", a, b), same, found)

    def ranged(self, op: str, scalar: Scalar, a: Operand, b: Operand) -> Operand:
        """Emits the minimum or maximum of vectors, in which there is no NaN, on AVX-512."""
        count = 512 // scalar.bits
        type, suffix = f"<{count} x {scalar.llvm}>", "ps" if scalar.bits == 32 else "pd"
        name = f"llvm.x86.avx512.mask.range.{suffix}.512"
        control = Operand("4" if op == "min" else "5", "i32")  # the sign is that of the result
        mask = Operand("-1", f"i{count}")
        writer, found = self.writer, []
        for first in range(0, writer.lanes, count):
            picks = ", ".join(f"i32 {first + i}" for i in range(count))
            pair = [
                writer.emit(
                    type, f"shufflevector {item}, {item.type} poison, <{count} x i32> <{picks}>"
                )
                for item in (a, b)
            ]
            undefined = Operand("zeroinitializer", type)
            rounding = Operand("4", "i32")
            found.append(writer.call(name, type, *pair, control, undefined, mask, rounding))
        return writer.joined(found, scalar.llvm)

    def unless_nan(self, inputs: list[Operand], found: Operand, scalar: Scalar) -> Operand:
        """Emits what was found, or NaN where one of the inputs is."""
        ordered: Operand | None = None
        inputs = [self.writer.splat(item) for item in inputs]
        for a, b in zip(inputs[::2], [*inputs[1::2], inputs[-1]], strict=False):
            both = self._compared("ord", a, b)
            ordered = both if ordered is None else self.binary("and", BOOL, ordered, both)
        assert ordered is not None
        return self.select(ordered, found, self.number(found, scalar, float("nan")))

    def _compared(self, kind: str, a: Operand, b: Operand) -> Operand:
        return self.emit(a, self.type_like(a, "i1"), f"fcmp {kind} {a}, {b.text}")

    def unary(self, op: str, scalar: Scalar, a: Operand) -> Operand:
        if op == "not":
            ones = self.number(a, scalar, True if scalar == BOOL else -1)
            return self.emit(a, a.type, f"xor {a}, {ones.text}")
        if op == "neg":
            zero = self.number(a, scalar, 0)
            text = f"fneg {a}" if scalar.is_float else f"sub {a.type} {zero.text}, {a.text}"
            return self.emit(a, a.type, text)
        if op == "abs":
            if scalar.is_float:
                return self.intrinsic("fabs", a)
            if scalar.kind == "u":
                return a
            function = f"llvm.abs.{self.writer.suffix(a)}"
            return self.writer.call(function, a.type, a, Operand("false", "i1"))
        if op == "clz":
            function = f"llvm.ctlz.{self.writer.suffix(a)}"
            return self.writer.call(function, a.type, a, Operand("false", "i1"))
        return self.intrinsic(_NAMES.get(op, op), a)

    def compare(self, op: str, scalar: Scalar, a: Operand, b: Operand) -> Operand:
        if scalar.is_float:
            kind = {"eq": "oeq", "ne": "une"}.get(op) or f"o{_ORDER[op]}"
            text = f"fcmp {kind} {a}, {b.text}"
        else:
            sign = "s" if scalar.kind == "s" else "u"
            kind = op if op in ("eq", "ne") else sign + _ORDER[op]
            text = f"icmp {kind} {a}, {b.text}"
        return self.emit(a, self.type_like(a, "i1"), text)

    def select(self, condition: Operand, a: Operand, b: Operand) -> Operand:
        if condition.vector:
            a, b = self.writer.splat(a), self.writer.splat(b)
        else:
            a, b = self.writer.alike(a, b)
        return self.emit(a, a.type, f"select {condition}, {a}, {b}")

    def _divide(self, op: str, scalar: Scalar, a: Operand, b: Operand) -> Operand:
        """Emits a floor division; division by zero gives 0, and the lowest integer by -1 wraps."""
        zero, one = self.number(a, scalar, 0), self.number(a, scalar, 1)
        by_zero = self.compare("eq", scalar, b, zero)
        divisor = self.select(by_zero, one, b)
        if scalar.kind == "u":
            kind = "udiv" if op == "floordiv" else "urem"
            result = self.emit(a, a.type, f"{kind} {a}, {divisor.text}")
            return self.select(by_zero, zero, result)
        by_minus_one = self.compare("eq", scalar, divisor, self.number(a, scalar, -1))
        safe = self.select(by_minus_one, one, divisor)
        signed = self.select(by_minus_one, self.unary("neg", scalar, a), a)
        quotient = self.emit(a, a.type, f"sdiv {signed}, {safe.text}")
        product = self.emit(a, a.type, f"mul {quotient}, {divisor.text}")
        rest = self.emit(a, a.type, f"sub {a}, {product.text}")
        apart = self.compare("lt", scalar, self.binary("xor", scalar, rest, divisor), zero)
        inexact = self.compare("ne", scalar, rest, zero)
        rounds = self.emit(apart, apart.type, f"and {apart}, {inexact.text}")
        if op == "floordiv":
            lower = self.emit(a, a.type, f"sub {quotient}, {one.text}")
            return self.select(by_zero, zero, self.select(rounds, lower, quotient))
        raised = self.emit(a, a.type, f"add {rest}, {divisor.text}")
        return self.select(by_zero, zero, self.select(rounds, raised, rest))

    # -- conversions -----------------------------------------------------------------------------

    def convert(
        self, a: Operand, source: Scalar, to: Scalar, *, whole: bool = False, fits: bool = False
    ) -> Operand:
        """Emits a conversion; a float may be known to be integral, or to fit.

        One that fits a narrow integer is no NaN, either.
        """
        type = self.type_like(a, llvm_type(to))
        if source == to:
            return a
        if source.is_storage:
            return widened(self, a, source)
        if to.is_storage:
            return narrowed(self, a, to)
        if to == BOOL:
            return self.compare("ne", source, a, self.number(a, source, 0))
        if source.is_float and to.is_float:
            return self.emit(
                a, type, f"{'fpext' if to.bits > source.bits else 'fptrunc'} {a} to {type}"
            )
        if to.is_float:
            kind = "sitofp" if source.kind == "s" else "uitofp"
            return self.emit(a, type, f"{kind} {a} to {type}")
        if source.is_float:
            return self._float_to_integer(a, source, to, whole, fits)
        if to.bits == source.bits:
            return Operand(a.text, type, a.vector)
        if to.bits < source.bits:
            return self.emit(a, type, f"trunc {a} to {type}")
        return self.emit(a, type, f"{'sext' if source.kind == 's' else 'zext'} {a} to {type}")

    def _float_to_integer(
        self, a: Operand, source: Scalar, to: Scalar, whole: bool, fits: bool
    ) -> Operand:
        if to in _NARROW:
            return self._saturated(a, source, to, fits=fits)
        rounded = a if whole else self.intrinsic("roundeven", a)
        type = self.type_like(a, llvm_type(to))
        bounded = rounded
        if not fits:
            # LLVM's saturating conversions do not vectorize on x86.
            least = self.number(a, source, float(to.lowest))
            most = self.number(a, source, _largest_below(source, to.highest + 1))
            bounded = self.select(self.compare("gt", source, rounded, least), rounded, least)
            bounded = self.select(self.compare("lt", source, bounded, most), bounded, most)
        kind = "fptosi" if to.kind == "s" else "fptoui"
        integer = self.emit(a, type, f"{kind} {bounded} to {type}")
        if not fits:
            over = self.compare("ge", source, rounded, self.number(a, source, to.highest + 1))
            integer = self.select(over, self.number(integer, to, to.highest), integer)
        is_nan = self.emit(a, self.type_like(a, "i1"), f"fcmp uno {rounded}, {rounded.text}")
        return self.select(is_nan, self.number(integer, to, 0), integer)

    def _saturated(self, a: Operand, source: Scalar, to: Scalar, *, fits: bool) -> Operand:
        """Emits the conversion of a float to a narrow integer: the nearest one that there is.

        Added to a number so large that its last bit is worth 1, it is rounded to even there.
        """
        bounded = a if fits else self._bounded(a, source, to)
        bits = S32 if source.bits == 32 else S64
        large = 1.5 * 2 ** (23 if source.bits == 32 else 52)
        rounded = self.binary("add", source, bounded, self.number(a, source, large))
        wide = self.type_like(a, llvm_type(bits))
        return self.convert(self.emit(a, wide, f"bitcast {rounded} to {wide}"), bits, to)

    def _bounded(self, a: Operand, source: Scalar, to: Scalar) -> Operand:
        """Emits a float held to the bounds of an integer type; NaN is held to 0."""
        least, most = (self.number(a, source, float(x)) for x in (to.lowest, to.highest))
        if to.kind == "s":
            is_nan = self._compared("uno", a, a)
            a = self.select(is_nan, self.number(a, source, 0.0), a)
        # `ogt` is false for NaN, which thus becomes 0 if that is the least.
        raised = self.select(self.compare("gt", source, a, least), a, least)
        return self.select(self.compare("lt", source, raised, most), raised, most)


def _largest_below(scalar: Scalar, limit: int) -> float:
    return float(np.nextafter(scalar.numpy.type(limit), scalar.numpy.type(0)))
