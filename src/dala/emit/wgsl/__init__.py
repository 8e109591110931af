"""Code generation for WebGPU: emits WGSL."""
