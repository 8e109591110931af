"""Public names that were spelled in British English: they still work, and name their successor."""

import inspect
import json
from fractions import Fraction

import pytest

from dala import errors
from dala.base.deprecation import RenamedKeys, renamed_argument
from dala.media.video.reading.decoded_frame import VideoFrame
from dala.media.video.reading.video_info import ColorTags, VideoInfo
from dala.ml import gpu


@renamed_argument("old", "new")
def double(new=1):
    """Twice a number."""
    return 2 * new


def test_a_renamed_argument_is_taken_under_both_names():
    assert double(new=3) == double(3) == 6
    with pytest.warns(DeprecationWarning, match=r"double\(old=…\) is deprecated: use new=…"):
        assert double(old=3) == 6
    assert list(inspect.signature(double).parameters) == ["new"]


def test_a_renamed_argument_that_is_given_twice_is_refused():
    with pytest.raises(TypeError, match="takes new or old, not both"):
        double(old=3, new=3)


def test_a_renamed_key_is_found_under_both_names_and_listed_under_one():
    values = RenamedKeys({"new": 1}, {"old": "new"})
    with pytest.warns(DeprecationWarning, match="the key 'old' is deprecated: use 'new'"):
        assert values["old"] == 1
    with pytest.warns(DeprecationWarning, match="the key 'old' is deprecated: use 'new'"):
        assert values.get("old", 5) == 1
    assert values.get("absent", 5) == 5
    assert json.loads(json.dumps(values)) == {"new": 1}
    with pytest.raises(KeyError, match="absent"):
        values["absent"]


def test_a_warning_points_at_the_line_that_used_the_old_name():
    values = RenamedKeys({"new": 1}, {"old": "new"})
    for use in (lambda: double(old=3), lambda: values["old"], lambda: values.get("old")):
        with pytest.warns(DeprecationWarning, match="is deprecated") as caught:
            use()
        assert [item.filename for item in caught] == [__file__]


def test_the_colors_of_a_video_are_found_under_their_old_name():
    colors = ColorTags(1, 13, 6, 1)
    info = VideoInfo(8, 6, Fraction(30), 1.0, 30, "yuv420p", 8, "h264", 0, colors, ())
    with pytest.warns(DeprecationWarning, match=r"VideoInfo\.colours is .* use VideoInfo\.colors"):
        assert info.colours is colors


def test_the_decoded_frame_of_a_video_is_found_under_its_old_name():
    frame = VideoFrame("PyAV's frame", 0, 0.0)
    with pytest.warns(DeprecationWarning, match=r"VideoFrame\.coded is .* use VideoFrame\.decoded"):
        assert frame.coded is frame.decoded


def test_the_license_of_a_model_is_found_under_its_old_key():
    info = gpu.model_info("yolo_v5")
    assert info["license"] == "AGPL-3.0"
    with pytest.warns(DeprecationWarning, match="'licence' is deprecated: use 'license'"):
        assert info["licence"] == "AGPL-3.0"


def test_load_model_takes_the_old_name_of_accept_license(tmp_path, monkeypatch):
    monkeypatch.setenv("DALA_MODELS", str(tmp_path))
    with (
        pytest.warns(DeprecationWarning, match=r"accept_licence=…\) .* use accept_license=…"),
        pytest.raises(errors.FileError, match="cannot be read"),
    ):
        gpu.load_model(tmp_path / "absent.onnx", accept_licence=True)
