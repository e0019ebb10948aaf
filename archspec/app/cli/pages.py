"""Pages of tables for the reader of a command."""

from __future__ import annotations

from argparse import Namespace

from archspec.core.reports.page import Page, render, render_markdown
from archspec.core.reports.tables import csv as csv_text
from archspec.core.reports.terminal import output_layout

__all__ = ["csv_text", "page_text"]


def page_text(page: Page, options: Namespace) -> str:
    """Render a page for the terminal, or as markdown."""
    return render_markdown(page) if options.format == "markdown" else render(page, output_layout(options.wide))
