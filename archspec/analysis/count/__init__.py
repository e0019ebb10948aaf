"""`archspec count`: `count.py`, with the selection of tensors (`select.py`) and the tree of layers (`tree.py`)."""
