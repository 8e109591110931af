"""The Fourier transform."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.kernels.builtin import Given, Inputs, library, recipe
from dala.kernels.shapes import axis_of
from dala.runtime.buffer import Buffer
from dala.runtime.recipe import Stage


@recipe("x", axis=-1, inverse=False)
def fft(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The Fourier transform along an axis; complex numbers are pairs along a last axis of 2

    The output is (…, n, 2) of f32 or f64, the input the same, or (…, n) where it is real; `axis`
    does not count the pairs. `inverse=True` undoes it, and divides by n. NumPy's transform computes
    it, in the output's precision, for every n.
    """
    (x,) = inputs
    inverse = params["inverse"]
    if inverse not in (True, False):
        raise ArgumentError(f"fft: inverse is True or False, not {inverse!r}.")
    if output.shape[-1:] != (2,) or x.shape not in (output.shape, output.shape[:-1]):
        raise ShapeError(
            f"fft: the output is {output.shape} and the input {x.shape}: the output is (…, n, 2), "
            f"the input the same, or (…, n) where it is real."
        )
    if not output.scalar.is_float:
        raise DtypeError(f"fft: the output is {output.dtype}, but it holds f32 or f64.")
    axis = axis_of("fft", params["axis"], len(output.shape) - 1)
    if 0 not in output.shape:
        yield Stage(transform, inputs, output, {"axis": axis, "inverse": bool(inverse)})


@library("x")
def transform(x: np.ndarray, *, out: np.ndarray, axis: int, inverse: bool) -> None:
    """NumPy's transform of pairs, or of real numbers."""
    pairs = np.result_type(out.dtype, np.complex64)
    function = np.fft.ifft if inverse else np.fft.fft
    with np.errstate(all="ignore"):
        values = x.astype(out.dtype, copy=False)
        if x.ndim == out.ndim:
            values = values.view(pairs)[..., 0]
        function(values, axis=axis, out=out.view(pairs)[..., 0])
