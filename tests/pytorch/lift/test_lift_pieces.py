"""Lifting: conditions on indices, names, numbers, roles, patterns of addresses and of axes, and lengths."""

from typing import Any

import pytest
from builders import builder, given

from archspec.core.algebra import symbol
from archspec.pytorch.lift.definitions.lengths import (
    dimensions_of,
    joint_sizes,
    total_length,
    total_lengths,
    usual_dimension_names,
)
from archspec.pytorch.lift.definitions.runs import address_pattern, are_alike, without_numbers
from archspec.pytorch.lift.notation.conditions import Varying, branches_of, conditions, is_regular
from archspec.pytorch.lift.notation.names import (
    FALLBACKS,
    definition_names,
    identifier,
    role_of_address,
    role_of_class,
    role_statements,
)
from archspec.pytorch.lift.notation.notation import quote_address
from archspec.pytorch.lift.sources.fields import shows_rule
from archspec.pytorch.lift.values.views import Layout, Pattern, pattern
from archspec.pytorch.values.numbers import is_counted_exactly, literal

BATCH, SEQ, TIME = symbol("batch"), symbol("seq"), symbol("time")

# Conditions -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("values", [(1, 2, 1), (4, 8, 4, 8, 8, None, 4, 4, 8, 8, 8), (1, 1, 2, 1, 1, 1, 2, None) * 2])
def test_conditions_hold_where_their_texts_do(values: tuple[int | None, ...], start: int) -> None:
    found = conditions(Varying(values, start))
    periods = [
        (f"i % {period} {sign} {rest}") for period in range(2, 9) for sign in ("==", "!=") for rest in range(period)
    ]
    texts = [f"i == {start}", *periods]
    if len(values) == 16:
        few = [turn + start for turn in (2, 6, 10, 14)]
        many = [turn + start for turn in range(16) if turn not in (2, 6, 10, 14, 7, 15)]
        texts += [f"i in {few}", f"i not in {few}", f"i in {many}", f"i not in {many}"]
    assert [text for text, _ in found] == texts
    for text, holds in found:
        assert [holds(i) for i in range(24)] == [eval(text, {"i": i}) for i in range(24)]


def test_indices_are_listed_in_loops_of_twelve() -> None:
    values = (True, False, False) * 4
    assert next(text for text, _ in conditions(Varying(values, 0)) if " in " in text) == "i in [0, 3, 6, 9]"
    assert not [text for text, _ in conditions(Varying(values[:11], 0)) if " in " in text]


def test_values_that_differ_between_iterations() -> None:
    varying = Varying((4, None, 8, 4), 2)
    assert varying.kinds == {4, 8}
    assert varying.where(lambda i: i > 3, True) == {4, 8} and varying.where(lambda i: i > 3, False) == {4}
    assert varying.where(lambda i: i == 4, True) == {8} and varying.where(lambda i: i == 4, False) == {4}
    assert varying.follows(lambda i: i == 4) and varying.follows(lambda i: i != 4)
    assert not varying.follows(lambda i: i > 3) and not varying.follows(lambda i: i < 9)
    assert not varying.follows(lambda i: i > 9)
    assert not Varying((4, 4), 0).follows(lambda i: i == 0)
    assert Varying((4, None), 0).follows(lambda i: i == 0)


def test_kinds_by_their_indices() -> None:
    assert branches_of((0, 1, 0), 1) == [Varying((True, False, True), 1)]
    assert branches_of((2, 1, 0), 0) == [Varying((False, False, True), 0), Varying((False, True, None), 0)]
    assert branches_of((0, 0), 0) == []
    assert is_regular((0, 0), 0) and is_regular((1, 0, 0), 5) and not is_regular((0, 1, 1, 1, 0, 0), 0)
    assert not is_regular((0, 1, 2, 1, 1, 2, 2), 0)


@pytest.mark.parametrize(
    ("kinds", "shown"),
    [
        ("aabb", [True] * 3),
        ("abbbb", [True] * 4),
        ("abab", [False, True, True]),
        ("abcabab", [True, True, True, False, True, True]),
        ("cabababab", [True, False, *[True] * 6]),
    ],
)
def test_few_layers_show_a_rule(kinds: str, shown: list[bool]) -> None:
    assert [shows_rule(kinds, few) for few in range(2, len(kinds) + 1)] == shown


# Names and numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [("a.b-c", "a_b_c"), ("_a_", "a"), ("__", ""), ("0a", ""), ("if", ""), ("pi", ""), ("i", ""), ("ii", "ii")],
)
def test_texts_as_names(text: str, name: str) -> None:
    assert identifier(text) == name


