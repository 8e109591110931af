"""Our own WGSL library functions, one version for each type that needs it."""

from __future__ import annotations

import numpy as np

from dala.base.record import value
from dala.ir.types import F32, F64, S8, S16, S32, S64, U8, U16, U32, U64, Scalar


@value
class Function:
    """The text of a function, and the names of the functions it calls."""

    text: str
    needs: tuple[str, ...] = ()


def _floats() -> dict[str, Function]:
    found = {}
    for type, bits, top, inf, suffix in (
        ("f32", "u32", "0x7fffffff", "0x7f800000", "u"),
        ("f64", "u64", "0x7fffffffffffffff", "0x7ff0000000000000", "lu"),
    ):
        zero = "args.zero" if type == "f32" else "u64(args.zero)"
        found[f"nan_{type}"] = Function(
            f"fn nan_{type}(x: {type}) -> bool {{\n"
            f"  return (bitcast<{bits}>(x) & {top}{suffix}) > {inf}{suffix};\n}}"
        )
        found[f"hidden_{type}"] = Function(
            f"fn hidden_{type}(x: {type}) -> {type} {{\n"
            f"  return bitcast<{type}>(bitcast<{bits}>(x) ^ {zero});\n}}"
        )
        for op in ("min", "max"):
            found[f"{op}_{type}"] = Function(
                f"fn {op}_{type}(a: {type}, b: {type}) -> {type} {{\n"
                f"  return select(select({op}(a, b), b, nan_{type}(b)), a, nan_{type}(a));\n}}",
                (f"nan_{type}",),
            )
    return found


def _conversions() -> dict[str, Function]:
    """Returns float-to-integer conversions: rounded to even, saturating, NaN as 0."""
    found = {}
    for source in (F32, F64):
        mark = source.suffix
        for to in (S32, S64, U32, U8, S8, S16, U16, U64):
            type = to.wgsl
            most = _largest_below(source, to.highest + 1)
            name = f"{source}_to_{to}"
            found[name] = Function(
                f"fn {name}(x: {source}) -> {type} {{\n"
                f"  let r = round(x);\n"
                f"  let i = {type}(clamp(r, {source.numpy.type(to.lowest)!s}{mark}, "
                f"{source.numpy.type(most)!s}{mark}));\n"
                f"  let s = select(i, {to.highest}{to.suffix}, "
                f"r >= {source.numpy.type(to.highest + 1)!s}{mark});\n"
                f"  return select(s, 0{to.suffix}, nan_{source}(r));\n}}",
                (f"nan_{source}",),
            )
    return found


def _largest_below(scalar: Scalar, limit: int) -> float:
    return float(np.nextafter(scalar.numpy.type(limit), scalar.numpy.type(0)))


