"""A new operation is one record: all that archspec does with operations works for it, and no other file names it.

The tests register records that archspec does not have, as a new entry in one file of `archspec/ir/ops/` would.
"""

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import torch_compare
from documented import elementwise_work
from modules import PACKAGE, nodes_of
from operation_table import rendered
from small import load

import archspec
from archspec import ArchError, Type
from archspec.codegen.build import torch_source
from archspec.ir.ops import OPS, Attribute, Input, Interval, Op, TorchForm
from archspec.ir.ops.check import Shape, broadcast_shapes, check_axis, check_size


def _bottomk_shapes(x: Type, k: object, axis: object) -> tuple[Shape, Shape]:
    place = check_axis(axis, x)
    shape = (*x.shape[:place], check_size(k, "k"), *x.shape[place + 1 :])
    return shape, shape


def _twice(inputs: Sequence[Interval], result: Type, attributes: Mapping[str, Any]) -> Interval:
    return 2 * inputs[0][0], 2 * inputs[0][1]


HYPOT = Op(
    "hypot",
    "Elementwise",
    "The square root of a * a + b * b.",
    (Input("a", "number"), Input("b", "number")),
    (),
    "real, common shape",
    lambda a, b: broadcast_shapes(a.shape, b.shape, "b"),
    ("real",),
    commutative=True,
    scalar=math.hypot,
    work=4,
    python="math.hypot(a, b)",
    torch=TorchForm("torch.hypot(a, b)"),
)
TWICE = Op(
    "twice",
    "Elementwise",
    "Twice x.",
    (Input("x", "number"),),
    (),
    "type and shape of x",
    lambda x: x.shape,
    ("x",),
    interval=_twice,
    work=1,
    torch=TorchForm("2 * x"),
)
LOWEST = Op(
    "bottomk",
    "Along an axis",
    "The k smallest elements along axis, smallest first, and their indices.",
    (Input("x", "number"),),
    (Attribute("k"), Attribute("axis", -1)),
    "values: type of x; indices: int; each the shape of x with size k at axis",
    _bottomk_shapes,
    ("x", "int"),
    work=1,
    over="input",
    torch=TorchForm(
        "bottomk(x, k, axis)",
        helper='''def bottomk(x: Tensor, k: int, dim: int) -> tuple[Tensor, Tensor]:
    """The k smallest elements and their indices."""
    values, indices = torch.sort(x, dim=dim, stable=True)
    return values.narrow(dim, 0, k), indices.narrow(dim, 0, k)''',
    ),
)

SPEC = """
dim batch
layer Net(width = 6, scale = hypot(width, 8))
         (x [batch, 6], y [batch, 6]) -> (values [batch, 2], places int [batch, 2]) {
  gain: param [6]
  values, places = bottomk(2)(hypot(x, y) * .gain * scale)
  return values, places
}
"""
PLACES = """
dim n
layer Net()(x [n, 3]) -> [n, 3] {
  table: param [100, 3]
  return x + embedding(twice(arange(n)), .table)
}
"""


def _bottomk(x: reference.Array, k: int, axis: int) -> list[reference.Array]:
    indices = np.argsort(x, axis, kind="stable").take(np.arange(k), axis)
    return [np.take_along_axis(x, indices, axis), indices]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for op in (HYPOT, TWICE, LOWEST):
        monkeypatch.setitem(OPS, op.name, op)
    monkeypatch.setitem(reference.OPS, "hypot", np.hypot)
    monkeypatch.setitem(reference.OPS, "twice", lambda x: 2 * x)
    monkeypatch.setitem(reference.OPS, "bottomk", _bottomk)


def test_shapes_and_types() -> None:
    assert {name: str(type) for name, type in load(SPEC).outputs.items()} == {
        name: str(type) for name, type in load(SPEC.replace("bottomk", "topk")).outputs.items()
    }
    with pytest.raises(ArchError, match=r"`hypot` cannot broadcast \[batch, 6\] with \[5\]"):
        load(SPEC.replace("y [batch, 6]", "y [5]"))
    with pytest.raises(ArchError, match="`hypot` expects numbers, found bool"):
        load(SPEC.replace("y [batch, 6]", "y bool [batch, 6]"))


