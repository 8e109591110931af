"""Fault 41: tensors that a model does not take."""

import numpy as np
import pytest
from ml.small_models import doubling

from dala import errors, ml
from dala.gpu import compute


def test_41_a_wrong_shape_or_dtype_names_what_was_given_and_what_is_taken(device):
    model = ml.gpu.load_model(doubling())
    for shape in ((1, 5), (4,), (1, 4, 1), (0, 4)):
        for given in (np.zeros(shape, np.float32), compute.buffer_zeros(shape, "f32")):
            with pytest.raises(errors.ShapeError) as refused:
                ml.gpu.predict(model, given)
            assert str((1, 4)) in str(refused.value)
            assert str(shape) in str(refused.value)
    for dtype, name in ((np.uint8, "u8"), (np.float64, "f64"), (np.float16, "f16")):
        with pytest.raises(errors.DtypeError, match=rf"is f32 \(1, 4\), but {name} \(1, 4\)"):
            ml.gpu.predict(model, np.zeros((1, 4), dtype))
    good = compute.buffer([1.0, 2.0, 3.0, 4.0], (1, 4), "f32")
    assert compute.read_list(ml.gpu.predict(model, good)) == [2.0, 4.0, 6.0, 8.0]
