"""`rearrange` and `repeat`: the primitives they become, against einops, and every wrong pattern with its message."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch_compare
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Array, evaluate
from small import findings, load, operations, output

import archspec
from archspec.codegen.build import torch_source
from archspec.pipeline.model import get_compilation


def block(call: str, shape: str = "batch, seq, n", out: str = "...", head: str = "(n = 8)") -> str:
    body = f"  w: param [1]\n  y = x * .w\n  return {call}\n"
    return f"dim batch, seq\nblock B{head}(x [{shape}]) -> [{out}] {{\n{body}}}\n"


def model_of(call: str, shape: tuple[int, ...], out: tuple[int, ...]) -> archspec.Model:
    return load(block(call, ", ".join(map(str, shape)), ", ".join(map(str, out)), head="()"))


def computed(model: archspec.Model, x: Array) -> Array:
    return evaluate(get_compilation(model).body, {"x": x}, {"w": np.ones(1)}).outputs["output"]


# What they become -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "out", "expected"),
    [
        ('rearrange("b s (h d) -> b h s d", h = 4)(y)', "batch, 4, seq, n // 4", ["reshape", "transpose"]),
        ('rearrange("b s (h d) -> b h s d", d = 2)(y)', "batch, n // 2, seq, 2", ["reshape", "transpose"]),
        ('rearrange("b s d -> b s d")(y)', "batch, seq, n", []),
        ('rearrange("b s d -> b (s d)")(y)', "batch, seq * n", ["reshape"]),
        ('rearrange("b s d -> d b s")(y)', "n, batch, seq", ["permute"]),
        ('rearrange("... d -> d ...")(y)', "n, batch, seq", ["permute"]),
        ('rearrange("b ... -> b (...)")(y)', "batch, seq * n", ["reshape"]),
        ('rearrange("b s d -> b 1 s () d")(y)', "batch, 1, seq, 1, n", ["reshape"]),
        ('rearrange("b s d -> d (b s)")(y)', "n, batch * seq", ["permute", "reshape"]),
        ('rearrange("b s (h d) -> (h d) s b", h = 2)(y)', "n, seq, batch", ["transpose"]),
        ('rearrange("b s (h d) -> b h 1 s d", h = 2)(y)', "batch, 2, 1, seq, n // 2", ["reshape", "transpose"]),
        ('rearrange("b s (h d) -> b s h d", h = 1)(y)', "batch, seq, 1, n", ["reshape"]),
        ('repeat("b s d -> b s d t", t = 3)(y)', "batch, seq, n, 3", ["reshape", "expand"]),
        ('repeat("b s d -> t b s d", t = 3)(y)', "3, batch, seq, n", ["expand"]),
        ('repeat("b s d -> b (s t) d", t = 3)(y)', "batch, seq * 3, n", ["reshape", "expand", "reshape"]),
        ('repeat("b s d -> (t b) s d", t = 3)(y)', "3 * batch, seq, n", ["expand", "reshape"]),
        ('repeat("b s d -> b (s t) d", t = 1)(y)', "batch, seq, n", []),
        ('repeat("b s d -> b t s d", t = seq)(y)', "batch, seq, seq, n", ["reshape", "expand"]),
        ('y |> repeat("b s d -> b s (t d)", t = 2)', "batch, seq, n * 2", ["reshape", "expand", "reshape"]),
        ('y |> rearrange("b s d -> s b d")(_)', "seq, batch, n", ["transpose"]),
        ('repeat("b s d -> t (d b) s", t = 3)(y)', "3, n * batch, seq", ["permute", "reshape", "expand"]),
        ('repeat("b s d -> (d b) t s", t = 3)(y)', "n * batch, 3, seq", ["permute", "reshape", "expand"]),
        (
            'repeat("b s d -> (d t) (s b)", t = 3)(y)',
            "n * 3, seq * batch",
            ["transpose", "reshape", "expand", "reshape"],
        ),
    ],
)
def test_no_primitive_is_emitted_without_need(call: str, out: str, expected: list[str]) -> None:
    model = load(block(call, out=out))
    assert operations(model, "op")[1:] == expected


def test_sizes_stay_symbolic() -> None:
    call = 'y |> repeat("b s d -> b (s t) d", t = 2) |> rearrange("b (s t) d -> (b s) t d", t = 2)'
    model = load(block(call, out="batch * seq, 2, n"))
    assert output(model) == ["batch*seq", "2", "8"]


def test_values() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    split = computed(model_of('rearrange("b s (h d) -> b h s d", h = 2)(y)', (2, 3, 4), (2, 2, 3, 2)), x)
    assert (split == x.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3)).all()
    repeated = computed(model_of('repeat("b s d -> b (s t) d", t = 2)(y)', (2, 3, 4), (2, 6, 4)), x)
    assert (repeated == x.repeat(2, axis=1)).all()
    tiled = computed(model_of('repeat("b s d -> b (t s) d", t = 2)(y)', (2, 3, 4), (2, 6, 4)), x)
    assert (tiled == np.tile(x, (1, 2, 1))).all()


def test_names_of_the_file_hide_them() -> None:
    text = "dim batch\nfn repeat(x [batch]) -> [batch] { return x + x }\n"
    text += "block B(n = 1)(x [batch]) -> [batch] {\n  w: param [n]\n  return repeat(x * .w)\n}\n"
    assert operations(load(text)) == ["mul", "repeat"]


# Against einops -------------------------------------------------------------------------------------------------------


@st.composite
def patterns(draw: st.DrawFn) -> tuple[str, str, dict[str, int], tuple[int, ...]]:
    """A word, a pattern, the sizes that are given, and the shape of a tensor."""
    names = list("abcde")[: draw(st.integers(1, 5))]
    lengths = {name: draw(st.integers(1, 3)) for name in names}
    word = draw(st.sampled_from(["rearrange", "repeat"]))
    new = draw(st.lists(st.sampled_from("xyz"), unique=True, max_size=2)) if word == "repeat" else []
    lengths |= {name: draw(st.integers(1, 3)) for name in new}
    others = draw(st.lists(st.integers(1, 3), max_size=2)) if draw(st.booleans()) else None

    def side(words: list[str], may_nest: bool) -> list[list[str]]:
        groups: list[list[str]] = []
        for name in words:
            if groups and draw(st.booleans()) and (may_nest or "..." not in (name, *groups[-1])):
                groups[-1].append(name)
            else:
                groups.append([name])
        for _ in range(draw(st.integers(0, 2))):
            groups.insert(draw(st.integers(0, len(groups))), [])
        return groups

    def text(groups: list[list[str]]) -> str:
        words = [draw(st.sampled_from(["1", "()"])) if not g else f"({' '.join(g)})" for g in groups]
        return " ".join(g[0] if len(g) == 1 and draw(st.booleans()) else w for g, w in zip(groups, words, strict=True))

    named = names + (["..."] if others is not None else [])
    left = side(draw(st.permutations(named)), may_nest=False)
    right = side(draw(st.permutations(named + new)), may_nest=True)
    given = {name: lengths[name] for name in new}
    shape: list[int] = []
    for group in left:
        if group == ["..."]:
            shape += others or []
            continue
        shape.append(int(np.prod([lengths[name] for name in group])))
        free = draw(st.sampled_from(group)) if group else ""
        given |= {name: lengths[name] for name in group if name != free}
    pattern = f"{text(left)} -> {text(right)}".replace("(...) ->", "... ->")
    first, _, second = pattern.partition(" -> ")
    return word, f"{first.replace('(...)', '...')} -> {second}", given, tuple(shape)


def compare(case: tuple[str, str, dict[str, int], tuple[int, ...]]) -> tuple[archspec.Model, Array, Array]:
    einops = pytest.importorskip("einops")
    word, pattern, sizes, shape = case
    x = np.arange(np.prod(shape), dtype=float).reshape(shape) if shape else np.array(1.0)
    expected = getattr(einops, word)(x, pattern, **sizes)
    given = "".join(f", {name} = {size}" for name, size in sizes.items())
    model = model_of(f'{word}("{pattern}"{given})(y)', x.shape, expected.shape)
    return model, x, expected


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(patterns())
def test_einops_computes_the_same(case: tuple[str, str, dict[str, int], tuple[int, ...]]) -> None:
    model, x, expected = compare(case)
    assert (computed(model, x) == expected).all()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(patterns())
def test_pytorch_computes_the_same(case: tuple[str, str, dict[str, int], tuple[int, ...]]) -> None:
    pytest.importorskip("torch")
    torch_compare.agrees(compare(case)[0])


# In PyTorch -----------------------------------------------------------------------------------------------------------

VARYING = """
dim batch, seq
fn split(heads)(x [..., seq, width]) -> [..., heads, seq, width // heads] {
  return x |> rearrange("... s (h d) -> ... h s d", h = heads)
}
fn last(x [batch, ...]) -> [..., batch] { return x |> rearrange("b ... -> ... b") }
block B(n = 4)(x [batch, seq, n]) -> ([batch, 2, seq, n // 2], [batch, 2, 2, seq, n // 4]) {
  w: param [n]
  a = split(2)(x * .w)
  return a, split(2)(a)
}
""".replace("dim batch, seq", "dim batch, seq, width")


@pytest.mark.slow
def test_a_function_for_any_number_of_axes() -> None:
    pytest.importorskip("torch")
    model = load(VARYING)
    assert "x.unflatten(-1, (2, -1)).transpose(-3, -2)" in torch_source(model)
    torch_compare.agrees(model)


def test_an_order_that_depends_on_the_number_of_axes() -> None:
    call = "last(x * .w), last(split(2)(x * .w))"
    text = VARYING.replace("[batch, 2, seq, n // 2], [batch, 2, 2, seq, n // 4]", "[...], [...]")
    text = text.replace("  a = split(2)(x * .w)\n", "").replace("a, split(2)(a)", call)
    text = text.replace("([...], [...])", "([seq, n, batch], [2, seq, n // 2, batch])")
    with pytest.raises(archspec.ArchError, match="is not the same in every use"):
        torch_source(load(text))


def test_a_table_is_checked_without_pytorch() -> None:
    text = 'layer T(n = 4)(x [n, 2]) -> [n, 2] {\n  table: buffer [n, 2] = repeat("a -> (a b) c", b = 2, c = 2)'
    model = load(f"{text}(real(arange(n // 2)))\n  w: param [1]\n  return x * .w + .table\n}}\n")
    assert "unsqueeze" in torch_source(model)


# What is wrong --------------------------------------------------------------------------------------------------------

WRONG = [
    ('rearrange("b s (h d -> b h s d", h = 2)(y)', "pattern", "unclosed `(`", "(", None),
    ('rearrange("b s d) -> b s d")(y)', "pattern", "unmatched `)`", ")", None),
    ('rearrange("b s ((h d)) -> b s h d")(y)', "pattern", "parentheses cannot be nested", "(", None),
    (
        'rearrange("b s d")(y)',
        "pattern",
        "expected one `->` in the pattern",
        "b s d",
        'write it as in `"b s (h d) -> b h s d"`',
    ),
    (
        'rearrange("b s -> d -> s")(y)',
        "pattern",
        "expected one `->` in the pattern",
        "->",
        'write it as in `"b s (h d) -> b h s d"`',
    ),
    (f'rearrange("{"( " * 100}{") " * 101}-> b")(y)', "pattern", "parentheses cannot be nested", "(", None),
    (
        f'rearrange("b -> {"() " * 101}")(y)',
        "pattern",
        "too many words on a side of a pattern: the limit is 200",
        "(",
        None,
    ),
    ('rearrange("b s d -> b d")(y)', "pattern", "`s` occurs only on the left of `->`", "s", None),
    (
        'rearrange("b s -> b s d")(y)',
        "pattern",
        "`d` occurs only on the right of `->`",
        "d",
        "use `repeat` to add an axis, with its size: `d = 2`",
    ),
    (
        'repeat("b s d -> b s d t")(y)',
        "pattern",
        "missing size of the new axis `t`",
        "t",
        "pass it: `t = 2`",
    ),
    ('rearrange("b b d -> b d")(y)', "pattern", "`b` occurs twice on one side", "b", None),
    (
        'rearrange("b s (h d) -> b h s d")(y)',
        "pattern",
        "the sizes of `h` and `d` are not determined",
        "(h d)",
        "pass all but one: `h = ...`",
    ),
    (
        'rearrange("b s (h d) -> b h s d", hh = 2)(y)',
        "unknown-argument",
        "the pattern has no axis `hh`",
        "hh = 2",
        "did you mean `h`?",
    ),
    (
        'repeat("b s d -> b s d t", t = 2, t = 3)(y)',
        "repeated-argument",
        "the size of `t` is specified more than once",
        "t = 3",
        None,
    ),
    (
        'rearrange("b s (h d) -> b h s d", h = 3)(y)',
        "dimension",
        "axis `(h d)` of `rearrange` has size 8, which is not divisible by 3 (h = 3)",
        "(h d)",
        None,
    ),
    (
        'rearrange("b (s t) d -> b s t d", t = 2)(y)',
        "dimension",
        "axis `(s t)` of `rearrange` has size seq, which is not known to be divisible by 2 (t = 2)",
        "(s t)",
        None,
    ),
    (
        'rearrange("b s d -> b d s", d = 9)(y)',
        "dimension",
        "axis `d` of `rearrange` has size 8, which is not equal to 9 (d = 9)",
        "d",
        None,
    ),
    (
        'rearrange("b 1 d -> b d")(y)',
        "dimension",
        "axis `1` of `rearrange` has size seq, which is not known to be equal to 1",
        "1",
        None,
    ),
    (
        'rearrange("b d -> d b")(y)',
        "dimension",
        "`rearrange` expects 2 axes, found real [batch, seq, 8]",
        "b d",
        None,
    ),
    (
        'rearrange("b s t u ... -> u b s t ...")(y)',
        "dimension",
        "`rearrange` expects at least 4 axes, found real [batch, seq, 8]",
        "b s t u ...",
        None,
    ),
    ('rearrange("b ... -> b")(y)', "pattern", "`...` occurs only on the left of `->`", "...", None),
    (
        'rearrange("b (...) -> b ...")(y)',
        "pattern",
        "`...` cannot be in parentheses on the left",
        "(...)",
        "write it without parentheses",
    ),
    (
        'rearrange("b s d -> b 2 s d")(y)',
        "pattern",
        "expected a name, `1`, `...` or parentheses, found `2`",
        "2",
        "name the axis, and pass its size: `n = 2`",
    ),
    (
        'rearrange(y, "b s d -> b d s")',
        "pattern",
        "`rearrange` expects a pattern in quotes first",
        "y",
        'write `rearrange("b s (h d) -> b h s d", h = 8)(x)`',
    ),
    (
        'rearrange("b s d -> b d s")',
        "missing-argument",
        "missing input `x` in call to `rearrange`",
        'rearrange("b s d -> b d s")',
        'write `rearrange("b s (h d) -> b h s d", h = 8)(x)`',
    ),
    (
        'rearrange("b s d -> b d s")(y, y)',
        "surplus-argument",
        "`rearrange` expects one input",
        "(y, y)",
        'write `rearrange("b s (h d) -> b h s d", h = 8)(x)`',
    ),
    (
        'rearrange("b s (h d) -> b h s d", 2)(y)',
        "pattern",
        "`rearrange` expects sizes by name",
        "2",
        'write `rearrange("b s (h d) -> b h s d", h = 8)(x)`',
    ),
    (
        'repeat("b s d -> b s d t", t = 0)(y)',
        "dimension",
        "`repeat` expects sizes of at least 1 as `t`, found 0",
        "t = 0",
        None,
    ),
    (
        'repeat("b s d -> b s d t", t = 2.0)(y)',
        "dimension",
        "`repeat` expects an integer as `t`, found the real 2.0",
        "t = 2.0",
        None,
    ),
    ('rearrange("b -> b")(3)', "wrong-kind", "`rearrange` expects a tensor, found the integer 3", "3", None),
    (
        'y |> rearrange("b s d -> b d s")(y)',
        "stream",
        "the piped value is not passed to `rearrange`",
        "(y)",
        "mark its position with `_`",
    ),
    (
        'repeat("b s d -> b s d t", t = 2 ** 62)(y)',
        "dimension",
        "`repeat` makes sizes that are too large: this dimension does not fit in 64 bits",
        'repeat("b s d -> b s d t", t = 2 ** 62)(y)',
        None,
    ),
]


NO_ARROW = "expected one `->` in the pattern"
NO_NAME = "expected a name, `1`, `...` or parentheses, found `\\`"
HELP = 'write it as in `"b s (h d) -> b h s d"`'
WRONG += [
    ('rearrange("")(y)', "pattern", NO_ARROW, '""', HELP),
    ('rearrange("b s d")(y)', "pattern", NO_ARROW, "b s d", HELP),
    ('rearrange("b s d -> b \\\\n")(y)', "pattern", NO_NAME, '"b s d -> b \\\\n"', None),
]


@pytest.mark.parametrize(("call", "code", "message", "marked", "help"), WRONG, ids=[case[0] for case in WRONG])
def test_messages(call: str, code: str, message: str, marked: str, help: str | None) -> None:
    (found,) = [d for d in findings(block(call, "batch, seq, n")) if d.code != "unused-value"]
    assert (found.code, found.message, found.help) == (code, message, help)
    assert found.span is not None
    assert found.span.source.text[found.span.start : found.span.end] == marked


def test_the_formula_of_a_split_assumes_that_it_divides(tmp_path: Path) -> None:
    text = block('rearrange("b s (h d) -> b h s d", h = k)(y)', "batch, seq, n", "batch, k, seq, n // k")
    path = tmp_path / "spec.arch"
    path.write_text(text.replace("B(n = 8)", "B(n = 8, k = 2)") + 'model "b" = B()\n')
    formula: Any = archspec.formula(str(path), ["n", "k"])
    assert any("k" in str(assumption) for assumption in formula.assumptions), formula
