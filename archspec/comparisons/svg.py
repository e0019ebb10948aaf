"""A bar chart of the components of two models, in SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

LABEL = 7.3
"""The approximate width of a character of a label; the font is monospaced."""
LONGEST = 44
WIDTH = 440
HEIGHT = 15


class Pair(NamedTuple):
    """A component: its label in each model ("" if it has none), its nesting `level`, and its parameter counts."""

    level: int
    labels: tuple[str, str]
    values: tuple[int | None, int | None]


def svg(names: tuple[str, str], rows: Sequence[Pair]) -> str:
    """Draw the components of two models, one bar each, all to one scale. Follows the reader's light or dark theme."""
    most = max((value for row in rows for value in row.values if value is not None), default=0) or 1
    shown = [tuple(_shortened("  " * row.level + label) for label in row.labels) for row in rows]
    left = 20 + LABEL * max((len(label) for pair in shown for label in pair), default=0)
    lines: list[str] = []
    y = 70
    for row, labels in zip(rows, shown, strict=True):
        lines.append("<g>")
        for side, (label, value) in enumerate(zip(labels, row.values, strict=True)):
            if value is not None:
                text = escape(f"{names[side]}: {row.labels[side]}, {value:,} parameters")
                length = WIDTH * value / most
                lines.append(f"<g><title>{text}</title>")
                lines.append(f'<text x="20" y="{y + 12}">{escape(label)}</text>')
                lines.append(f'<rect class="m{side}" x="{left:.0f}" y="{y}" width="{length:.2f}" height="{HEIGHT}"/>')
                lines.append(f'<text x="{left + length + 6:.1f}" y="{y + 12}">{value:,}</text></g>')
                y += HEIGHT + 2
        lines.append("</g>")
        y += 9
    heading = f"{names[0]} and {names[1]}: parameters by component"
    width, height = max(left + WIDTH + 110, 40 + LABEL * len(heading)), y + 11
    title = escape(heading)
    description = escape(". ".join(_sentence(names, row) for row in rows))
    keys = "".join(
        f'<rect class="m{side}" x="20" y="{30 + 17 * side}" width="11" height="11"/>'
        f'<text x="37" y="{40 + 17 * side}">{escape(name)}</text>'
        for side, name in enumerate(names)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
        f'height="{height}" role="img" aria-labelledby="title desc">\n'
        f'<title id="title">{title}</title>\n<desc id="desc">{description}</desc>\n<style>{_STYLE}</style>\n'
        f'<rect class="paper" width="100%" height="100%"/>\n<text class="head" x="20" y="20">{title}</text>\n{keys}\n'
        + "\n".join(lines)
        + "\n</svg>\n"
    )


def _sentence(names: tuple[str, str], row: Pair) -> str:
    text = [
        f"{label} of {name} has {value:,} parameters"
        for name, label, value in zip(names, row.labels, row.values, strict=True)
        if value is not None
    ]
    return ", ".join(text)


def _shortened(label: str) -> str:
    label = label.replace(" ", "\u00a0")
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#222}"
    ".head{font-weight:bold}.paper{fill:#fff}.m0{fill:#3b76af}.m1{fill:#d98032}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.paper{fill:#1b1b1b}.m0{fill:#6ca6dc}.m1{fill:#e9a15f}}"
)