def _words() -> dict[str, Function]:
    """Returns operations by halves of words: Mesa 22.3 gets comparisons of i64 wrong."""
    return {
        "eq_i64": Function(
            "fn eq_i64(a: i64, b: i64) -> bool {\n"
            "  return (u32(a) == u32(b)) & (i32(a >> 32u) == i32(b >> 32u));\n}"
        ),
        "eq_u64": Function(
            "fn eq_u64(a: u64, b: u64) -> bool {\n"
            "  return (u32(a) == u32(b)) & (u32(a >> 32u) == u32(b >> 32u));\n}"
        ),
        "lt_u64": Function(
            "fn lt_u64(a: u64, b: u64) -> bool {\n"
            "  let high_a = u32(a >> 32u);\n  let high_b = u32(b >> 32u);\n"
            "  return (high_a < high_b) | ((high_a == high_b) & (u32(a) < u32(b)));\n}"
        ),
        **{
            f"{op}_u64": Function(
                f"fn {op}_u64(a: u64) -> u64 {{\n"
                f"  return bitcast<u64>({op}_i64(bitcast<i64>(a)));\n}}",
                (f"{op}_i64",),
            )
            for op in ("popcount", "clz", "reverse_bits")
        },
        "mulhi_u32": Function(
            "fn mulhi_u32(a: u32, b: u32) -> u32 {\n"
            "  let low = (a & 0xffffu) * (b & 0xffffu);\n"
            "  let left = (a >> 16u) * (b & 0xffffu) + (low >> 16u);\n"
            "  let right = (a & 0xffffu) * (b >> 16u) + (left & 0xffffu);\n"
            "  return (a >> 16u) * (b >> 16u) + (left >> 16u) + (right >> 16u);\n}"
        ),
        "popcount_i64": Function(
            "fn popcount_i64(a: i64) -> i64 {\n"
            "  return i64(u64(countOneBits(u32(a)) + countOneBits(u32(a >> 32u))));\n}"
        ),
        "clz_i64": Function(
            "fn clz_i64(a: i64) -> i64 {\n"
            "  let high = u32(a >> 32u);\n"
            "  let low = 32u + countLeadingZeros(u32(a));\n"
            "  return i64(u64(select(countLeadingZeros(high), low, high == 0u)));\n}"
        ),
        "reverse_bits_i64": Function(
            "fn reverse_bits_i64(a: i64) -> i64 {\n"
            "  let high = u64(reverseBits(u32(a)));\n"
            "  return bitcast<i64>((high << 32u) | u64(reverseBits(u32(a >> 32u))));\n}"
        ),
        "lt_i64": Function(
            "fn lt_i64(a: i64, b: i64) -> bool {\n"
            "  let high_a = i32(a >> 32u);\n  let high_b = i32(b >> 32u);\n"
            "  return (high_a < high_b) | ((high_a == high_b) & (u32(a) < u32(b)));\n}"
        ),
    }


def _divisions() -> dict[str, Function]:
    """Returns floor divisions; division by zero gives 0, and the lowest integer by -1 wraps."""
    found = {}
    for op, symbol in (("floordiv", "/"), ("mod", "%")):
        found[f"{op}_u32"] = Function(
            f"fn {op}_u32(a: u32, b: u32) -> u32 {{\n"
            f"  return select(a {symbol} max(b, 1u), 0u, b == 0u);\n}}"
        )
        found[f"{op}_u64"] = Function(
            f"fn {op}_u64(a: u64, b: u64) -> u64 {{\n"
            f"  let is_zero = eq_u64(b, 0lu);\n"
            f"  return select(a {symbol} select(b, 1lu, is_zero), 0lu, is_zero);\n}}",
            ("eq_u64",),
        )
    for type, mark in (("i32", "i"), ("i64", "li")):
        is_zero, is_minus_one, apart = "b == 0i", "b == -1i", "(r != 0i) & ((r ^ b) < 0i)"
        needs: tuple[str, ...] = ()
        if type == "i64":
            is_zero, is_minus_one = "eq_i64(b, 0li)", "eq_i64(b, -1li)"
            apart, needs = "!eq_i64(r, 0li) & lt_i64(r ^ b, 0li)", ("eq_i64", "lt_i64")
        quotient = (
            f"  let is_zero = {is_zero};\n"
            f"  let is_minus_one = {is_minus_one};\n"
            f"  let q = select(a, -a, is_minus_one) / select(b, 1{mark}, is_zero | is_minus_one);\n"
            f"  let r = a - q * select(b, 1{mark}, is_zero);\n"
            f"  let down = {apart};\n"
        )
        for op, exact, rounded in (("floordiv", "q", f"q - 1{mark}"), ("mod", "r", "r + b")):
            found[f"{op}_{type}"] = Function(
                f"fn {op}_{type}(a: {type}, b: {type}) -> {type} {{\n{quotient}"
                f"  return select(select({exact}, {rounded}, down), 0{mark}, is_zero);\n}}",
                needs,
            )
    return found


