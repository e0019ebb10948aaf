"""`build --to onnx`: begin with `api.py`; `program.py` exports, `naming.py` gives tensors the names of the spec."""
