"""PyTorch code from models: each definition becomes a class or a function. PyTorch is not needed.

The files are not run here, except with a stand-in for PyTorch (`stand_in/`) that checks their tensors. Begin with
`build.py`, then `file.py`; `scope/` has what code is called, `expressions/` how values are written, `classes/` the
definitions, `python/` the text; `transformers/` writes folders that `transformers` loads.
"""
