"""Reports as a web page: one file with pictures and tables, without scripts and requests, light or dark."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape

from archspec.core.diagnostics import escape_for_terminal
from archspec.core.reports.page import Block, Page
from archspec.core.reports.roles import style_of
from archspec.core.reports.tables import Bar, Cell, Column, View, is_right, text, used

_STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #161b26; --dim: #4d5566; --line: #d5dae3; --bar: #3b76af }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #12161d; --ink: #eef1f6; --dim: #b4bccb; --line: #333c4b; --bar: #6ca6dc }
}
body { margin: 24px 26px; background: var(--paper); color: var(--ink);
  font: 14px/1.5 Helvetica, Arial, "Liberation Sans", sans-serif }
h1 { font-size: 18px; margin: 0 0 14px }
.wide { overflow-x: auto; margin: 0 -26px }
.wide svg { display: block }
label { color: var(--dim); font-size: 12px }
#fit:checked ~ .wide svg { max-width: 100%; height: auto }
.dark { display: none }
@media screen and (prefers-color-scheme: dark) { .dark { display: block } .light { display: none } }
.table { overflow-x: auto; margin: 18px 0 }
table { border-collapse: collapse }
th { text-align: left; color: var(--dim); border-bottom: 1px solid var(--line) }
th, td { padding: 2px 18px 2px 0; vertical-align: top; white-space: pre }
.wrap { white-space: pre-wrap; min-width: 12em; overflow-wrap: anywhere }
.number { text-align: right; font-variant-numeric: tabular-nums }
.dim, p { color: var(--dim) }
p { margin: 0 }
rect.bar { fill: var(--bar) }
"""

_BAR = 260
"""Width of the longest bar, in pixels."""


def webpage(page: Page, light: str, dark: str) -> str:
    """Return a report with a picture above its tables, as a file of HTML; `light` and `dark` are the picture as SVG.

    All text is escaped, and the content security policy of the page allows no requests.
    """
    style_hash = b64encode(sha256(_STYLE.encode()).digest()).decode()
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{style_hash}'; "
        'img-src data:">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{_escaped(page.heading)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{_escaped(page.heading)}</h1>\n"
        '<input type="checkbox" id="fit"><label for="fit"> Fit the picture to the window</label>\n'
        f'<div class="wide light">{light}</div>\n<div class="wide dark">{dark}</div>\n'
        + "".join(_block(block) for block in page.blocks if block)
        + "</body>\n</html>\n"
    )


def _block(block: Block) -> str:
    if isinstance(block, View):
        return _table(used(block))
    lines = [block] if isinstance(block, str) else block
    return "".join(f"<p>{_escaped(line)}</p>\n" for line in lines)


def _table(view: View) -> str:
    right = [is_right(view, column) for column in view.columns]
    titles = "".join(
        f"<th{_class('number' if number else '')}>{_escaped(column.title)}</th>"
        for column, number in zip(view.columns, right, strict=True)
    )
    rows = "\n".join(
        f"<tr>{''.join(_cell(row, column, number) for column, number in zip(view.columns, right, strict=True))}</tr>"
        for row in view.rows
    )
    return f'<div class="table"><table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n'


def _cell(row: Mapping[str, Cell], column: Column, is_number: bool) -> str:
    value = row[column.key]
    if isinstance(value, Bar):
        length = _BAR * value.value / value.maximum if value.maximum else 0
        return (
            f'<td><svg width="{_BAR}" height="12"><rect class="bar" y="1" width="{length:.2f}" height="11"/></svg></td>'
        )
    names = ["number" if is_number else "", "wrap" if column.fit == "wrap" else ""]
    names.append("dim" if column.style in ("dim", "unit") else "")
    shown = _escaped(text(value) or column.blank)
    if column.style == "role":
        role = row.get("role")
        shown = _swatch(role if isinstance(role, str) else None) + shown
    return f"<td{_class(*names)}>{shown}</td>"


def _swatch(role: str | None) -> str:
    """Return a square in the color of a role, if it has one."""
    style = style_of(role)
    if not style.letter:
        return ""
    return f'<svg width="15" height="10"><rect width="10" height="10" fill="{style.light.line}"/></svg>'


def _class(*names: str) -> str:
    classes = " ".join(name for name in names if name)
    return f' class="{classes}"' if classes else ""


def _escaped(text: str) -> str:
    return escape(escape_for_terminal(text))
