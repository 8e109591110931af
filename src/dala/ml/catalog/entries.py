"""The models that are known by name: what goes into them, what comes out, whose they are.

Weights are not part of dala. An entry says in which package they are published, and the SHA-256 of
each of its files and of the ONNX file that they are converted to.
"""

from __future__ import annotations

from typing import Any

from dala.base.deprecation import RenamedKeys
from dala.base.record import record
from dala.base.suggestions import hint
from dala.errors import UnknownModelError
from dala.ml.catalog import packages
from dala.ml.catalog.packages import Package
from dala.ml.catalog.reading import RENAMED, Reading

COPYLEFT = ("AGPL-3.0",)
"""Licenses that bind whoever offers a program with such weights, and so have to be accepted."""


@record
class Entry(Reading):
    """A model of the catalog: how it is fed and read, whose it is, where it comes from."""

    license: str
    """Of the weights, as its SPDX identifier."""
    credit: str
    package: Package
    sha256: str
    """Of the converted ONNX file."""
    open_input: str | None = None
    """The input whose size the published graph leaves open; it is converted for the size above."""

    @property
    def needs_acceptance(self) -> bool:
        """Whether whoever fetches the weights has to accept their license first."""
        return self.license in COPYLEFT

    def describe(self) -> dict[str, Any]:
        """Returns the entry as plain values, for programs and documentation."""
        package = {**vars(self.package), "files": [vars(item) for item in self.package.files]}
        return RenamedKeys(
            {
                **super().describe(),
                "package": package,
                "needs_acceptance": self.needs_acceptance,
            },
            RENAMED,
        )


def find(name: str) -> Entry:
    """Returns the entry of that name; raises UnknownModelError that suggests others."""
    found = MODELS.get(name) if isinstance(name, str) else None
    if found is None:
        known = f" There are {', '.join(MODELS)}, and any ONNX file by its path."
        raise UnknownModelError(f"no model is named {name!r}.{hint(name, MODELS, 3) or known}")
    return found