def test_names_for_values_without_one() -> None:
    assert FALLBACKS[:3] == ("h", "g", "y") and FALLBACKS[-1] == "v6" and len({*FALLBACKS}) == len(FALLBACKS) == 120
    letters = [name[0] for name in FALLBACKS]
    assert letters == letters[:20] * 6 and "".join(sorted(letters[:20])) == "abcdefghknpqrstuvwyz"
    assert [name[1:] for name in FALLBACKS[::20]] == ["", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize(
    ("kinds", "paths", "taken", "names"),
    [
        (["Block"] * 3, ["a.0", "a.1", "a.2"], [], ["Block", "Block2", "Block3"]),
        (["Block", "Net"], ["a", ""], ["Block", "Block2"], ["Block3", "Net"]),
        (["NetBlock"] * 2 + ["Net"], ["enc.layer", "dec.layer", ""], [], ["NetEncBlock", "NetDecBlock", "Net"]),
        (["NetBlock"] * 2 + ["Net"], ["enc_block", "dec_block", ""], [], ["NetEncBlock", "NetDecBlock", "Net"]),
        (["Layer", "Layer", "Other"], ["up.x", "down.x", ""], [], ["UpLayer", "DownLayer", "Other"]),
        (["MyLayer", "MyLayer"], ["up.x", "down.x"], [], ["UpMyLayer", "DownMyLayer"]),
        (["A1B", "A1B", "A1C"], ["up.x", "down.x", ""], [], ["A1UpB", "A1DownB", "A1C"]),
        (["Layer", "Layer"], ["outer.inner", "x.0"], [], ["InnerLayer", "XLayer"]),
    ],
)
def test_names_of_definitions(kinds: list[str], paths: list[str], taken: list[str], names: list[str]) -> None:
    assert definition_names(kinds, paths, taken) == names


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (99_999, "99999"),
        (100_000, "100_000"),
        (-99_999, "-99999"),
        (-100_000, "-100_000"),
        (float("inf"), "inf"),
        (-float("inf"), "-inf"),
        (0.5, "0.5"),
        (True, "true"),
        (None, "none"),
        ("word", "word"),
        (1e16, "1e16"),
        (1e-7, "1e-7"),
        (1.5e-10, "1.5e-10"),
        (1e100, "1e100"),
        (3.0, "3.0"),
        (False, "false"),
        ([[1], [2.0]], "[[1], [2.0]]"),
    ],
)
def test_literals(value: object, text: str) -> None:
    assert literal(value) == text


@pytest.mark.parametrize(
    ("values", "is_exact"),
    [
        ([], True),
        ([0.3], True),
        ([0.3, 1], False),
        ([0.5, 0.3], True),
        ([0, 1, 0.3], False),
        ([0, 0.3, 1], True),
        ([0.3, 1, 1], False),
        ([1 / 1024, 1], True),
        ([1 / 2048, 1], False),
        ([0, 1, 1 / 1024, 0.3], True),
    ],
)
def test_steps_that_are_counted_exactly(values: list[object], is_exact: bool) -> None:
    assert is_counted_exactly(values) == is_exact


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("a.0.b", "a.0.b"),
        ("0", '"0"'),
        ("0.0", '"0".0'),
        ("in", '"in"'),
        ("a.in", "a.in"),
        ("a-b", '"a-b"'),
        ("a.b c", 'a."b c"'),
        ("a[i].0", "a[i].0"),
        ("a[i][j].x", "a[i][j].x"),
        ("one", "one"),
    ],
)
def test_addresses_in_the_notation_of_the_language(address: str, text: str) -> None:
    assert quote_address(address) == text


ROLES = {
    "embedding": ["embedding", "embeddings"],
    "attention": ["attention", "attn", "my_attention", "self_attn", "cross_attn", "encoder_attn", "x_attn"],
    "feed_forward": ["mlp", "ffn", "ffn_up", "feedforward", "feed_forward", "intermediate", "densereludense", "fc1",
                     "fc2", "linear1", "linear2", "ff"],
    "pooler": ["pooler"],
    "head": ["lm_head", "cls", "classifier", "score", "qa_outputs", "head", "heads", "decoder_head", "my_head"],
}  # fmt: skip


def test_roles_of_addresses_and_classes() -> None:
    found = {name: role_of_address(f"layers.0.{name.title()}.x") for names in ROLES.values() for name in names}
    assert found == {name: role for role, names in ROLES.items() for name in names}
    assert [role_of_address(name) for name in ("fc3", "attns", "norm", "header", "")] == [None] * 5
    assert role_of_address("mlp.attn") == "feed_forward"
    kinds = ["MyEmbedding", "MyEmbeddings", "SelfAttention2", "MLP", "MyMlp", "XFeedForward", "FFN", "DenseActDense",
             "GLU", "BertPooler", "LMHead", "AttentionBlock", "Linear"]  # fmt: skip
    roles = ["embedding"] * 2 + ["attention"] + ["feed_forward"] * 6 + ["pooler", "head", None, None]
    assert [role_of_class(kind) for kind in kinds] == roles


