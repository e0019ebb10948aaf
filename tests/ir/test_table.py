"""Tables: tensors that are repeated, and data that is not a table."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from paths import read_spec

import archspec
from archspec import Repeat, Table, Tensor, Tensors

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
    table = model.count().table
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
    data: Any = json.loads(json.dumps(archspec.loads(SPEC).count().table.to_data()))
    fields = dict(zip(Repeat._fields, data[-1][0], strict=True))
    data[-1][0] = list({**fields, **change}.values())
    assert Table.from_data(data) is None


def test_an_empty_repeat_or_run_is_no_table() -> None:
    data: Any = json.loads(json.dumps(archspec.loads(SPEC).count().table.to_data()))
    data[-1].append(["more", "layers.0", 22, 22, 0])
    assert Table.from_data(data) is None
    data = json.loads(json.dumps(archspec.load("gpt-oss-20b").count().table.to_data()))
    data[-3][-1].append((-1, 0))
    assert Table.from_data(data) is None


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or dictionary in data, with each index or key at which it has no other of these."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, list | dict):
            yield from places(value)
        else:
            yield data, key


def test_a_value_of_another_type_makes_no_table() -> None:
    text = read_spec("table_spec")
    table = archspec.loads(text).count().table._replace(notes=("a note",), hyperparameters={})
    data: Any = json.loads(json.dumps(table.to_data()))
    assert Table.from_data(data) == table and table.buffer_ties and table.tensors[0].role == "norm"
    number = 0
    for owner, key in places(data):
        value = owner[key]
        for wrong in (1 if value is None or isinstance(value, str) else str(value), 1.0, [[value]]):
            owner[key] = wrong
            assert Table.from_data(data) is None, (owner, key)
            number += 1
        owner[key] = value
    assert number > 100


@pytest.mark.parametrize("run", [(1, 4), (-2, 4), (False, 4), (0.0, 4), (None, 4), (0, 5), (0, 3), (0, 4.0), (0, 0)])
def test_a_wrong_choice_is_no_table(run: tuple[object, object]) -> None:
    data: Any = json.loads(json.dumps(archspec.load("gpt-oss-20b").count().table.to_data()))
    runs = data[-3][-1]
    first = runs.index([0, 4])
    assert Table.from_data(data) is not None
    data[-3][-1] = [*runs[:first], run, *runs[first + 1 :]]
    assert Table.from_data(data) is None
    data[-3][-1] = runs[1:]
    assert Table.from_data(data) is None
