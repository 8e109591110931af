"""ONNX files: what they say of themselves, and what is refused besides the numbered faults."""

import random
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from ml.altered_models import adding, function, graph, in_file, model, node, of_nodes, tensor
from ml.small_models import doubling, sum_and_difference
from onnx import TensorProto, helper, load_from_string, numpy_helper

from dala import errors, ml
from dala.ml.onnx import protobuf
from dala.ml.onnx.file import Declared, check_onnx
from dala.ml.onnx.tensors import DTYPES

MODELS = Path(__file__).parents[2] / "../shared/models"


def holding(weights: TensorProto) -> bytes:
    return model(graph([node("Identity", "x", "y")], initializers=[weights]))


def test_a_file_is_described_by_its_inputs_outputs_and_operators(tmp_path):
    (tmp_path / "m.onnx").write_bytes(sum_and_difference())
    found = check_onnx(tmp_path / "m.onnx")
    assert found.inputs == (Declared("a", (2, 3), "f32"), Declared("b", (2, 3), "f32"))
    assert found.outputs == (
        Declared("sum", (2, 3), "f32"),
        Declared("difference", (2, 3), "f32"),
    )
    assert (found.opset, found.ir_version) == (17, 8)
    assert found.operators == {"Add": 1, "Sub": 1}


def test_a_text_a_path_and_bytes_are_the_same(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(doubling())
    found = [check_onnx(source).__dict__ for source in (path, str(path), path.read_bytes())]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", ["mobilenet_v2", "posenet", "deeplab", "blazeface"])
def test_the_reference_models_are_described_as_onnx_reads_them(name):
    path = MODELS / f"{name}.onnx"
    if not path.exists():
        pytest.skip("the reference models are not beside the repository")
    found, wanted = check_onnx(path), load_from_string(path.read_bytes())
    for mine, theirs in ((found.inputs, wanted.graph.input), (found.outputs, wanted.graph.output)):
        assert [item.name for item in mine] == [item.name for item in theirs]
        for item, value in zip(mine, theirs, strict=True):
            assert list(item.shape) == [d.dim_value for d in value.type.tensor_type.shape.dim]
    assert sum(found.operators.values()) == len(wanted.graph.node)
    assert found.producer == f"{wanted.producer_name} {wanted.producer_version}"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("FLOAT", "f32"),
        ("DOUBLE", "f64"),
        ("INT32", "s32"),
        ("INT64", "s64"),
        ("UINT32", "u32"),
        ("UINT8", "u8"),
        ("FLOAT16", "FLOAT16"),
        ("BOOL", "BOOL"),
        ("STRING", "STRING"),
    ],
)
def test_element_types_have_our_names_where_there_are_such(kind, name):
    made = graph([node("Identity", "x", "y")])
    made.input[0].type.tensor_type.elem_type = TensorProto.DataType.Value(kind)
    assert check_onnx(model(made)).inputs[0].dtype == name


def test_free_axes_have_no_size():
    assert check_onnx(doubling(("n", 4, None, -1))).inputs[0].shape == (None, 4, None, None)


def test_an_input_without_a_shape_has_none():
    made = graph([node("Identity", "x", "y")])
    made.input[0].type.tensor_type.ClearField("shape")
    assert check_onnx(model(made)).inputs[0].shape is None


def test_an_initialiser_that_is_also_an_input_need_not_be_given():
    made = graph([node("Add", "x w", "y")], inputs="x w", initializers=[tensor("w", [1], b"1234")])
    assert [item.name for item in check_onnx(model(made)).inputs] == ["x"]


@pytest.mark.parametrize("kind", sorted(DTYPES.keys() - {TensorProto.STRING}))
def test_raw_tensors_of_every_type_have_the_bytes_that_onnx_writes(kind):
    values = np.array([0, 1, 1], helper.tensor_dtype_to_np_dtype(kind))
    made = numpy_helper.from_array(values, "w")
    assert check_onnx(holding(made)).operators == {"Identity": 1}
    made.raw_data += b"1"
    with pytest.raises(errors.ModelError, match="the initializer 'w' claims"):
        check_onnx(holding(made))


