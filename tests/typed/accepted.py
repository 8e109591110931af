"""Programs that type checkers accept; right ones, though none of them is run."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

import dala
import dala.filters
from dala import compute, filters, media, models, surfaces
from dala.filters import blur
from dala.gpu import compute as by_its_long_name
from dala.ml import gpu as ml

photo = Image.new("RGB", (4, 4))
image = np.zeros((4, 4, 3), np.uint8)
x = compute.buffer_zeros((4,), "f32")


@dala.kernel(border="mirror")
def smooth(a, share: dala.f32 = 0.5, rounds: dala.s32 = 1, sharp: dala.bool = False):
    i, j = dala.position(2)
    return dala.mix(a[i, j], a[i + 1, j], share)


class Ray(NamedTuple):
    origin: dala.vec3
    direction: dala.vec3 = (0.0, 0.0, 1.0)
    length: dala.f32 = 1.0


@dala.function
def end_of(ray: Ray) -> dala.vec3:
    return ray.origin + ray._replace(length=2.0).length * dala.normalize(ray.direction)


@dala.kernel
def ends(points: dala.Array[dala.vec3], turn: dala.mat3, ray: Ray) -> dala.vec3:
    turned = dala.inverse(turn) @ dala.identity(3) @ (points * 2.0 - points[0])
    return turned.xyz + end_of(Ray(ray.origin, length=3.0))


# Points go in as they are, and named tuples as instances.
moved: np.ndarray = ends(np.zeros((4, 3), np.float32), turn=np.eye(3), ray=Ray((0.0, 0.0, 0.0)))

# An image comes back as what was given.
array: np.ndarray = filters.blur(image, radius=3, sigma=1.5)
pillow: Image.Image = blur(photo, 3)
on_a_device: compute.Buffer = dala.filters.grayscale(compute.from_numpy(image))
raw: bytes = filters.blur(image.tobytes(), 4, 4, radius=np.int64(3))
filters.crop(image.tobytes(), 4, 4, 1, 1, width=2, height=2)
filters.convert(image, "rgb", "nv12", matrix="bt709")
filters.blend(image, image, mode="color_dodge", alpha=np.float32(0.5))
filters.background_replace(image, image)
filters.background_blur(image, radius=12, every=5, model=Path("own.onnx"))
filters.resize(image, "50%")
filters.resize(image, shape=image.shape[:2])
filters.chroma_key(image, (0.0, 0.7, 0.3), similarity=0.2)
filters.lut(image, Path("warm.cube"))
filters.apply_filter(image, "sepia", intensity=0.5, out=array)

# Commands and stages, as keywords and as mappings.
compute.submit(kernel="relu", inputs=[x], output=x, params={"slope": 0.5})
compute.submit({"kernel": "relu", "inputs": [x], "output": x})
compute.submit(op="copy_buffer", inputs=[x], output=x)
compute.submit(compute.pipeline().add(kernel=smooth, inputs=[x], output=x, name="first"))
compute.pipeline().add(op="barrier").add({"kernel": "relu", "inputs": [x], "output": x})
compute.pipeline().add(smooth, [x], [x, x]).add("relu", [x], x, {"slope": 0.5}, name="last")
compute.submit(kernel=smooth, inputs=[x], output=[x, x])
by_its_long_name.run_kernel("relu", [x], x, {"slope": 0.5})
by_its_long_name.run_kernel(smooth, [x], [x, x])

# Kernels are called, and give back what they were given.
computed: np.ndarray = smooth(image, 0.5, rounds=2, dtype="f32", shape=(4, 4))
buffered: compute.Buffer = smooth(x, share=0.5)
into: np.ndarray = smooth(x, out=image)
smooth(a=image, share=np.float32(1), rounds=2)
low, high = smooth(image, dtype=("f32", "u8"))
both: tuple[compute.Buffer, ...] = smooth(x, out=(x, x))
compute.Kernel.lookup("lut")(image, table=Path("warm.cube"))
compute.Kernel.lookup("color_matrix")(image, [[1.0, 0.0], [0.0, 1.0]])

# Dtypes by every name that they have.
compute.buffer([1.0], (1,), "float32")
compute.buffer([1.0], 1, np.float32)
compute.buffer_zeros((1,), np.dtype("u1"))
compute.scratch(x.shape, x.dtype)

# What models see, by their task.
classes: list[str] = [found.label for found in models.load_model("mobilenet_v2")(image, top_k=3)]
boxes: list[float] = [found.score for found in models.load_model("yolo_v5")(photo, threshold=0.5)]
nose: ml.Keypoint = ml.load_model("posenet")(image)[0].keypoints["nose"]
mask: np.ndarray = models.load_model("selfie_segmentation")(image).mask
several: list[ml.Segmentation] = models.load_model("deeplab")([image, image])
like: str = models.load_model("own.onnx", like="blazeface")(image)[0].label
models.load_model(Path("own.onnx"))(image).anything

surface = surfaces.create_surface(4, 4, kind="offscreen")
surfaces.present(surface)
dala.gpu.present(surface)
media.save(media.load("photo.png"), "out.png")
