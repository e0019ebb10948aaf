"""The whole data of a plan, and its picture with everything open, of a model with what plans are about."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import picture_lint
import pytest
from paths import GOLDEN, read_spec

import archspec
from archspec.drawing.api import build_plan, find_open_nodes
from archspec.drawing.layout.block import Net, assign_tracks
from archspec.drawing.layout.layout import layout
from archspec.drawing.layout.ties import DrawnShapes, TieLine, tie_lines
from archspec.drawing.plan.amounts import amount_data, sizes_of
from archspec.drawing.plan.labels import measure
from archspec.drawing.plan.plan import Node, Plan

PICTURES = GOLDEN / "pictures"


@pytest.mark.parametrize(
    ("spec", "level", "depth"),
    [
        ("plan.arch", "op", None),
        *[("marks.arch", "op", None), ("marks.arch", "block", 1)],
        *[("sides.arch:sides", "op", None), ("sides.arch:sides", "block", 1), ("sides.arch:sides", "block", 2)],
        ("sides.arch:columns", "op", 2),
        *[("repeats.arch", "block", 1), ("repeats.arch", "block", 2)],
    ],
)
def test_layouts_have_no_overlaps(spec: str, level: str, depth: int | None) -> None:
    plan = build_plan(archspec.load(f"{PICTURES}/{spec}"))
    root = layout(plan, find_open_nodes(plan, level, depth))
    assert [*picture_lint.faults(plan, root), *picture_lint.text_faults(root)] == []


def test_the_data_of_a_plan(golden: Callable[[str, str], None]) -> None:
    plan = build_plan(archspec.loads((PICTURES / "plan.arch").read_text(encoding="utf-8")))
    nodes, plan.nodes = plan.to_data()["nodes"], []
    lines = re.sub(r"(?<=\}, )(?=\{\"id\")", "\n", json.dumps([plan.to_data(), nodes]))
    golden("pictures/plan.txt", f"{lines}\n")


Boxes = dict[int, tuple[float, float, float, float]]
PAIR: Boxes = {1: (20.0, 0.0, 100.0, 40.0), 2: (20.0, 100.0, 100.0, 80.0)}


def tied(
    boxes: Boxes,
    lines: Sequence[Sequence[tuple[float, float]]] = (),
    ties: Sequence[tuple[int, int]] = ((1, 2),),
    around: Mapping[int, int] = {},
    again: Mapping[int, int] = {},
    frames: Mapping[int, tuple[float, float, float, float]] = {},
) -> list[TieLine]:
    """The lines between five layers, of which some are drawn as closed boxes and some as frames."""
    plan, placed = Plan("net", "", 0, 0), DrawnShapes()
    plan.nodes = [Node(0, None, "root", ""), *(Node(id, around.get(id, 0), "layer", "Linear") for id in range(1, 6))]
    for id, first in again.items():
        plan.nodes[id].again = first
    plan.ties = [*ties]
    placed.boxes, placed.frames, placed.lines = {**boxes}, {**frames}, [[*line] for line in lines]
    return tie_lines(plan, placed)


def test_a_tie_goes_around_on_the_left() -> None:
    (line,) = tied(PAIR, [[(0.0, 20.0), (10.0, 20.0)]])
    assert line.ends == ((20.0, 20.0), (20.0, 124.0))
    out, back = [(20.0, 20.0), (14.0, 20.0), (14.0, 15.0)], [(14.0, 124.0), (14.0, 124.0), (20.0, 124.0)]
    assert line.points == (*out, (-12.0, 15.0), (-12.0, 124.0), *back)


@pytest.mark.parametrize(
    ("boxes", "lines", "heights"),
    [
        ({}, [], (20, 124)),
        ({3: (0.0, 10.0, 5.0, 20.0)}, [], (5, 124)),  # in the way
        ({3: (0.0, 60.0, 5.0, 20.0)}, [], (20, 124)),
        ({3: (0.0, 23.5, 5.0, 20.0)}, [], (20, 124)),
        ({3: (0.0, 22.5, 5.0, 20.0)}, [], (17.5, 124)),
        ({3: (-50.0, 0.0, 5.0, 16.5)}, [], (20, 124)),
        ({3: (-50.0, 0.0, 5.0, 17.5)}, [], (22.5, 124)),
        ({3: (17.5, 10.0, 2.0, 20.0)}, [], (20, 124)),
        ({3: (16.5, 10.0, 2.0, 20.0)}, [], (-5, 124)),
        ({3: (10.0, -50.0, 5.0, 300.0)}, [], (-5, 95)),  # nothing is free
        ({}, [[(0.0, 20.0), (10.0, 20.0)]], (15, 124)),
        ({}, [[(0.0, 17.5), (10.0, 17.5)]], (25, 124)),
        ({}, [[(0.0, 16.5), (10.0, 16.5)]], (20, 124)),
        ({}, [[(10.0, 20.0), (0.0, 20.0)], [(-9.0, 14.0), (9.0, 14.0)]], (25, 124)),
        ({}, [[(15.0, 20.0), (30.0, 20.0)]], (20, 124)),
        ({}, [[(0.0, 20.0), (10.0, 21.0)]], (20, 124)),
        ({}, [[(0.0, 5.0), (0.0, 90.0)]], (20, 124)),  # crossed
        ({}, [[(14.0, 0.0), (14.0, 19.0)]], (20, 124)),
        ({}, [[(0.0, 20.0), (10.0, 20.0)], [(14.0, 10.0), (14.0, 19.0)]], (25, 124)),
        ({}, [[(0.0, 20.0), (10.0, 20.0)], [(16.5, 19.0), (16.5, 10.0)]], (25, 124)),
        ({}, [[(0.0, 20.0), (10.0, 20.0)], [(17.5, 10.0), (17.5, 19.0)]], (15, 124)),
        ({}, [[(0.0, 20.0), (10.0, 20.0)], [(14.0, 0.0), (14.0, 14.0)]], (15, 124)),
    ],
)
def test_a_tie_leaves_at_the_nearest_height_that_is_free(
    boxes: Boxes, lines: Sequence[Sequence[tuple[float, float]]], heights: tuple[float, float]
) -> None:
    (line,) = tied(PAIR | boxes, lines)
    assert (line.points[2], line.points[-3]) == ((14.0, heights[0]), (14.0, heights[1]))
    assert (line.points[3], line.points[-4]) == ((-12.0, heights[0]), (-12.0, heights[1]))


def test_a_block_has_the_role_of_nine_tenths_of_its_parameters() -> None:
    text = read_spec("plans_roles")
    nodes = build_plan(archspec.loads(text)).nodes
    assert [(node.title, node.role) for node in nodes if node.kind == "block"] == [
        *(("p", "attention"), ("q", None), ("r", "norm"))
    ]


def test_integers_that_javascript_cannot_represent_are_text() -> None:
    assert [amount_data(number) for number in (2**53 - 1, -(2**53 - 1), 2**53, -(2**53))] == [
        *(9007199254740991, -9007199254740991),
        *("9007199254740992", "-9007199254740992"),
    ]


def test_ties_of_one_tensor_share_a_lane() -> None:
    third: Boxes = {3: (20.0, 200.0, 100.0, 40.0)}
    found = tied(PAIR | third, ties=[(1, 2), (1, 3), (2, 3), (1, 2)])
    assert [(line.points[3], line.points[-4]) for line in found] == [
        ((-12.0, 20.0), (-12.0, 124.0)),
        ((-12.0, 20.0), (-12.0, 220.0)),
        ((-20.0, 124.0), (-20.0, 220.0)),
    ]
    (beside,) = tied({1: PAIR[1], 2: (140.0, 0.0, 100.0, 40.0)})  # the way of the first is taken
    assert beside.points[-4:] == ((-12.0, -5.0), (134.0, -5.0), (134.0, 20.0), (140.0, 20.0))


def test_ties_end_at_what_is_drawn() -> None:
    def ends(*arguments: Any, **more: Any) -> list[tuple[Any, Any]]:
        return [line.ends for line in tied(*arguments, **more)]

    whole: Boxes = {3: (0.0, 0.0, 50.0, 50.0)}
    plain = [((20.0, 20.0), (20.0, 124.0))]
    assert ends(PAIR) == ends(PAIR, ties=[], again={2: 1}) == ends(PAIR, again={2: 1}) == plain
    assert ends({2: PAIR[2]}, frames={1: PAIR[1]}) == plain  # an open layer
    assert ends({2: PAIR[2]} | whole, around={1: 3}) == [((0.0, 24.0), (20.0, 124.0))]  # one in a closed block
    assert ends(whole, around={1: 3, 2: 3}) == []
    assert ends({2: PAIR[2]}) == ends({2: PAIR[2]}, frames=whole, around={1: 3}) == []


def test_ties_of_which_one_passes_near_another_part_are_apart() -> None:
    for top, height in ((23.2, 28.25), (23.8, 28.85), (24.2, 24.25)):
        (line,) = tied({1: (140.0, 0.0, 100.0, 40.0), 2: (20.0, top, 100.0, 0.1)})
        assert line.points[2] == (134.0, 20.0) and line.points[-3] == (14.0, pytest.approx(height))
    (line,) = tied({1: (5.0, 0.0, 100.0, 40.0), 2: (20.0, 53.2, 100.0, 0.1)})
    assert (line.points[2], line.points[-3]) == ((-1.0, 20.0), (14.0, pytest.approx(53.25)))


@pytest.mark.parametrize(
    ("addresses", "titles"),
    [
        (["a.b.one", "a.b.two", "a.b.three"], ["one", "two", "three"]),
        (["a.b.one", "a.b.two"], ["a.b.one", "a.b.two"]),
        (["a.b.one", "a.c.two", "a.d.four"], ["b.one", "c.two", "d.four"]),
        (["c.one", "c.two", "c.three", "d.one"], ["c.one", "two", "three", "d.one"]),  # `one` is not unique
        (["c.x", "c.two", "c.three"], ["c.x", "two", "three"]),  # `x` is an input
        (["c.0.one", "c.1.two", "c.2.three"], ["c.0.one", "c.1.two", "c.2.three"]),  # no name begins with a number
        (["c.12.one", "c.12.two", "c.12.three", "d"], ["one", "two", "three", "d"]),
    ],
)
def test_titles_leave_out_what_siblings_share(addresses: list[str], titles: list[str]) -> None:
    steps = "".join(f"  |> {address}: Linear(n, n)\n" for address in addresses)
    head = "import std { Linear }\ndim batch\nblock Net(n = 4)(x [batch, n]) -> [batch, n] {\n  return x\n"
    plan = build_plan(archspec.loads(f'{head}{steps}}}\nmodel "net" = Net()\n'))
    assert [node.title for node in plan.nodes if node.kind == "layer"] == titles


def net(uppers: Sequence[float], lowers: Sequence[float], ends: Sequence[float] = ()) -> Net:
    made = Net()
    made.uppers, made.lowers, made.ends = [*uppers], [*lowers], [*ends]
    return made


@pytest.mark.parametrize(
    ("nets", "tracks"),
    [
        ([net([0], [0.25]), net([0], [0.5])], [-1, 0]),  # one that is straight needs none
        ([net([0], [10]), net([18.5], [30])], [0, 0]),
        ([net([0], [10]), net([18], [30])], [0, 1]),
        ([net([18.5], [30]), net([0], [10])], [0, 0]),
        ([net([0], [10]), net([5], [30])], [0, 1]),
        ([net([0], [10]), net([10], [20])], [1, 0]),  # the second comes from above where the first goes down
        ([net([0], [10]), net([13.5], [20])], [1, 0]),
        ([net([0], [10]), net([14], [20])], [0, 1]),
        ([net([10], [20]), net([0], [10])], [0, 1]),
        ([net([0], [10]), net([10], [0])], [0, 1]),  # each would have to be above the other
        ([net([0], [10], [40]), net([20], [30])], [0, 1]),
        ([net([0], [10]), net([20], [30]), net([5], [25])], [0, 0, 1]),
        ([net([0, 3], [10, 90]), net([20], [30]), net([50], [45])], [0, 1, 1]),
    ],
)
def test_tracks(nets: list[Net], tracks: list[int]) -> None:
    assert assign_tracks(nets) == max(tracks) + 1
    assert [net.track for net in nets] == tracks


@pytest.mark.parametrize(("positions", "first"), [(1, 1), (2, 2), (77, 77), (600, 512)])
def test_sizes_that_a_page_begins_with(positions: int, first: int) -> None:
    model = archspec.load("bert-base-uncased", layers=1, hidden=12, positions=positions)
    assert sizes_of(model) == {"batch": (1, None), "seq": (first, positions)}


@pytest.mark.parametrize(
    ("form", "kind", "shape", "height"),
    [
        ("terminal", "output", (), 22.0),
        ("terminal", "output", (2, 3), 34.0),
        ("pill", "op", (2, 3), 22.0),
        ("circle", "op", (2, 3), 18.0),
        ("box", "block", (2, 3), 32.0),
    ],
)
def test_heights_of_closed_boxes(form: str, kind: str, shape: tuple[int, ...], height: float) -> None:
    node = Node(1, 0, kind, "")
    node.form, node.title, node.shape = form, "sum", shape
    measure(node)
    assert node.size[1] == height
    node.type = "Sum"
    measure(node)
    assert node.size[1] == height + (14.0 if form == "box" else 0.0)
