"""Syntax trees to the IR: names are resolved, numbers are evaluated, definitions are elaborated and checked.

No configurations, checkpoints, caches or output. Begin with `elaborate/models.py`: `resolve/` finds what names refer
to, `evaluate/` computes hyperparameters and conditions, `elaborate/` makes modules with their totals
(`ownership.py`, `ties.py`) and bodies (`bodies.py`), and `check.py` looks for what is unused.
"""
