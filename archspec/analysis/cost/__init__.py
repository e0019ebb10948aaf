"""`archspec cost`: `cost.py` for a forward pass, `decoding.py` for `--past`, `memory.py` for bytes."""
