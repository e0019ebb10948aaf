"""Everything that needs PyTorch: proofs, lifting, weights, ONNX, memory of activations, modules from specs.

What works without PyTorch is elsewhere. Begin with `calls/` (PyTorch's calls as operations) and `export/` (a module
as a program); `prove/` compares programs with specs, `lift/` writes specs, `run/` and `onnx/` use generated modules.
"""
