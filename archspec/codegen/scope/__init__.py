"""What generated code is called, and the context that its parts share: begin with `context.py`."""
