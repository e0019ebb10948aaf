"""`archspec verify`: checkpoints against models; begin with `verify.py`."""
