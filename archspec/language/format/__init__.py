"""`archspec fmt`: begin with `file.py`."""
