"""Static pictures as SVG, with no script, style sheet, font or reference to anything outside."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib import import_module

from archspec.core.diagnostics import make_error
from archspec.drawing.layout.frames import Frame, Path
from archspec.drawing.layout.layout import IsOpen, layout
from archspec.drawing.layout.ties import DrawnShapes, tie_lines
from archspec.drawing.plan.labels import HEADING, HEADING_TYPE, PILL, SHAPE, SUBTITLE, TITLE
from archspec.drawing.plan.metrics import shorten_text
from archspec.drawing.plan.plan import Node, Plan
from archspec.drawing.svg.elements import Canvas, number
from archspec.drawing.svg.legend import draw_legend, draw_title
from archspec.drawing.svg.marks import Mark, mark_colors, sign
from archspec.drawing.svg.paint import Paint
from archspec.drawing.svg.theme import Theme

# Conversion of SVG to PNG and PDF, by a program or a package that is installed.

SCALE = 2
"""Pixels of a PNG per pixel of the picture."""


def convert(svg: str, format: str) -> bytes:
    """Return a picture as PNG or PDF. Raises ArchError if neither `rsvg-convert` nor `cairosvg` is installed."""
    program = shutil.which("rsvg-convert")
    if program is not None:
        zoom = ["--zoom", str(SCALE)] if format == "png" else []
        done = subprocess.run([program, "--format", format, *zoom], input=svg.encode(), capture_output=True)
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}"
            raise make_error("usage", f"`rsvg-convert` could not convert the picture: {reason}")
        return done.stdout
    try:
        cairosvg = import_module("cairosvg")
    except (ImportError, OSError):  # the library that it needs may be missing
        message = f"{format.upper()} requires `rsvg-convert` or the Python package `cairosvg`"
        raise make_error("usage", message, help="install one of them, or write SVG with `-o FILE.svg`") from None
    if format == "png":
        return cairosvg.svg2png(bytestring=svg.encode(), scale=SCALE)
    return cairosvg.svg2pdf(bytestring=svg.encode())


MARGIN = 26.0
TITLE_ROOM = 66.0
SHEET = 4.0
"""Offset of the sheets behind a node that stands for several."""

RADIUS = 7.0
WIDTHS = {"main": 1.3, "skip": 1.5, "side": 1.0, "cross": 1.2}


def svg(plan: Plan, is_open: IsOpen, paint: Paint) -> str:
    """Return the picture of a model: its title, the boxes and lines, and a legend."""
    root = layout(plan, is_open)
    width, height, parts = draw_model(plan, paint, root, MARGIN, root.h, room=SHEET * 2)
    return document(plan.model, width + 2 * MARGIN, TITLE_ROOM + root.h + 28.0 + height + 18.0, paint.theme, parts)


def draw_model(
    plan: Plan,
    paint: Paint,
    root: Frame,
    x: float,
    tall: float,
    *,
    name: str = "",
    marks: Mapping[int, Mark] = {},
    room: float = 0.0,
    min_width: float = 300.0,
) -> tuple[float, float, str]:
    """Draw the title, the boxes and lines, and the legend of a model from `x` on; the boxes have a height of `tall`.

    `name` is the title if it is not that of the model, and `room` is left beside the boxes. Return the width, the
    height of the legend, and the elements.
    """
    drawing = Drawing(plan, paint, marks)
    drawing.contents(root, 0.0, 0.0, 0)
    drawing.finish()
    left, right, has_ties = draw_ties(drawing, root.w)
    title, title_width = draw_title(
        plan, paint.theme, name and shorten_text(name, 17.0, max(right - left, min_width), True)
    )
    width = max(right - left + room, min_width, title_width)
    legend, height = draw_legend(plan, paint, sorted(drawing.streams), has_ties, width)
    body = "".join([*drawing.canvas.below, *drawing.canvas.over])
    parts = (
        f'<g transform="translate({number(x)} 0)">{title}</g>'
        f'<g transform="translate({number(x - left)} {number(TITLE_ROOM)})">{body}</g>'
        f'<g transform="translate({number(x)} {number(TITLE_ROOM + tall + 28.0)})">{legend}</g>'
    )
    return width, height, parts


def draw_ties(drawing: Drawing, width: float) -> tuple[float, float, bool]:
    """Draw the lines between nodes with the same weights in a picture of a width.

    Return the sides of the picture with these lines, and if there are any.
    """
    canvas, theme = drawing.canvas, drawing.theme
    lines = tie_lines(drawing.plan, drawing.placed)
    for line in lines:
        canvas.over.append(_tie(line.points, line.ends, theme))
    xs = [x for line in lines for x, _ in line.points]
    left, right = min([0.0, *xs]), max([width, *xs])
    left, right = left - (16.0 if left < 0 else 0.0), right + (16.0 if right > width else 0.0)
    outer = [line for line in lines if min(x for x, _ in line.points) < 0] or [
        line for line in lines if max(x for x, _ in line.points) > width
    ]
    if outer:
        heights = [y for _, y in outer[0].points]
        middle = (min(heights) + max(heights)) / 2
        x = left + 9 if left < 0 else right - 2
        canvas.over.append(
            f'<text transform="translate({number(x)} {number(middle)}) rotate(-90)" font-size="10" '
            f'fill="{theme.tie}" text-anchor="middle">same weights</text>'
        )
    return left, right, bool(lines)


def document(title: str, w: float, h: float, theme: Theme, parts: str) -> str:
    """Return an SVG document with a title, a size and a background."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(w)}" height="{number(h)}" '
        f'viewBox="0 0 {number(w)} {number(h)}" role="img" '
        "font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">"
        f"<title>{Canvas.clean(title)}</title>"
        f'<rect width="{number(w)}" height="{number(h)}" fill="{theme.background}"/>{parts}</svg>\n'
    )


