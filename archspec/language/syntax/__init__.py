"""Source text to syntax tree (`parse.py`, `tree.py`), and messages for syntax errors (`messages.py`)."""
