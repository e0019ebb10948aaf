"""Shared foundations: diagnostics with locations, records, addresses, symbolic sizes, and the display of results.

This package depends on no other, and has no notion of models, specs or libraries. Begin with `diagnostics.py` (sources,
locations, errors and their text, with the caret under a mistake); `algebra/` has the arithmetic of symbolic sizes, and
`reports/` turns results into text, HTML, JSON and CSV.
"""
