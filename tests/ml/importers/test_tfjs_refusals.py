"""Graph models of TensorFlow.js that are wrong, and what is said about them; names and weights."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from ml.importers.tfjs_graphs import convert, document, ints, node, placeholder, run, scalar

from dala.errors import ModelError
from dala.ml.importers.tfjs import from_tfjs, shard_names

X = placeholder("x", (1, 4))


def refusal(*args, **options):
    with pytest.raises(ModelError) as caught:
        from_tfjs(*args, **options)
    text = str(caught.value)
    assert text.startswith("TensorFlow.js model ")
    return text


def test_every_unknown_operator_is_named_in_one_message():
    nodes = [X, node("a", "Einsum", "x"), node("b", "Einsum", "a"), node("c", "While", "b")]
    text = refusal(*document(nodes), name="odd")
    assert "'odd'" in text
    assert "Einsum (node 'a' and 1 more)" in text
    assert "While (node 'c')" in text


def test_an_input_that_is_not_there_is_named_with_its_node():
    text = refusal(*document([X, node("y", "Add", "x", "gone")]))
    assert "node 'y' (Add)" in text
    assert "'gone'" in text


@pytest.mark.parametrize(
    "nodes",
    [
        [node("a", "Add", "x", "a")],
        [node("a", "Relu", "b"), node("b", "Relu", "a")],
        [node("y", "Relu", "a"), node("a", "Relu", "b"), node("b", "Add", "x", "a")],
    ],
)
def test_a_cycle_is_named_by_one_of_its_nodes(nodes):
    text = refusal(*document([X, *nodes]))
    assert "cycle" in text
    assert "'a'" in text


def test_a_result_that_a_node_does_not_have_is_refused():
    assert "result 3 of 'a'" in refusal(
        *document([X, node("a", "Relu", "x"), node("b", "Relu", "a:3")])
    )


def test_two_nodes_of_one_name_are_refused():
    assert "'a'" in refusal(*document([X, node("a", "Relu", "x"), node("a", "Neg", "x")]))


def test_a_chain_of_many_nodes_needs_no_deep_stack():
    names = ["x", *(f"n{index}" for index in range(3000))]
    chain = [node(name, "Identity", before) for before, name in pairwise(names)]
    assert len(convert([X, *reversed(chain)]).graph.node) == 1


def test_a_constant_without_weights_is_named():
    assert "node 'k' (Const)" in refusal(
        *document([X, node("k", "Const"), node("y", "Add", "x", "k")])
    )


def weighted(**changes):
    text, shard = document([X, node("y", "Add", "x", "k")], {"k": np.ones(4, np.float32)})
    text["weightsManifest"][0]["weights"][0].update(changes)
    return text, shard


@pytest.mark.parametrize("bytes_given", [0, 15, 17])
def test_shards_of_another_size_are_refused_with_both_sizes(bytes_given):
    text = refusal(weighted()[0], bytes(bytes_given))
    assert f"{bytes_given} bytes" in text
    assert "16" in text


@pytest.mark.parametrize(
    "shape",
    [[2**30, 2**30], [2**31], [0, 2**62], [0, *[2**31 - 1] * 5], [-4], [4.0], "4", [1] * 40],
)
def test_weights_that_claim_an_impossible_shape_are_refused_by_name(shape):
    assert "'k'" in refusal(*weighted(shape=shape))


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "complex64"},
        {"dtype": None},
        {"dtype": ["float32"]},
        {"quantization": {"dtype": "int4"}},
        {"quantization": {"dtype": "uint8", "scale": "1", "min": 0}},
        {"quantization": {"dtype": "uint8", "scale": 10**400, "min": 0}},
        {"quantization": {"dtype": "uint8", "scale": 1.0, "min": float("nan")}},
    ],
)
def test_weights_of_an_unknown_kind_are_refused_by_name(change):
    assert "'k'" in refusal(*weighted(**change))


def test_two_weights_of_one_name_are_refused():
    text, shard = weighted()
    listed = text["weightsManifest"][0]["weights"]
    assert "two of its weights are called 'k'" in refusal(
        {**text, "weightsManifest": [{"weights": listed * 2}]}, shard * 2
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[]", "JSON list"),
        (b"{}", "modelTopology.node"),
        ({"format": "layers-model", "modelTopology": {"model_config": {}}}, "layers"),
        ({"modelTopology": {"node": [1]}}, "node[0]"),
        ({"modelTopology": {"node": [{"op": "Relu"}]}}, "needs a name"),
        ({"modelTopology": {"node": [{"op": "Relu", "name": "a", "input": 1}]}}, "'a'"),
        ({"modelTopology": {"node": [{"op": "Relu", "name": "a", "attr": 1}]}}, "'a'"),
        ({"modelTopology": {"node": [X]}}, "weightsManifest"),
    ],
)
def test_a_topology_of_another_form_is_refused(given, told):
    assert told in refusal(given, b"")


@pytest.mark.parametrize("size", ["many", None, 1e999])
def test_a_size_that_is_no_number_is_refused(size):
    wrong = placeholder("x", (1, 4))
    wrong["attr"]["shape"]["shape"]["dim"][1]["size"] = size
    assert "integers" in refusal(*document([wrong, node("y", "Relu", "x")]))


def test_an_open_size_asks_for_shapes_and_takes_them():
    nodes = [placeholder("x", (-1, -1, 3)), node("y", "Relu", "x")]
    text = refusal(*document(nodes))
    assert "(-1, -1, 3)" in text
    assert "shapes={'x:0': …}" in text
    x = np.ones((1, 5, 3), np.float32)
    for name in ("x", "x:0"):
        assert run(convert(nodes, shapes={name: (1, 5, 3)}), x)[0].shape == (1, 5, 3)
    assert "'z'" in refusal(*document(nodes), shapes={"z": (1, 5, 3)})


@pytest.mark.parametrize(
    ("op", "constants", "told"),
    [
        ("Reshape", [ints(3, 3)], "4 elements"),
        ("ExpandDims", [scalar(5)], "axis 5"),
        ("Tile", [ints(1, 2**30)], "elements"),
        ("Transpose", [ints(0, 0)], "do not fit"),
        ("Slice", [ints(0, 3), ints(1, 4)], "no part"),
        ("StridedSlice", [ints(0), ints(1), ints(0)], "no part"),
        ("Pad", [ints([0, -1], [0, 0])], "from 0 on"),
        ("Pad", [ints([0, 2**31 - 1], [0, 0])], "elements"),
        ("Add", [np.ones(3, np.float32)], "do not fit"),
        ("MatMul", [np.ones((3, 3), np.float32)], "do not fit"),
        ("GatherV2", [ints(0), scalar(2)], "axis 2"),
        ("Add", [ints(1)], "float32 and int32"),
        ("Conv2D", [np.ones((1, 1, 1, 1), np.float32)], "four axes"),
        ("Mul", [], "input size 1"),
        ("Select", [], "not as it should be"),
    ],
)
def test_a_node_whose_inputs_do_not_fit_is_named(op, constants, told):
    weights = {f"k{place}": array for place, array in enumerate(constants)}
    text = refusal(*document([X, node("y", op, "x", *weights)], weights))
    assert f"node 'y' ({op})" in text
    assert told in text


def test_a_range_that_never_ends_is_refused():
    weights = {"a": np.float32(0), "b": np.float32(5), "c": np.float32(0)}
    text = refusal(*document([X, node("y", "Range", *weights)], weights))
    assert "node 'y' (Range): its step is 0" in text


def test_a_wrong_attribute_is_named():
    wrong = node("y", "Cast", "x", DstT="DT_HALF")
    assert "DstT is 'DT_HALF'" in refusal(*document([X, wrong]))
    wrong = node("y", "Pack", "x", axis=0)
    wrong["attr"]["axis"] = {"i": "zero"}
    assert "attribute axis is 'zero'" in refusal(*document([X, wrong]))


def test_quantized_weights_are_restored():
    half = np.array([0.5, -2, 3, 65504], np.float16)
    text, _ = weighted(quantization={"dtype": "float16"})
    x = np.zeros((1, 4), np.float32)
    np.testing.assert_array_equal(run(from_tfjs(text, half.tobytes()), x)[0][0], half)
    for dtype, limit in ((np.uint8, 255), (np.uint16, 65535)):
        levels = np.array([0, 1, 7, limit], dtype)
        text, _ = weighted(quantization={"dtype": dtype.__name__, "scale": 0.01, "min": -1.5})
        wanted = (levels * 0.01 - 1.5).astype(np.float32)
        np.testing.assert_array_equal(run(from_tfjs(text, levels.tobytes()), x)[0][0], wanted)


def test_weights_may_lie_across_shards():
    text, shard = weighted()
    text["weightsManifest"][0]["paths"] = ["a.bin", "b.bin"]
    assert shard_names(text) == ["a.bin", "b.bin"]
    assert from_tfjs(text, [shard[:5], shard[5:]]) == from_tfjs(text, shard)


def test_inputs_and_outputs_are_called_as_the_signature_calls_them():
    nodes = [placeholder("a", (2,)), placeholder("b", (2,)), node("y", "Sub", "a", "b")]
    signature = {
        "inputs": {"right": {"name": "b:0"}, "left": {"name": "a:0"}},
        "outputs": {"again": {"name": "y:0"}, "difference": {"name": "y:0"}},
    }
    model = from_tfjs(*document(nodes, signature=signature))
    assert [each.name for each in model.graph.input] == ["right", "left"]
    assert [each.name for each in model.graph.output] == ["again", "difference"]
    for given in run(model, np.float32([1, 2]), np.float32([5, 8])):
        np.testing.assert_array_equal(given, [4, 6])


def test_a_signature_in_the_metadata_counts_too():
    text, shard = document([X, node("y", "Relu", "x")])
    signature = {"inputs": {"image": {"name": "x"}}, "outputs": {"made": {"name": "y"}}}
    model = from_tfjs({**text, "userDefinedMetadata": {"signature": signature}}, shard)
    assert (model.graph.input[0].name, model.graph.output[0].name) == ("image", "made")


def test_names_of_outputs_may_be_those_of_other_nodes():
    nodes = [X, node("a", "Relu", "x"), node("b", "Neg", "a"), node("c", "Add", "a", "b")]
    model = convert(nodes, outputs={"b": "c", "a": "x", "c": "b"})
    x = np.float32([[1, -2, 3, -4]])
    total, same, negative = run(model, x)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(negative, -np.maximum(x, 0))
    np.testing.assert_array_equal(total, 0 * x)


def test_outputs_that_are_not_in_the_graph_are_refused():
    assert "'gone'" in refusal(*document([X]), outputs={"y": "gone"})
    signature = {"outputs": {"y": {"name": "gone:0"}}}
    assert "'gone'" in refusal(*document([X], signature=signature))


def test_the_same_model_gives_the_same_bytes_from_json_and_from_objects():
    text, shard = weighted()
    made = from_tfjs(text, shard).SerializeToString()
    assert from_tfjs(json.dumps(text).encode(), [shard]).SerializeToString() == made
    model = from_tfjs(text, shard, "adding")
    assert model.graph.name == "adding"
    assert model.ir_version == 8
    assert [(each.domain, each.version) for each in model.opset_import] == [("", 17)]
