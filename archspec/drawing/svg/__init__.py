"""Pictures as SVG: `svg.py` draws a layout, `theme.py` has the colors, `paint.py` chooses one for each box."""
