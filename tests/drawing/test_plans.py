"""The whole data of a plan, and its picture with everything open, of a model with what plans are about."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import picture_lint
import pytest

import archspec
from archspec.drawing.api import build_plan, find_open_nodes, picture
from archspec.drawing.layout.block import Net, assign_tracks
from archspec.drawing.layout.layout import layout
from archspec.drawing.layout.ties import DrawnShapes, TieLine, tie_lines
from archspec.drawing.plan.amounts import amount_data, sizes_of
from archspec.drawing.plan.labels import measure
from archspec.drawing.plan.plan import Node, Plan

MODEL = """
import std { Linear, Embedding, LayerNorm, relu }

dim batch, seq, keys

## Queries meet keys of another text, unless a mask hides them.
block Mixing(hidden, local)(x [batch, seq, hidden], memory [batch, keys, hidden], mask bool [batch, 1, keys] = none)
                           -> [batch, seq, hidden] {
  role attention
  scores = matmul(q: Linear(hidden, hidden)(x), k: Linear(hidden, hidden, bias = false)(memory) |> transpose)
  near   = scores * 0.5 if local else scores
  shown  = where(mask, near, -1.0) if mask != none else near
  return shown |> softmax(axis = -1) |> dropout(0.1) |> matmul(_, memory)
}

block Layer(hidden, first, local)
           (x [batch, seq, hidden], memory [batch, keys, hidden], mask bool [batch, 1, keys] = none)
           -> [batch, seq, hidden] {
  h = x |> norm: LayerNorm(hidden) if not first |> mixing: Mixing(hidden, local)(_, memory, mask) |> + x
  return h |> relu |> dropout(0.1) |> down: Linear(hidden, hidden, bias = false) |> + h
}

## Five matrices, a frozen scale, and a table that is computed.
layer Parts(n)(x [..., n]) -> ([..., n], [..., n]) {
  part[i].weight: param [n, n] for i in 0..5
  scale: frozen param [n]
  steps: buffer int [n] = arange(n)
  rest:  param []
  spare: unused param [2, n]
  h = x
  for i in 0..5 {
    h = h + linear(x, .part[i].weight)
  }
  return h * .scale + real(.steps), h * .rest
}

fn twice(x [...]) -> [...] { return x + x * 0.5 }

block Net(hidden = 4, layers = 5, vocab = 11)
         (ids int [batch, seq], memory [batch, keys, hidden], tokens int [batch, keys])
         -> (scores [batch, seq, vocab], rows [batch, seq, hidden], total [batch, seq, hidden]) {
  role embedding for words
  role head for head
  tie head.weight = words.weight
  words: Embedding(vocab, hidden)
  same:  Linear(hidden, hidden)
  position: param [3, hidden]
  idle:  unused Linear(hidden, 3)
  mask = reshape([batch, 1, keys])(tokens) > 0
  even = arange(keys) % 2 < 1
  h = .words(ids) + sum(axis = 0)(.position)
    |> layers[i]: Layer(hidden, i == 0, i % 2 != 0)(_, memory, mask and even) for i in 0..layers
  a, b = parts: Parts(hidden)(twice(h))
  g = a |> .same |> .same |> .same
  c = b
  for i in 0..seq {
    c = c * 0.5 + g
  }
  return head: Linear(hidden, vocab)(g), c, a + h
}

model "net" = Net()
"""


def test_plans_and_pictures_stay_as_they_are(golden: Callable[[str, str], None]) -> None:
    model = archspec.loads(MODEL)
    plan = build_plan(model)
    nodes, plan.nodes = plan.to_data()["nodes"], []
    lines = re.sub(r"(?<=\}, )(?=\{\"id\")", "\n", json.dumps([plan.to_data(), nodes]))
    golden("pictures/plan.txt", f"{lines}\n")
    golden("pictures/plan.svg", picture(model, "op"))


STREAMS = """
import std { Linear, Embedding }

dim batch, seq

layer Two(n)(x [batch, seq, n]) -> [batch, seq, n] {
  role head for small
  role attention for large
  small: param [n]
  large: param [n, n]
  return matmul(x * .small, .large)
}

block Masked(n)(x [batch, seq, n], near bool [seq, seq], far bool [seq, seq]) -> [batch, seq, n] {
  scores = matmul(q: Linear(n, n)(x), transpose(x))
  a = where(near, scores, -1.0) |> softmax
  b = where(far, scores, -2.0) |> softmax
  return x + matmul(a, x) + matmul(b, x)
}

block Stream(n)(x [batch, seq, n], other [batch, seq, n]) -> ([batch, seq, n], [batch, seq, n]) {
  y = x |> up: Linear(n, n) |> + other
  return y |> scale: Two(n), other |> down: Linear(n, n) |> * y |> + x
}

