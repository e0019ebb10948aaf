"""`archspec cost`: `cost.py` for a forward pass, `decoding.py` for `--past`, `training.py`, `memory.py` for bytes."""
