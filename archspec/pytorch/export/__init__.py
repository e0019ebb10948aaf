"""PyTorch modules as exported programs (`exporting.py`), and normal forms of their results (`capture.py`)."""
