"""The Python function for `archspec figure`."""

from __future__ import annotations

import re

from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import make_error
from archspec.drawing.figure.compose import DETAILS, Composer, Composition
from archspec.drawing.figure.elements import Reading, read_flow
from archspec.drawing.figure.shapes import to_svg, to_tikz
from archspec.drawing.figure.stacks import find_stacks
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike

POINTS = {"in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4, "pt": 1.0}
SLIDE = (480.0, 270.0, 2.0)
"""Width, height and scale of a slide: its text is twice as large."""

MIN_WIDTH, MAX_WIDTH = 144.0, 1440.0
DEFAULT_HEIGHT = 4.5 * 72


class Figure:
    """A figure of a model: `str(figure)` is SVG, and a notebook shows it. Sizes are in points."""

    def __init__(self, composition: Composition, scale: float, detail: int, *, grey: bool) -> None:
        self.width = composition.breadth * scale
        self.height = composition.height * scale
        self.detail = detail
        self.shapes = tuple(composition.shapes)
        self._size = composition.breadth, composition.height
        self._scale = scale
        self._grey = grey

    def to_svg(self) -> str:
        """Return the figure as SVG."""
        return to_svg(self.shapes, self._size, self._scale, is_grey=self._grey)

    def to_tikz(self) -> str:
        """Return the figure as a LaTeX document, whose `tikzpicture` can be copied."""
        return to_tikz(self.shapes, self._size, self._scale, is_grey=self._grey)

    def __str__(self) -> str:
        return self.to_svg()

    def _repr_svg_(self) -> str:
        return self.to_svg()


@check_arguments
def figure(
    model: ModelLike,
    width: str = "3.3in",
    *,
    height: str | None = None,
    detail: int | None = None,
    grey: bool = False,
) -> Figure:
    """Draw a figure of a model for a paper.

    `width` is a length (`"3.3in"`, `"84mm"`), or `"slide"`. If the figure is higher than `height` (default: 4.5 in),
    it shows less: 0 is the most `detail`, 3 the least. `grey` draws it without color.

    Raises ArchError for a length that is none, or too small or large, and as `archspec.load` does.
    """
    return draw_figure(as_model(model), width, height, detail, grey=grey)


def draw_figure(model: Model, width: str, height: str | None, detail: int | None, *, grey: bool) -> Figure:
    """Draw a figure, with less detail until it is as low as it may be. Raises ArchError."""
    breadth, most, scale = _page(width, height)
    if detail is not None and not 0 <= detail < len(DETAILS):
        raise make_error("usage", f"unknown detail {detail}", help=f"use a number from 0 to {len(DETAILS) - 1}")
    reading = Reading(model.graph("layer", fold=True), model.parts, {t.name: t.shape for t in model.tensors})
    composition, used = None, 0
    for used, level in enumerate(DETAILS):
        if detail is not None and used != detail:
            continue
        flow = read_flow(reading)
        composition = Composer(reading, flow, find_stacks(flow), breadth, level).compose()
        if composition.height <= most or detail is not None:
            break
    assert composition is not None
    return Figure(composition, scale, used, grey=grey)


def _page(width: str, height: str | None) -> tuple[float, float, float]:
    """Return a width, the most height, and a scale."""
    if width == "slide":
        breadth, most, scale = SLIDE
    else:
        breadth, most, scale = _length(width, "width"), DEFAULT_HEIGHT, 1.0
    if height is not None:
        most = _length(height, "height") / scale
    return breadth, most, scale


def _length(text: str, name: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(in|cm|mm|pt)", text)
    if match is None:
        help = "use a number with in, cm, mm or pt, such as `3.3in`" + (", or `slide`" if name == "width" else "")
        raise make_error("usage", f"`{text}` is not a {name}", help=help)
    points = float(match[1]) * POINTS[match[2]]
    if not MIN_WIDTH <= points <= MAX_WIDTH:
        raise make_error("usage", f"a {name} of {text} is out of range", help="use 2 to 20 inches")
    return points
