"""Folding over numbers: exact, complete, and as short as a reader expects."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archspec import NamePattern
from archspec.core.addresses import format_ranges
from archspec.core.addresses.repeats import collapse_names


def folded(*names: str) -> list[tuple[str, str]]:
    return [(f.pattern, f.ranges) for f, _ in collapse_names((name, None) for name in names)]


def grid(pattern: str, *numbers: range | tuple[int, ...]) -> list[str]:
    parts = pattern.split("*")
    return ["".join(f"{p}{n}" for p, n in zip(parts, [*chosen, ""], strict=True)) for chosen in product(*numbers)]


def test_a_stack_is_one_line() -> None:
    assert folded(*grid("encoder.layer.*.output.weight", range(12))) == [("encoder.layer.*.output.weight", "0-11")]


def test_experts_in_layers_are_one_line() -> None:
    assert folded(*grid("layers.*.experts.*.w", range(3), range(8))) == [("layers.*.experts.*.w", "0-2; 0-7")]


def test_a_hole_is_seen() -> None:
    names = [name for name in grid("layers.*.experts.*.w", range(3), range(4)) if name != "layers.1.experts.2.w"]
    assert folded(*names) == [("layers.*.experts.*.w", "0,2; 0-3"), ("layers.1.experts.*.w", "0-1,3")]


def test_one_number_stays_as_it_is() -> None:
    assert folded("groups.0.layers.3.w") == [("groups.0.layers.3.w", "")]
    assert folded("groups.0.layers.3.w", "groups.0.layers.5.w") == [("groups.0.layers.*.w", "3,5")]


def test_what_is_said_keeps_names_apart() -> None:
    found = collapse_names([("a.0", (2,)), ("a.1", (3,)), ("a.2", (2,))])
    assert [(f.pattern, f.ranges, said) for f, said in found] == [("a.*", "0,2", (2,)), ("a.1", "", (3,))]


@pytest.mark.parametrize("name", ["layer0", "layer.00", "layer.-1", "layer.\u0661", "layer.1e3", "layer.", "9" * 30])
def test_only_plain_numbers_count(name: str) -> None:
    assert folded(name, "layer.7") == [(name, ""), ("layer.7", "")]


def test_folds_stand_in_the_order_of_their_first_names() -> None:
    assert folded("b.1", "a", "b.0", "c") == [("b.*", "0-1"), ("a", ""), ("c", "")]


def test_numbers_far_to_the_right_stay_as_they_are() -> None:
    assert folded("x.0.0.0.0.0.0.0", "x.0.0.0.0.0.1.0") == [("x.0.0.0.0.0.*.0", "0-1")]
    assert folded("x.0.0.0.0.0.0.0", "x.0.0.0.0.0.0.1") == [("x.0.0.0.0.0.0.0", ""), ("x.0.0.0.0.0.0.1", "")]


def test_ranges() -> None:
    assert format_ranges([0, 1, 2, 5]) == "0-2,5"
    assert format_ranges([0, 2, 4, 6, 8, 10, 12, 14]) == "0,2,4,6,8,10,12,14"
    assert format_ranges([3, 4]) == "3-4"


def spelt(f: NamePattern) -> list[str]:
    """The names that a reader of the pattern and the ranges would write down."""
    chosen = [[n for part in text.split(",") for n in between(part)] for text in f.ranges.split("; ") if text]
    return grid(f.pattern, *map(tuple, chosen))


def between(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)


NAMES = st.lists(
    st.lists(st.sampled_from(["a", "b", "0", "1", "2", "3"]), min_size=1, max_size=5).map(".".join), unique=True
)


@given(NAMES, st.randoms())
def test_folds_are_exactly_the_names(names: list[str], random: object) -> None:
    facts = {name: random.randint(0, 1) for name in names}  # type: ignore[attr-defined]
    found = collapse_names(facts.items())
    assert sorted(name for f, _ in found for name in f.names) == sorted(names)
    for f, said in found:
        assert spelt(f) == list(f.names)
        assert {facts[name] for name in f.names} == {said}


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_names_that_fold_into_one_are_one(points: set[tuple[int, int]]) -> None:
    found = collapse_names((f"a.{i}.b.{j}", None) for i, j in points)
    rows = {i: frozenset(j for k, j in points if k == i) for i, _ in points}
    assert len(found) == len(set(rows.values()))
