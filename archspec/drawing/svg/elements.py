"""The elements of SVG pictures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from archspec.drawing.layout.frames import Point
from archspec.drawing.plan.metrics import is_known, width

TIP, TIP_WIDTH = 7.0, 3.2
"""Length of the tip of an arrow, and half its width."""


def number(value: float) -> str:
    """Format a coordinate."""
    return f"{value:.1f}".removesuffix(".0")


class Canvas:
    """The elements of a picture: `over` is drawn after `below`."""

    def __init__(self) -> None:
        self.below: list[str] = []
        self.over: list[str] = []

    @staticmethod
    def clean(text: str) -> str:
        """Escape a text, without characters that do not print."""
        return escape("".join([c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text]))

    def tooltip(self, text: str) -> str:
        """Return a description of a group."""
        return f"<title>{self.clean(text)}</title>"

    def text(
        self,
        x: float,
        y: float,
        line: str,
        color: str,
        size: float,
        weight: str = "",
        *,
        anchor: str = "",
        italic: bool = False,
        halo: str = "",
    ) -> str:
        """Return a line of text, bold if it has a weight. One with characters of unknown width is made to fit it.

        A halo is a second text below the first: not every program that reads SVG knows `paint-order`.
        """
        extra = f' font-weight="{weight}"' if weight else ""
        extra += f' text-anchor="{anchor}"' if anchor else ""
        extra += ' font-style="italic"' if italic else ""
        if not is_known(line):
            extra += f' textLength="{number(width(line, size, bool(weight)))}" lengthAdjust="spacingAndGlyphs"'
        start = f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}"{extra}'
        shown = f'{start} fill="{color}">{escape(line)}</text>'
        if not halo:
            return shown
        around = f'fill="{halo}" stroke="{halo}" stroke-width="4" stroke-linejoin="round" aria-hidden="true"'
        return f"{start} {around}>{escape(line)}</text>{shown}"

    @staticmethod
    def rounded(points: Sequence[Point], radius: float) -> str:
        """Return the data of a path through points, with rounded corners."""
        parts = [f"M{number(points[0][0])} {number(points[0][1])}"]
        for before, corner, after in zip(points, points[1:], points[2:], strict=False):
            room = min(radius, _length(before, corner) / 2, _length(corner, after) / 2)
            start, end = _towards(corner, before, room), _towards(corner, after, room)
            parts.append(f"L{number(start[0])} {number(start[1])}")
            parts.append(f"Q{number(corner[0])} {number(corner[1])} {number(end[0])} {number(end[1])}")
        parts.append(f"L{number(points[-1][0])} {number(points[-1][1])}")
        return "".join(parts)

    @staticmethod
    def tip(points: Sequence[Point]) -> str:
        """Return the data of the tip of an arrow at the end of a line."""
        (x, y), base = points[-1], _towards(points[-1], points[-2], TIP)
        across = (TIP_WIDTH, 0.0) if abs(points[-1][0] - points[-2][0]) < 0.05 else (0.0, TIP_WIDTH)
        one = (base[0] + across[0], base[1] + across[1])
        other = (base[0] - across[0], base[1] - across[1])
        corners = [f"{number(a)} {number(b)}" for a, b in ((x, y), one, other)]
        return f"M{'L'.join(corners)}Z"

    @staticmethod
    def before_tip(points: Sequence[Point]) -> Point:
        """Return where a line with a tip ends."""
        return _towards(points[-1], points[-2], min(TIP - 2, _length(points[-2], points[-1]) / 2))

    @staticmethod
    def flake(x: float, y: float, color: str) -> str:
        """Return a snowflake, the sign of frozen parameters."""
        rays = [(5.0, 0.0), (2.5, 4.3), (2.5, -4.3)]
        data = "".join(f"M{number(x - dx)} {number(y - dy)}L{number(x + dx)} {number(y + dy)}" for dx, dy in rays)
        return f'<path d="{data}" stroke="{color}" stroke-width="1.3" fill="none"><title>frozen</title></path>'


def _length(a: Point, b: Point) -> float:
    return ((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) ** 0.5


def _towards(start: Point, end: Point, distance: float) -> Point:
    length = _length(start, end) or 1.0
    return start[0] + (end[0] - start[0]) * distance / length, start[1] + (end[1] - start[1]) * distance / length
