"""The texts of `lift`: lines that are too long, names, numbers, and sizes as expressions of fields."""

from dataclasses import replace
from typing import Any

import pytest
from builders import builder, given

from archspec.core.algebra import symbol
from archspec.pytorch.lift.definitions.lengths import usual_dimension_names
from archspec.pytorch.lift.notation.names import FALLBACKS, Names, definition_names
from archspec.pytorch.lift.notation.templates import GAP, USE, Definition, Gaps, Statement, Template, joined
from archspec.pytorch.lift.sizes.expressions import Expressions
from archspec.pytorch.lift.sizes.sizes import Sizes
from archspec.pytorch.lift.spec_text import WIDTH, source
from archspec.pytorch.lift.statements.program import LiftedProgram
from archspec.pytorch.lift.values.views import Layout
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.numbers import literal

BATCH, SEQ = symbol("batch"), symbol("seq")


def lines(statement: Statement, imports: tuple[str, ...] = ()) -> list[str]:
    """The lines of a module with one statement."""
    template = Template("Net", (("x", "real", "[batch]"),), (("", "real", "[batch]"),), (statement,), (), ())
    program = LiftedProgram([Definition(template, [()], [()], [""])], {*imports})
    text = source(program, Sizes(program, None, {}, None, lambda path: {}), "Net", "net", {}, None)
    return text.splitlines()[2:-2]


def test_imports_are_in_two_lines_if_one_is_too_long() -> None:
    layers, functions = [f"Layer{turn}{'x' * 12}" for turn in range(3)], ["gelu", "silu", *["f" * 20] * 2]
    names = (*functions[:2], *layers)
    whole = f"import std {{ {', '.join([*layers, *functions[:2]])} }}"
    fitting = "g" * (WIDTH - len(whole) - 2)
    assert lines(Statement(text="x"), (*names, fitting))[0] == whole.replace("gelu", f"gelu, {fitting}")
    long = f"{fitting}g"
    assert lines(Statement(text="x"), (*names, long))[:3] == [
        f"import std {{ {', '.join(layers)} }}",
        f"import std {{ gelu, {long}, silu }}",
        "",
    ]


def test_lines_without_a_place_to_break_stay_long() -> None:
    word = "w" * (WIDTH + 1)
    assert lines(Statement(text=word))[1] == f"  {word}"
    assert lines(Statement(text=f"{word[:-9]}( - {word})"))[1] == f"  {word[:-9]}( - {word})"
    assert lines(Statement(text=f"f(a, {word}, b)"))[1:3] == ["  f(a,", f"    {word}, b)"]


def head(*inputs: int, outputs: tuple[int, ...] = (), own: tuple[int, ...] = ()) -> list[str]:
    """The lines before the body of a definition: the lengths of the names of what it has."""
    given, made = [tuple([("x" * size, "int", "[batch]") for size in sizes]) for sizes in (inputs, outputs)]
    template = Template("Net", given, made or (("", "bool", "[batch]"),), (Statement(text="x"),), (), ())
    program = LiftedProgram([Definition(template, [()], [()], [""])], set())
    sizes = Sizes(program, None, {}, None, lambda path: {})
    sizes.heads[0].own = dict.fromkeys(["h" * size for size in own], ())
    found = source(program, sizes, "Net", "net", {}, None).splitlines()[2:]
    return found[: found.index("  x")]


def test_heads_are_in_as_many_lines_as_they_need() -> None:
    start, arrow, indent = "block Net(", "-> bool [batch] {", " " * 9
    of = " int [batch]"
    fitting = WIDTH - len(f"{start}{of}) {arrow}")
    assert head(fitting) == [f"{start}{'x' * fitting}{of}) {arrow}"]
    assert head(fitting + 1) == [f"{start}{'x' * (fitting + 1)}{of})", f"{indent}{arrow}"]
    first = f"{start}{'x' * 40}{of}, "
    rest = WIDTH - len(f"{first}{of})")
    assert head(40, rest) == [f"{first}{'x' * rest}{of})", f"{indent}{arrow}"]
    assert head(40, rest + 1) == [first[:-1], f"{indent} {'x' * (rest + 1)}{of}) {arrow}"]
    last = WIDTH - len(f"{indent} {of}) {arrow}")
    assert head(40, last) == [first[:-1], f"{indent} {'x' * last}{of}) {arrow}"]
    assert head(40, last + 1) == [first[:-1], f"{indent} {'x' * (last + 1)}{of})", f"{indent}{arrow}"]
    assert head() == [f"{start}) {arrow}"]


