"""Operations of PyTorch, as `torch.export` records them, in normal form.

Each function takes the arrays, the types of the results, and the arguments: arrays, sizes and plain values.
"""
