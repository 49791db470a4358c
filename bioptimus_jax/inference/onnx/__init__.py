"""Finished models as one ONNX file: traced by torch.onnx, run by onnxruntime, and behind a gate of their own."""