def test_statements_that_give_roles() -> None:
    assert role_statements("MyMLP", ["up", "attn"], True) == ["role feed_forward"]
    assert role_statements("MyMLP", ["up"], False) == []
    layers = ["output.dense", "attn.q", "mlp", "output.norm", "attn.k"]
    assert role_statements("Layer", layers, False) == [
        "role attention for attn.q, attn.k",
        "role feed_forward for mlp",
    ]
    assert role_statements("Layer", ["output.dense", "intermediate.dense"], True) == [
        "role feed_forward for output.dense, intermediate.dense"
    ]


# Addresses and axes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("addresses", "found"),
    [
        (["a", "a", "b"], ("a", 0, 2)),
        (["a.0", "a.1", "a.1"], ("a[i]", 0, 2)),
        (["a.3.x", "a.4.x", "a.5.x", "a.7.x"], ("a[i].x", 3, 3)),
        (["a.0.x.0", "a.1.x.0"], ("a[i].x.0", 0, 2)),
        (["a.0.x.0", "a.1.x.1"], ("a.0.x.0", 0, 1)),
        (["a.0", "a.1.x"], ("a.0", 0, 1)),
        (["a.0", "a.x"], ("a.0", 0, 1)),
        (["a.x", "a.0"], ("a.x", 0, 1)),
        (["0.x", "1.x"], ("[i].x", 0, 2)),
        (["a.10.x.2", "a.11.x.2"], ("a[i].x.2", 10, 2)),
        (["a.x1", "a.x2"], ("a.x1", 0, 1)),
    ],
)
def test_patterns_of_addresses(addresses: list[str], found: tuple[str, int, int]) -> None:
    assert address_pattern(addresses) == found


def test_addresses_without_numbers() -> None:
    assert without_numbers("a.10.b2.x") == "a.#.b#.x"


@pytest.mark.parametrize(
    ("keys", "alike"),
    [
        (["a", "a"], True),
        ([("a", 1), ("a", 1), ("a", 1)], True),
        ([("a", 1), ("a", 2)], False),
        ([("a", "none"), ("a", 2)], True),
        ([("a", 2), ("a", "none")], True),
        ([("a", "none"), ("a", 2), ("a", 3)], False),
        ([("a", "none", 1), ("a", 2, 2)], False),
        ([("a", ("none", 3)), ("a", (2, 3))], True),
        ([("a", "none"), ("a", 2, 3)], False),
        ([("none", "none"), (2, 2)], True),
    ],
)
def test_layers_that_differ_in_a_setting_that_one_lacks(keys: list[object], alike: bool) -> None:
    assert are_alike(keys) == alike


def settled(shape: Any, *steps: tuple[str, Any]) -> Pattern:
    layout = Layout(shape)
    for name, setting in steps:
        assert getattr(layout, name)(setting)
    return pattern(*layout.settled())


@pytest.mark.parametrize(
    ("shape", "steps", "expected"),
    [
        ((BATCH, SEQ, 6), [("reshape", (BATCH, SEQ, 2, 3))], ("b s (h d) -> b s h d", (("h", 2),), False)),
        ((BATCH, 2, 3, 5), [("reshape", (BATCH, 6, 5))], ("b d h w -> b (d h) w", (), False)),
        ((4, 5), [("permute", (1, 0))], ("d h -> h d", (), False)),
        ((4, 1, 5), [("reshape", (4, 5))], ("d 1 h -> d h", (), False)),
        ((4, 5), [("reshape", (1, 4, 5))], ("d h -> 1 d h", (), False)),
        ((4, 5), [("expand", (3, 4, 5))], ("d h -> w d h", (("w", 3),), True)),
        ((4, 1), [("expand", (4, 3))], ("d 1 -> d h", (("h", 3),), True)),
        ((SEQ, symbol("size")), [("permute", (1, 0))], ("s d -> d s", (), False)),
        ((24,), [("reshape", (2, 3, 4)), ("permute", (2, 0, 1))], ("(h d w) -> w h d", (("h", 2), ("d", 3)), False)),
        ((2, 12), [("reshape", (6, 4))], ("h (d w) -> (h d) w", (("d", 3),), False)),
        ((symbol("Width"), 3), [("permute", (1, 0))], ("w d -> d w", (), False)),
        ((2 * SEQ, 3), [("permute", (1, 0))], ("d h -> h d", (), False)),
    ],
)
def test_patterns_of_axes(shape: Any, steps: list[tuple[str, Any]], expected: Any) -> None:
    found = settled(shape, *steps)
    assert (found.text, found.sizes, found.repeats) == expected


