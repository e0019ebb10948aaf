"""What every package uses: diagnostics with locations, records, addresses, symbolic sizes, and the form of results.

Nothing here knows what a model, a spec or a library is. Begin with `diagnostics.py` (sources, locations, errors);
`algebra/` has the arithmetic of symbolic sizes, and `reports/` turns results into text, HTML, JSON and CSV.
"""
