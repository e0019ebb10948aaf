"""Scatter plot of two figures of each design, as SVG or with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from archspec.core.diagnostics import make_error
from archspec.core.record import Node
from archspec.drawing.svg.elements import Canvas, number
from archspec.drawing.svg.svg import document
from archspec.drawing.svg.theme import THEMES, Theme

WIDTH, HEIGHT = 720.0, 460.0
LEFT, RIGHT, TOP, BOTTOM = 84.0, 26.0, 58.0, 58.0
MAX_TICKS = 6

_UNITS = (("", 1), ("K", 10**3), ("M", 10**6), ("G", 10**9), ("T", 10**12), ("P", 10**15))


class PlotPoint(Node):
    """A design at a point; `text` describes one of the chosen designs."""

    x: int
    y: int
    text: str = ""


class Plot(Node):
    """A plot of the chosen designs of a search, and of other designs that satisfy its conditions."""

    title: str
    x: str
    y: str
    others: tuple[PlotPoint, ...]
    chosen: tuple[PlotPoint, ...]


def svg(plot: Plot, theme: str = "light") -> str:
    """Return a plot as SVG, "light" or "dark". Hovering over a chosen design shows its description."""
    colors = THEMES[theme]
    dots = (*plot.others, *plot.chosen)
    x_scale = _Scale([dot.x for dot in dots], LEFT, WIDTH - RIGHT)
    y_scale = _Scale([dot.y for dot in dots], HEIGHT - BOTTOM, TOP)
    parts = [_text(LEFT, 28, plot.title, colors.ink, size=15)]
    parts += _axes(plot, x_scale, y_scale, colors)
    points = dict.fromkeys(
        f"M{number(x_scale.position(dot.x))} {number(y_scale.position(dot.y))}h0" for dot in plot.others
    )
    parts.append(f'<path d="{"".join(points)}" stroke="{colors.side}" stroke-width="4" stroke-linecap="round"/>')
    for dot in plot.chosen:
        center = f'cx="{number(x_scale.position(dot.x))}" cy="{number(y_scale.position(dot.y))}"'
        parts.append(
            f'<circle {center} r="5" fill="{colors.cross}" stroke="{colors.background}">'
            f"<title>{Canvas.clean(dot.text)}</title></circle>"
        )
    return document(plot.title, WIDTH, HEIGHT, colors, "".join(parts))


def draw(plot: Plot, ax: Any = None) -> Any:
    """Draw a plot with matplotlib. Raises ArchError if it is not installed."""
    if ax is None:
        try:
            ax = import_module("matplotlib.pyplot").subplots()[1]
        except ImportError:
            message = "a plot requires matplotlib, which is not installed"
            raise make_error("missing-package", message, help="run `pip install matplotlib`") from None
    if not hasattr(ax, "scatter"):
        raise make_error("usage", f"`plot` expects axes of matplotlib as `ax`, found {ax!r:.40}")
    ax.scatter([dot.x for dot in plot.others], [dot.y for dot in plot.others], s=4, color="0.6", label="designs")
    ax.scatter([dot.x for dot in plot.chosen], [dot.y for dot in plot.chosen], s=24, label="chosen")
    ax.set_title(plot.title)
    ax.set_xlabel(plot.x)
    ax.set_ylabel(plot.y)
    return ax


class _Scale:
    """A scale, which is linear, from values to coordinates from `start` to `end`."""

    def __init__(self, values: Sequence[int], start: float, end: float) -> None:
        low, high = min(values), max(values)
        self.step = _tick_step(high - low)
        self.low = low // self.step * self.step
        self.high = max(-(-high // self.step) * self.step, self.low + self.step)
        self.start, self.end = start, end

    def position(self, value: int) -> float:
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)

    def ticks(self) -> range:
        return range(self.low, self.high + 1, self.step)


def _tick_step(span: int) -> int:
    """Return the smallest of 1, 2, 5, 10, ... that divides a span into fewer than MAX_TICKS steps."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if span <= factor * power * (MAX_TICKS - 1):
                return factor * power
        power *= 10


def _axes(plot: Plot, x_scale: _Scale, y_scale: _Scale, colors: Theme) -> list[str]:
    parts: list[str] = []
    for value in x_scale.ticks():
        x = x_scale.position(value)
        parts.append(_line(x, TOP, x, HEIGHT - BOTTOM, colors.frames[1]))
        parts.append(_text(x, HEIGHT - BOTTOM + 18, _format_tick(value), colors.dim, "middle"))
    for value in y_scale.ticks():
        y = y_scale.position(value)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y, colors.frames[1]))
        parts.append(_text(LEFT - 8, y + 4, _format_tick(value), colors.dim, "end"))
    parts.append(_line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, colors.frame))
    parts.append(_line(LEFT, TOP, LEFT, HEIGHT - BOTTOM, colors.frame))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, plot.x, colors.ink, "middle"))
    parts.append(_text(LEFT, TOP - 10, plot.y, colors.ink))
    return parts


def _format_tick(value: int) -> str:
    """Format a round number: `25M`, `-2.5G`."""
    unit, scale = next((u, s) for u, s in reversed(_UNITS) if abs(value) >= s or s == 1)
    return f"{value // scale:,}{unit}" if value % scale == 0 else f"{value / scale:,.6g}{unit}"


def _line(x: float, y: float, to_x: float, to_y: float, color: str) -> str:
    ends = f'x1="{number(x)}" y1="{number(y)}" x2="{number(to_x)}" y2="{number(to_y)}"'
    return f'<line {ends} stroke="{color}"/>'


def _text(x: float, y: float, text: str, color: str, anchor: str = "start", size: int = 12) -> str:
    attributes = f'x="{number(x)}" y="{number(y)}" font-size="{size}" fill="{color}" text-anchor="{anchor}"'
    return f"<text {attributes}>{Canvas.clean(text)}</text>"