def test_a_copy_of_a_layout_is_divided_alone() -> None:
    layout = Layout((6, 4))
    assert layout.reshape((2, 12)) and layout.copy().reshape((2, 3, 2, 2))
    assert [len(group) for group in layout.settled()[0]] == [2, 1]
    copied = layout.copy()
    assert pattern(*copied.settled()) == pattern(*layout.settled()) == Pattern("(h d) w -> h (d w)", (("h", 2),), False)
    repeated = Layout((4,))
    assert repeated.expand((4, 4)) and not repeated.copy().reshape((2, 8)) and repeated.copy().reshape((8, 2))
    assert Layout((4,)).expand((3, 4)) and not Layout((4, 1)).reshape((4, 2))


# Lengths --------------------------------------------------------------------------------------------------------------


def test_sizes_that_are_one_dimension() -> None:
    assert joint_sizes([2 * SEQ], [2 * SEQ, 3, BATCH]) == {2 * SEQ: SEQ}
    assert joint_sizes([SEQ], [SEQ]) == {}
    joint = SEQ + TIME
    assert joint_sizes([joint], [joint, BATCH]) == {joint: SEQ}
    assert joint_sizes([joint], [joint]) == {joint: SEQ}
    assert joint_sizes([joint], [joint, BATCH, symbol("frames")]) == {joint: SEQ}
    assert joint_sizes([joint], [joint, SEQ]) == {}
    assert joint_sizes([joint], [joint, symbol("rows")]) == {joint: BATCH}
    assert joint_sizes([joint, 2 * joint], [joint]) == {}


def test_sizes_by_a_length_that_is_a_quotient() -> None:
    length = (TIME + 1) // 4 - 1
    found = joint_sizes([length, BATCH, 2 * length], [2 * length - 1, BATCH * length, 7, 3 * BATCH])
    assert {str(size): str(new) for size, new in found.items()} == {
        str(length): "seq",
        str(2 * length): "2*seq",
        str(2 * length - 1): "2*seq - 1",
        str(BATCH * length): "batch*seq",
    }
    assert joint_sizes([length, 2 * length], [length + TIME]) == {}
    twice = 2 * (TIME // 4)
    assert joint_sizes([twice, twice + 1], [twice]) == {}
    assert joint_sizes([TIME // 4 + SEQ, 2 * (TIME // 4)], [TIME // 4]) == {}


ROWS, COLUMNS = symbol("rows"), symbol("columns")


@pytest.mark.parametrize(
    ("shapes", "names"),
    [
        ([(ROWS, COLUMNS, 8)], {"rows": BATCH, "columns": SEQ}),
        ([(ROWS, 5, 8)], {"rows": BATCH}),
        ([(ROWS, 8)], {"rows": SEQ}),
        ([(ROWS, ROWS, 8)], {"rows": SEQ}),
        ([(2 * ROWS, COLUMNS, 8)], {}),
        ([(BATCH, ROWS, 8)], {"rows": SEQ}),
        ([(ROWS, COLUMNS, 8), (BATCH, 4)], {}),
        ([(ROWS, COLUMNS, 8), (COLUMNS, ROWS)], {}),
        ([(ROWS, COLUMNS, 8), (TIME, 4)], {"rows": BATCH}),
        ([(7, ROWS, 8)], {"rows": SEQ}),
        ([(7, 8)], {}),
        ([], {}),
    ],
)
def test_usual_names_of_dimensions(shapes: list[tuple[Any, ...]], names: dict[str, Any]) -> None:
    b = builder()
    values = [given(b, f"x{turn}", shape) for turn, shape in enumerate(shapes)]
    assert usual_dimension_names(values, []) == names
    if len(values) > 1:
        assert usual_dimension_names(values[:1], values[1:]) == names


def test_totals_of_lengths() -> None:
    assert total_length([SEQ + 3, BATCH]) == ("seq", 3)
    assert total_length([SEQ + 3, SEQ]) is None
    assert total_length([SEQ + 3, TIME + 2]) is None
    assert total_length([SEQ + TIME]) is None
    assert total_length([2 * SEQ + 1]) is None
    assert total_length([BATCH]) is None
    assert total_lengths([SEQ + 3], {}) == {"seq": SEQ - 3}
    assert total_lengths([TIME + 3], {"time": SEQ}) == {"time": SEQ - 3}
    assert total_lengths([BATCH], {"batch": SEQ}) == {}
    b = builder()
    assert dimensions_of([given(b, "x", (BATCH, 3, SEQ + 1)), given(b, "y", (BATCH,))]) == {BATCH, SEQ + 1}
