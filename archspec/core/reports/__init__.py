"""The common form of results: `results.py`; tables for terminals, markdown and notebooks. `diagnostic_formats.py` has
the machine-readable formats of diagnostics.
"""
