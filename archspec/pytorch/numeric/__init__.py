"""Evaluation of normal forms to numbers: `evaluate.py`."""
