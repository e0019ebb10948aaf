"""`archspec compare`: models side by side; begin with `compare.py`."""
