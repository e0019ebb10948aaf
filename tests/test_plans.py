"""The whole data of a plan, and its picture with everything open, of a model with what plans are about."""

import json
import re
from collections.abc import Callable

import picture_lint

import archspec
from archspec.pictures.api import opened, picture, plan_of
from archspec.pictures.layout import layout

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
    plan = plan_of(model)
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
    names = [node.name for node in plan_of(streams).nodes if node.kind == "layer"]
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
        plan = plan_of(model)
        root = layout(plan, opened(plan, level, depth))
        assert [*picture_lint.faults(plan, root), *picture_lint.text_faults(root)] == []
        golden(f"pictures/marks-{level}.svg", picture(model, level, depth))
