"""Recorded commands, encoded by the functions of wgpu-native itself.

The methods of wgpu look for an error after every call of theirs, which takes 24 calls of Python for
each dispatch. wgpu-native reports what is wrong with a pass when the encoder is finished, so one
look is enough: a replay of any length costs a few calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wgpu.backends.wgpu_native import ffi, lib

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu


def encode(device: WebGpu, encoder: Any, commands: Sequence[tuple[Any, ...]]) -> None:
    """Encodes dispatches and copies in order; what lies between two copies is one pass."""
    set_pipeline = lib.wgpuComputePassEncoderSetPipeline
    set_bind_group = lib.wgpuComputePassEncoderSetBindGroup
    dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
    none = ffi.NULL
    compute, handle, last = None, None, None
    for pipeline, *rest in commands:
        if pipeline is None:
            if compute is not None:
                compute.end()
                compute, last = None, None
            source, target, size = rest
            encoder.copy_buffer_to_buffer(source, 0, target, 0, size)
            continue
        if compute is None:
            compute = device.begin_pass(encoder)
            handle = compute._internal
        if pipeline is not last:
            set_pipeline(handle, pipeline._internal)
            last = pipeline
        group, (x, y, z) = rest
        set_bind_group(handle, 0, group._internal, 0, none)
        dispatch(handle, x, y, z)
    if compute is not None:
        compute.end()
