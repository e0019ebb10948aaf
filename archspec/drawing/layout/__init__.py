"""Where the boxes and lines of a plan are: begin with `layout.py`."""
