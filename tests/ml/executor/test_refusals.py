"""What is refused where ONNX Runtime refuses it too, and what borders on it."""

from __future__ import annotations

import numpy as np
import pytest
from ml.executor.graphs import check, graph_of, node, sample

from dala import errors, ml

CASES = {
    "squeeze_of_two": ([node("Squeeze", "x a", "y")], {"a": [0]}, r"Squeeze of y.*axes \[0\]"),
    "gather_outside": ([node("Gather", "x i", "y")], {"i": [5]}, r"5 to 5 lie outside of \(2,\)"),
    "gather_of_constants": ([node("Gather", "c i", "g"), node("Add", "x g", "y")],
                            {"c": sample(2, 3), "i": [5]}, "Gather of g"),
    "reflect_beyond": ([node("Pad", "x p", "y", mode="reflect")], {"p": [0, 3, 0, 0]},
                       "more than 3 elements"),
    "gemm_of_another_k": ([node("Gemm", "x w", "y")], {"w": sample(4, 5)}, "3 columns, .* 4 rows"),
    "broadcast": ([node("Add", "x b", "y")], {"b": sample(2, 2)}, r"\(2, 3\) and \(2, 2\)"),
    "broadcast_of_constants": ([node("Add", "b c", "d"), node("Add", "x d", "y")],
                               {"b": sample(2, 2), "c": sample(3)}, "Add of d"),
    "range_by_nothing": ([node("Range", "a b c", "r"), node("Add", "x r", "y")],
                         dict.fromkeys("abc", np.float32(0)), "Range of r"),
    "a_vast_constant": ([node("ConstantOfShape", "s", "c"), node("Size", "c", "n"),
                         node("Cast", "n", "f", to=1), node("Add", "x f", "y")],
                        {"s": [2**42]}, r"ConstantOfShape of c.*4398046511104"),
    "dropout_in_training": ([node("Dropout", "x r t", "y")],
                            {"r": np.float32(0.5), "t": np.array(True)}, "training mode"),
    "expand_of_another_size": ([node("Expand", "x s", "y")], {"s": [2, 4]},
                               r"\(2, 3\) and \(2, 4\)"),
    "top_k_of_too_few": ([node("TopK", "x k", "y i")], {"k": [4]}, "4 of axis 1"),
    "scatter_outside": ([node("ScatterElements", "x i u", "y")],
                        {"i": [[7, 0, 0]], "u": sample(1, 3)}, "7 lie outside"),
    "an_attribute_left_out": ([node("Concat", "x x", "c"), node("Cast", "c", "y", to=1)], {},
                              r"Concat of c.*lacks its attribute"),
    "an_attribute_of_another_kind": ([node("Transpose", "x", "y", perm="01")], {},
                                     "Transpose of y"),
    "an_unknown_mode": ([node("Gelu", "x", "g", approximate="cubic"),
                         node("Cast", "g", "y", to=1)], {}, "cubic.*'none' or 'tanh'"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_fit_is_refused_by_name(case):
    nodes, constants, says = CASES[case]
    x = sample(2, 3)
    model = graph_of(nodes, {"x": x}, constants, opset=20, shapes={"x": ["n", "m"]})
    with pytest.raises((errors.LimitError, errors.ModelError, errors.ShapeError), match=says):
        ml.gpu.load_model(model, engine="dala").outputs([x])


def test_planes_that_do_not_fit_are_refused():
    x = sample(1, 3, 2, 2)
    for made, constants, says in (
        (node("DepthToSpace", "x", "y", blocksize=2), {}, "3 channels are no blocks of 2 × 2"),
        (node("Conv", "x w", "y"), {"w": sample(4, 5, 1, 1)}, "for 5 channels"),
    ):
        model = graph_of([made], {"x": x}, constants)
        with pytest.raises(errors.ShapeError, match=says):
            ml.gpu.load_model(model, engine="dala").outputs([x])


def test_infinity_is_the_largest_of_itself_and_the_mean_of_nothing_is_zero(device):
    x = np.full((1, 1, 2, 2), -np.inf, np.float32)
    check(graph_of([node("MaxPool", "x", "y", kernel_shape=[2, 1])], {"x": x}), {"x": x})
    nothing = np.zeros((2, 0, 3), np.float32)
    for name in ("ReduceMean", "ReduceMax", "ReduceSum"):
        model = graph_of([node(name, "x", "y", axes=[1])], {"x": nothing}, opset=11)
        check(model, {"x": nothing})


def test_bounds_of_older_opsets_may_be_left_out(device):
    x = np.array([-np.inf, -1.0, np.inf], np.float32)
    check(graph_of([node("Clip", "x", "y", max=0.5)], {"x": x}, opset=9), {"x": x})
