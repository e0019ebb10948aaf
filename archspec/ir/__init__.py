"""A compiled model as data: modules that own tensors, bodies that compute, operations, tables, and normal forms.

It has no source text or file names, and runs no code. Begin with `module.py` (the IR); `ops/` has one record per
operation, `tabulate.py` builds the table of tensors (`table.py`), and `normal/` decides whether two values are equal.
"""
