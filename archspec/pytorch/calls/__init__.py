"""PyTorch's calls, as `torch.export` records them, as operations and functions of the language.

Each row is a function of the builder, the types of the results, and the arguments: values, sizes and plain values. With
the builder of `values` it gives normal forms, with that of `lift` also their text. Begin with `registry.py`.
"""
