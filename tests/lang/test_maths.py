"""How near the maths of the language comes to the true value, and what it makes of special values.

A ULP is the distance of two neighbouring numbers at the true value. Near the zeros of a function of
angles, where that distance is next to nothing, the absolute error counts instead.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from reference.interpreter import run

from dala.ir.types import DTYPES
from dala.lang.language_names import NAMES
from dala.lang.lower import Definition, Specialization
from dala.lang.source import from_text

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, at the edges

INF, NAN = math.inf, math.nan
TWO_ARGUMENTS = ("pow", "atan2", "hypot", "fmod")


@cache
def lowered(name, dtype):
    names = "x, y" if name in TWO_ARGUMENTS else "x"
    source = from_text(f"def k({names}):\n    return {name}({names})", NAMES, "<maths>")
    buffer = (DTYPES[dtype], 1, None)
    return Definition(source).lower(Specialization((buffer,) * len(names.split(", ")), (buffer,)))


def compute(name, dtype, *args):
    kind = DTYPES[dtype].numpy
    inputs = {key: np.asarray(arg, kind) for key, arg in zip("xy", args, strict=False)}
    return run(lowered(name, dtype), inputs, {}, inputs["x"].shape, kind)


def dense(dtype, low, high, count=20_000):
    """Numbers from 0 < low to high, evenly by their bits, both ends included."""
    kind = DTYPES[dtype].numpy
    whole = np.int32 if dtype == "f32" else np.int64
    first, last = (int(kind.type(end).view(whole)) for end in (low, high))
    steps = np.linspace(0, 1, count, dtype=np.longdouble) * (last - first)
    return (first + steps.astype(np.int64)).astype(whole).view(kind)


def around(numbers):
    return np.concatenate([numbers, -numbers])


def errors(got, true):
    """The distance from the true values in ULPs of the result's dtype."""
    info = np.finfo(got.dtype)
    _, exponent = np.frexp(true)
    lowest = info.minexp - info.nmant
    ulp = np.ldexp(np.ones_like(true), np.maximum(exponent - 1 - info.nmant, lowest))
    same = (got == true.astype(got.dtype)) | (np.isnan(got) & np.isnan(true))
    return np.where(same, 0, np.abs(got.astype(true.dtype) - true) / ulp)


def vectorised(function):
    return lambda x: np.array([function(float(item)) for item in x], np.longdouble)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


TRUE = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "sigmoid": sigmoid,
    "erf": vectorised(math.erf),
    "erfc": vectorised(math.erfc),
}
ANY_POSITIVE = {"f32": (1e-45, 3.4e38), "f64": (5e-324, 1.7e308)}
TINY = {"f32": 1e-45, "f64": 1e-300}
# The function, the largest argument (of either sign, unless it is None: then all positive numbers
# are tried, where acosh has its NaNs), the ULPs allowed.
BOUNDS = [
    *(("exp", "f32", 104.0, 1.0), ("exp", "f64", 746.0, 1.0)),
    *(("exp2", "f32", 151.0, 1.2), ("exp2", "f64", 1076.0, 1.3)),
    *(("log", "f32", None, 1.3), ("log", "f64", None, 1.0)),
    *(("log2", "f32", None, 1.4), ("log2", "f64", None, 2.0)),
    *(("log10", "f32", None, 1.4), ("log10", "f64", None, 2.0)),
    *(("sin", "f32", 8192.0, 2.0), ("sin", "f64", 1e8, 2.5)),
    *(("cos", "f32", 8192.0, 2.1), ("cos", "f64", 1e8, 2.5)),
    *(("tan", "f32", 8192.0, 4.0), ("tan", "f64", 1e8, 4.0)),
    *(("asin", "f32", 1.0, 2.5), ("asin", "f64", 1.0, 2.5)),
    *(("acos", "f32", 1.0, 1.5), ("acos", "f64", 1.0, 1.5)),
    *(("atan", "f32", 3.4e38, 1.7), ("atan", "f64", 1e300, 2.5)),
    *(("sinh", "f32", 89.41, 1.7), ("sinh", "f64", 710.47, 1.7)),
    *(("cosh", "f32", 89.41, 1.5), ("cosh", "f64", 710.47, 1.5)),
    *(("asinh", "f32", 3.4e38, 2.7), ("asinh", "f64", 1.7e308, 2.3)),
    *(("acosh", "f32", None, 1.7), ("acosh", "f64", None, 1.7)),
    *(("atanh", "f32", 1.0, 1.5), ("atanh", "f64", 1.0, 1.5)),
    *(("cbrt", "f32", 3.4e38, 1.0), ("cbrt", "f64", 1.7e308, 1.0)),
    *(("tanh", "f32", 20.0, 2.0), ("tanh", "f64", 40.0, 2.5)),
    *(("sigmoid", "f32", 104.0, 2.0), ("sigmoid", "f64", 745.0, 2.5)),
    *(("erf", "f32", 5.0, 2.0), ("erf", "f64", 7.0, 3.0)),
    *(("erfc", "f32", 9.19, 8.5), ("erfc", "f64", 26.5, 32.0)),
]


