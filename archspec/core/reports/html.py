"""Reports as HTML for notebooks: no script, no style sheet, in the colors of the page around it, light or dark."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from archspec.core.diagnostics import escape_for_terminal
from archspec.core.reports.page import Block, Page
from archspec.core.reports.roles import ROLES
from archspec.core.reports.tables import Bar, Cell, Column, View, is_right, text, used

_LINE = "rgba(128, 128, 128, 0.35)"
_FONT = "font-family: system-ui, sans-serif; font-size: 13px; line-height: 1.5"
_CELL = "padding: 1px 12px 1px 0; border: 0; background: none; vertical-align: top"
_BAR = "display: inline-block; height: 0.7em; background: #5b86d6"


def render_html(page: Page) -> str:
    """Render a page as an HTML fragment; all text is escaped."""
    heading = f"<div><b>{_escaped(page.heading)}</b></div>" if page.heading else ""
    blocks = "".join(_block(block) for block in page.blocks if block)
    return f'<div style="{_FONT}; overflow-x: auto">{heading}{blocks}</div>'


def _block(block: Block) -> str:
    if isinstance(block, View):
        return _table(used(block))
    lines = [block] if isinstance(block, str) else block
    return f'<div style="margin: 6px 0">{"".join(f"<div>{_escaped(line)}</div>" for line in lines)}</div>'


def _table(view: View) -> str:
    right = [is_right(view, column) for column in view.columns]
    titles = [
        f'<th style="{_CELL}; text-align: {_side(number)}">{_escaped(column.title)}</th>'
        for column, number in zip(view.columns, right, strict=True)
    ]
    rows: list[str] = []
    for row in view.rows:
        cells = [_cell(row, column, number) for column, number in zip(view.columns, right, strict=True)]
        rows.append(f'<tr style="background: none">{"".join(cells)}</tr>')
    return (
        '<table style="border-collapse: collapse; margin: 8px 0; color: inherit; font-size: inherit">'
        f'<thead><tr style="border-bottom: 1px solid {_LINE}; background: none">{"".join(titles)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _cell(row: Mapping[str, Cell], column: Column, is_number: bool) -> str:
    space = "pre-wrap" if column.fit == "wrap" else "pre"
    value, style = row[column.key], f"{_CELL}; text-align: {_side(is_number)}; white-space: {space}"
    if isinstance(value, Bar):
        width = 20 * value.value / value.maximum if value.maximum else 0
        return f'<td style="{style}"><span style="{_BAR}; width: {width:.2f}em"></span></td>'
    if is_number:
        style += "; font-variant-numeric: tabular-nums"
    if column.style in ("dim", "unit"):
        style += "; opacity: 0.7"
    shown = _escaped(text(value) or column.blank)
    if column.style == "role":
        shown = _swatch(row.get("role")) + shown
    return f'<td style="{style}">{shown}</td>'


def _swatch(role: Cell) -> str:
    """Return a square in the color of a role, with its name as a tooltip."""
    if not isinstance(role, str) or role not in ROLES:
        return ""
    style = (
        f"display: inline-block; width: 0.7em; height: 0.7em; margin-right: 0.4em; background: {ROLES[role].light.line}"
    )
    return f'<span title="{_escaped(role)}" style="{style}"></span>'


def _side(is_number: bool) -> str:
    return "right" if is_number else "left"


def _escaped(text: str) -> str:
    return escape(escape_for_terminal(text))
