"""How values are written in a spec: the builder of their simplest form (`builder.py`), views, rows and indices."""
