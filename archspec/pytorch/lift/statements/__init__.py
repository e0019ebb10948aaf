"""Statements of the lifted definitions: `program.py` plans them, `writing.py` writes them."""