def test_hyperparameters_and_outputs_have_lines_of_their_own() -> None:
    x, y, h, k = "x" * 40, "x" * 50, "h" * 60, "h" * 61
    assert head(1, own=(60,)) == [f"block Net({h})(x int [batch]) -> bool [batch] {{"]
    fitting = WIDTH - len(f"block Net({h})( int [batch]) -> bool [batch] {{")
    assert [len(line) for line in head(fitting, own=(60,))] == [WIDTH] and len(head(fitting + 1, own=(60,))) == 2
    assert head(40, own=(60,)) == [f"block Net({h})", f"         ({x} int [batch]) -> bool [batch] {{"]
    assert head(40, own=(60, 61))[:2] == [f"block Net({h},", f"          {k})"]
    assert head(1, outputs=(1, 2)) == ["block Net(x int [batch]) -> (x int [batch], xx int [batch]) {"]
    assert head(1, outputs=(50, 50)) == [
        "block Net(x int [batch])",
        f"         -> ({y} int [batch],",
        f"             {y} int [batch]) {{",
    ]


@pytest.mark.parametrize(
    ("source", "steps", "expected"),
    [
        ("x", (), ["x"]),
        ("x", ("relu",), ["relu(x)"]),
        ("x", ("Linear(3, 4)", "relu"), ["Linear(3, 4)(x) |> relu"]),
        ("x", ("first: Linear",), ["first: Linear()(x)"]),
        ("x", ("a.first: Linear(3)", "relu"), ["a.first: Linear(3)(x) |> relu"]),
        ("x", ("+ y",), ["x + y"]),
        ("f(x)", ("/ y",), ["f(x) / y"]),
        ("x * y", ("+ z",), ["x * y |> + z"]),
        ("f(x)", ("* y", "relu"), ["f(x)", "|> * y", "|> relu"]),
        ("x", ("where(_, m, 0.0)",), ["where(x, m, 0.0)"]),
        ("x", ("f(_, _)",), ["f(x, _)"]),
        ("x", ("f(m, _)",), ["x |> f(m, _)"]),
        ("x", ("f(m_1)", "g"), ["f(m_1)(x) |> g"]),
        ("x", ("+ y for i in 0..3",), ["x", "|> + y for i in 0..3"]),
        ("x", ("layers[i]: Layer() for i in 0..3",), ["x", "|> layers[i]: Layer() for i in 0..3"]),
        ("x", ("a: A", "b(c): D", "longer: C"), ["x", "|> a:      A", "|> b(c): D", "|> longer: C"]),
        ("x", ("a", "b", "c"), ["x", "|> a", "|> b", "|> c"]),
    ],
)
def test_chains_begin_with_a_call(source: str, steps: tuple[str, ...], expected: list[str]) -> None:
    first, *others = lines(Statement((), source, steps))[1:-1]
    assert [first.removeprefix("  return "), *[line.removeprefix("    ") for line in others]] == expected


def test_two_steps_are_in_one_line_if_it_is_short() -> None:
    fitting = WIDTH - 8 - len("return f(x) |> ") - 2
    assert lines(Statement((), "x", ("f", "g" * fitting)))[1:-1] == [f"  return f(x) |> {'g' * fitting}"]
    assert len(lines(Statement((), "x", ("f", "g" * (fitting + 1))))[1:-1]) == 3
    assert lines(Statement(("y", "z"), "x", ("f", "g")))[1:-1] == ["  y, z = f(x) |> g"]


def test_long_lines_are_broken_in_their_outermost_brackets() -> None:
    word, other = "w" * 20, "v" * 9
    listed = ", ".join([word] * 6)
    assert lines(Statement(text=f"a = f({listed}) + g({other}, {other})"))[1:-1] == [
        f"  a = f({', '.join([word] * 5)},",
        f"        {word}) + g({other}, {other})",
    ]
    fitting = "w" * (WIDTH - len("  f(, b)"))
    assert lines(Statement(text=f"f({fitting}, b)"))[1:-1] == [f"  f({fitting}, b)"]
    assert lines(Statement(text=f"f({fitting}www, b)"))[1:-1] == [f"  f({fitting}www,", "    b)"]
    assert lines(Statement(text=f"f({fitting}wwww, b)"))[1:-1] == [f"  f({fitting}wwww, b)"]
    inner = f"{word}({', '.join([other] * 4)})"
    assert lines(Statement(text=f"a = f({inner}, {inner})"))[1:-1] == [f"  a = f({inner},", f"        {inner})"]
    assert lines(Statement(text=f"a = [{' + '.join([word] * 6)}]"))[1:-1] == [
        f"  a = [{' + '.join([word] * 4)}",
        f"       + {word} + {word}]",
    ]
    assert lines(Statement(text=f"a = ({word * 3} // {word * 3})"))[1:-1] == [
        f"  a = ({word * 3}",
        f"       // {word * 3})",
    ]


