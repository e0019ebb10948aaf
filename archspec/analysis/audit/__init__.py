"""`archspec audit`: published calculations, line by line; begin with `api.py`."""
