"""Special cases, one idiom in each module, each with the code before and after.

While a module is exported, `intercepting.py`, `known_numbers.py`, `own_operations.py` and `precision.py` change
PyTorch, and `iterations.py` changes loops. The other modules rewrite exported programs; `programs.py` has what these
share.
"""