@pytest.mark.parametrize(
    ("steps", "written"),
    [
        (["a: Linear(8, 8)", "tanh", "* 2"], ["y = a: Linear(8, 8)(x) |> tanh |> * 2"]),
        (["+ 2", "tanh"], ["y = x + 2 |> tanh"]),
        (["a: Linear(8, 8)", "tanh", "* 2", "abs"], ["y = a: Linear(8, 8)(x)", "|> tanh", "|> * 2", "|> abs"]),
        (["tanh", "a: Linear(8, 8)", "* 2", "abs"], ["y = x", "|> tanh", "|> a: Linear(8, 8)", "|> * 2", "|> abs"]),
        (
            ["a: Linear(8, 8)", "b: Linear(8, 8)", "abs"],
            ["y = x", "|> a: Linear(8, 8)", "|> b: Linear(8, 8)", "|> abs"],
        ),
        (["w" * WIDTH, "tanh"], ["y = x", f"|> {'w' * WIDTH}", "|> tanh"]),
        (["a[i]: Net for i in 0..2"], ["y = x", "|> a[i]: Net for i in 0..2"]),
    ],
)
def test_short_chains_are_in_one_line(steps: list[str], written: list[str]) -> None:
    found = lines(Statement(("y",), "x", tuple(steps)))
    assert [line.strip() for line in found[1:-1]] == written


@pytest.mark.parametrize(
    ("call", "head"),
    [
        ("(_, mask)", ["block Net(..Body)(..Body) -> [batch] {", "  return body: Body(..)(..) |> head: Linear(8, 2)"]),
        (
            "(_, x)",
            [
                "block Net(width = 8)(x [batch], mask [batch]) -> [batch] {",
                "  return body: Body(..)(x, x) |> head: Linear(8, 2)",
            ],
        ),
    ],
)
def test_a_model_that_adds_layers_to_another_one_takes_over_its_head(call: str, head: list[str]) -> None:
    types = (("x", "real", "[batch]"), ("mask", "real", "[batch]")), (("", "real", "[batch]"),)
    body = Template("Body", *types, (Statement((), f"f({GAP}0{GAP})(x, mask)"),), ("size",), ())
    steps = (f"body: {USE}0{USE}{call}", "head: Linear(8, 2)")
    net = Template("Net", *types, (Statement((), "x", steps),), (), (0,), (0,))
    program = LiftedProgram([Definition(body, [(8,)], [()], ["body"]), Definition(net, [()], [((0,),)], [""])])
    text = source(program, Sizes(program, None, {"width": 8}, None, lambda path: {}), "Net", "net", {"width": 8}, None)
    assert head[0] in text.splitlines() and head[1] in text.splitlines()
    assert ("block Body(width = 8)(" in text) == ("..Body" in head[0])


@pytest.mark.parametrize(
    ("hints", "name"),
    [
        (("in_channels", "out_channels"), "channels"),
        (("in_channels", "in_channels"), "in_channels"),
        (("in_features", "out_features"), "inputs"),
        (("out_features", "eps"), "outputs"),
        (("eps", "number"), "size"),
    ],
)
def test_sizes_that_differ_are_called_as_layers_call_them(hints: tuple[str, str], name: str) -> None:
    types = (("x", "real", "[batch]"),), (("", "real", "[batch]"),)
    text = f"f({GAP}0{GAP}, {GAP}1{GAP}, {GAP}2{GAP})"
    part = Template("Part", *types, (Statement(text=text),), ("size", *hints), ())
    steps = (f"a: {USE}0{USE}", f"b: {USE}1{USE}")
    net = Template("Net", *types, (Statement((), "x", steps),), (), (0, 0), (0, 0))
    parts = Definition(part, [(3, 3, 3), (5, 5, 5)], [(), ()], ["a", "b"])
    program = LiftedProgram([parts, Definition(net, [()], [((0,), (1,))], [""])])
    sizes = Sizes(program, None, {}, None, lambda path: {})
    assert sizes.heads[0].own == {name: (3, 5)}
    assert sizes.heads[1].uses == ["Part(3)", "Part(5)"]