def _tie(points: Sequence[tuple[float, float]], ends: Sequence[tuple[float, float]], theme: Theme) -> str:
    dots = "".join(f'<circle cx="{number(x)}" cy="{number(y)}" r="2.6" fill="{theme.tie}"/>' for x, y in ends)
    return (
        f'<path d="{Canvas.rounded(points, 5.0)}" fill="none" stroke="{theme.tie}" stroke-width="1.4" '
        f'stroke-dasharray="2 3.5" stroke-linecap="round"/>{dots}'
    )


class Drawing:
    """Draws frames onto a canvas; `placed` has the rectangles and lines, and `streams` the kinds of lines drawn.

    `marks` are those of nodes that differ from another model, by id.
    """

    def __init__(self, plan: Plan, paint: Paint, marks: Mapping[int, Mark] = {}) -> None:
        self.plan = plan
        self.marks = marks
        self.paint = paint
        self.theme = paint.theme
        self.canvas = Canvas()
        self.placed = DrawnShapes()
        self.streams: set[str] = set()
        self._arrows: dict[str, list[str]] = {}

    def contents(self, frame: Frame, x: float, y: float, depth: int) -> None:
        """Draw what is inside a frame."""
        closed = [item for item in frame.items if not item[0].is_open]
        for inner, dx, dy in frame.items:
            if inner.is_open:
                if inner.node.kind != "group":
                    self._frame(inner, x + dx, y + dy, depth)
                self.contents(inner, x + dx, y + dy, depth + (inner.node.kind != "group"))
        for inner, dx, dy in closed:
            if inner.node.times != 1 and not inner.node.same:
                colors, radius = self.paint.fill_of(inner.node), _radius(inner)
                self._sheets(inner, x + dx, y + dy, SHEET - 1, radius, colors.fill, colors.line)
        for path in frame.paths:
            self._path(path, x, y)
        for inner, dx, dy in closed:
            self._box(inner, x + dx, y + dy)

    def finish(self) -> None:
        """Draw the tips of all arrows."""
        for stream, tips in self._arrows.items():
            self.canvas.below.append(f'<path d="{"".join(tips)}" fill="{self._color(stream)}"/>')

    def _color(self, stream: str) -> str:
        theme = self.theme
        return {"main": theme.main, "skip": theme.skip, "side": theme.side, "cross": theme.cross}[stream]

    def _path(self, path: Path, x: float, y: float) -> None:
        points = [(a + x, b + y) for a, b in path.points]
        color = self._color(path.stream)
        self.streams.add(path.stream)
        self.placed.lines.append(points)
        shown = points[1:] if path.branches else points
        if path.arrow:
            self._arrows.setdefault(path.stream, []).append(Canvas.tip(points))
            shown = [*shown[:-1], Canvas.before_tip(points)]
        self.canvas.below.append(
            f'<path d="{Canvas.rounded(shown, RADIUS)}" fill="none" stroke="{color}" '
            f'stroke-width="{WIDTHS[path.stream]}"/>'
        )
        if path.dot is not None:
            dot = f'<circle cx="{number(path.dot[0] + x)}" cy="{number(path.dot[1] + y)}" r="2.2" fill="{color}"/>'
            self.canvas.below.append(dot)

    def _frame(self, frame: Frame, x: float, y: float, depth: int) -> None:
        node, theme = frame.node, self.theme
        self.placed.frames[node.id] = (x, y, frame.w, frame.h)
        is_period = node.kind == "period"
        fill = theme.background if is_period else theme.frames[min(depth, len(theme.frames) - 1)]
        line = self.paint.fill_of(node).line if node.role and self.paint.is_by_role else theme.frame
        several = node.times != 1
        if several and not node.same:
            self._sheets(frame, x, y, SHEET, 10, theme.background, line)
        dash = ' stroke-dasharray="6 4"' if is_period else ' stroke-dasharray="3 2"' if self._is_frozen(node) else ""
        self.canvas.below.append(
            f"<g>{self.canvas.tooltip(self._description(node))}"
            + _rect(x, y, frame.w, frame.h, 10, fill, line, 1.6 if several else 1.1, dash)
            + "</g>"
        )
        at = x
        for i, ((line_text, width), left) in enumerate(zip(node.heading or (), frame.heading, strict=True)):
            at = x + left
            size, weight = (HEADING, "700") if i == 0 else (HEADING_TYPE, "")
            italic = i == len(node.heading or ()) - 1 and bool(node.differs)
            ink = theme.ink if i == 0 or italic else theme.dim
            text = self.canvas.text(at, y + 18, line_text, ink, size, weight, halo=fill, italic=italic)
            self.canvas.over.append(text)
            at += width + 7
        if self._is_frozen(node):
            self.canvas.over.append(Canvas.flake(at + 5, y + 14, theme.dim))
        self._badge(node, x + frame.w - 8, y + 1)
        self._mark(node, x, y, frame.w, frame.h, 10)

    def _box(self, frame: Frame, x: float, y: float) -> None:
        node, _theme, canvas = frame.node, self.theme, self.canvas
        w, h = frame.w, frame.h
        self.placed.boxes[node.id] = (x, y, w, h)
        canvas.below.append(f"<g>{canvas.tooltip(self._description(node))}")
        if node.form == "circle":
            self._circle(node, x + w / 2, y + h / 2, w / 2)
            self._mark(node, x, y, w, h, w / 2)
            return
        colors = self.paint.fill_of(node)
        radius = _radius(frame)
        dash = ' stroke-dasharray="3 2"' if self._is_frozen(node) else ""
        canvas.below.append(_rect(x, y, w, h, radius, colors.fill, colors.line, 1.1, dash))
        ink, dim = self.paint.inks(colors.fill)
        has_bar = node.form == "box" and node.params > 0 and self.paint.is_by_role
        sizes = _sizes(node)
        top = y + (h - sum(size * 1.22 for size in sizes)) / 2 - (1.5 if has_bar else 0)
        for i, (line, size) in enumerate(zip(node.lines or (), sizes, strict=True)):
            top += size * 1.22
            weight = "600" if i == 0 and node.form != "pill" else ""
            italic = i == 2
            color = ink if i == 0 or italic else dim
            canvas.below.append(
                canvas.text(x + w / 2, top - size * 0.25, line[0], color, size, weight, italic=italic, anchor="middle")
            )
        if has_bar:
            share = max(1.0, (w - 10) * node.params / self.plan.total)
            canvas.below.append(
                f'<rect x="{number(x + 5)}" y="{number(y + h - 5)}" width="{number(w - 10)}" height="2.4" rx="1.2" '
                f'fill="{colors.line}" opacity=".18"/>'
                f'<rect x="{number(x + 5)}" y="{number(y + h - 5)}" width="{number(share)}" height="2.4" rx="1.2" '
                f'fill="{colors.line}"/>'
            )
        letter = self.paint.letter_of(node)
        if letter and node.form == "box":
            canvas.below.append(canvas.text(x + 4.5, y + 10, letter, dim, 8.0, "700"))
        if self._is_frozen(node):
            canvas.below.append(Canvas.flake(x + w - 10, y + 10, colors.line))
        canvas.below.append("</g>")
        self._badge(node, x + w + 6, y - 1)
        self._mark(node, x, y, w, h, radius)

    def _mark(self, node: Node, x: float, y: float, w: float, h: float, radius: float) -> None:
        """Mark a box or frame that differs from another model."""
        mark = self.marks.get(node.id)
        if mark is not None:
            color = mark_colors(self.theme)[mark.kind].line
            self.canvas.below.append(_rect(x, y, w, h, radius, "none", color, 2.2))
            self.canvas.over.append(sign(mark.kind, x - 1, y - 1, self.theme))

    def _circle(self, node: Node, x: float, y: float, radius: float) -> None:
        theme = self.theme
        arm = 5.0 if node.title == "+" else 3.6
        sign = (
            f"M{number(x - arm)} {number(y)}h10M{number(x)} {number(y - arm)}v10"
            if node.title == "+"
            else f"M{number(x - arm)} {number(y - arm)}l7.2 7.2M{number(x - arm)} {number(y + arm)}l7.2 -7.2"
        )
        fill = self.paint.fill_of(node).fill
        self.canvas.below.append(
            f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" fill="{fill}" stroke="{theme.skip}" '
            f'stroke-width="1.2"/><path d="{sign}" stroke="{self.paint.inks(fill)[0]}" stroke-width="1.2"/></g>'
        )

    def _sheets(self, frame: Frame, x: float, y: float, step: float, radius: float, fill: str, line: str) -> None:
        for k, opacity in ((2, ".55"), (1, ".8")):
            extra = f' opacity="{opacity}"'
            self.canvas.below.append(_rect(x + step * k, y + step * k, frame.w, frame.h, radius, fill, line, 1, extra))

    def _badge(self, node: Node, right: float, middle: float) -> None:
        if node.badge is None:
            return
        width = node.badge[1] + 16
        box = _rect(right - width, middle - 10, width, 20, 10, self.theme.badge, "none", 0)
        text = self.canvas.text(
            right - width / 2, middle + 4.2, node.badge[0], self.theme.badge_ink, 12.0, "700", anchor="middle"
        )
        self.canvas.over.append(box + text)

    def _is_frozen(self, node: Node) -> bool:
        if node.tensors:
            return all(tensor.frozen for tensor in node.tensors)
        return node.params > 0 and node.frozen == node.params

    def _description(self, node: Node) -> str:
        parts = [node.name or node.title, node.label or (node.type if node.type != node.title else "")]
        if node.params:
            each = f"{node.copies} x {node.params // node.copies:,} = " if node.copies > 1 else ""
            parts.append(f"{each}{node.params:,} parameters")
        mark = self.marks.get(node.id)
        return ", ".join([part for part in parts if part]) + (f"; {mark.kind}: {mark.text}" if mark is not None else "")


def _radius(frame: Frame) -> float:
    return {"pill": 10.0, "terminal": frame.h / 2}.get(frame.node.form, 5.0)


def _sizes(node: Node) -> list[float]:
    first, rest = {"pill": (PILL, SUBTITLE), "terminal": (PILL, SHAPE)}.get(node.form, (TITLE, SUBTITLE))
    return [first, *[rest for _ in (node.lines or ())[1:]]]


def _rect(
    x: float, y: float, w: float, h: float, radius: float, fill: str, line: str, width: float, extra: str = ""
) -> str:
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}" rx="{number(radius)}" '
        f'fill="{fill}" stroke="{line}" stroke-width="{number(width)}"{extra}/>'
    )
