"""Tables: tensors that are repeated, and tables as data."""

import json

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
    assert again == table and again.tensors.all() == model.tensors