block Net(n = 8, layers = 3)(x [batch, seq, n], ids int [batch, seq]) -> (scores [batch, seq, 11], h [batch, seq, n]) {
  words: Embedding(11, n)
  distance = reshape([seq, 1])(arange(seq)) - arange(seq)
  near = distance < 3 and distance >= 0
  far = distance >= 3
  h = x + .words(ids) |> two: Two(n) |> layers[i]: Masked(n)(_, near, far) for i in 0..layers
  a, b = stream: Stream(n)(h, x)
  g = a + b |> last: Linear(n, n) |> tanh |> .last |> .two |> .last
  tie head.weight = words.weight
  return head: Linear(n, 11)(g), h
}

model "模型 é" = Net()
"""


def test_pictures_of_shares_and_of_the_whole_stay_as_they_are(golden: Callable[[str, str], None]) -> None:
    sizes = {"batch": 2, "seq": 8}
    streams = archspec.loads(STREAMS)
    names = [node.name for node in build_plan(streams).nodes if node.kind == "layer"]
    assert [name for name in names if "@" in name] == ["last@2", "two@2", "last@3"]
    golden("pictures/streams.svg", picture(streams, "op"))
    golden("pictures/streams-flops.svg", picture(streams, coloring="flops", sizes=sizes))
    golden("pictures/streams-params.svg", picture(streams, "block", 1, fold=False, coloring="params", theme="dark"))
    golden("pictures/streams-whole.svg", picture(streams, "op", 0))
    model, sizes = archspec.loads(MODEL), sizes | {"keys": 3}
    golden("pictures/plan-whole.svg", picture(model, "op", 0, coloring="bytes", sizes=sizes))


MARKS = """
import std { Linear }

dim batch, seq, keys

## A tensor of its own, and both streams beside the main one.
block Crossing(n)
              (x [batch, seq, n], first [batch, keys, n], second [batch, keys, n],
               near bool [seq, keys], far bool [seq, keys])
              -> [batch, seq, n] {
  position: param [n]
  scores = matmul(q: Linear(n, n)(x + .position), first |> transpose)
  a = where(near, scores, -1.0) |> softmax
  b = where(far, scores, -2.0) |> softmax
  return x + matmul(a, first) + matmul(b, second)
}

layer Kept(n)(x [batch, seq, n]) -> [batch, seq, n] {
  w: unused param [n]
  return x
}

block Net(n = 8)(x [batch, seq, n], memory [batch, keys, n]) -> [batch, seq, n] {
  spare: unused param [n, n]
  one = first: Linear(n, n)(memory)
  two = second: Linear(n, n)(memory)
  near = reshape([seq, 1])(arange(seq)) < arange(keys)
  far = reshape([seq, 1])(arange(seq)) > arange(keys)
  cross: Crossing(n)
  h = x
  for i in 0..3 {
    h = h |> layer[i]: Linear(n, n) |> dropout(0.1) |> tanh
  }
  g = .cross(h, one, two, near, far) + beside: Crossing(n)(h, two, one, far, near) |> kept: Kept(n)
  f = .cross(g, two, one, far, near)
  c = f
  for i in 0..seq * keys {
    c = c * 0.5 + f
  }
  return c
}

model "marks" = Net()
"""


def test_pictures_of_ports_and_tensors_stay_as_they_are(golden: Callable[[str, str], None]) -> None:
    """Two streams and two masks of one block, that is applied twice and has a tensor; unread tensors."""
    model = archspec.loads(MARKS)
    for level, depth in (("op", None), ("block", 1)):
        plan = build_plan(model)
        root = layout(plan, find_open_nodes(plan, level, depth))
        assert [*picture_lint.faults(plan, root), *picture_lint.text_faults(root)] == []
        golden(f"pictures/marks-{level}.svg", picture(model, level, depth))


SIDES = """
import std { Linear, Embedding }

dim batch, seq

## Six inputs that are looked up: more than its width has room for.
layer Six(n)
         (a int [batch, seq], b int [batch, seq], c int [batch, seq], d int [batch, seq], e int [batch, seq],
          f int [batch, seq])
         -> [batch, seq, n] {
  w: param [6, n]
  return embedding(a + b + c + d + e + f, .w)
}

block Looked(n)
            (x [batch, seq, n], a int [batch, seq], b int [batch, seq], c int [batch, seq], d int [batch, seq],
             e int [batch, seq], f int [batch, seq])
            -> [batch, seq, n] {
  return x + six: Six(n)(a, b, c, d, e, f)
}

## Five other streams on the left, and seven values without parameters on the right.
block Sides(n)
           (x [batch, seq, n], p [batch, seq, n], q [batch, seq, n], r [batch, seq, n], s [batch, seq, n],
            t [batch, seq, n], a [seq, 1], b [seq, 1], c [seq, 1], d [seq, 1], e [seq, 1], f [seq, 1], g [seq, 1])
           -> ([batch, seq, n], [batch, seq, n]) {
  h = x |> up: Linear(n, n) |> + a |> tanh |> * b |> + p
  i = h |> mid: Linear(n, n) |> * c |> + q |> tanh |> * r
  j = i |> down: Linear(n, n) |> + h
  k = (j + d) * (s + e) + (t * f) + g
  return k, h + i
}

