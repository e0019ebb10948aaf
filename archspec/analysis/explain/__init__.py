"""`archspec explain`: counting conventions behind published numbers; begin with `explain.py`. `flops/` is for FLOPs."""
