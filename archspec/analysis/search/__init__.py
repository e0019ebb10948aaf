"""`archspec search`: begin with `api.py`; `regions.py` has formulas for many designs at once."""
