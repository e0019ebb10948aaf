"""Pictures as SVG: `svg.py` draws a layout, `theme.py` and `paint.py` choose the colors."""
