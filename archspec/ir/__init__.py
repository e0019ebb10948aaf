"""A compiled model as data: modules that own tensors, bodies that compute, operations, tables, and normal forms.

No source text, no file names, and no code that is run. Begin with `module.py` (the IR); `ops/` has one record for each
operation, `tabulate.py` makes the table of tensors (`table.py`), and `normal/` decides whether two values are equal.
"""
