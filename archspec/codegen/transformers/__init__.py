"""`build --to transformers`: begin with `api.py`."""
