"""Models of other formats, made into ONNX."""