@pytest.mark.parametrize(
    ("hint", "first", "second", "text"),
    [
        ("window", "none", "none", "none"),
        ("window", "none", None, "none"),
        ("window", "none", 5, None),
        ("window", 3, "none", None),
        ("window", "false", "none", None),
        ("window", 3, 5, "width"),
        ("has_first", True, True, "true"),
        ("values", 4, 4, "4"),
        ("values", 4, None, "4"),
        ("values", 3, 5, "width"),
        ("size", 7, 7, "7"),
        ("size", 9, 15, "3 * width"),
    ],
)
def test_numbers_and_settings_are_those_of_both_modules(hint: str, first: Any, second: Any, text: str | None) -> None:
    types = (("x", "real", "[batch]"),), (("", "real", "[batch]"),)
    template = Template("Net", *types, (Statement(text=f"f({GAP}0{GAP})"),), (hint,), ())
    program, other = [LiftedProgram([Definition(template, [(value,)], [()], [""])]) for value in (first, second)]
    if second is None:
        found = Sizes(program, None, {"depth": 4}, None, lambda path: {})
    else:
        numbers = {"width": 3, "depth": 4}, {"width": 5, "depth": 4}
        if text is None:
            with pytest.raises(
                UntranslatableError, match="`Net` does something else at other sizes than at the first ones"
            ):
                Sizes(program, other, *numbers, lambda path: {})
            return
        found = Sizes(program, other, *numbers, lambda path: {})
    assert found.heads[0].gaps == [text]


def of(*steps: str, masks: tuple[str, ...] = (), kind: str = "Net", hints: tuple[str, ...] = ()) -> Template:
    inputs = (("x", "real", "[batch]"), *[(mask, "bool", "[batch] = none") for mask in masks])
    return Template(kind, inputs, (("", "real", "[batch]"),), (Statement((), "x", steps),), hints, ())


def test_definitions_that_only_differ_in_masks_are_one() -> None:
    steps = "f", "g(z)", "l[i]: L for i in 0..2"
    with_masks = "f(_, m, k)", "g(z, k)", "l[i]: L(_, m) for i in 0..2"
    plain, masked = of(*steps), of(*with_masks, masks=("m", "k"))
    assert joined(plain, plain) is plain and joined(masked, masked) is masked
    assert joined(plain, masked) is joined(masked, plain) is masked
    sized = replace(masked, inputs=(*masked.inputs[:2], ("k", "bool", f"[{GAP}0{GAP}] = none")))
    used = of(*with_masks[:2], "+ m", masks=("m", "k"))
    others = [of(*with_masks, masks=("m", "k"), kind="Other"), of(*with_masks, masks=("m", "k"), hints=("size",))]
    for other in (*others, sized, used, of("f", "g(z)")):
        assert joined(plain, other) is joined(other, plain) is None


def test_numbers_are_gaps_unless_they_are_part_of_the_structure() -> None:
    gaps = Gaps()
    given = (
        (0, ""),
        (1, ""),
        (1, "number"),
        (1, "start"),
        (2, ""),
        (-3, ""),
        (0.0, ""),
        (True, ""),
        (None, ""),
        ("a", ""),
    )
    found = [gaps.number(value, hint) for value, hint in given]
    names = [f"{GAP}{turn}{GAP}" for turn in range(6)]
    assert found == ["0", "1", *names[:3], f"-{names[3]}", "0.0", "true", "none", '"a"']
    assert gaps.number([0, 5, [7]], "shape") == f"[0, {names[4]}, [{names[5]}]]"
    assert gaps.values == [1, 1, 2, 3, 5, 7] and gaps.hints == ["number", "start", "", "", "shape", "shape"]
    assert [gaps.span(0, 4), gaps.span(1, 4), gaps.span(2, 4)] == [
        f"0..{GAP}6{GAP}", f"1..{GAP}7{GAP}", f"{GAP}8{GAP}..{GAP}9{GAP}"
    ]  # fmt: skip
    assert gaps.values[6:] == [4, 5, 2, 6]


