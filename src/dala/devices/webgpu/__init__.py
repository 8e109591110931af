"""Adapters that WebGPU reaches, through wgpu."""
