"""One side of a comparison of models, in a process of its own, so that threads do not meet.

    python -m benchmarks.model_side SIDE WEIGHTS IMAGE.npy RESULT.npy

writes the logits into RESULT.npy, and then for each number of calls that it reads from standard
input prints the seconds that one took.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import warm_seconds_per_call

SIZE = 224
Call = Callable[[], object]
Side = Callable[[Path, np.ndarray], tuple[Call, np.ndarray]]


def ours(weights: Path, pixels: np.ndarray) -> tuple[Call, np.ndarray]:
    """The pipeline preprocess → model → softmax: an image's buffer in, probabilities out."""
    from dala import ml
    from dala.gpu import compute

    with compute.device("cpu"):
        model = ml.gpu.load_model(weights, like="mobilenet_v2")
        image = compute.from_numpy(pixels)
        tensor = compute.buffer_zeros((1, 3, SIZE, SIZE), "f32")
        logits, chances = (compute.buffer_zeros((1, 1000), "f32") for _ in range(2))
        pipeline = compute.pipeline()
        pipeline.add(
            kernel="preprocess", inputs=[image], output=tensor, params={"normalize": "imagenet"}
        )
        pipeline.add(kernel=model, inputs=[tensor], output=logits)
        pipeline.add(kernel="softmax", inputs=[logits], output=chances)
        pipeline.run()
    return pipeline.run, np.asarray(logits)


def opencv(weights: Path, pixels: np.ndarray) -> tuple[Call, np.ndarray]:
    """ONNX Runtime's `run` after OpenCV's resizing, into memory that is there already."""
    import cv2
    import onnxruntime

    from dala.devices.cpu.threads import thread_count
    from dala.kernels.image.preprocess import NORMALS

    cv2.setNumThreads(thread_count())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = thread_count()
    session = onnxruntime.InferenceSession(
        str(weights), options, providers=["CPUExecutionProvider"]
    )
    small = np.empty((SIZE, SIZE, 3), np.uint8)
    planes = [np.empty((SIZE, SIZE), np.uint8) for _ in range(3)]
    tensor = np.empty((1, 3, SIZE, SIZE), np.float32)
    normals = [
        (1 / (255 * std), -mean / std) for mean, std in zip(*NORMALS["imagenet"], strict=True)
    ]
    # What both sides mean by the size: bilinear, but averages where there is much less room.
    shrinks = min(pixels.shape[:2]) >= 2 * SIZE
    method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR

    def call() -> np.ndarray:
        cv2.resize(pixels, (SIZE, SIZE), dst=small, interpolation=method)
        cv2.split(small, planes)
        for plane, target, (scale, shift) in zip(planes, tensor[0], normals, strict=True):
            np.multiply(plane, np.float32(scale), out=target)
            np.add(target, np.float32(shift), out=target)
        (logits,) = session.run(None, {"input": tensor})
        return np.asarray(logits)

    return call, call()


def kernels(weights: Path, tensor: np.ndarray, device: str = "cpu") -> tuple[Call, np.ndarray]:
    """dala's own kernels on a device, from buffers into buffers."""
    from dala.gpu import compute
    from dala.ml.models.kernel_engine import KernelEngine
    from dala.ml.onnx.contents import read_contents

    with compute.device(device):
        engine = KernelEngine(weights.stem, read_contents(weights.stem, weights))
        given = [compute.from_numpy(tensor)]
        made = engine.compute(given)

    def call() -> None:
        with compute.device(device):
            engine.run(given, made)
            compute.synchronize()

    call()
    return call, flat([compute.read(item) for item in made.values()])


def onnx_runtime(weights: Path, tensor: np.ndarray) -> tuple[Call, np.ndarray]:
    """ONNX Runtime's `run`."""
    import onnxruntime

    from dala.devices.cpu.threads import thread_count

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = thread_count()
    session = onnxruntime.InferenceSession(
        str(weights), options, providers=["CPUExecutionProvider"]
    )
    given = {session.get_inputs()[0].name: tensor}

    def call() -> list[np.ndarray]:
        return [np.asarray(item) for item in session.run(None, given)]

    return call, flat(call())


def flat(outputs: list[np.ndarray]) -> np.ndarray:
    """All outputs of a model, one after another."""
    return np.concatenate([item.astype(np.float32).reshape(-1) for item in outputs])


SIDES: dict[str, Side] = {
    "ours": ours,
    "opencv": opencv,
    "kernels": kernels,
    "webgpu": partial(kernels, device="webgpu"),
    "onnxruntime": onnx_runtime,
}


def main() -> None:
    name, weights, image, result = sys.argv[1:]
    call, logits = SIDES[name](Path(weights), np.load(image))
    np.save(result, logits)
    print("ready", flush=True)
    for line in sys.stdin:
        print(warm_seconds_per_call(call, int(line)), flush=True)


if __name__ == "__main__":
    main()