def _borders() -> dict[str, Function]:
    """Returns the border rules: the element that index i of n reads; n is at least 1."""
    found = {
        "clamp_i32": "min(u32(max(i, 0i)), n - 1u)",
        "clamp_u32": "min(i, n - 1u)",
        "clamp_i64": "u32(min(max(i, 0li), i64(n) - 1li))",
        "wrap_i32": "select(u32(i) % n, n - 1u - u32(~i) % n, i < 0i)",
        "wrap_u32": "i % n",
        "wrap_i64": "u32((i % i64(n) + i64(n)) % i64(n))",
    }
    functions = {}
    for name, text in found.items():
        type = name.split("_")[1]
        functions[name] = Function(f"fn {name}(i: {type}, n: u32) -> u32 {{\n  return {text};\n}}")
    for type in ("i32", "u32", "i64"):
        needs = (f"wrap_{type}",)
        functions[f"mirror_{type}"] = Function(
            f"fn mirror_{type}(i: {type}, n: u32) -> u32 {{\n"
            f"  let period = max(2u * n - 2u, 1u);\n  let m = wrap_{type}(i, period);\n"
            f"  return min(m, period - m);\n}}",
            needs,
        )
        functions[f"reflect_{type}"] = Function(
            f"fn reflect_{type}(i: {type}, n: u32) -> u32 {{\n"
            f"  let m = wrap_{type}(i, 2u * n);\n  return min(m, 2u * n - 1u - m);\n}}",
            needs,
        )
    tests = {
        "i32": "(i >= 0i) & (u32(i) < n)",
        "u32": "i < n",
        "i64": "(i32(i >> 32u) == 0i) & (u32(i) < n)",
    }
    for type, text in tests.items():
        functions[f"inside_{type}"] = Function(
            f"fn inside_{type}(i: {type}, n: u32) -> bool {{\n  return {text};\n}}"
        )
    return functions


def _halves() -> dict[str, Function]:
    """Returns conversions of 16-bit floats, which are their bits; no driver rounds or flushes them.

    WGSL lets `unpack2x16float` flush, and leaves open how `pack2x16float` rounds and overflows.
    """
    return {
        "f16_to_f32": Function(
            "fn f16_to_f32(h: u32) -> f32 {\n"
            "  let rest = h & 0x7fffu;\n  let moved = rest << 13u;\n"
            "  let tiny = bitcast<u32>(f32(rest) * 5.9604645e-8f);\n"
            "  let normal = select(moved + 0x38000000u, tiny, rest < 0x400u);\n"
            "  let found = select(normal, moved | 0x7f800000u, rest >= 0x7c00u);\n"
            "  return bitcast<f32>(((h & 0x8000u) << 16u) | found);\n}"
        ),
        "f32_to_f16": Function(
            "fn f32_to_f16(x: f32) -> u32 {\n"
            "  let bits = bitcast<u32>(x);\n  let size = bits & 0x7fffffffu;\n"
            "  let is_tiny = size < 0x38800000u;\n"
            "  let tiny = u32(round(select(0f, bitcast<f32>(size) * 16777216f, is_tiny)));\n"
            "  let based = size - 0x38000000u;\n"
            "  let normal = (based + 0xfffu + ((based >> 13u) & 1u)) >> 13u;\n"
            "  let finite = select(normal, tiny, is_tiny);\n"
            "  let found = select(finite, 0x7c00u, size >= 0x477ff000u);\n"
            "  let nan = 0x7e00u | ((size >> 13u) & 0x3ffu);\n"
            "  return ((bits >> 16u) & 0x8000u) | select(found, nan, size > 0x7f800000u);\n}"
        ),
        "bf16_to_f32": Function(
            "fn bf16_to_f32(h: u32) -> f32 {\n  return bitcast<f32>(h << 16u);\n}"
        ),
        "f32_to_bf16": Function(
            "fn f32_to_bf16(x: f32) -> u32 {\n"
            "  let bits = bitcast<u32>(x);\n"
            "  let rounded = bits + 0x7fffu + ((bits >> 16u) & 1u);\n"
            "  let is_nan = (bits & 0x7fffffffu) > 0x7f800000u;\n"
            "  return select(rounded, bits | 0x400000u, is_nan) >> 16u;\n}"
        ),
    }


FUNCTIONS = {**_floats(), **_conversions(), **_words(), **_divisions(), **_borders(), **_halves()}
