"""The shapes of a figure, in points, with y upwards, as SVG and as TikZ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias
from xml.sax.saxutils import escape

from archspec.core.reports.roles import ROLES
from archspec.drawing.plan.metrics import width

NAME, DETAIL, BADGE = 7.0, 6.0, 7.5
"""Sizes of names, of second lines, and of badges. No text is smaller than DETAIL."""

INK, GREY, LINE, MEMORY = "#1a1a1a", "#3d3d3d", "#444444", "#1f5f99"

FILLS = {role: (style.light.fill, style.light.line) for role, style in ROLES.items()} | {
    "core": ("#ee9a5d", "#a4521a"),
    "experts": ("#8fc1e6", "#1d5585"),
    "convolution": ("#dcebd7", "#4d7a3f"),
    "parameter": ("#fdf6e0", "#9a7b1c"),
    "linear": ("#e3d3ec", "#7a4f96"),
    "layer": ("#eeeae4", "#75695a"),
    "closed": ("#e9e9e6", "#6e6e6a"),
    "function": ("#ffffff", "#444444"),
    "frame": ("#fafaf9", "#7a7a76"),
    "mark": ("#b3261e", "#b3261e"),
    "attention_panel": ("#ffffff", "#a4521a"),
    "state_space_panel": ("#ffffff", "#a4521a"),
    "feed_forward_panel": ("#ffffff", "#2b6a9b"),
    "experts_panel": ("#ffffff", "#1d5585"),
}
"""Fill and edge by kind; names of boxes say what color shows."""


class Rect(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    kind: str
    radius: float = 1.8


class Text(NamedTuple):
    """A line of text; `anchor` is "middle", "start" or "end", and y is its baseline."""

    x: float
    y: float
    text: str
    size: float = NAME
    anchor: str = "middle"
    bold: bool = False
    italic: bool = False
    color: str = INK

    @property
    def left(self) -> float:
        """The left end."""
        length = width(self.text, self.size, self.bold)
        return self.x - {"start": 0.0, "middle": length / 2, "end": length}[self.anchor]


class Line(NamedTuple):
    points: tuple[tuple[float, float], ...]
    color: str = LINE
    arrow: bool = True
    dashed: bool = False


class Circle(NamedTuple):
    """A circle with a sign, "+" or "×"."""

    x: float
    y: float
    radius: float
    sign: str


Shape: TypeAlias = Rect | Text | Line | Circle


def grey(color: str) -> str:
    """Return a color in shades of gray of the same lightness (Rec. 709)."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    level = round(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return f"#{level:02x}{level:02x}{level:02x}"


def colors_of(kind: str, *, is_grey: bool) -> tuple[str, str]:
    """Return the fill and the edge of a kind."""
    fill, edge = FILLS[kind]
    return (grey(fill), grey(edge)) if is_grey else (fill, edge)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


# SVG ------------------------------------------------------------------------------------------------------------------


def to_svg(shapes: Iterable[Shape], size: tuple[float, float], scale: float = 1.0, *, is_grey: bool = False) -> str:
    """Return an SVG picture of a size in points; `scale` enlarges it."""
    breadth, height = size
    body = "".join(_svg_shape(shape, height, is_grey) for shape in shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_number(breadth * scale)}pt" '
        f'height="{_number(height * scale)}pt" viewBox="0 0 {_number(breadth)} {_number(height)}" '
        f"font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">"
        f'<rect width="{_number(breadth)}" height="{_number(height)}" fill="#ffffff"/>{body}</svg>\n'
    )


def _svg_shape(shape: Shape, height: float, is_grey: bool) -> str:
    n = _number
    match shape:
        case Rect(x, y, w, h, kind, radius):
            fill, edge = colors_of(kind, is_grey=is_grey)
            return (
                f'<rect x="{n(x)}" y="{n(height - y - h)}" width="{n(w)}" height="{n(h)}" rx="{n(radius)}" '
                f'fill="{fill}" stroke="{edge}" stroke-width=".6"/>'
            )
        case Text(x, y, text, size, anchor, bold, italic, color):
            style = (' font-weight="bold"' if bold else "") + (' font-style="italic"' if italic else "")
            return (
                f'<text x="{n(x)}" y="{n(height - y)}" font-size="{n(size)}" text-anchor="{anchor}" '
                f'fill="{color}"{style}>{escape(text)}</text>'
            )
        case Circle(x, y, r, sign):
            q = r * (0.55 if sign == "+" else 0.42)
            center = f"{n(x)} {n(height - y)}"
            mark = f"m{n(-q)} 0h{n(2 * q)}m{n(-q)} {n(-q)}v{n(2 * q)}"
            if sign != "+":
                mark = f"m{n(-q)} {n(-q)}l{n(2 * q)} {n(2 * q)}m{n(-2 * q)} 0l{n(2 * q)} {n(-2 * q)}"
            return (
                f'<circle cx="{n(x)}" cy="{n(height - y)}" r="{n(r)}" fill="#ffffff" stroke="{LINE}" '
                f'stroke-width=".6"/><path d="M{center}{mark}" stroke="{LINE}" stroke-width=".7"/>'
            )
        case Line(points, color, arrow, dashed):
            places = [(x, height - y) for x, y in points]
            d = "".join(("M" if i == 0 else "L") + f"{n(x)} {n(y)}" for i, (x, y) in enumerate(places))
            dash = ' stroke-dasharray="2 1.5"' if dashed else ""
            color = grey(color) if is_grey else color
            line = f'<path d="{d}" fill="none" stroke="{color}" stroke-width=".6" stroke-linejoin="round"{dash}/>'
            return line + (_svg_arrow(places, color) if arrow else "")