def test_there_is_an_end_of_names() -> None:
    names = Names([])
    assert [names.take(["for", "1"]) for _ in FALLBACKS] == [*FALLBACKS]
    with pytest.raises(
        UntranslatableError, match=r"^it computes too many values to be named, as a loop over a length does$"
    ):
        names.take(["h", "v6"])
    assert names.take(["h", "other"]) == "other"


def test_definitions_without_words_of_their_own_are_numbered() -> None:
    assert definition_names(["Block", "Block", "Net"], ["layers.0", "layers.1", ""]) == ["Block", "Block2", "Net"]
    assert definition_names(["Block", "Block"], ["layers.0.first", "layers.1"]) == ["FirstBlock", "Block"]


@pytest.mark.parametrize(
    ("value", "text"), [(2 * SEQ + 1, "2*seq + 1"), ("word", "word"), (99_999, "99999"), ((None, SEQ), "[none, seq]")]
)
def test_other_values_are_written_as_they_are(value: object, text: str) -> None:
    assert literal(value) == text


@pytest.mark.parametrize(
    ("fields", "pair", "text"),
    [
        ({"hidden_size": (48, 60), "patch_size": (4, 5)}, (48 / 4, 60 / 5 + 2), None),
        ({"alpha": (64, 90), "rank": (16, 15)}, (4.0, 6.0), "alpha / rank"),
        ({"alpha": (64, 90), "rank": (16, 15)}, (4, 6), "alpha // rank"),
        ({"hidden_size": (48, 60), "width": (21, 8)}, (-9.5 / 48, -9.5 / 60), "-9.5 / hidden_size"),
        ({"hidden_size": (48, 60), "width": (96, 120)}, (-9.5 / 48, -9.5 / 60), None),
        ({"hidden_size": (48, 60)}, (-9, -9.5 * 48 / 60), None),
        (
            {"num_hidden_layers": (3, 5), "size_per_layer": (16, 21), "hidden_size": (50, 70)},
            (48, 105),
            "num_hidden_layers * size_per_layer",
        ),
        ({"dt_rank": (7, 11), "state_size": (16, 23)}, (39, 57), "dt_rank + 2 * state_size"),
        ({"time_step_rank": (7, 11), "state": (16, 23)}, (39, 57), "time_step_rank + 2 * state"),
        ({"dt_rank": (7, 11), "state_size": (16, 23)}, (39, 58), None),
    ],
)
def test_sizes_as_expressions(fields: dict[str, Any], pair: tuple[float, float], text: str | None) -> None:
    found = Expressions(fields).find(pair)
    assert (found and found.text) == text


@pytest.mark.parametrize(
    ("shapes", "named"),
    [
        ([(BATCH, SEQ, 8)], {"seq": symbol("seq")}),
        ([(symbol("a"), symbol("b"), 8)], {"a": symbol("batch"), "b": symbol("seq")}),
        ([(symbol("a"), 3, 8), (symbol("b"), 8)], {"a": symbol("batch"), "b": symbol("seq")}),
        ([(symbol("a"), symbol("a"), 8)], {"a": symbol("seq")}),
        ([(symbol("a"), 3, 8), (3, symbol("a"))], {"a": symbol("seq")}),
        ([(symbol("a"), 8)], {"a": symbol("seq")}),
        ([(2 * symbol("a"), 3, 8)], {"a": symbol("seq")}),
        ([(symbol("a"), symbol("b"), symbol("c"))], {"a": symbol("batch")}),
    ],
)
def test_dimensions_of_definitions_have_their_usual_names(shapes: list[Any], named: dict[str, Any]) -> None:
    b = builder()
    values = [given(b, f"x{turn}", shape) for turn, shape in enumerate(shapes)]
    assert usual_dimension_names(values[:1], values[1:]) == named


@pytest.mark.parametrize(
    ("shape", "new", "is_found"),
    [
        ((6, 4), (3, 8), True),
        ((6, 4), (24,), True),
        ((6, 4), (4, 6), False),
        ((6, 4), (5, 5), False),
        ((6,), (3, 2, 2), False),
        ((SEQ * 4,), (SEQ, 4), False),
        ((SEQ * 4,), (4, SEQ), True),
        ((4, SEQ), (SEQ, 4), False),
        ((6, 4), (6, 2), False),
    ],
)
def test_reshaping_divides_and_joins_axes(shape: Any, new: Any, is_found: bool) -> None:
    assert Layout(shape).reshape(new) == is_found