_ENTRIES = (
    Entry(
        name="mobilenet_v2",
        task="classification",
        doc="Says which of the 1000 classes of ImageNet a picture shows",
        size=(224, 224),
        layout="nchw",
        dtype="f32",
        normalize="imagenet",
        fit="crop",
        labels="imagenet",
        decoding="softmax",
        settings={"count": 5, "resize": 256},
        license="BSD-3-Clause",
        credit="torchvision, trained on ImageNet",
        package=packages.MOBILENET_V2,
        sha256="1e22e24ff704453899d79a723f990d64ae02d1df6d2233e8a239ddde38317c02",
    ),
    Entry(
        name="yolo_v5",
        task="detection",
        doc="Finds things of the 80 classes of COCO, with a box around each",
        size=(640, 640),
        layout="nhwc",
        dtype="f32",
        normalize="unit",
        fit="letterbox",
        labels="coco",
        decoding="yolo",
        settings={
            "score": 0.25,
            "overlap": 0.45,
            "count": 300,
            "fill": 114 / 255,
            "head": "detect",
            "boxes": "shares",
        },
        license="AGPL-3.0",
        credit="YOLOv5s by Ultralytics, converted by Subhranil Majumder",
        package=packages.YOLO_V5,
        sha256="a838b8d4ee70d650ff5efb7c5ae701ba756117f96422a20828a70ea66961fc82",
    ),
    Entry(
        name="blazeface",
        task="detection",
        doc="Finds faces near the camera, with eyes, nose, mouth and ears",
        size=(128, 128),
        layout="nhwc",
        dtype="f32",
        normalize="signed",
        fit="letterbox",
        labels="face",
        decoding="blazeface",
        settings={
            "keypoints": "face_keypoints",
            "strides": (8, 16),
            "anchors": (2, 6),
            "score": 0.5,
            "overlap": 0.3,
        },
        license="Apache-2.0",
        credit="BlazeFace, short range, by the MediaPipe authors, converted by Vladimir Mandic",
        package=packages.BLAZEFACE,
        sha256="e395f2044503e673430ea0eae40b0d66ec877d57975a60559a83c7e5b273b97a",
    ),
    Entry(
        name="posenet",
        task="pose",
        doc="Finds people, with 17 key points of each",
        size=(385, 385),
        layout="nhwc",
        dtype="f32",
        normalize="signed",
        fit="letterbox",
        labels="keypoints",
        decoding="posenet",
        settings={"stride": 16, "score": 0.5, "radius": 20, "count": 5},
        license="Apache-2.0",
        credit="PoseNet by the TensorFlow.js authors, converted by Vladimir Mandic",
        package=packages.POSENET,
        sha256="2ba5ae6df2b53687a0cb80fd73cff3aae581559b1f0ebd7151b348bf5d93ab30",
    ),
    Entry(
        name="deeplab",
        task="segmentation",
        doc="Says for each pixel which of the 20 classes of PASCAL VOC it shows, if any",
        size=(513, 513),
        layout="nhwc",
        dtype="u8",
        normalize="levels",
        fit="stretch",
        labels="voc",
        decoding="argmax",
        settings={},
        license="Apache-2.0",
        credit="DeepLab v3 on MobileNetV2 by the TensorFlow authors, converted by CODAIT",
        package=packages.DEEPLAB,
        sha256="55fddc8868d43073754f2650f990222082b3a1881bf6ae7ecda4558510059e3b",
        open_input="ImageTensor:0",
    ),
    Entry(
        name="selfie_segmentation",
        task="segmentation",
        doc="Says for each pixel how likely it is part of a person near the camera",
        size=(256, 256),
        layout="nhwc",
        dtype="f32",
        normalize="unit",
        fit="stretch",
        labels="person",
        decoding="probability",
        settings={"score": 0.5},
        license="Apache-2.0",
        credit="Selfie Segmentation by the MediaPipe authors, converted by Vladimir Mandic",
        package=packages.SELFIE_SEGMENTATION,
        sha256="82b095661f210282c1d348a2526d2ddd3a4c7e75d024c328c9a47af8d57e7e6c",
    ),
    Entry(
        name="text_detection",
        task="detection",
        doc="Finds lines of text, with a box around each that need not be upright",
        size=(960, 960),
        layout="nchw",
        dtype="f32",
        normalize="signed",
        fit="letterbox",
        labels=("text",),
        decoding="text_regions",
        settings={"score": 0.5, "count": 1000, "mark": 0.3, "unclip": 1.6, "order": "bgr"},
        license="Apache-2.0",
        credit="PP-OCRv4 by the PaddleOCR authors, converted by RapidAI",
        package=packages.TEXT_DETECTION,
        sha256=packages.TEXT_DETECTION.files[0].sha256,
    ),
    Entry(
        name="text_recognition",
        task="text",
        doc="Reads a line of text, Chinese or English, that was cut out: see ml.read_text",
        size=(320, 48),
        layout="nchw",
        dtype="f32",
        normalize="signed",
        fit="stretch",
        labels=("text",),
        decoding="text_lines",
        settings={"order": "bgr"},
        license="Apache-2.0",
        credit="PP-OCRv4 by the PaddleOCR authors, converted by RapidAI",
        package=packages.TEXT_RECOGNITION,
        sha256=packages.TEXT_RECOGNITION.files[0].sha256,
    ),
    Entry(
        name="document_layout",
        task="detection",
        doc="Finds the parts of a page: text, titles, figures, tables, and what belongs to them",
        size=(608, 800),
        layout="nchw",
        dtype="f32",
        normalize="imagenet",
        fit="stretch",
        labels="document",
        decoding="grid_boxes",
        settings={
            "score": 0.4,
            "overlap": 0.5,
            "count": 100,
            "strides": (8, 16, 32, 64),
            "bins": 8,
            "order": "bgr",
        },
        license="Apache-2.0",
        credit="PicoDet on CDLA by the PaddleOCR authors, converted by RapidAI",
        package=packages.DOCUMENT_LAYOUT,
        sha256=packages.DOCUMENT_LAYOUT.files[0].sha256,
    ),
    Entry(
        name="speech_activity",
        task="speech",
        doc="Says how likely 32 ms of sound are speech: see ml.find_speech",
        size=(576, 1),
        layout="nchw",
        dtype="f32",
        normalize="signed",
        fit="stretch",
        labels=("speech",),
        decoding="speech",
        settings={},
        license="MIT",
        credit="Silero VAD by the Silero Team",
        package=packages.SPEECH_ACTIVITY,
        sha256=packages.SPEECH_ACTIVITY.files[0].sha256,
    ),
)
MODELS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
