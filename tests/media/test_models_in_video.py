"""Filters that run a model by themselves: on pictures, in chains, over time."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from media import clips
from media.small_models import MASK_SIZE, write_bright_class, write_bright_mask

from dala import errors, media
from dala.gpu import compute
from dala.media import gpu
from dala.media.video import transcode
from dala.media.video.filtering import every_nth_frame as modelled
from dala.media.video.filtering.video_filters import TemporalFilter, video_filters_of
from dala.ml.models.loading import load_model
from dala.ml.models.masks import masked

SHARED = Path(__file__).parents[3] / "shared"


@pytest.fixture(scope="module")
def bright(tmp_path_factory):
    """The file of a model whose mask is how bright a pixel is."""
    return write_bright_mask(tmp_path_factory.mktemp("models") / "bright.onnx")


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """The file of a model that tells bright images from dark ones."""
    return write_bright_class(tmp_path_factory.mktemp("models") / "classes.onnx")


def picture(seed=1, shape=(MASK_SIZE, MASK_SIZE, 3)):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def brightness_of(image):
    """The mask that the model makes of an image of its own size."""
    return (image[..., :3].astype(np.float32) / 255).mean(-1, dtype=np.float32)


def assert_near(got, want):
    assert np.abs(np.asarray(got, int) - np.asarray(want, int)).max() <= 1


# -- pictures --------------------------------------------------------------------------------------


def test_a_background_without_a_mask_is_that_of_the_model(device, bright):
    image = picture()
    want = gpu.background_blur(image, brightness_of(image), radius=3)
    assert_near(gpu.background_blur(image, radius=3, model=bright), want)


def test_a_background_is_replaced_where_the_model_sees_nobody(device, bright):
    image, behind = picture(1), picture(2)
    want = gpu.background_replace(image, behind, brightness_of(image))
    assert_near(gpu.background_replace(image, behind, model=bright), want)


@pytest.mark.parametrize("shape", [(40, 70, 3), (300, 20, 4), (30, 50)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_mask_is_made_for_images_of_any_kind(bright, shape, dtype):
    image = np.full(shape, 255, np.uint8).astype(dtype) / dtype(1 if dtype is np.uint8 else 255)
    image = image.astype(dtype)
    made = gpu.background_replace(image, image * 0, model=bright)
    assert made.dtype == dtype
    np.testing.assert_allclose(made, image, atol=1e-3 if dtype is np.float32 else 1)


def test_an_image_without_pixels_needs_no_model(device, bright):
    assert gpu.background_blur(np.zeros((0, 4, 3), np.uint8), model=bright).shape == (0, 4, 3)


def test_chains_and_contexts_run_the_model_too(device, bright):
    image = picture(shape=(48, 64, 3))
    chain = [("brightness", {"value": 0.1}), ("background_blur", {"radius": 2, "model": bright})]
    first = gpu.apply_filter(image, "brightness", value=0.1)
    want = gpu.background_blur(first, radius=2, model=bright)
    assert_near(gpu.filter_chain(image, chain), want)
    with gpu.start_pipeline(64, 48) as context:
        assert_near(gpu.process_frame(context, image, chain), want)
        assert_near(gpu.process_frame_async(context, image, chain).wait(30), want)


def test_a_model_that_was_loaded_serves_as_well_as_its_file(bright):
    image = picture(shape=(20, 30, 3))
    model = load_model(bright, like="selfie_segmentation")
    want = gpu.background_blur(image, model=bright)
    np.testing.assert_array_equal(gpu.background_blur(image, model=model), want)
    np.testing.assert_array_equal(gpu.background_blur(image, model=str(bright)), want)


def test_a_kernel_with_a_model_in_it_is_one_for_each_model(bright):
    model = load_model(bright, like="selfie_segmentation")
    other = load_model(bright, like="selfie_segmentation")
    kernel = compute.Kernel.lookup("background_blur")
    made = masked(kernel, model)
    assert masked(kernel, model) is made
    assert masked(kernel, other) is not made
    assert made.inputs == ("image",)


def test_a_plan_says_that_the_model_is_on_the_host(webgpu, bright, capsys):
    model = load_model(bright, like="selfie_segmentation")
    image = compute.from_numpy(picture(shape=(20, 30, 3)))
    pipeline = compute.pipeline()
    kernel = masked(compute.Kernel.lookup("background_blur"), model)
    pipeline.add(kernel=kernel, inputs=[image], output=compute.buffer_zeros((20, 30, 3), "u8"))
    pipeline.explain()
    assert "computed on the host: copied there from webgpu" in capsys.readouterr().out


# -- refused ---------------------------------------------------------------------------------------


def test_a_mask_and_a_model_together_are_refused(bright):
    image = picture(shape=(8, 8, 3))
    with pytest.raises(errors.ArgumentError, match=r"model is for the model .* mask is given"):
        gpu.background_blur(image, image[..., 0], model=bright)
    with pytest.raises(errors.ArgumentError, match="every is for the model"):
        gpu.background_blur(image, image[..., 0], every=2)


@pytest.mark.parametrize(
    ("every", "said"),
    [
        (3, "every = 3 is for video"),
        (0, "every is 1 to 1000, not 0"),
        (1.5, "every is an integer, not 1.5"),
    ],
)
def test_every_other_than_one_is_refused_for_a_picture(bright, every, said):
    with pytest.raises(errors.ArgumentError, match=said):
        gpu.background_blur(picture(shape=(8, 8, 3)), every=every, model=bright)


def test_what_is_no_model_is_refused():
    image = picture(shape=(8, 8, 3))
    with pytest.raises(errors.ArgumentError, match=r"model is a name .*, not 3"):
        gpu.background_blur(image, model=3)
    with pytest.raises(errors.UnknownModelError, match="Did you mean 'selfie_segmentation'"):
        gpu.background_blur(image, model="selfie_segmentatio")
    with pytest.raises(errors.ArgumentError, match="'model' is missing"):
        gpu.detect(image)


def test_a_model_that_makes_no_masks_is_refused(classes):
    model = load_model(classes, like="mobilenet_v2")
    with pytest.raises(errors.ModelError, match=r"like deeplab or selfie.*is for classification"):
        gpu.background_blur(picture(shape=(8, 8, 3)), model=model)
    with pytest.raises(errors.ModelError, match="was loaded without like="):
        gpu.background_blur(picture(shape=(8, 8, 3)), model=load_model(classes))


def test_a_file_that_is_not_fed_like_the_mask_model_is_refused(classes):
    with pytest.raises(errors.ModelError, match="is to make masks as selfie_segmentation does"):
        gpu.background_blur(picture(shape=(8, 8, 3)), model=classes)


def test_a_model_like_another_is_for_files_only(classes):
    model = load_model(classes, like="mobilenet_v2")
    with pytest.raises(errors.ArgumentError, match="like='blazeface' is for files"):
        gpu.detect(picture(shape=(8, 8, 3)), model, like="blazeface")


# -- detect ----------------------------------------------------------------------------------------


def test_detect_draws_what_the_model_finds(device, classes):
    image = np.full((90, 160, 3), 200, np.uint8)
    model = load_model(classes, like="mobilenet_v2")
    made = gpu.detect(image, model=classes, like="mobilenet_v2")
    np.testing.assert_array_equal(made, model(image).draw(image))
    assert (made != image).any()
    np.testing.assert_array_equal(gpu.detect(image, model), made)


def test_detect_is_one_of_a_chain_and_leaves_the_image_alone(device, classes):
    image = np.full((90, 160, 4), 200, np.uint8)
    before = image.copy()
    chain = ["invert", ("detect", {"model": classes, "like": "mobilenet_v2"})]
    want = gpu.detect(gpu.invert(image), classes, like="mobilenet_v2")
    np.testing.assert_array_equal(gpu.filter_chain(image, chain), want)
    np.testing.assert_array_equal(image, before)


def test_a_threshold_that_is_none_is_refused(classes):
    with pytest.raises(errors.ArgumentError, match="threshold is a finite number from 0 to 1"):
        gpu.detect(picture(), classes, 1.5, like="mobilenet_v2")


# -- over time -------------------------------------------------------------------------------------


def frames(count=8):
    """Frames of which each is brighter or darker than the one before."""
    return [np.full((48, 64, 3), 40 + 170 * (i % 2) + i, np.uint8) for i in range(count)]


def chosen(kind, bright, classes):
    if kind == "detect":
        return "detect", {"model": classes, "like": "mobilenet_v2"}
    return kind, {"model": bright} | (
        {"background": picture(shape=(48, 64, 3))} if kind == "background_replace" else {}
    )


KINDS = ("background_blur", "background_replace", "detect")


def temporal(kind, bright, classes, every):
    name, params = chosen(kind, bright, classes)
    (made,) = video_filters_of([(name, {**params, "every": every})])
    assert isinstance(made, TemporalFilter)
    return made


def apply(made, images):
    return [np.array(made.apply(compute.from_numpy(image))) for image in images]


@pytest.mark.parametrize("kind", KINDS)
def test_without_every_a_filter_of_video_is_planned_with_the_others(kind, bright, classes):
    name, params = chosen(kind, bright, classes)
    (link,) = video_filters_of([(name, params)])
    assert not isinstance(link, TemporalFilter)


def test_the_mask_of_a_frame_is_used_for_those_after_it(device, bright):
    shown = [picture(i) for i in range(5)]
    got = apply(temporal("background_blur", bright, None, 2), shown)
    for i, image in enumerate(shown):
        mask = brightness_of(shown[i - i % 2])
        assert_near(got[i], gpu.background_blur(image, mask))


def test_what_was_found_in_a_frame_is_drawn_over_those_after_it(device, classes):
    model = load_model(classes, like="mobilenet_v2")
    shown = frames(5)
    got = apply(temporal("detect", None, classes, 3), shown)
    for i, image in enumerate(shown):
        want = model(shown[i - i % 3]).draw(image)
        np.testing.assert_array_equal(got[i], want)


def test_frames_in_between_are_not_looked_at(monkeypatch, classes):
    looked = []

    def found(*given):
        looked.append(given)
        return look(*given)

    look = modelled.found
    monkeypatch.setattr(modelled, "found", found)
    apply(temporal("detect", None, classes, 3), frames(7))
    assert len(looked) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_goes_on_elsewhere_makes_the_same_frames(device, kind, bright, classes):
    want = apply(temporal(kind, bright, classes, 3), frames())
    for stop in (0, 1, 3, 5):
        before = temporal(kind, bright, classes, 3)
        apply(before, frames()[:stop])
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **before.state())
        file.seek(0)
        after = temporal(kind, bright, classes, 3)
        with np.load(file, allow_pickle=False) as state:
            after.restore({name: state[name] for name in state.files})
        assert after.state().keys() == before.state().keys()
        np.testing.assert_array_equal(apply(after, frames()[stop:]), want[stop:])


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_filter_forgets_what_it_had_seen(kind, bright, classes):
    want = apply(temporal(kind, bright, classes, 3), frames())
    other = temporal(kind, bright, classes, 3)
    apply(other, frames()[1:3])
    other.restore({})
    np.testing.assert_array_equal(apply(other, frames()), want)


@pytest.mark.parametrize("name", ["detect", "background_blur", "motion_blur", "text", "blur"])
def test_parameters_that_are_no_mapping_are_refused(name):
    with pytest.raises(errors.ArgumentError, match=f"{name}: parameters are a mapping"):
        video_filters_of([(name, 5)])


def test_a_state_of_another_filter_is_refused(bright, classes):
    with pytest.raises(errors.ArgumentError, match=r"\['0'\] is no state that it gave"):
        temporal("detect", bright, classes, 3).restore({"0": np.zeros(3)})


def test_a_filter_can_go_on_on_another_device(webgpu, bright, classes):
    for kind in KINDS:
        want = apply(temporal(kind, bright, classes, 4), frames())
        made = temporal(kind, bright, classes, 4)
        with compute.device("cpu"):
            got = apply(made, frames()[:3])
        assert_near(got + apply(made, frames()[3:]), want)


def test_a_killed_run_goes_on_to_the_same_frames(monkeypatch, tmp_path, bright, classes):
    monkeypatch.setattr(transcode, "FRAMES_IN_SEGMENT", 4)
    clip = clips.write_clip(tmp_path / "clip.mp4", 12)
    chain = [
        ("background_blur", {"radius": 2, "model": str(bright), "every": 3}),
        ("detect", {"model": str(classes), "like": "mobilenet_v2", "every": 5}),
    ]
    whole = media.transcode(clip, tmp_path / "whole.mkv", chain, codec="ffv1")

    def stop(now):
        if now.frames == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        media.transcode(clip, tmp_path / "out.mkv", chain, codec="ffv1", progress=stop)
    done = media.transcode(clip, tmp_path / "out.mkv", chain, codec="ffv1", resume=True)
    assert (done.frames, done.resumed_frames) == (12, 8)
    assert clips.frame_hashes(done.path) == clips.frame_hashes(whole.path)


# -- real models -----------------------------------------------------------------------------------


@pytest.fixture
def astronaut():
    if not (SHARED / "models").is_dir():
        pytest.skip("no reference models beside the repository")
    return media.load(SHARED / "photos" / "astronaut.png")


def test_a_person_stays_and_the_background_goes(device, astronaut):
    model = SHARED / "models" / "selfie_segmentation.onnx"
    made = gpu.background_replace(astronaut, astronaut * 0, model=model)
    assert_near(made[90:150, 190:260], astronaut[90:150, 190:260])  # the face
    assert made[:100, 350:].max() <= 20  # behind her


def test_a_model_of_classes_makes_masks_of_people(device, astronaut):
    model = load_model(SHARED / "models" / "deeplab.onnx", like="deeplab")
    made = gpu.background_replace(astronaut, astronaut * 0, model=model)
    assert_near(made[90:150, 190:260], astronaut[90:150, 190:260])
    assert made[:100, 350:].max() == 0


def test_a_face_gets_a_box(astronaut):
    model = SHARED / "models" / "blazeface.onnx"
    made = gpu.detect(astronaut, model, like="blazeface")
    changed = (made != astronaut).any(-1)
    assert changed[60:190, 165:285].any()
    assert not changed[250:].any()
    none = gpu.detect(astronaut, model, threshold=0.99, like="blazeface")
    np.testing.assert_array_equal(none, astronaut)
