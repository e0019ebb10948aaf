"""Human-readable reports: tables and text under a heading, for a terminal, as markdown or HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from archspec.core.diagnostics import escape_for_terminal
from archspec.core.record import Record
from archspec.core.reports.tables import View, escape_markdown, markdown
from archspec.core.reports.terminal import Layout, table
from archspec.core.wrapping import output_width, wrap_line

Block: TypeAlias = View | str | list[str]
"""A table, a paragraph, or lines: the items of a list in markdown."""


class Page(Record):
    """A heading ("" for none), and the blocks below it."""

    heading: str
    blocks: Sequence[Block]


def render(page: Page, layout: Layout) -> str:
    """Render a page for a terminal, with blank lines between its blocks."""

    def line(text: str) -> str:
        return "\n".join(wrap_line(escape_for_terminal(text), layout.line_width))

    return _join_blocks(page, lambda view: table(view, layout), line, "", "")


def render_plain(page: Page) -> str:
    """Return a page as text of the terminal's width, without colors."""
    return render(page, Layout(output_width())).rstrip("\n")


def render_markdown(page: Page) -> str:
    """Render a page as markdown."""
    return _join_blocks(page, markdown, lambda text: escape_markdown(escape_for_terminal(text)), "## ", "- ")


def _join_blocks(page: Page, table: Callable[[View], str], line: Callable[[str], str], heading: str, item: str) -> str:
    def format_block(block: Block) -> str:
        if isinstance(block, View):
            return table(block)
        if isinstance(block, str):
            return f"{line(block)}\n"
        return "".join(f"{item}{line(text)}\n" for text in block)

    heading_lines = [f"{heading}{line(page.heading)}\n"] if page.heading else []
    return "\n".join([*heading_lines, *(format_block(block) for block in page.blocks if block)])
