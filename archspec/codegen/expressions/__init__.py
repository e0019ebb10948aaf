"""Values as Python expressions: begin with `expressions.py`."""
