"""A model that several threads share: batches, their order, and whose mistakes are whose."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from ml.small_models import FLOAT, INT64, doubling, model_of, sum_and_difference
from ml.yolo_models import columns, metadata, yolo_model
from onnx import helper, numpy_helper

from dala import errors, ml

LONG_MS = 30_000.0
"""Longer than any test: who waits for it waits for a full batch."""


def picking() -> bytes:
    """`y` is what stands in a table of four at the places x: an error outside of it."""
    table = numpy_helper.from_array(np.arange(4, dtype=np.float32), "table")
    node = helper.make_node("Gather", ["table", "x"], ["y"])
    return model_of([node], [("x", INT64, ("n", 2))], [("y", FLOAT, ("n", 2))], [table])


def together(session, given):
    """What the session gives, asked by as many threads as there are inputs."""
    barrier = threading.Barrier(len(given))

    def ask(x):
        barrier.wait()
        return session.predict(x)

    with ThreadPoolExecutor(len(given)) as pool:
        return list(pool.map(ask, given))


def test_requests_of_several_threads_run_as_one_batch(device):
    model = ml.gpu.load_model(doubling(("n", 4)))
    with ml.session(model, max_batch=6, max_delay_ms=LONG_MS) as session:
        given = [np.full((1, 4), number, np.float32) for number in range(6)]
        made = together(session, given)
        assert session.runs == 1
    for x, y in zip(given, made, strict=True):
        np.testing.assert_array_equal(y, 2 * x)


def test_what_has_another_shape_goes_by_itself_and_rows_go_with_rows():
    model = ml.gpu.load_model(doubling(("n", "m")))
    with ml.session(model, max_batch=4, max_delay_ms=LONG_MS) as session:
        wide, tall = np.ones((4, 7), np.float32), np.ones((3, 2), np.float32)
        answers = [session.submit(x) for x in (tall, wide, tall[:1])]
        assert [item.result(20).shape for item in answers] == [(3, 2), (4, 7), (1, 2)]
        assert session.runs == 2


def test_a_request_alone_waits_no_longer_than_it_may():
    model = ml.gpu.load_model(doubling(("n", 4)))
    with ml.session(model, max_batch=100, max_delay_ms=1) as session:
        x = np.ones((1, 4), np.float32)
        assert session.submit(x).result(20).tolist() == [[2.0] * 4]


def test_the_mistake_of_one_is_not_that_of_the_others():
    model = ml.gpu.load_model(picking(), engine="onnxruntime")
    with ml.session(model, max_batch=3, max_delay_ms=LONG_MS) as session:
        answers = [session.submit(np.array([[k, 0]])) for k in (1, 99, 3)]
        assert answers[0].result(20).tolist() == [[1.0, 0.0]]
        assert answers[2].result(20).tolist() == [[3.0, 0.0]]
        with pytest.raises(errors.ModelError, match="ONNX Runtime failed"):
            answers[1].result(20)


def test_a_model_for_a_fixed_batch_runs_one_by_one(device):
    with ml.session(ml.gpu.load_model(sum_and_difference()), 8, LONG_MS) as session:
        a, b = np.full((2, 3), 5, np.float32), np.full((2, 3), 2, np.float32)
        answers = [session.submit([a, b]) for _ in range(3)]
        for answer in answers:
            assert answer.result(20)["difference"].tolist() == [[3.0] * 3] * 2
        assert session.runs == 3


def test_images_are_seen_in_batches_too(device):
    made = columns([((32.0, 32.0, 20.0, 16.0), 1, 0.9)], 2)
    model = ml.gpu.load_model(yolo_model({"a": made}, metadata("detect", ("ant", "bee"))))
    with ml.session(model) as session:
        (found,) = session(np.zeros((64, 64, 3), np.uint8), threshold=0.5)
    assert (found.label, found.box) == ("bee", pytest.approx((22, 24, 42, 40)))


def test_close_answers_what_was_asked_and_refuses_what_comes_later():
    session = ml.session(ml.gpu.load_model(doubling(("n", 4))), 100, LONG_MS)
    x = np.ones((1, 4), np.float32)
    answer = session.submit(x)
    x[:] = 9  # what was asked stays as it was
    session.close()
    session.close()
    assert answer.result(0).tolist() == [[2.0] * 4]
    with pytest.raises(errors.ClosedError, match="was closed"):
        session.predict(x)


@pytest.mark.parametrize("given", [{"max_batch": 0}, {"max_delay_ms": -1}, {"max_batch": 2.5}])
def test_bounds_that_are_none_are_refused(given):
    with pytest.raises(errors.ArgumentError, match=next(iter(given))):
        ml.session(ml.gpu.load_model(doubling()), **given)


def test_what_the_model_does_not_take_is_refused_at_once():
    with ml.session(ml.gpu.load_model(doubling(("n", 4)))) as session:
        with pytest.raises(errors.ShapeError, match=r"\(1, 5\)"):
            session.submit(np.ones((1, 5), np.float32))
        with pytest.raises(errors.DtypeError):
            session.submit(np.ones((1, 4)))
