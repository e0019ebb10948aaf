"""Sizes as hyperparameters: `sizes.py` decides, `candidates.py` proposes formulas."""
