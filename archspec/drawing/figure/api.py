"""The Python function for `archspec figure`."""

from __future__ import annotations

import re

from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import make_error
from archspec.drawing.figure.compose import DETAILS, Composer, Composition
from archspec.drawing.figure.elements import Reading, read_flow
from archspec.drawing.figure.shapes import to_svg, to_tikz
from archspec.drawing.figure.stacks import find_stacks
from archspec.drawing.graph import build_plain_graph
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import ModelLike, get_compilation

POINTS = {"in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4, "pt": 1.0}
SLIDE = (480.0, 270.0, 2.0)
"""Width, height and scale of a slide: its text is twice as large."""

MIN_LENGTH, MAX_LENGTH = 144.0, 1440.0
DEFAULT_HEIGHT = 4.5 * 72


class Figure:
    """A figure of a model, with its `width` and `height` in points, and the level of `detail` that fits.

    `omitted` are the names of the parameters that no box stands for. `str(figure)` is SVG, and a notebook shows it.
    """

    def __init__(
        self, composition: Composition, scale: float, detail: int, omitted: tuple[str, ...], *, grey: bool
    ) -> None:
        self.width = composition.breadth * scale
        self.height = composition.height * scale
        self.detail = detail
        self.omitted = omitted
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
    title: str = "",
    grey: bool = False,
) -> Figure:
    """Draw a figure of a model for a paper.

    `width` is a length (`"3.3in"`, `"84mm"`), or `"slide"`. If the figure is higher than `height` (default: 4.5 in),
    it shows less: 0 is the most `detail`, 4 the least. `title` is written above it, and `grey` draws it without color.

    Raises ArchError for a length that is none, or too small or large, and as `archspec.load` does.
    """
    compiled = as_model(model)
    breadth, most, scale = _page(width, height)
    if detail is not None and not 0 <= detail < len(DETAILS):
        raise make_error("usage", f"unknown detail {detail}", help=f"use a number from 0 to {len(DETAILS) - 1}")
    compilation = get_compilation(compiled)
    graph = build_plain_graph(compilation.body, compilation.table, "layer", None, fold=True)
    reading = Reading(graph, compiled.parts, {tensor.name: tensor.shape for tensor in compiled.tensors})
    for level in range(len(DETAILS)) if detail is None else (detail,):
        flow = read_flow(reading)
        stacks = find_stacks(flow)
        composition = Composer(reading, flow, stacks, breadth, DETAILS[level], title).compose()
        if composition.height <= most or level == len(DETAILS) - 1 or detail is not None:
            drawn = {name for element in flow.elements for name in element.tensors}
            omitted = tuple([t.name for t in compiled.tensors if t.params and t.name not in drawn])
            return Figure(composition, scale, level, omitted, grey=grey)
    raise AssertionError


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
    if not MIN_LENGTH <= points <= MAX_LENGTH:
        raise make_error("usage", f"a {name} of {text} is out of range", help="use 2 to 20 inches")
    return points
