"""Values: what a module computes, with normal forms, and the builder of new ones.

Begin with `builder.py`, which makes `values.py`. `library.py` applies functions of the standard library, `arguments.py`
reads what PyTorch's calls are given. How values are written in a spec is in `lift`.
"""
