"""`archspec scaffold`: drafts of specs from checkpoints; begin with `api.py`."""