def test_graph() -> None:
    graph = load(SPEC).graph(level="op")
    work = {name: str(data["elementwise"]) for name, data in graph.nodes.items() if data["kind"] == "op"}
    assert work["#hypot.0"] == "24*batch" and work["#bottomk.0"] == "6*batch"
    assert graph.has_edge("#bottomk.0", "output:places")


def test_cost() -> None:
    assert archspec.cost(load(SPEC), batch=5).work.elementwise == 30 * (4 + 1 + 1 + 1)
    assert archspec.cost(load(PLACES), dims={"n": 50}).work.macs == 0
    with pytest.raises(ArchError, match="is indexed with 100, but its largest index is 99"):
        archspec.cost(load(PLACES), dims={"n": 51})


def test_diff() -> None:
    assert not archspec.diff(load(SPEC), load(SPEC.replace("hypot(x, y)", "hypot(y, x)"))).operations
    (change,) = archspec.diff(load(SPEC), load(SPEC.replace("bottomk(2)", "topk(2)"))).operations
    assert (change.before, change.after) == ("bottomk(2)", "topk(2)")  # once each, though both outputs are used


def test_documentation() -> None:
    assert "| `hypot` |  | `a number [...]`<br>`b number [...]` | The square root of a * a + b * b. |" in rendered()
    assert any("`bottomk`" in row for row in elementwise_work())


def test_pytorch() -> None:
    text = torch_source(load(SPEC))
    assert "values, places = bottomk(torch.hypot(x, y) * self.gain" in text
    assert text.count("def bottomk(") == 1 and "math.hypot(width, 8)" in text
    assert torch_source(load(PLACES)).count("2 * torch.arange(") == 1


@pytest.mark.slow
def test_pytorch_computes_the_same() -> None:
    for text in (SPEC, PLACES):
        assert torch_compare.agrees(load(text))


# Names of operations --------------------------------------------------------------------------------------------------

WORDS = {
    "table",
    "abs",
    "real",
    "int",
    "bool",
    "not",
    "and",
    "or",
    "min",
    "max",
    "embedding",
    "where",
    "float32",
    "full",
}
"""Names of operations that are also something else: types, operators, functions of Python, roles, keys of audits, or
forms of output.
"""
PATTERNS = (
    "analysis/cost/latent.py",
    "ir/structure/bodies.py",
    "ir/structure/placed.py",
    "ir/structure/core.py",
    "ir/structure/terms.py",
    "drawing/figure/",
    "pytorch/calls/",
    "pytorch/passes/in_place.py",
    "pytorch/passes/known_numbers.py",
    "pytorch/passes/substitution.py",
    "pytorch/lift/",
    "pytorch/run/activations.py",
    "pytorch/values/",
    "codegen/classes/known_modules.py",
    "language/syntax/habits.py",
)
"""Known compositions of operations name what they are made of; habits of Python, recorded calls and lifting name
functions of PyTorch, and lifting what it writes for them.
"""


def is_pattern(path: Path) -> bool:
    return str(path.relative_to(PACKAGE)).startswith(PATTERNS)


def names_in_tables(path: Path) -> Iterator[str]:
    """Operation names that a file compares with, or has in sets, in `match` patterns, or as keys."""
    names = {*OPS} - WORDS
    for node in nodes_of(path):
        match node:
            case ast.Compare():
                found = [node.left, *node.comparators]
            case ast.Set():
                found = node.elts
            case ast.Dict():
                found = [key for key in node.keys if key is not None]
            case ast.MatchValue():
                found = [node.value]
            case _:
                continue
        for part in found:
            for inner in ast.walk(part):
                if isinstance(inner, ast.Constant) and inner.value in names:
                    yield str(inner.value)


def test_no_other_file_has_a_table_of_operations() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE / "ir" / "ops" and not is_pattern(path)]
    tables = {str(path.relative_to(PACKAGE)): [*names_in_tables(path)] for path in files}
    assert {name: found for name, found in tables.items() if found} == {}


@pytest.mark.parametrize("name", ["cumsum", "topk", "erf"])
def test_an_operation_is_in_one_file(name: str) -> None:
    """The files of archspec that name an operation, but for those that know what compositions are."""
    files = [p for p in PACKAGE.rglob("*.py") if re.search(rf"[\"'`]{name}[\"'`]|def {name}\(", p.read_text())]
    assert len([path for path in files if not is_pattern(path)]) == 1
