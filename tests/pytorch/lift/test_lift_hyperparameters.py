"""Lifting: hyperparameters of definitions, and what differs between their instances."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from archspec.pytorch.lift.notation.templates import GAP, SWITCH, USE, Definition, Gaps, Statement, Template, fill_gaps
from archspec.pytorch.lift.sizes.sizes import IRREGULAR, SizeDependenceError, Sizes
from archspec.pytorch.lift.statements.program import LiftedProgram
from archspec.pytorch.values.arguments import UntranslatableError


def program(*rows: tuple[Any, ...], hints: tuple[str, ...] = ("scale",), start: int = 0) -> LiftedProgram:
    """A module with a loop over layers, each of which has one row of numbers."""
    gaps = ", ".join([f"{GAP}{turn}{GAP}" for turn in range(len(hints))])
    layer = Template("Layer", (), (), (Statement(text=gaps),), hints, ())
    net = Template("Net", (), (), (Statement(text=f"{USE}0{USE}"),), (), (0,), (start,))
    places = [f"layers.{turn}" for turn in range(len(rows))]
    inside = Definition(layer, list(rows), [() for _ in rows], places)
    return LiftedProgram([inside, Definition(net, [()], [(tuple(range(len(rows))),)], [""])])


def uses(
    first: LiftedProgram,
    second: LiftedProgram | None = None,
    numbers: Mapping[str, object] | None = None,
    attributes: Sequence[Mapping[str, object]] = (),
) -> tuple[list[str], str]:
    """What stands in the gaps of the layers, and how the module uses them."""
    found = {f"layers.{turn}": own for turn, own in enumerate(attributes)}
    others = numbers if second is not None else None
    sizes = Sizes(first, second, numbers or {}, others, lambda path: found.get(path, {}))
    return sizes.heads[0].gaps, sizes.heads[1].uses[0]


def test_numbers_that_follow_the_index_are_conditionals() -> None:
    assert uses(program((4,), (8,), (4,))) == (["scale"], "Layer(scale = 4 if i % 2 == 0 else 8)")
    assert uses(*[program((4,), (8,), (4,))] * 2)[1] == "Layer(scale = 4 if i % 2 == 0 else 8)"
    assert uses(program((4,), (8,), (8,), start=1)) == (["scale"], "Layer(scale = 4 if i == 1 else 8)")
    fields = {"window": 8, "other": 7}
    assert uses(program((4,), (8,), (4,)), None, fields) == (
        ["scale"],
        "Layer(scale = 4 if i % 2 == 0 else window)",
    )
    assert uses(program((7,), (8,), (7,)), None, fields)[1] == "Layer(scale = other if i % 2 == 0 else window)"


def test_conditions_that_follow_the_index_are_conditions() -> None:
    assert uses(program((True,), (False,), (True,))) == (["scale"], "Layer(i % 2 == 0)")
    assert uses(program((False,), (True,), (False,)))[1] == "Layer(i % 2 == 1)"
    twice = program((True,), (False,), (True,)), program((True,), (False,), (True,), (False,))
    assert uses(*twice)[1] == "Layer(i % 2 == 0)"


def test_equal_columns_have_one_name() -> None:
    rows = (4, 6, 4), (8, 6, 8), (4, 7, 4)
    assert uses(program(*rows[:2], hints=("a", "b", "c"))) == (["a", "6", "a"], "Layer(a = 4 if i == 0 else 8)")
    second = program((3, 6, 3), (9, 6, 5), hints=("a", "b", "c"))
    used = "Layer(a = a_size if i == 0 else h, c = a_size if i == 0 else c_size)"
    assert uses(program(*rows[:2], hints=("a", "b", "c")), second) == (["a", "6", "c"], used)
    used = "Layer(a = 4 if i == 0 else 8, b = 4.0 if i == 0 else 8.0)"
    assert uses(program((4, 4.0), (8, 8.0), hints=("a", "b"))) == (["a", "b"], used)
    one = program((4, 4), hints=("a", "b")), program((5, 6), hints=("a", "b"))
    sizes = Sizes(*one, {}, {}, lambda path: {})
    assert sizes.heads[0].gaps == ["a", "b"] and sizes.created == ["a", "b"]


def test_names_are_those_of_attributes_that_all_instances_have() -> None:
    rows = program((4,), (8,), (4,))
    both = [{"kind": 1, "span": 4, "size": 4.0}, {"kind": 1, "span": 8, "size": 8.0}, {"span": 4, "size": 4.0}]
    assert uses(rows, attributes=both)[0] == ["span"]
    assert uses(rows, attributes=both[:2])[0] == ["scale"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (program((4,), (8,), (8,), (4,), (4,)), None),
        (program((4,), (8,), (6,)), None),
        (program((4,), (4,), (4,)), program((4,), (8,), (4,))),
    ],
)
def test_other_differences_are_refused(first: LiftedProgram, second: LiftedProgram | None) -> None:
    with pytest.raises(UntranslatableError, match=IRREGULAR):
        uses(first, second)


def test_words_and_booleans_are_the_same_in_both_modules() -> None:
    for value, text in ((True, "true"), (False, "false"), ("none", "none"), ("replicate", "replicate")):
        assert uses(program((value,)), program((value,))) == ([text], "Layer")
    with pytest.raises(
        SizeDependenceError, match=r"`Layer` does something else at other sizes than at the first ones$"
    ):
        uses(program(("none",)), program(("true",)))
    assert uses(program(("none",))) == (["none"], "Layer")


def test_settings_may_have_their_usual_values() -> None:
    gaps = Gaps()
    texts = [gaps.setting("causal", True), gaps.setting("span", 4), gaps.setting("mode", "near")]
    texts.append(gaps.setting("sizes", (3, 5)))
    assert texts == [
        f"causal{SWITCH} = {GAP}0{GAP}",
        f"span{SWITCH} = {GAP}1{GAP}",
        'mode = "near"',
        f"sizes = [{GAP}2{GAP}, {GAP}3{GAP}]",
    ]
    assert (gaps.values, gaps.hints) == (["true", 4, 3, 5], ["causal", "span", "sizes", "sizes"])
    assert gaps.condition(False, "has_bias") == f"{GAP}4{GAP}" and gaps.hints[-1] == "has_bias"
    assert gaps.values[-1] is False


@pytest.mark.parametrize(
    ("gap", "text"),
    [
        ("min(a, b)", "x * min(a, b)"),
        ("min(max(a, b), 2)", "x * min(max(a, b), 2)"),
        ("min(a, b) + min(c, d)", "x * (min(a, b) + min(c, d))"),
        ("(a + b)", "x * ((a + b))"),
        ("a.b", "x * a.b"),
        ("a + b", "x * (a + b)"),
    ],
)
def test_a_call_needs_no_parentheses(gap: str, text: str) -> None:
    assert fill_gaps(f"x * {GAP}0{GAP}", [gap], []) == text


def test_a_size_that_no_field_decides_is_refused_for_an_actual_module() -> None:
    sizes = Sizes(program((41,)), program((67,)), {"width": 3}, {"width": 5}, lambda path: {})
    assert sizes.defaults(None) == {"scale": 41}
    assert sizes.defaults({"scale": 9, "width": 30}) == {"scale": 9}
    reason = "the configuration has no field that decides a size, 41 in the module it was lifted from"
    with pytest.raises(SizeDependenceError, match=f"^{reason}$"):
        sizes.defaults({"width": 30})
