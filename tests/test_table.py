"""Tables: tensors that are repeated, and data that is not a table."""

import json
from typing import Any

import pytest

import archspec
from archspec import Repeat, Table, Tensors
from archspec.model import internals
from archspec.table import Tensor, used_parameters

SPEC = """
import std { Linear }
block Inner(n)(x [..., n]) -> [..., n] {
  return x |> experts[i]: Linear(n, n) for i in 0..3
}
block Outer(n, depth)(x [..., n]) -> [..., n] {
  return x |> first: Linear(n, n) |> layers[i]: Inner(n) for i in 0..depth |> last: Linear(n, n)
}
model "nested" = Outer(n = 2, depth = 3)
"""


def tensor(name: str) -> Tensor:
    return Tensor(name, (2,), 2, 2, True, None, None, name.rpartition(".")[0], "Linear")


def test_tensors_of_repeats_are_those_of_the_module_that_they_repeat() -> None:
    first, repeats = Repeat("a.1", "a.0", 1, 2, 0), [Repeat("a.1", "a.0", 1, 2, 0), Repeat("b", "a", 3, 5, 0)]
    assert [*Tensors([tensor("a.0.w")], [first])] == [tensor("a.0.w"), tensor("a.1.w")]
    tensors = Tensors([tensor("a.0.w"), tensor("head.w"), tensor("last.w")], repeats)
    names = ["a.0.w", "a.1.w", "head.w", "b.0.w", "b.1.w", "last.w"]
    assert tensors.names() == names
    assert tensors.column("xyz") == ["x", "x", "y", "x", "x", "z"]
    assert len(tensors) == 6 and [*tensors] == [*map(tensor, names)]
    assert tensors.names() == names, "also when all tensors have been made"
    assert tensors == Tensors([*map(tensor, names)]) and tensors != Tensors(tensors[1:])
    assert tensors[-1].name == "last.w" and tensors[3:4] == (tensor("b.0.w"),)
    assert repr(Tensors([tensor("a.0.w")], [first])) == f"Tensors({(tensor('a.0.w'), tensor('a.1.w'))!r})"


def test_a_nested_stack_has_the_tensors_of_its_module() -> None:
    model = archspec.loads(SPEC)
    table = internals(model).table
    inside = [f"layers.{i}.experts.{j}" for i in range(3) for j in range(3)]
    addresses = [(layer, name) for layer in ("first", *inside, "last") for name in ("weight", "bias")]
    assert [(t.layer, t.name) for t in model.tensors] == [(layer, f"{layer}.{name}") for layer, name in addresses]
    assert len(table.tensors.distinct) < len(model.tensors) == len(table.tensors) == 22
    again = Table.from_data(json.loads(json.dumps(table.to_data())))
    assert again == table and again is not None and again.tensors.all() == model.tensors


@pytest.mark.parametrize(
    "change",
    [
        {"start": 0},
        {"start": -2},
        {"stop": 10**9},
        {"stop": 2},
        {"first": -1},
        {"first": 5},
        {"start": 2.0},
        {"first": True},
        {"address": None},
        {"of": 1},
    ],
)
def test_a_wrong_repeat_is_no_table(change: dict[str, Any]) -> None:
    data: Any = json.loads(json.dumps(internals(archspec.loads(SPEC)).table.to_data()))
    fields = dict(zip(Repeat._fields, data[-1][0], strict=True))
    data[-1][0] = list({**fields, **change}.values())
    assert Table.from_data(data) is None


@pytest.mark.parametrize(
    ("total", "parts", "used"),
    [
        (100, {}, 100),
        (100, {(1, 4): 40}, 70),
        (100, {(4, 4): 40}, 100),
        (100, {(0, 4): 40}, 60),
        (100, {(1, 4): 40, (2, 3): 30}, 60),
        (100, {(2, 3): 30, (1, 4): 42}, None),
        (100, {(2, 4): 42}, 79),
    ],
)
def test_parameters_of_a_choice_are_used_in_part(
    total: int, parts: dict[tuple[int, int], int], used: int | None
) -> None:
    assert used_parameters(total, parts) == used


@pytest.mark.parametrize("run", [(1, 4), (-2, 4), (False, 4), (0.0, 4), (None, 4), (0, 5), (0, 3), (0, 4.0), (0, 0)])
def test_a_wrong_choice_is_no_table(run: tuple[object, object]) -> None:
    data: Any = json.loads(json.dumps(internals(archspec.load("gpt-oss-20b")).table.to_data()))
    runs = data[-3][-1]
    first = runs.index([0, 4])
    assert Table.from_data(data) is not None
    data[-3][-1] = [*runs[:first], run, *runs[first + 1 :]]
    assert Table.from_data(data) is None
    data[-3][-1] = runs[1:]
    assert Table.from_data(data) is None
