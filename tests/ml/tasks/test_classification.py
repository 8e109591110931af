"""The likeliest classes."""

from __future__ import annotations

import numpy as np
import pytest
from ml.tasks.tensors import decoded

from dala import errors
from dala.ml.catalog.labels import labels

pytestmark = pytest.mark.usefixtures("device")


def logits(seed=1):
    return np.random.default_rng(seed).normal(0, 3, (1, 1000)).astype(np.float32)


def test_the_likeliest_classes_come_with_their_probabilities():
    given = logits()
    powers = np.exp(given[0].astype(np.float64))
    order = np.argsort(-given[0])[:5]
    found = decoded("mobilenet_v2", {"logits": given}, (30, 40))
    assert [item.index for item in found] == order.tolist()
    np.testing.assert_allclose(
        [item.score for item in found], (powers / powers.sum())[order], rtol=1e-4
    )
    assert [item.label for item in found] == [labels("imagenet")[i] for i in order]


def test_as_many_come_as_are_asked_for():
    assert len(decoded("mobilenet_v2", {"logits": logits()}, (30, 40), top_k=1)) == 1
    assert len(decoded("mobilenet_v2", {"logits": logits()}, (30, 40), top_k=1000)) == 1000


def test_an_output_of_any_name_is_found_by_its_shape():
    given = logits()
    found = decoded("mobilenet_v2", {"x": given[:, :, None, None], "y": given[:, :7]}, (30, 40))
    assert found[0].index == given.argmax()


def test_other_outputs_are_refused_with_what_there_is_and_what_was_expected():
    with pytest.raises(errors.ModelError) as caught:
        decoded("mobilenet_v2", {"features": logits()[:, :999]}, (30, 40))
    said = str(caught.value)
    assert "(1, 1000)" in said
    assert "'features' f32 (1, 999)" in said


def test_no_outputs_are_refused():
    with pytest.raises(errors.ModelError, match="no outputs"):
        decoded("mobilenet_v2", {}, (30, 40))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"top_k": 0}, "1 to 1000"),
        ({"top_k": 2.5}, "an integer"),
        ({"top_k": True}, "an integer"),
        ({"topk": 3}, "Did you mean 'top_k'"),
        ({"iou": 0.5}, "it takes top_k"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_what_is_allowed(options, said):
    with pytest.raises(errors.ArgumentError) as caught:
        decoded("mobilenet_v2", {"logits": logits()}, (30, 40), **options)
    assert said in str(caught.value)
    assert "mobilenet_v2" in str(caught.value)
