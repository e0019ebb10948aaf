"""Figures for papers: what an author would draw of a model, in the width of a column, a page or a slide.

`elements.py` reads elements (attention, norms, sums, ...) and the edges between them from a graph, and `stacks.py`
joins layers that look alike. `rows.py` puts elements into rows, `compose.py` rows, frames and panels onto a page, and
`paint.py` writes its shapes as SVG or TikZ. `api.py` has `figure`.
"""