@pytest.mark.parametrize(
    "kind",
    [
        "FLOAT",
        "DOUBLE",
        "INT32",
        "INT64",
        "UINT64",
        "UINT32",
        "UINT8",
        "INT16",
        "FLOAT16",
        "BOOL",
        "COMPLEX64",
        "COMPLEX128",
    ],
)
def test_tensors_that_are_not_raw_have_the_values_that_onnx_writes(kind):
    number = TensorProto.DataType.Value(kind)
    values = np.array([0, 1, 1], helper.tensor_dtype_to_np_dtype(number))
    made = helper.make_tensor("w", number, [3], values)
    assert check_onnx(holding(made)).operators == {"Identity": 1}
    made.dims[0] = 4
    with pytest.raises(errors.ModelError, match=r"values, and the file has [36] for it"):
        check_onnx(holding(made))


def test_texts_are_counted():
    made = helper.make_tensor("w", TensorProto.STRING, [2], [b"a", b""])
    assert check_onnx(holding(made)).operators == {"Identity": 1}
    made.dims[0] = 3
    with pytest.raises(errors.ModelError, match="3 values, and the file has 2"):
        check_onnx(holding(made))


def test_nodes_may_come_in_any_order():
    found = check_onnx(of_nodes(node("Relu", "a", "y"), node("Neg", "x", "a")))
    assert found.operators == {"Relu": 1, "Neg": 1}


def test_branches_see_the_values_around_them():
    branches = {
        f"{name}_branch": graph([node(op, "x", "b")], inputs="", outputs="b")
        for name, op in (("then", "Relu"), ("else", "Neg"))
    }
    nodes = [node("Cast", "x", "c", to=TensorProto.BOOL), node("If", "c", "y", **branches)]
    assert check_onnx(of_nodes(*nodes)).operators == {"Cast": 1, "If": 1, "Relu": 1, "Neg": 1}


def test_functions_of_the_file_are_operators():
    twice = function("Twice", node("Add", "a a", "b"))
    data = of_nodes(node("Twice", "x", "y", domain="own"), domains=["own"], functions=[twice])
    assert check_onnx(data).operators == {"own.Twice": 1}


def test_operators_of_onnx_runtime_are_left_to_it():
    data = of_nodes(node("Gelu", "x", "y", domain="com.microsoft"), domains=["com.microsoft"])
    assert check_onnx(data).operators == {"com.microsoft.Gelu": 1}


def test_a_tensor_beside_the_model_is_taken(tmp_path):
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/w.bin").write_bytes(bytes(64))
    weights = in_file("w", [4], location="weights/w.bin", offset=48, length=16)
    (tmp_path / "m.onnx").write_bytes(adding(weights))
    assert check_onnx(tmp_path / "m.onnx").operators == {"Add": 1}


# -- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [0, 29, 1 << 40, -1])
def test_an_opset_that_is_not_known_is_refused_with_those_that_are(opset):
    with pytest.raises(errors.ModelError, match=rf"opset {opset} of ai\.onnx.*known are 1 to 28"):
        check_onnx(of_nodes(node("Relu", "x", "y"), opset=opset))


@pytest.mark.parametrize("opset", [0, 29, 1 << 40, -1])
def test_a_function_of_an_opset_that_is_not_known_is_refused(opset):
    twice = function("Twice", node("Add", "a a", "b"))
    twice.opset_import[0].version = opset
    data = of_nodes(node("Twice", "x", "y", domain="own"), domains=["own"], functions=[twice])
    with pytest.raises(errors.ModelError, match=rf"'Twice' is of opset {opset} of ai\.onnx"):
        check_onnx(data)


def test_a_format_that_is_not_known_is_refused():
    with pytest.raises(errors.ModelError, match="version 99 of the ONNX format; known are 1 to 14"):
        check_onnx(of_nodes(node("Relu", "x", "y"), ir_version=99))


def test_the_newest_opset_is_one_that_the_installed_onnx_knows():
    from onnx import defs

    from dala.ml.onnx.graph import OPSETS

    assert OPSETS[""] <= defs.onnx_opset_version()
    check_onnx(of_nodes(node("Relu", "x", "y"), opset=OPSETS[""]))


