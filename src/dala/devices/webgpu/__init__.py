"""The WebGPU devices, through wgpu."""
