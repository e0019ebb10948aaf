"""Decisions whether specs and PyTorch modules compute the same, by their normal forms, or else by their outputs.

Begin with `api.py` (`equivalent`) and `prove.py`. `sides.py` makes comparable values of both; `numeric.py` runs them.
`tables.py` compares the tensors that both store, and `state.py` finds out whether calls change a module.
Normal forms are arrays and elements of `archspec.ir.normal`, by the forms of operations in `archspec.ir.normal.forms`.
"""
