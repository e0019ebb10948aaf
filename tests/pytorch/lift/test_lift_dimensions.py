"""Lifting: which sizes of inputs are dimensions, and which inputs may be left out."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from archspec.pytorch.lift.capture import dimensions

Shapes = Mapping[str, Sequence[int]]


@pytest.mark.parametrize(
    ("first", "second", "multiples", "free", "types", "sizes"),
    [
        ({"x": (2, 5, 8)}, {"x": (3, 7, 8)}, {}, {}, ["[batch, seq, 8]"], {"batch": 2, "seq": 5}),
        ({"x": (2, 5)}, {"x": (2, 7)}, {}, {}, ["[2, seq]"], {"seq": 5}),
        ({"x": (2, 5), "y": (5, 2)}, {"x": (3, 7), "y": (7, 3)}, {}, {}, ["[batch, seq]", "[seq, batch]"], None),
        ({"x": (5,), "decoder_y": (2, 6)}, {"x": (7,), "decoder_y": (2, 9)}, {}, {}, ["[batch]", "[2, target]"], None),
        ({"x": (2, 5, 6)}, {"x": (3, 7, 9)}, {}, {}, ["[batch, seq, length]"], None),
        ({"x": (2, 5, 8)}, {"x": (3, 7, 8)}, {}, {"x": [4, "time", "no"]}, ["[batch, time, 8]"], None),
        ({"x": (2, 5)}, {"x": (3, 7)}, {}, {"x": ["items", "if"]}, ["[items, seq]"], None),
        ({"x": (2, 5)}, {"x": (3, 7)}, {}, {"y": ["items"]}, ["[batch, seq]"], None),
        ({"x": (9, 400)}, {"x": (8, 560)}, {"seq": 80}, {}, ["[batch, 80*seq]"], {"batch": 9, "seq": 5}),
        ({"x": (9, 401)}, {"x": (8, 560)}, {"seq": 80}, {}, ["[batch, 80*seq]"], {"batch": 9, "seq": 6}),
        ({"x": (9, 400)}, {"x": (8, 561)}, {"seq": 80}, {}, ["[batch, 80*seq]"], {"batch": 9, "seq": 5}),
        ({"x": (9, 80)}, {"x": (8, 160)}, {"seq": 80}, {}, ["[batch, 80*seq]"], {"batch": 9, "seq": 3}),
        ({"x": (3, 80)}, {"x": (8, 160)}, {"seq": 80}, {}, ["[batch, 80*seq]"], {"batch": 3, "seq": 4}),
        ({"x": (9, 10)}, {"x": (8, 14)}, {"seq": 2}, {}, ["[batch, 2*seq]"], {"batch": 9, "seq": 5}),
        (
            {"x": (9, 400), "y": (9, 5)},
            {"x": (8, 560), "y": (8, 7)},
            {"seq": 80},
            {},
            ["[batch, 80*seq]", "[batch, seq]"],
            {"batch": 9, "seq": 5},
        ),
    ],
)
def test_sizes_that_differ_are_dimensions(
    first: Shapes,
    second: Shapes,
    multiples: Mapping[str, int],
    free: Mapping[str, Sequence[int | str]],
    types: list[str],
    sizes: dict[str, int] | None,
) -> None:
    inputs, others = [{name: torch.empty(*shape) for name, shape in shapes.items()} for shapes in (first, second)]
    found, actual = dimensions(inputs, others, multiples, free)
    assert [f"[{', '.join(map(str, type.shape))}]" for type in found.values()] == types
    assert sizes is None or actual == sizes
    known, none = dimensions(inputs, None)
    assert [type.shape for type in known.values()] == [*map(tuple, first.values())] and none == {}