block Times(n)(x [batch, seq, n], y [seq, 1]) -> [batch, seq, n] {
  return y * one: Linear(n, n)(x)
}

## Nothing reads the other stream.
block Idle(n, use)(x [batch, seq, n], other [batch, seq, n]) -> [batch, seq, n] {
  one: Linear(n, n)
  return .one(x) * other if use else .one(x)
}

## A product of values from both sides of another operation.
layer Crossed(n)(x [batch, seq, n]) -> [batch, seq, n] {
  w: param [n]
  a = exp(x * .w)
  b = tanh(x)
  c = sin(x)
  s = a * c
  return s + sqrt(b) + s * b
}

block Net(n = 8)(x [batch, seq, n], ids int [batch, seq]) -> ([batch, seq, n], [batch, seq, n]) {
  two = ids * 2
  k = x |> looked: Looked(n)(_, ids, ids, ids, ids, two, two + 1)
  m = real(reshape([seq, 1])(arange(seq)))
  h = k |> crossed: Crossed(n) |> idle: Idle(n, false)(_, k)
  p = first: Linear(n, n)(h)
  q = second: Linear(n, n)(h)
  sides: Sides(n)
  u, v = .sides(h, p, q, p, q, p, m, m + 1.0, m, m * 2.0, m, exp(m), m)
  w, z = .sides(u, v, q, p + q, q, v, m, m, m, m, m, m, m)
  return w + z, z
}

## An operation on positions is in a column only if all that it is used with is there.
block Columns(n = 8)(x [batch, seq, n], ids int [batch, seq]) -> [batch, seq, n] {
  near = real(reshape([seq, 1])(arange(seq)))
  far = exp(near)
  other = reshape([seq, 1])(sum(axis = 0)(real(ids))) * near
  half = tanh(real(reshape([seq, 1])(arange(seq)))) * 0.5
  return x + embed: Embedding(11, n)(ids)
    |> first: Times(n)(_, far)
    |> second: Times(n)(_, other)
    |> third: Times(n)(_, near)
    |> fourth: Times(n)(_, half)
}

model "sides" = Net()
model "columns" = Columns()
"""


def test_pictures_with_many_ports_stay_as_they_are(golden: Callable[[str, str], None]) -> None:
    for name, level, depth in (
        ("sides", "op", None),
        ("sides", "block", 1),
        ("sides", "block", 2),
        ("columns", "op", 2),
    ):
        model = archspec.loads(SIDES, name)
        plan = build_plan(model)
        root = layout(plan, find_open_nodes(plan, level, depth))
        assert [*picture_lint.faults(plan, root), *picture_lint.text_faults(root)] == []
        golden(f"pictures/{name}-{depth or level}.svg", picture(model, level, depth))
    arguments = {
        node.name: [port.argument for port in node.inputs] for node in build_plan(archspec.loads(SIDES, "sides")).nodes
    }
    assert arguments["looked"] == ["x", "a, b, ...", "e", "f"]
    assert arguments["sides#period"] == ["x", "p, r, t", "q, s", "a, b, ...", "b", "d", "f"]


REPEATS = """
import std { Linear }

dim batch

block Pair(n)(x [batch, n]) -> [batch, n] {
  return x |> one: Linear(n, n) |> tanh |> two: Linear(n, n)
}

block Net(n = 4)(x [batch, n]) -> [batch, n] {
  same: Linear(n, n)
  pair: Pair(n)
  h = x |> stack[i]: Linear(n, n) for i in 0..3 |> .same for i in 0..2
  for i in 0..2 {
    h = h |> part[i].pair: Pair(n) |> part[i].last: Linear(n, n)
  }
  return h |> .pair for i in 0..2
}

model "repeats" = Net()
"""


def test_pictures_of_what_is_repeated_stay_as_they_are(golden: Callable[[str, str], None]) -> None:
    model = archspec.loads(REPEATS)
    (period,) = [node for node in build_plan(model).nodes if node.kind == "period"]
    assert (period.title, period.type, period.times) == ("part.0\N{EN DASH}1", "period of 2", 2)
    for depth in (1, 2):
        root = layout(build_plan(model), find_open_nodes(build_plan(model), "block", depth))
        assert picture_lint.text_faults(root) == []
        golden(f"pictures/repeats-{depth}.svg", picture(model, "block", depth))


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
    text = """
dim batch
layer Weights(k)(x [batch, 4]) -> [batch, 4] {
  w: param [k]
  return x * sum(axis = 0)(.w)
}
block Pair(a, b)(x [batch, 4]) -> [batch, 4] {
  role attention for one
  role norm      for two
  return x |> one: Weights(a) |> two: Weights(b)
}
block Net()(x [batch, 4]) -> [batch, 4] { return x |> p: Pair(18, 2) |> q: Pair(17, 3) |> r: Pair(1, 10) }
model "net" = Net()
"""
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
