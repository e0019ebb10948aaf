"""Tables as text. Apart from `output.py`, because JSON and YAML need no tables."""

from __future__ import annotations

from argparse import Namespace

from archspec.core.reports.page import Page, render, render_markdown
from archspec.core.reports.tables import csv
from archspec.core.reports.terminal import output_layout

__all__ = ["csv", "format_page"]


def format_page(page: Page, options: Namespace) -> str:
    """Render a page for the terminal, or as markdown."""
    return render_markdown(page) if options.format == "markdown" else render(page, output_layout(options.wide))
