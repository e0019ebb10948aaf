"""Human-readable reports: tables and text under a heading, for a terminal or as markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from archspec.reporting.tables import View, escape_markdown, write
from archspec.source import printable

Block: TypeAlias = View | str | list[str]
"""A table, a paragraph, or lines: the items of a list in markdown."""


def render(heading: str, blocks: Sequence[Block], format: str) -> str:
    """Render blocks under a heading, separated by blank lines; `format` is "table" or "markdown"."""
    is_markdown = format == "markdown"

    def line(text: str) -> str:
        return escape_markdown(printable(text)) if is_markdown else printable(text)

    def written(block: Block) -> str:
        if isinstance(block, View):
            return write(block, format)
        if isinstance(block, str):
            return f"{line(block)}\n"
        return "".join(f"{'- ' * is_markdown}{line(text)}\n" for text in block)

    return "\n".join([f"{'## ' * is_markdown}{line(heading)}\n", *map(written, blocks)])