@pytest.mark.parametrize(("name", "dtype", "limit", "allowed"), BOUNDS)
def test_a_function_is_as_near_as_promised(name, dtype, limit, allowed):
    if limit is None:
        x = np.concatenate([dense(dtype, *ANY_POSITIVE[dtype]), dense(dtype, 0.5, 2.0)])
    else:
        usual = np.linspace(-min(limit, 10.0), min(limit, 10.0), 20_001)
        x = np.concatenate([around(dense(dtype, TINY[dtype], limit)), usual])
    x = x.astype(DTYPES[dtype].numpy)
    slow = name.startswith("erf")
    x = x[:: 10 if slow else 1]
    got, true = compute(name, dtype, x), TRUE[name](x.astype(np.longdouble))
    found = errors(got, true)
    if name in ("sin", "cos", "tan"):
        near_zero = np.abs(true) < 0.01
        assert np.abs(got - true)[near_zero].max() < np.finfo(got.dtype).eps / 50
        found = found[~near_zero]
    worst = int(np.argmax(found))
    assert found[worst] <= allowed, f"{name}({x[worst]!r}) = {got[worst]!r}: {found[worst]:.2f} ULP"


@pytest.mark.parametrize(("dtype", "allowed"), [("f32", 4.0), ("f64", 64.0)])
def test_pow_is_near_wherever_the_result_is_a_number(dtype, allowed):
    rng = np.random.default_rng(5)
    info = np.finfo(DTYPES[dtype].numpy)
    near = 1 + np.exp2(rng.uniform(-info.nmant, -1, 30_000)) * rng.choice([-1, 1], 30_000)
    x = np.concatenate([dense(dtype, *ANY_POSITIVE[dtype], 30_000), dense(dtype, 0.5, 2.0), near])
    x = x.astype(info.dtype)
    logarithm = np.log2(x.astype(np.float64))
    # Exponents for results all over the range, those near its ends and below it included.
    wanted = rng.uniform(info.minexp - info.nmant, info.maxexp - 0.01, x.shape)
    y = (wanted / np.where(logarithm == 0, 1, logarithm)).astype(info.dtype)
    true = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    found = errors(compute("pow", dtype, x, y), true)
    worst = int(np.argmax(found))
    assert found[worst] <= allowed, f"pow({x[worst]!r}, {y[worst]!r}): {found[worst]:.2f} ULP"


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_atan2_is_near_in_every_quadrant(dtype):
    rng = np.random.default_rng(6)
    magnitudes = dense(dtype, *ANY_POSITIVE[dtype], 20_000)
    y = np.concatenate([rng.permutation(magnitudes), rng.uniform(0, 2, 20_000)])
    x = np.concatenate([rng.permutation(magnitudes), rng.uniform(0, 2, 20_000)])
    y, x = (item * rng.choice([-1, 1], item.shape) for item in (y, x))
    y, x = y.astype(DTYPES[dtype].numpy), x.astype(DTYPES[dtype].numpy)
    true = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    assert errors(compute("atan2", dtype, y, x), true).max() <= 3.0


