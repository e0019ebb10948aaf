"""Normal forms of values: `elements.py` (expressions of indices), `arrays.py` (arrays of them), `bodies.py`."""
