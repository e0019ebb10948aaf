"""`archspec diff`: changes of tensors (`structure.py`) and operations (`operations.py`)."""
