"""MobileNetV2 from a state dict: the reference's answers, the folding, what is refused."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import load, numpy_helper
from PIL import Image

from dala import errors
from dala.ml.importers.mobilenet import BLOCKS, mobilenet_v2
from dala.ml.onnx.file import Declared, check_onnx

SHARED = Path(__file__).parents[3] / "../shared"
REFERENCE = SHARED / "models/mobilenet_v2.onnx"
EPSILON = 1e-5


def layers():
    """(convolution, normalisation, shape of the weights) in the order in which they are run."""
    yield "features.0.0", "features.0.1", (32, 3, 3, 3)
    taken, index = 32, 1
    for expansion, made, count, _ in BLOCKS:
        for _ in range(count):
            block, wide = f"features.{index}.conv", taken * expansion
            widens = expansion != 1
            if widens:
                yield f"{block}.0.0", f"{block}.0.1", (wide, taken, 1, 1)
            yield f"{block}.{widens:d}.0", f"{block}.{widens:d}.1", (wide, 1, 3, 3)
            yield f"{block}.{widens + 1}", f"{block}.{widens + 2}", (made, wide, 1, 1)
            taken, index = made, index + 1
    yield "features.18.0", "features.18.1", (1280, taken, 1, 1)


def state_of(convolutions, classifier):
    """A state dict whose normalisations leave (weights, biases) as they are."""
    state = {"classifier.1.weight": classifier[0], "classifier.1.bias": classifier[1]}
    for (convolution, norm, _), (weight, bias) in zip(layers(), convolutions, strict=True):
        state[f"{convolution}.weight"] = weight
        state[f"{norm}.weight"] = np.ones_like(bias)
        state[f"{norm}.bias"] = bias
        state[f"{norm}.running_mean"] = np.zeros_like(bias)
        state[f"{norm}.running_var"] = np.full(bias.shape, 1 - EPSILON)
        state[f"{norm}.num_batches_tracked"] = np.array(3)
    return state


@pytest.fixture(scope="module")
def plain():
    """A state dict of small weights, the same for all: copied before it is changed."""
    draw = np.random.default_rng(5)
    convolutions = [
        (
            draw.standard_normal(shape, np.float32) / np.sqrt(np.prod(shape[1:])),
            draw.standard_normal(shape[0], np.float32) * 0.1,
        )
        for _, _, shape in layers()
    ]
    return state_of(convolutions, (np.zeros((1000, 1280), np.float32), np.zeros(1000, np.float32)))


def prepared(path):
    image = np.asarray(Image.open(path).convert("RGB").resize((224, 224)), np.float32) / 255
    normal = (image - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    return np.ascontiguousarray(normal.transpose(2, 0, 1)[None], np.float32)


def run(model, tensor):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(["logits"], {"input": tensor})[0]


@pytest.mark.parametrize("photo", ["chelsea.png", "coffee.png", "astronaut.png"])
def test_the_weights_of_the_reference_give_its_answers(photo):
    if not REFERENCE.exists():
        pytest.skip("the reference models are not beside the repository")
    graph = load(REFERENCE).graph
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    held = [
        [values[name] for name in node.input[1:]] for node in graph.node if node.op_type == "Conv"
    ]
    classifier = (values["classifier.1.weight"], values["classifier.1.bias"])
    model = mobilenet_v2(state_of(held, classifier)).SerializeToString()
    tensor = prepared(SHARED / "photos" / photo)
    found, wanted = run(model, tensor)[0], run(str(REFERENCE), tensor)[0]
    assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()
    assert found.argsort()[-5:].tolist() == wanted.argsort()[-5:].tolist()


def test_normalisation_is_folded_into_weights_and_biases(plain):
    draw = np.random.default_rng(6)
    gamma, beta, mean = draw.standard_normal((3, 24)).astype(np.float32)
    variance = draw.uniform(0.1, 2, 24).astype(np.float32)
    norm, convolution = "features.2.conv.3", "features.2.conv.2"
    parts = {"weight": gamma, "bias": beta, "running_mean": mean, "running_var": variance}
    state = plain | {f"{norm}.{part}": values for part, values in parts.items()}
    graph = mobilenet_v2(state).graph
    kept = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    x = draw.standard_normal((1, 96)).astype(np.float32)
    y = x @ state[f"{convolution}.weight"][:, :, 0, 0].T
    wanted = (y - mean) / np.sqrt(variance + EPSILON) * gamma + beta
    found = x @ kept[f"{convolution}.weight"][:, :, 0, 0].T + kept[f"{convolution}.bias"]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_the_same_weights_give_the_same_bytes(plain):
    once = mobilenet_v2(plain).SerializeToString(deterministic=True)
    again = mobilenet_v2(dict(reversed(plain.items()))).SerializeToString(deterministic=True)
    assert once == again


def test_the_model_declares_what_the_catalogue_expects(plain):
    described = check_onnx(mobilenet_v2(plain).SerializeToString())
    assert described.inputs == (Declared("input", (1, 3, 224, 224), "f32"),)
    assert described.outputs == (Declared("logits", (1, 1000), "f32"),)
    assert (described.opset, described.ir_version, described.producer) == (17, 8, "dala")
    assert described.operators["Conv"] == 52
    assert "BatchNormalization" not in described.operators


def test_a_missing_tensor_is_named(plain):
    state = {name: values for name, values in plain.items() if name != "features.7.conv.1.0.weight"}
    with pytest.raises(errors.ModelError, match=r"no tensor 'features\.7\.conv\.1\.0\.weight'"):
        mobilenet_v2(state)
    with pytest.raises(errors.ModelError, match="none at all"):
        mobilenet_v2({})


def test_a_tensor_of_another_model_is_named(plain):
    with pytest.raises(errors.ModelError, match=r"1 tensors that .*: layer4\.0\.weight"):
        mobilenet_v2(plain | {"layer4.0.weight": np.zeros(3, np.float32)})


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("classifier.1.bias", np.zeros(21, np.float32), r"\(21,\) of float32.*\(1000,\)"),
        ("classifier.1.bias", np.zeros(1000, np.int64), "of int64"),
        ("features.0.1.bias", np.full(32, np.nan, np.float32), "infinities or NaN"),
        ("features.0.1.running_var", np.full(32, -1, np.float32), "below 0"),
        ("features.0.1.weight", np.full(32, 1e300), "too large for float32"),
    ],
)
def test_a_tensor_that_cannot_be_right_is_named(plain, name, values, text):
    with pytest.raises(errors.ModelError, match=text) as caught:
        mobilenet_v2(plain | {name: values})
    assert name.rpartition(".")[0].split(".")[0] in str(caught.value)