def test_a_model_that_gives_out_nothing_is_refused():
    with pytest.raises(errors.ModelError, match="no outputs"):
        check_onnx(model(graph([node("Relu", "x", "y")], outputs="")))


def test_a_model_without_a_graph_or_opset_is_refused():
    with pytest.raises(errors.ModelError, match="no graph"):
        check_onnx(b"\x08\x08")
    made = load_from_string(doubling())
    made.ClearField("opset_import")
    with pytest.raises(errors.ModelError, match="names no opset"):
        check_onnx(made.SerializeToString())


def test_training_steps_and_sparse_tensors_are_refused():
    made = load_from_string(doubling())
    made.training_info.add()
    with pytest.raises(errors.ModelError, match="training"):
        check_onnx(made.SerializeToString())
    made = load_from_string(doubling())
    made.graph.sparse_initializer.add().dims.append(1 << 40)
    with pytest.raises(errors.ModelError, match="sparse"):
        check_onnx(made.SerializeToString())


def test_a_file_cut_anywhere_is_refused(tmp_path):
    data = sum_and_difference()
    path = tmp_path / "cut.onnx"
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(errors.ModelError, match=r"cut\.onnx"):
            check_onnx(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(errors.FileError, match=r"gone\.onnx cannot be read: No such file"):
        check_onnx(tmp_path / "gone.onnx")
    with pytest.raises(errors.FileError, match="no plain file"):
        check_onnx(tmp_path)


@pytest.mark.parametrize("source", [3, None, "", "a\0b"])
def test_what_names_no_file_is_refused(source):
    with pytest.raises(errors.ArgumentError):
        check_onnx(source)


def test_a_file_of_more_than_2_gib_is_refused_unread(tmp_path):
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.write(doubling())
        file.truncate(1 << 31)
    with pytest.raises(errors.LimitError, match=r"2,147,483,648 bytes, of at most 2,147,483,647"):
        check_onnx(path)


def test_more_fields_than_any_model_needs_are_refused(monkeypatch):
    monkeypatch.setattr(protobuf, "FIELDS_LIMIT", 10)
    with pytest.raises(errors.LimitError, match="more than 10 fields"):
        check_onnx(doubling())


def test_graphs_too_deep_in_each_other_are_refused():
    inner = graph([node("Relu", "x", "y")], inputs="")
    for _ in range(31):
        inner = graph([node("If", "x", "y", then_branch=inner, else_branch=graph([]))], inputs="")
    with pytest.raises(errors.LimitError, match="deep in each other"):
        check_onnx(model(inner))


def test_two_graphs_are_not_merged():
    data = doubling()
    graph_field = b"\x3a\x00"
    with pytest.raises(errors.ModelError, match=r"Model\.graph twice"):
        check_onnx(data + graph_field)


def test_functions_that_grow_without_end_are_refused():
    chain = [function("F0", node("Relu", "a", "b"))]
    for depth in range(1, 40):
        calls = [node(f"F{depth - 1}", *way, domain="own") for way in (("a", "c"), ("c", "b"))]
        chain.append(function(f"F{depth}", *calls))
    data = of_nodes(node("F39", "x", "y", domain="own"), domains=["own"], functions=chain)
    with pytest.raises(errors.LimitError, match="1,048,576 nodes"):
        check_onnx(data)


def test_a_tensor_in_another_file_needs_a_folder():
    with pytest.raises(errors.ModelError, match=r"'w\.bin'.*give the path"):
        check_onnx(adding(in_file("w", [4], location="w.bin")))


@pytest.mark.parametrize(
    ("entries", "kind", "text"),
    [
        ({"location": "gone.bin"}, errors.FileError, "No such file"),
        ({"location": "w.bin", "offset": 4}, errors.ModelError, "from byte 4 of .*has 16"),
        ({"location": "w.bin", "length": 15}, errors.ModelError, "16 bytes, and says that 15"),
        ({"location": "w.bin", "offset": -4}, errors.ModelError, "no such place"),
        ({"location": ""}, errors.ModelError, "names no file"),
        ({"location": "."}, errors.ModelError, "no plain file"),
        # An address in the memory of ONNX Runtime.
        ({"location": "*/_ORT_MEM_ADDR_/*", "offset": 4096}, errors.ModelError, "names no file"),
    ],
)
def test_a_tensor_that_is_not_where_it_says_is_refused(tmp_path, entries, kind, text):
    (tmp_path / "w.bin").write_bytes(bytes(16))
    (tmp_path / "m.onnx").write_bytes(adding(in_file("w", [4], **entries)))
    with pytest.raises(kind, match=text):
        check_onnx(tmp_path / "m.onnx")


def test_without_the_onnx_package_a_file_is_checked_all_the_same(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert check_onnx(doubling()).operators == {"Mul": 1}
    with pytest.raises(errors.ModelError, match="no operator 'Mull'"):
        check_onnx(of_nodes(node("Mull", "x x", "y")))


def test_onnx_runtime_is_not_given_a_file_whose_sizes_nobody_can_infer(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(errors.ModelError, match=r"pip install 'dala-gpu\[ml\]'"):
        ml.gpu.load_model(doubling(), engine="onnxruntime")


def test_operators_are_known_as_the_onnx_package_has_them():
    tool = Path(__file__).parents[2] / "tools" / "operator_schemas"
    made = runpy.run_path(str(tool))
    assert made["TABLE"].read_text() == made["HEADER"] + "".join(f"{x}\n" for x in made["lines"]())


def test_a_node_without_an_attribute_that_it_needs_is_refused():
    with pytest.raises(errors.ModelError, match=r"Concat.* lacks its attribute 'axis'"):
        check_onnx(of_nodes(node("Concat", "x x", "y")))


def test_nodes_are_read_in_an_order_in_which_they_can_be_computed():
    from dala.ml.onnx.contents import read_contents

    nodes = [node("Relu", "b", "y"), node("Abs", "a", "b"), node("Neg", "x", "a")]
    read = read_contents("m", of_nodes(*nodes)).nodes
    assert [item.op for item in read] == ["Neg", "Abs", "Relu"]


def test_a_text_that_is_none_is_no_word_that_an_operator_knows():
    made = of_nodes(node("DepthToSpace", "x", "y", blocksize=2, mode=b"\xff"))
    with pytest.raises(errors.DalaError):
        ml.gpu.predict(ml.gpu.load_model(made, engine="dala"), np.ones((1, 4), np.float32))


@pytest.mark.parametrize(("operator", "given"), [("Loop", "none _ x"), ("If", "none")])
def test_a_condition_or_count_of_no_elements_is_refused(operator, given):
    # ONNX Runtime reads the first element of it all the same, and ends the process.
    none = TensorProto(name="none", dims=[0], data_type=TensorProto.INT64)
    body = graph([node("Relu", "x", "b")], inputs="", outputs="b")
    names = ("then_branch", "else_branch") if operator == "If" else ("body",)
    made = node(operator, given, "y", **dict.fromkeys(names, body))
    with pytest.raises(errors.ModelError, match="'none' whether to go on, which has 0 elements"):
        check_onnx(model(graph([made], initializers=[none])))


def test_bytes_changed_at_random_are_described_or_a_dala_error():
    branch = graph([node("Relu", "x", "b")], inputs="", outputs="b")
    nodes = [
        node("Cast", "x", "c", to=TensorProto.BOOL),
        node("If", "c", "d", then_branch=branch, else_branch=branch),
        node("Twice", "d", "e", domain="own"),
        node("Add", "e w", "y"),
    ]
    made = graph(nodes, initializers=[tensor("w", [4], bytes(16))])
    twice = function("Twice", node("Add", "a a", "b"))
    data = model(made, domains=["own"], functions=[twice])
    check_onnx(data)
    seed = 11
    print(f"{seed=}")
    draw = random.Random(seed)
    for _ in range(1500):
        changed = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(changed))
            changed[place : place + draw.randint(0, 2)] = draw.randbytes(draw.randint(0, 2))
        try:
            check_onnx(bytes(changed))
        except errors.DalaError:
            continue
