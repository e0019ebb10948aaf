"""Figures for papers: what an author would draw of a model, in the width of a column, a page or a slide.

`elements.py` reads elements (attention, norms, sums, ...) and the edges between them (`flow.py`) from a graph,
`tidy.py` joins those that are one thing to a reader, and `stacks.py` layers that look alike. `rows.py` puts elements
into rows, `compose.py` rows, frames and panels (`panels.py`) onto a page, and `shapes.py` writes them as SVG or TikZ.
`api.py` has `figure`.
"""