def _svg_arrow(places: Sequence[tuple[float, float]], color: str) -> str:
    (x1, y1), (x2, y2) = places[-2:]
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    a, b = 3.0, 1.35
    corners = [(x2, y2), (x2 - ux * a - uy * b, y2 - uy * a + ux * b), (x2 - ux * a + uy * b, y2 - uy * a - ux * b)]
    return f'<path d="M{"L".join(f"{_number(x)} {_number(y)}" for x, y in corners)}Z" fill="{color}"/>'


# TikZ -----------------------------------------------------------------------------------------------------------------

_TEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "×": r"\texttimes{}",
    "±": r"\textpm{}",
    "→": r"{\usefont{U}{psy}{m}{n}\char174}",
    "²": r"\texttwosuperior{}",
    "…": r"\dots{}",
}


_TEX_START = r"""% Compile this, or \usepackage{{tikz}} and \input this where the figure is to be.
\expandafter\ifx\csname @nodocument\endcsname\relax
  \let\archspecend\relax
\else
  \documentclass{{article}}
  \usepackage[paperwidth={width}bp, paperheight={height}bp, margin=0bp]{{geometry}}
  \usepackage{{tikz}}
  \pagestyle{{empty}}
  \setlength\topskip{{0bp}}
  \setlength\parindent{{0bp}}
  \def\archspecend{{\end{{document}}}}
  \begin{{document}}
\fi
\usetikzlibrary{{arrows.meta}}%
\begingroup
"""


def to_tikz(shapes: Iterable[Shape], size: tuple[float, float], scale: float = 1.0, *, is_grey: bool = False) -> str:
    """Return a LaTeX document with the picture in TikZ, which another document can include by `input`."""
    shapes = list(shapes)
    colors = sorted({color for shape in shapes for color in _colors(shape, is_grey)})
    names = {color: f"figure{color[1:]}" for color in colors}
    defined = "".join(f"\\definecolor{{{name}}}{{HTML}}{{{color[1:].upper()}}}%\n" for color, name in names.items())
    body = "".join(_tikz_shape(shape, names, is_grey) for shape in shapes)
    factor = "" if scale == 1.0 else f", scale={_number(scale)}, transform shape"
    width, height = (_number(length) for length in size)
    page = _TEX_START.format(width=_number(size[0] * scale), height=_number(size[1] * scale))
    return (
        f"{page}{defined}"
        f"\\begin{{tikzpicture}}[x=1bp, y=1bp, line width=0.6bp, font=\\fontfamily{{phv}}\\selectfont{factor}]\n"
        f"\\useasboundingbox (0,0) rectangle ({width},{height});\n"
        f"{body}\\end{{tikzpicture}}%\n\\endgroup\n\\archspecend\n"
    )


def _colors(shape: Shape, is_grey: bool) -> tuple[str, ...]:
    match shape:
        case Rect():
            return colors_of(shape.kind, is_grey=is_grey)
        case Circle():
            return (LINE,)
        case _:
            return (grey(shape.color) if is_grey else shape.color,)


def _tikz_shape(shape: Shape, names: dict[str, str], is_grey: bool) -> str:
    n = _number
    match shape:
        case Rect(x, y, w, h, kind, radius):
            fill, edge = colors_of(kind, is_grey=is_grey)
            return (
                f"\\draw[fill={names[fill]}, draw={names[edge]}, rounded corners={n(radius)}bp] "
                f"({n(x)},{n(y)}) rectangle ({n(x + w)},{n(y + h)});\n"
            )
        case Text(x, y, text, size, anchor, bold, italic, color):
            place = {"middle": "base", "start": "base west", "end": "base east"}[anchor]
            style = ("\\bfseries" if bold else "") + ("\\itshape" if italic else "")
            words = "".join(_TEX.get(c, c) for c in text)
            color = grey(color) if is_grey else color
            font = f"\\fontfamily{{phv}}\\fontsize{{{n(size)}bp}}{{{n(size + 1)}bp}}\\selectfont{style}"
            options = f"anchor={place}, inner sep=0, text={names[color]}, font={font}"
            return f"\\node[{options}] at ({n(x)},{n(y)}) {{{words}}};\n"
        case Circle(x, y, r, sign):
            q = r * (0.55 if sign == "+" else 0.42)
            marks = [((-q, 0.0), (q, 0.0)), ((0.0, -q), (0.0, q))]
            if sign != "+":
                marks = [((-q, -q), (q, q)), ((-q, q), (q, -q))]
            cross = "".join(
                f"\\draw[draw={names[LINE]}] ({n(x + a)},{n(y + b)}) -- ({n(x + c)},{n(y + d)});\n"
                for (a, b), (c, d) in marks
            )
            return f"\\draw[fill=white, draw={names[LINE]}] ({n(x)},{n(y)}) circle[radius={n(r)}bp];\n{cross}"
        case Line(points, color, arrow, dashed):
            color = grey(color) if is_grey else color
            tip = ", -{Triangle[length=3bp, width=2.7bp]}" if arrow else ""
            dash = ", dash pattern=on 2bp off 1.5bp" if dashed else ""
            way = " -- ".join(f"({n(x)},{n(y)})" for x, y in points)
            return f"\\draw[draw={names[color]}, fill={names[color]}{tip}{dash}, fill=none] {way};\n"
