"""Programs that type checkers refuse, each at the line that says so."""

from typing import NamedTuple

import numpy as np

import dala
from dala import compute, filters, models, surfaces
from dala.gpu import compute as by_its_long_name
from dala.media import gpu
from dala.ml import gpu as ml

image = np.zeros((4, 4, 3), np.uint8)
x = compute.buffer_zeros((4,), "f32")

# Names that are not there.
gpu.nonsense(image)  # refused
filters.nonsense(image)  # refused
dala.nonsense  # refused
dala.gpu.nonsense  # refused
surfaces.nonsense  # refused
by_its_long_name.nonsense  # refused
ml.nonsense  # refused

# Parameters of filters.
gpu.blur(image, raduis=3)  # refused
filters.blur(image, radius="wide")  # refused
filters.blend(image, image, mode="multply")  # refused
filters.brightness(image)  # refused
filters.blur("photo.png")  # refused
filters.blur(image.tobytes(), radius=3)  # refused

# Commands and stages.
compute.submit(kernl="relu", inputs=[x], output=x)  # refused
compute.submit(kernel="relu", inputs=x, output=x)  # refused
compute.submit(op="run_kernal", kernel="relu", inputs=[x], output=x)  # refused
compute.run_kernel("relu", [x], x, parms={"slope": 0.5})  # refused
compute.run_kernel("relu", [x], [image, x])  # refused
compute.pipeline().add("relu", x, x)  # refused
compute.pipeline().add(kernel="relu", inputs=[x], outptu=x)  # refused
compute.pipeline_add(compute.pipeline(), kernel="relu", input=[x], output=x)  # refused
compute.stream(max_in_flight=2).submit(kernal="relu", inputs=[x], output=x)  # refused

# Calls of kernels.
relu = compute.Kernel.lookup("relu")
relu(x, dtype="f23")  # refused
relu(x, shape="wide")  # refused
relu(x, slope={"much": 1})  # refused
relu(x, out=3)  # refused
never: np.ndarray = relu(x)  # refused

# Dtypes.
compute.buffer([1.0], (1,), "f23")  # refused
compute.buffer_zeros((1,), "f23")  # refused
compute.scratch((1,), "float23")  # refused
if x.dtype == "u8":
    wrong: int = x.dtype  # refused

# What models see.
models.load_model("posenet")(image)[0].text  # refused
models.load_model("selfie_segmentation")(image)[0]  # refused
models.load_model("own.onnx", like="yolo_v5")(image)[0].keypoint  # refused
models.load_model("mobilenet_v2")(image, treshold=0.5)  # refused
models.predict_frame(models.load_model("deeplab"), image).box  # refused


class Ball(NamedTuple):
    center: dala.vec3
    radius: dala.f32 = 1.0


@dala.function
def inside(ball: Ball) -> dala.f32:
    return ball.raduis  # refused


Ball((0.0, 0.0, 0.0), radius="wide")  # refused
dala.mat5  # refused
