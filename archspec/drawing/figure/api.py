"""The Python function for `archspec figure`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import make_error
from archspec.drawing.figure.compose import DETAILS, Composer, Composition
from archspec.drawing.figure.elements import Reading, read_flow
from archspec.drawing.figure.flow import Flow
from archspec.drawing.figure.legend import add_legend
from archspec.drawing.figure.pairs import half, hidden_settings, mark_differences, place_beside
from archspec.drawing.figure.shapes import to_svg, to_tikz
from archspec.drawing.figure.stacks import Stack, find_stacks
from archspec.drawing.graph import build_plain_graph
from archspec.ir.table import Tensor
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation

POINTS = {"in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4, "pt": 1.0}
SLIDE = (480.0, 270.0, 2.0)
"""Width, height and scale of a slide: its text is twice as large."""

MIN_LENGTH, MAX_LENGTH = 144.0, 1440.0
MIN_PAIR_DETAIL = 3
"""Figures of two models have no room for panels."""

DEFAULT_HEIGHT = 4.5 * 72


class Figure:
    """A figure of a model, with its `width` and `height` in points, and the level of `detail` that fits.

    `omitted` are the names of the parameters that no box stands for, `omitted_params` is their number. Of two models,
    `hidden` are the names of the hyperparameters that differ and that no marked box shows. `str(figure)` is SVG, and a
    notebook shows it.
    """

    def __init__(
        self,
        composition: Composition,
        scale: float,
        detail: int,
        omitted: Sequence[Tensor],
        hidden: tuple[str, ...],
        *,
        grey: bool,
    ) -> None:
        self.width = composition.breadth * scale
        self.height = composition.height * scale
        self.detail = detail
        self.omitted = tuple([tensor.name for tensor in omitted])
        self.omitted_params = sum([tensor.params for tensor in omitted])
        self.hidden = hidden
        self.shapes = tuple(composition.shapes)
        self._size = composition.breadth, composition.height
        self._scale = scale
        self._grey = grey

    def to_svg(self) -> str:
        """Return the figure as SVG."""
        return to_svg(self.shapes, self._size, self._scale, is_grey=self._grey)

    def to_tikz(self) -> str:
        """Return the figure as a LaTeX document, which another can include by `input`."""
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
    beside: ModelLike | None = None,
    height: str | None = None,
    detail: int | None = None,
    title: str = "",
    legend: bool = False,
    grey: bool = False,
) -> Figure:
    """Draw a figure of a model for a paper, or of two with what differs marked, the other one `beside` it.

    `width` is a length (`"3.3in"`, `"84mm"`), or `"slide"`. If the figure is higher than `height` (default: 4.5 in),
    it shows less: 0 is the most `detail`, 5 the least. `title` is written above it, `legend` below it says what colors
    mean, and `grey` draws it without color.

    Raises ArchError for a length that is none, or too small or large, and as `archspec.load` does.
    """
    breadth, most, scale = _page(width, height)
    if detail is not None and not 0 <= detail < len(DETAILS):
        raise make_error("usage", f"unknown detail {detail}", help=f"use a number from 0 to {len(DETAILS) - 1}")
    models = [as_model(model), *([] if beside is None else [as_model(beside)])]
    flows = [_read(compiled) for compiled in models]
    for level in range(len(DETAILS)) if detail is None else (detail,):
        part = DETAILS[level] if beside is None else DETAILS[max(level, MIN_PAIR_DETAIL)]
        share = breadth if beside is None else half(breadth)
        composers = [Composer(*flow, share, part, "" if beside else title) for flow in flows]
        if beside is not None:
            mark_differences(*composers)
        compositions = [composer.compose() for composer in composers]
        composition = compositions[0]
        if beside is not None:
            composition = place_beside(compositions, [compiled.name for compiled in models], breadth)
        if legend or beside is not None:
            composition = add_legend(composition, only_marks=not legend)
        if composition.height <= most or level == len(DETAILS) - 1 or detail is not None:
            omitted = [tensor for pair in zip(models, composers, strict=True) for tensor in _omitted(*pair)]
            hidden = hidden_settings([compiled.hyperparameters for compiled in models], composers) if beside else ()
            return Figure(composition, scale, level, omitted, hidden, grey=grey)
    raise AssertionError


def _read(model: Model) -> tuple[Reading, Flow, list[Stack]]:
    compilation = get_compilation(model)
    graph = build_plain_graph(compilation.body, compilation.table, "layer", None, fold=True)
    reading = Reading(graph, model.parts, {tensor.name: tensor.shape for tensor in model.tensors})
    flow = read_flow(reading)
    return reading, flow, find_stacks(flow)


def _omitted(model: Model, composer: Composer) -> Iterator[Tensor]:
    drawn = {name for element in composer.flow.elements for name in element.tensors}
    return (tensor for tensor in model.tensors if tensor.params and tensor.name not in drawn)


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
