"""Programs as WGSL."""
