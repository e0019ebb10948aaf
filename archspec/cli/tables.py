"""Output of tables."""

from __future__ import annotations

import sys
from argparse import Namespace

from archspec.reporting.page import Page, render, render_markdown
from archspec.reporting.tables import View, csv
from archspec.reporting.terminal import output_layout


def write_page(page: Page, options: Namespace) -> None:
    """Write a page for a terminal or as markdown."""
    is_markdown = options.format == "markdown"
    sys.stdout.write(render_markdown(page) if is_markdown else render(page, output_layout(options.wide)))


def write_rows(view: View) -> None:
    """Write rows as csv."""
    sys.stdout.write(csv(view))
