"""The Fourier transform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.kernels.base.builtin import Given, Inputs, composite
from dala.kernels.base.parameters import flag, integer
from dala.kernels.base.results import float_dtype
from dala.kernels.base.shapes import Shape, around, axis_of
from dala.kernels.tensor.fourier_passes import MOST_RADIX, passes, radices_of
from dala.kernels.tensor.host_fourier import transform
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.composite import Stage


@composite(
    "x",
    axis=integer("the axis that is transformed, the pairs not counted", -1),
    inverse=flag("the inverse transform, divided by n"),
)
def fft(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The Fourier transform along an axis; complex numbers are pairs along a last axis of 2

    The output is (…, n, 2) of f32 or f64, the input the same, or (…, n) where it is real; `axis`
    does not count the pairs. `inverse=True` undoes it, and divides by n. It is computed in the
    output's precision for every n. If n has a prime factor above 16, NumPy computes it on the CPU,
    and elsewhere it takes a time that grows with n times that factor.
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
        raise DtypeError(f"fft: the output is {output.dtype}, but it holds floats: give f32.")
    axis = axis_of("fft", params["axis"], len(output.shape) - 1)
    if 0 in output.shape:
        return
    sizes = around(output.shape[:-1], axis, axis)
    if output.is_host and max(radices_of(sizes[1])) > MOST_RADIX:
        yield Stage(transform, inputs, output, {"axis": axis, "inverse": bool(inverse)})
    else:
        yield from passes(x, output, sizes, bool(inverse))


fft.typed(float_dtype)


@fft.sized
def _pairs_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    """What has a last axis of 2 is taken for pairs."""
    return shapes[0] if shapes[0][-1:] == (2,) else (*shapes[0], 2)