def pairs(dtype):
    """Numbers of all sizes: pairs far apart, near each other, and a few bits apart."""
    rng = np.random.default_rng(8)
    kind = DTYPES[dtype].numpy
    x, far = (rng.permutation(around(dense(dtype, *ANY_POSITIVE[dtype]))) for _ in range(2))
    near, below = x * rng.uniform(0.1, 3, x.shape), x * rng.uniform(1e-4, 0.1, x.shape)
    return np.tile(x, 3).astype(kind), np.concatenate([far, near, below]).astype(kind)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_hypot_is_near_for_numbers_of_all_sizes(dtype):
    x, y = pairs(dtype)
    true = np.hypot(x.astype(np.longdouble), y.astype(np.longdouble))
    assert errors(compute("hypot", dtype, x, y), true).max() <= 1.2


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_fmod_is_exact_for_numbers_of_all_sizes(dtype):
    x, y = pairs(dtype)
    got, expected = compute("fmod", dtype, x, y), np.fmod(x, y)
    assert np.array_equal(got, expected, equal_nan=True)
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(got)[known], np.signbit(expected)[known])


SPECIAL = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.0, -2.0]
BEHAVIOUR = {
    "exp": [1, 1, INF, 0, NAN, math.e, 1 / math.e, math.e**2, math.e**-2],
    "exp2": [1, 1, INF, 0, NAN, 2, 0.5, 4, 0.25],
    "log": [-INF, -INF, INF, NAN, NAN, 0, NAN, math.log(2), NAN],
    "log2": [-INF, -INF, INF, NAN, NAN, 0, NAN, 1, NAN],
    "log10": [-INF, -INF, INF, NAN, NAN, 0, NAN, math.log10(2), NAN],
    "sin": [0, 0, NAN, NAN, NAN, *(math.sin(x) for x in SPECIAL[5:])],
    "cos": [1, 1, NAN, NAN, NAN, *(math.cos(x) for x in SPECIAL[5:])],
    "tan": [0, 0, NAN, NAN, NAN, *(math.tan(x) for x in SPECIAL[5:])],
    "asin": [0, -0.0, NAN, NAN, NAN, math.pi / 2, -math.pi / 2, NAN, NAN],
    "acos": [math.pi / 2, math.pi / 2, NAN, NAN, NAN, 0, math.pi, NAN, NAN],
    "atan": [0, -0.0, math.pi / 2, -math.pi / 2, NAN, *(math.atan(x) for x in SPECIAL[5:])],
    "tanh": [0, -0.0, 1, -1, NAN, *(math.tanh(x) for x in SPECIAL[5:])],
    "sinh": [0, -0.0, INF, -INF, NAN, *(math.sinh(x) for x in SPECIAL[5:])],
    "cosh": [1, 1, INF, INF, NAN, *(math.cosh(x) for x in SPECIAL[5:])],
    "asinh": [0, -0.0, INF, -INF, NAN, *(math.asinh(x) for x in SPECIAL[5:])],
    "acosh": [NAN, NAN, INF, NAN, NAN, 0, NAN, math.acosh(2), NAN],
    "atanh": [0, -0.0, NAN, NAN, NAN, INF, -INF, NAN, NAN],
    "cbrt": [0, -0.0, INF, -INF, NAN, *(math.cbrt(x) for x in SPECIAL[5:])],
    "sigmoid": [0.5, 0.5, 1, 0, NAN, *(1 / (1 + math.exp(-x)) for x in SPECIAL[5:])],
    "erf": [0, -0.0, 1, -1, NAN, *(math.erf(x) for x in SPECIAL[5:])],
    "erfc": [1, 1, 0, 2, NAN, *(math.erfc(x) for x in SPECIAL[5:])],
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", BEHAVIOUR)
def test_special_values_give_what_they_should(name, dtype):
    got, expected = compute(name, dtype, SPECIAL), np.array(BEHAVIOUR[name])
    near = 1e-6 if dtype == "f32" else 1e-14
    assert np.allclose(got, expected, rtol=near, atol=0, equal_nan=True), (got, expected)
    exact = np.isin(expected, [0, 1, -1, 2, 0.5, 4, 0.25]) | np.isinf(expected)
    assert got[exact].tolist() == expected[exact].tolist()
    if name in ("asin", "atan", "sinh", "tanh", "asinh", "atanh", "cbrt", "erf"):
        assert np.signbit(got[:2]).tolist() == [False, True]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_results_grow_to_infinity_and_fade_to_zero(dtype):
    info = np.finfo(DTYPES[dtype].numpy)
    top, bottom = info.maxexp * math.log(2), (info.minexp - info.nmant) * math.log(2)
    assert compute("exp", dtype, [top * 1.0001, 1e30]).tolist() == [INF, INF]
    assert np.isfinite(compute("exp", dtype, [top * 0.9999])).all()
    assert compute("exp", dtype, [bottom * 1.01, -1e30]).tolist() == [0, 0]
    assert (compute("exp", dtype, [bottom * 0.999]) > 0).all()
    assert compute("exp2", dtype, [info.maxexp, info.minexp - info.nmant]).tolist() == [
        INF,
        info.smallest_subnormal,
    ]
    assert compute("erfc", dtype, [30.0, 1e30, -30.0]).tolist() == [0, 0, 2]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_sine_stays_one_however_large_its_argument(dtype):
    x = around(dense(dtype, 1.0, ANY_POSITIVE[dtype][1]))
    for name in ("sin", "cos"):
        assert np.abs(compute(name, dtype, x)).max() <= 1.0
    assert compute("cos", dtype, [0.0]).tolist() == [1.0]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_powers_of_two_have_exact_logarithms(dtype):
    info = np.finfo(DTYPES[dtype].numpy)
    whole = np.arange(info.minexp - info.nmant, info.maxexp)
    x = np.ldexp(info.dtype.type(1), whole)
    assert np.array_equal(compute("log2", dtype, x), whole)
    assert np.array_equal(compute("exp2", dtype, whole), x)
    assert np.array_equal(compute("pow", dtype, np.full(whole.shape, 2.0), whole), x)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_functions_of_two_treat_every_pair_of_special_values_as_numpy_does(dtype):
    kind = DTYPES[dtype].numpy
    info = np.finfo(kind)
    numbers = [0, 1, 2, 0.5, 3, 1e10, INF, info.max, info.smallest_subnormal, 1 + info.eps]
    numbers += [1 - info.epsneg, 2.0 ** (info.nmant + 1) - 1]
    values = np.array([*numbers, *(-item for item in numbers), NAN], kind)
    x, y = (item.ravel() for item in np.meshgrid(values, values))
    near = 1e-6 if dtype == "f32" else 1e-14
    functions = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod}
    for name, reference in functions.items():
        got, expected = compute(name, dtype, x, y), reference(x, y)
        # Where NumPy makes 1 of a NaN, so does the language for the exponent 0 only.
        expected = np.where((name == "pow") & (x == 1) & np.isnan(y), NAN, expected)
        alike = np.isclose(got, expected, rtol=near, atol=0, equal_nan=True)
        alike &= np.isnan(expected) | (np.signbit(got) == np.signbit(expected))
        i = int(np.argmin(alike))
        assert alike.all(), f"{name}({x[i]}, {y[i]}) = {got[i]}, not {expected[i]}"


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", [*BEHAVIOUR, *TWO_ARGUMENTS])
def test_a_constant_argument_gives_the_same_bits_as_a_value(name, dtype):
    arguments = [0.0, 0.3, -7.5, 1e30, -INF, NAN]
    second = ", 0.7" if name in TWO_ARGUMENTS else ""
    buffer = (DTYPES[dtype], 1, None)
    for number in arguments:
        literal = f"{dtype}(({number!r}))".replace("inf", "1e999").replace("nan", "1e999 * 0.0")
        source = f"def k(x):\n    return {name}({literal}{second}) + 0.0 * x"
        program = Definition(from_text(source, NAMES, "<constant>")).lower(
            Specialization((buffer,), (buffer,))
        )
        zero = np.zeros(1, DTYPES[dtype].numpy)
        constant = run(program, {"x": zero}, {}, (1,), zero.dtype)
        source = f"def k(x):\n    return {name}(x{second}) + 0.0 * 1.0"
        program = Definition(from_text(source, NAMES, "<value>")).lower(
            Specialization((buffer,), (buffer,))
        )
        value = run(program, {"x": zero + number}, {}, (1,), zero.dtype)
        assert np.array_equal(constant, value, equal_nan=True), (number, constant, value)


@pytest.mark.parametrize("name", [*BEHAVIOUR, "pow", "atan2", "hypot"])
def test_maths_has_no_branches_and_no_calls(name):
    for dtype in ("f32", "f64"):
        kinds = {type(item).__name__ for item in lowered(name, dtype).body.statements}
        assert kinds <= {"Apply", "Load"}
