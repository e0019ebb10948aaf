"""A stand-in for PyTorch with shapes and no numbers: `recording.py` runs a generated file with it."""
