"""The operations of PyTorch as values.

Each function takes the builder, the types of the results, and the arguments: values, sizes and plain values.
"""
