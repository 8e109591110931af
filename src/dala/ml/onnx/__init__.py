"""ONNX files: read, checked, never trusted."""
