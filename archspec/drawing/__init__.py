"""Pictures of models: graphs, plans of pictures, their layout, SVG, and pages for a browser.

Nothing is computed here that the table or the IR do not have, and models are not compared. Begin with `api.py`:
`graph/` has the networkx graph and its formats, and `plan/` what is drawn, `layout/` where, `svg/` and `page/` how.
"""
