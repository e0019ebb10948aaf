"""Figures for papers: what is on them, and that nothing of it leaves the page, overlaps or is too small."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import archspec
from archspec import testing

MODELS = sorted(archspec.models())
WIDTHS = ("3.3in", "6.9in")


def of_kind(figure: archspec.Figure, kind: str) -> list[Any]:
    return [shape for shape in figure.shapes if type(shape).__name__ == kind]


def faults(figure: archspec.Figure) -> list[str]:
    """What a reader would object to."""
    result: list[str] = []
    breadth = float(re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figure.to_svg())[0][0])
    height = float(re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figure.to_svg())[0][1])
    for text in of_kind(figure, "Text"):
        right = text.left + 2 * (text.x - text.left) if text.anchor == "middle" else text.x
        right = max(right, text.left)
        if text.size < 6:
            result.append(f"small: {text.text}")
        if text.left < -0.6 or right > breadth + 0.6 or not 0 <= text.y <= height - text.size * 0.7:
            result.append(f"outside: {text.text}")
    boxes = [box for box in of_kind(figure, "Rect") if box.width > 4]
    for i, a in enumerate(boxes):
        if a.x < -0.6 or a.x + a.width > breadth + 0.6 or a.y < -0.6 or a.y + a.height > height + 0.6:
            result.append(f"outside: {a}")
        for b in boxes[i + 1 :]:
            x = min(a.x + a.width, b.x + b.width) - max(a.x, b.x)
            y = min(a.y + a.height, b.y + b.height) - max(a.y, b.y)
            is_inside = min(x, y) > 0 and (x, y) in ((a.width, a.height), (b.width, b.height))
            frames = "frame" in (a.kind, b.kind) or "panel" in a.kind + b.kind
            within = x > min(a.width, b.width) - 0.5 and y > min(a.height, b.height) - 0.5
            badge = {a.radius, b.radius} & {6.0}
            if x > 0.5 and y > 0.5 and not is_inside and not within and not (badge and frames):
                result.append(f"overlap: {a} {b}")
    solid = [box for box in boxes if box.kind != "frame" and "panel" not in box.kind and box.radius != 6.0]
    for line in of_kind(figure, "Line"):
        if line.dashed:
            continue
        for (x1, y1), (x2, y2) in zip(line.points, line.points[1:], strict=False):
            for box in solid:
                x = min(max(x1, x2), box.x + box.width - 0.6) - max(min(x1, x2), box.x + 0.6)
                y = min(max(y1, y2), box.y + box.height - 0.6) - max(min(y1, y2), box.y + 0.6)
                if x >= 0 and y >= 0:
                    result.append(f"line through {box}")
    return result


@pytest.mark.parametrize("name", MODELS)
def test_figures_of_bundled_models_can_be_printed(name: str) -> None:
    model = archspec.load(name)
    for width in WIDTHS:
        figure = archspec.figure(model, width)
        assert faults(figure) == []
        assert figure.height <= 4.5 * 72
        assert figure.to_svg() == archspec.figure(model, width).to_svg()
