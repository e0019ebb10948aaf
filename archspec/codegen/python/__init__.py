"""Python as `ast` nodes: templates (`trees.py`), shorter forms (`simplification.py`), text (`layout.py`)."""
