"""Steps of the code that the tests of count cannot reach through public names."""

from typing import Any

import pytest
from small import DENSE, load
from test_count import table

from archspec import SelectionRule, Table, Tensor
from archspec.analysis.count.count import count
from archspec.analysis.count.groups import RoleComponent, find_role_components
from archspec.analysis.count.select import select
from archspec.analysis.count.tree import count_tree


def tensor(name: str, *shape: int, **facts: Any) -> Tensor:
    size = 1
    for n in shape:
        size *= n
    values = {
        "trainable": True,
        "tied_to": None,
        "role": None,
        "layer": name.rpartition(".")[0],
        "type": "Linear",
    } | facts
    return Tensor(name=name, shape=shape, params=0 if values["tied_to"] else size, size=size, **values)


SHARED = table(
    tensor("words.weight", 10, 4, layer="words", type="Embedding", role="embedding"),
    tensor("head.dense.weight", 4, 4, role="head"),
    tensor("head.decoder.weight", 10, 4, tied_to="words.weight", role="head"),
    tensor("head.decoder.bias", 10, role="head"),
)


def stack(*kinds: int, prefix: str = "encoder.layer") -> Table:
    """Numbered blocks, each of one layer; `kinds` are the layers' sizes."""
    names = [f"{prefix}.{i}" for i in range(len(kinds))]
    tensors = [tensor(f"{name}.dense.weight", size, 2) for name, size in zip(names, kinds, strict=True)]
    return table(*tensors, blocks=tuple(names))


def rules(*texts: str) -> list[SelectionRule]:
    return [SelectionRule(text[0] == "+", text[1:]) for text in texts]


@pytest.mark.parametrize(
    ("chosen", "total"),
    [
        ([], 66),
        (["-*"], 0),
        (["+*"], 66),
        (["-head.*"], 40),
        (["+head.*"], 66),  # the decoder's other name stands for the shared matrix
        (["+head.*", "-head.decoder.weight"], 26),
        (["-words.weight"], 66),  # its other name is still chosen
        (["-words.weight", "-head.decoder.weight"], 26),
        (["+*.weight", "-*", "+head.dense.*"], 16),  # the last match wins
        (["+words"], 0),  # whole names
        (["+*.bia?"], 10),
    ],
)
def test_rules_apply_in_order_and_a_shared_tensor_counts_once(chosen: list[str], total: int) -> None:
    selection = select(SHARED, rules(*chosen))
    assert selection.total == total == sum(selection.params)


@pytest.mark.parametrize(
    ("chosen", "elsewhere"),
    [
        (["-words.weight"], {"words.weight": "head.decoder.weight"}),
        (["-head.decoder.weight"], {"head.decoder.weight": "words.weight"}),
        (["+*", "-head.*"], {"head.decoder.weight": "words.weight"}),
        (["-words.weight", "-head.decoder.weight"], {}),
        (["-head.*", "+head.*"], {}),
        (["+words.weight"], {}),  # nothing is excluded
        (["-head.*.bias"], {}),
    ],
)
def test_an_excluded_name_of_a_counted_tensor_is_told(chosen: list[str], elsewhere: dict[str, str]) -> None:
    selection = select(SHARED, rules(*chosen))
    assert selection.counted_elsewhere == elsewhere
    lines = str(count(SHARED, rules(*chosen))).splitlines()
    assert [line for line in lines if line.startswith("excluded, but counted as")] == [
        f"excluded, but counted as {counted}: {name}" for name, counted in elsewhere.items()
    ]


def test_outermost_lines_sum_to_the_selection() -> None:
    for model in (SHARED, stack(7, 5, 5, 7), stack(*[1] * 30)):
        for chosen in ([], rules("+*.weight"), rules("-*.0.*"), rules("-words.*")):
            selection = select(model, chosen)
            assert sum(b.total for b in count_tree(model, selection) if b.level == 0) == selection.total


def test_heads_that_are_equal_to_other_layers_are_found() -> None:
    two = load(
        f"{DENSE}\nblock Head(n)(x [..., n]) -> [..., n] {{\n  return x |> up: Dense(n) |> down: Dense(n)\n}}\n"
        "block Net(n = 2)(x [..., n]) -> [..., n] {\n  role head for a, b.down\n"
        "  return x |> c: Dense(n) |> a: Head(n) |> b: Head(n)\n}\n"
    )
    assert find_role_components(two.count().table, "head") == [
        RoleComponent("a", ("up", "down"), 12),
        RoleComponent("b.down", (), 6),
    ]
    among_others = load(
        f"{DENSE}\nblock Net(n = 2)(x [..., n]) -> [..., n] {{\n  role head for g.x, g.z\n"
        "  return x |> c: Dense(n) |> g.x: Dense(n, 3) |> g.z: Dense(3, n) |> g.y: Dense(n)\n}\n"
    )
    assert find_role_components(among_others.count().table, "head") == [
        RoleComponent("g.x", (), 9),
        RoleComponent("g.z", (), 8),
    ]
