"""The legend of a figure: what colors mean."""

from __future__ import annotations

from archspec.drawing.figure.compose import Composition, moved
from archspec.drawing.figure.shapes import DETAIL, Rect, Shape, Text
from archspec.drawing.plan.metrics import width

_WORDS = {
    "attention": "attention",
    "state_space": "state space",
    "feed_forward": "feed-forward",
    "experts": "experts",
    "embedding": "embedding",
    "convolution": "convolution",
    "linear": "linear map",
    "norm": "norm",
    "parameter": "parameter",
    "layer": "other layer",
    "closed": "layers",
    "mark": "differs",
}
_ROW = 9.0


def add_legend(composition: Composition, *, only_marks: bool = False) -> Composition:
    """Return a figure with the words for its colors below it, or only for marks."""
    used = {shape.kind for shape in composition.shapes if isinstance(shape, Rect)}
    kinds = [kind for kind in _WORDS if kind in used and (kind == "mark" or not only_marks)]
    rows: list[list[str]] = [[]]
    for kind in kinds:
        if sum(map(_entry_width, [*rows[-1], kind])) > composition.breadth:
            rows.append([])
        rows[-1].append(kind)
    if not kinds:
        return composition
    height = len(rows) * _ROW + 3
    shapes: list[Shape] = [moved(shape, 0.0, height) for shape in composition.shapes]
    for number, row in enumerate(rows, start=1):
        x = (composition.breadth - sum(map(_entry_width, row))) / 2
        y = (len(rows) - number) * _ROW + 2
        for kind in row:
            shapes.append(Rect(x + 2, y, 8, 6, kind, 1.0))
            shapes.append(Text(x + 12, y + 0.8, _WORDS[kind], DETAIL, "start"))
            x += _entry_width(kind)
    return Composition(shapes, composition.breadth, composition.height + height, composition.level + height)


def _entry_width(kind: str) -> float:
    return width(_WORDS[kind], DETAIL) + 20
