"""Causal attention in costs: found by the masks between scores and their softmax, and counted in full or as half."""

import json
from itertools import pairwise

import pytest

import archspec
from archspec.ir.module import Body
from archspec.ir.structure.attention import AttentionPart, AttentionSlots, AttentionTracer, BodyContext
from archspec.ir.structure.masks import VisibleKeys
from archspec.pipeline.model import get_compilation
from archspec.testing import main

SPEC = """
import std {{ Linear, split_heads, merge_heads, attention, causal_mask, window_mask, key_mask }}
dim batch, seq
block Attend(hidden = 8, heads = 2)(x [batch, seq, hidden], tokens int [batch, seq]) -> [batch, seq, hidden] {{
  keys = key_mask(tokens)
  q = query: Linear(hidden, hidden)(x) |> split_heads(heads)
  k = key:   Linear(hidden, hidden)(x) |> split_heads(heads)
  v = value: Linear(hidden, hidden)(x) |> split_heads(heads)
  {statements}
}}
block Outer(n = 8)(x [batch, seq, n], tokens int [batch, seq]) -> [batch, seq, n] {{
  return attend: Attend(n)(x, tokens)
}}
model "attend" = Outer()
"""


def added(mask: str) -> str:
    """Statements of attention with a mask that is added to the scores."""
    return f"p = arange(seq)\nm = {mask}\nreturn matmul(q, transpose(k)) + m |> softmax |> matmul(_, v) |> merge_heads"


def parts(model: archspec.Model) -> list[AttentionPart]:
    """The parts of all products in attention."""
    found: list[AttentionPart] = []

    def visit(body: Body, traced: AttentionSlots) -> None:
        for call in body.calls:
            if call.body is not None:
                visit(call.body, tracer.trace(call.body, traced.call_context(call)))
            elif (part := traced.part(call)) is not None:
                found.append(part)

    tracer = AttentionTracer()
    body = get_compilation(model).body
    visit(body, tracer.trace(body, BodyContext()))
    return found


@pytest.mark.parametrize(
    ("statements", "seen"),
    [
        ("return attention(causal = true)(q, k, v, keys) |> merge_heads", VisibleKeys(causal=True)),
        ("return attention(q, k, v, keys) |> merge_heads", VisibleKeys()),
        ("return attention(q, k, v, keys and causal_mask(seq)) |> merge_heads", VisibleKeys(causal=True)),
        ("return attention(q, k, v, keys or causal_mask(seq)) |> merge_heads", VisibleKeys()),
        (
            "return attention(causal = true, window = 3)(q, k, v, keys) |> merge_heads",
            VisibleKeys(causal=True, window=3),
        ),
        ("return attention(window = 3)(q, k, v, keys) |> merge_heads", VisibleKeys(window=3)),
        # the same masks, written in another way
        (
            "p = arange(seq)\n far = reshape([seq, 1])(p) - p\n"
            "return attention(q, k, v, keys and (far > -1 and far < 4)) |> merge_heads",
            VisibleKeys(causal=True, window=3),
        ),
        (
            "m = reshape([1, 1, seq, seq])(causal_mask(seq))\n"
            "return where(not m, -inf, matmul(q, transpose(k))) |> where(keys, _, -inf) |> where(m, _, -inf)\n"
            "  |> softmax |> matmul(_, v) |> merge_heads",
            VisibleKeys(causal=True),
        ),
        (
            "return where(keys and causal_mask(seq), matmul(q, transpose(k)), -inf)\n"
            "  |> softmax(axis = 3) |> matmul(_, v) |> merge_heads",
            VisibleKeys(causal=True),
        ),
        # masks of which only a part is known, as views; the last has other axes of queries and keys
        (
            "m = keys and causal_mask(seq)\nreturn attention(q, k, v, reshape([batch, 1, seq, seq])(m)) |> merge_heads",
            VisibleKeys(causal=True),
        ),
        (
            "m = reshape([batch, seq, seq, 1])(keys and causal_mask(seq))\n"
            "return attention(q, k, v, reshape([batch, 1, seq, seq])(m)) |> merge_heads",
            VisibleKeys(),
        ),
        (
            "return where(keys and window_mask(seq, 3), matmul(q, transpose(k)), -inf)\n"
            "  |> where(window_mask(seq, 5), _, -inf) |> softmax |> matmul(_, v) |> merge_heads",
            VisibleKeys(window=3),
        ),
        # a mask of keys for all queries, of which nothing is along the queries
        ("return attention(q, k, v, keys and arange(seq) < 3) |> merge_heads", VisibleKeys()),
        ("return attention(q, k, v, arange(seq) < 3) |> merge_heads", VisibleKeys()),
        # later keys alone; one later key, too; every second key; the mask of what is not -inf; another softmax
        ("return attention(q, k, v, keys and not causal_mask(seq)) |> merge_heads", VisibleKeys(window=0, exact=False)),
        (
            "p = arange(seq)\n return attention(q, k, v, keys and reshape([seq, 1])(p) + 1 >= p) |> merge_heads",
            VisibleKeys(),
        ),
        (
            "p = arange(seq)\n"
            "return attention(causal = true)(q, k, v, keys and (reshape([seq, 1])(p) - p) % 2 == 0) |> merge_heads",
            VisibleKeys(causal=True, exact=False),
        ),
        (
            "return where(keys and causal_mask(seq), matmul(q, transpose(k)), 0.0) |> softmax |> matmul(_, v)\n"
            "  |> merge_heads",
            VisibleKeys(),
        ),
        # twice as many keys as queries
        (
            "p = reshape([seq, 1])(arange(seq))\nkk = concat(axis = 2)(k, k)\nvv = concat(axis = 2)(v, v)\n"
            "return where(p >= arange(2 * seq), matmul(q, transpose(kk)), -inf) |> softmax\n"
            "  |> matmul(_, vv) |> merge_heads",
            VisibleKeys(),
        ),
        # numbers that are added to the scores: those of hidden keys must be -inf
        (added("where(causal_mask(seq), 0.0, -inf)"), VisibleKeys(causal=True)),
        (added("where(keys and causal_mask(seq), 0.0, -inf)"), VisibleKeys(causal=True)),
        (added("where(causal_mask(seq), real(p), -inf) * 2.0 + real(keys)"), VisibleKeys(causal=True)),
        (
            added("where(causal_mask(seq), 0.0, -inf) + where(window_mask(seq, 3), 0.0, -inf)"),
            VisibleKeys(causal=True, window=3),
        ),
        (added("reshape([1, 1, seq, seq])(where(causal_mask(seq), 0.0, -inf))"), VisibleKeys(causal=True)),
        (added("where(causal_mask(seq), 0.0, -10000.0)"), VisibleKeys()),
        (added("where(causal_mask(seq), 0.0, inf)"), VisibleKeys()),
        (added("where(causal_mask(seq), 0.0, -inf) * -1.0"), VisibleKeys()),
        (added("where(causal_mask(seq), 0.0, -inf) * real(p - 1)"), VisibleKeys()),
        (added("transpose(where(causal_mask(seq), 0.0, -inf))"), VisibleKeys()),
        (added("max(where(causal_mask(seq), 0.0, -inf), -5.0)"), VisibleKeys()),
        (added("real(keys and causal_mask(seq))"), VisibleKeys()),
    ],
)
def test_masks_tell_which_keys_are_seen(statements: str, seen: VisibleKeys) -> None:
    assert parts(archspec.loads(SPEC.format(statements=statements))) == [
        AttentionPart("score", seen),
        AttentionPart("mix", seen),
    ]


EVEN = "(reshape([seq, 1])(arange(seq)) - arange(seq)) % 2 == 0"


@pytest.mark.parametrize(
    ("one", "other", "seen"),
    [
        ("causal_mask(seq)", "keys", VisibleKeys()),
        ("keys and causal_mask(seq)", "causal_mask(seq)", VisibleKeys(causal=True)),
        ("window_mask(seq, 3)", "window_mask(seq, 5)", VisibleKeys(window=5)),
        ("window_mask(seq, 3) and causal_mask(seq)", "causal_mask(seq)", VisibleKeys(causal=True)),
        ("causal_mask(seq)", f"causal_mask(seq) and {EVEN}", VisibleKeys(causal=True, exact=False)),
        ("causal_mask(seq)", "transpose(causal_mask(seq))", VisibleKeys()),
    ],
)
@pytest.mark.parametrize("is_one_product", [True, False])
def test_keys_that_one_of_two_masks_shows_are_seen(
    one: str, other: str, seen: VisibleKeys, is_one_product: bool
) -> None:
    statements = f"""s = matmul(q, transpose(k))
  one = where({one}, s, -inf) |> softmax
  other = where({other}, s, -inf) |> softmax
  mixed = {"matmul(one + other, v)" if is_one_product else "matmul(one, v) + matmul(other, v)"}
  return merge_heads(mixed)"""
    for both in [statements, statements.replace("one + other", "other + one")][: 1 + is_one_product]:
        found = parts(archspec.loads(SPEC.format(statements=both)))
        assert found[0] == AttentionPart("score", seen) and (
            not is_one_product or found[1:] == [AttentionPart("mix", seen)]
        )


@pytest.mark.parametrize("axis", [-2, 2, 1])
def test_weights_along_another_axis_are_not_causal(axis: int) -> None:
    statements = (
        f"return where(keys and causal_mask(seq), matmul(q, transpose(k)), -inf) |> softmax(axis = {axis})\n"
        "  |> matmul(_, v) |> merge_heads"
    )
    assert not any(part.visible.causal for part in parts(archspec.loads(SPEC.format(statements=statements))))


MASKED = "where(keys and causal_mask(seq), matmul(q, transpose(k)), -inf)"


@pytest.mark.parametrize(
    ("scores", "weights"),
    [
        # keys that are hidden get another score, or a weight
        ("max(_, 0.0)", ""),
        ("tanh", ""),
        ("where(keys, _, 0.0)", ""),
        ("", "+ 1.0"),
        ("", "cos"),
        ("", "where(keys, _, 1.0)"),
        # keys are moved
        ("transpose", ""),
        ("roll(1)", ""),
        ("", "roll(1)"),
    ],
)
def test_masks_tell_nothing_if_hidden_keys_are_seen_again(scores: str, weights: str) -> None:
    steps = [step for step in (scores, "softmax", weights, "matmul(_, v)", "merge_heads") if step]
    found = parts(archspec.loads(SPEC.format(statements=f"return {' |> '.join([MASKED, *steps])}")))
    assert found[-1].name == "mix" and not found[-1].visible.causal
    assert found[0].visible.causal == (not scores)


@pytest.mark.parametrize(
    ("scores", "weights"), [("max(_, lowest)", "* 2.0"), ("+ 1.0", "abs"), ("roll(1, axis = 1)", "where(keys, _, 0.0)")]
)
def test_masks_tell_which_keys_are_seen_if_those_stay_hidden(scores: str, weights: str) -> None:
    statements = f"return {MASKED} |> {scores} |> softmax |> {weights} |> matmul(_, v) |> merge_heads"
    assert all(part.visible.causal for part in parts(archspec.loads(SPEC.format(statements=statements))))


MORE = "concat(axis = -1)(_, sum(axis = -1, keep = true)(q))"


@pytest.mark.parametrize(
    ("scores", "weights", "causal"),
    [
        ("permute([1, 0, 2, 3])", "permute([1, 0, -2, -1])", [True, True]),
        ("permute([0, 1, 3, 2])", "permute([0, 1, 3, 2])", [False, False]),
        ("permute([0, 1, -1, -2])", "+ 0.0", [False, False]),
        ("+ 0.0", "permute([0, 1, -1, -2])", [True, False]),
        ("permute([0, 2, 1, 3])", "permute([0, 2, 1, 3])", [False, False]),
        (MORE, "slice(axis = -1, stop = seq)", [True, True]),
        (MORE, "slice(axis = -1, start = 0, stop = seq, step = 1)", [True, True]),
        (MORE, "slice(axis = -1, start = 1)", [True, False]),
        ("concat(axis = -1)(sum(axis = -1, keep = true)(q), _)", "slice(axis = -1, stop = seq)", [False, False]),
        ("concat(axis = 2)(_, _)", "slice(axis = 2, stop = seq)", [False, False]),
        # scores that are also joined behind themselves have another use
        ("concat(axis = 1)(_, _)", "slice(axis = 1, stop = heads)", [False, True]),
        ("concat(axis = 0)(_, _)", "slice(axis = -4, start = batch)", [False, True]),
        ("concat(axis = -1)(_, _)", "slice(axis = -1, step = 2)", [False, False]),
        ("reshape([batch * heads, seq, seq])", "reshape([batch, heads, seq, seq])", [True, True]),
        ("reshape([batch, heads, seq * seq])", "reshape([batch, heads, seq, seq])", [False, False]),
        ("roll(1, axis = 2)", "+ 0.0", [False, False]),
        ("roll(1, axis = -3)", "roll(1, axis = 0)", [True, True]),
    ],
)
def test_keys_that_a_mask_has_hidden_are_followed_where_axes_move(
    scores: str, weights: str, causal: list[bool]
) -> None:
    statements = f"return {MASKED} |> {scores} |> softmax |> {weights} |> matmul(_, v) |> merge_heads"
    found = parts(archspec.loads(SPEC.format(statements=statements)))
    assert [part.visible.causal for part in found] == causal


def test_a_single_position_hides_nothing() -> None:
    statements = "return attention(causal = true)(q, k, v, keys) |> merge_heads"
    spec = SPEC.replace("dim batch, seq", "dim batch").replace("seq", "1").format(statements=statements)
    assert parts(archspec.loads(spec)) == [AttentionPart("score", VisibleKeys()), AttentionPart("mix", VisibleKeys())]


@pytest.mark.parametrize(
    ("name", "causal"),
    [
        ("gpt2", True),
        ("llama-3.2-1b", True),
        ("mistral-7b-v0.1", True),
        ("bloom-560m", True),
        ("gpt-oss-20b", True),
        ("bert-base-uncased", False),
        ("modernbert-base", False),
    ],
)
def test_bundled_models(name: str, causal: bool) -> None:
    model = archspec.load(name)
    full, half = archspec.cost(model), archspec.cost(model, causal_half=True)
    assert (full.causal, half.causal) == (("whole", "half") if causal else ("", "none"))
    attention = full.work.score_macs + full.work.mix_macs
    assert 2 * (full.work.macs - half.work.macs) == (attention if causal else 0)
    assert 2 * half.work.score_macs == full.work.score_macs * (1 if causal else 2)
    assert full.work.elementwise == half.work.elementwise


def test_only_the_decoder_attends_causally() -> None:
    full, half = (archspec.cost("t5-small", causal_half=choice).work.flops for choice in (False, True))
    assert str(full - half) == "6144*batch*target**2"


def test_the_choice_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "gpt2", "--depth", "0"]) == 0
    assert "causal attention: products counted in full" in capsys.readouterr().out
    assert main(["cost", "gpt2", "--depth", "0", "--causal-half"]) == 0
    assert "causal attention: products counted as half" in capsys.readouterr().out
    assert main(["cost", "bert-base-uncased", "--depth", "0"]) == 0
    assert "causal" not in capsys.readouterr().out
    assert main(["cost", "bert-base-uncased", "--depth", "0", "--causal-half"]) == 0
    assert "causal attention: none found, so --causal-half has no effect\n" in capsys.readouterr().out
    assert main(["cost", "gpt2", "--causal-half", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["causal"] == "half"


def test_odd_products_have_exact_halves() -> None:
    spec = SPEC.format(statements="return attention(causal = true)(q, k, v, keys) |> merge_heads")
    model = archspec.loads(spec.replace("hidden = 8, heads = 2", "hidden = 8, heads = 1").replace("n = 8", "n = 3"))
    work = archspec.cost(model, batch=1, seq=5, causal_half=True).work
    assert work.score_flops == 3 * 25 and work.macs * 2 == work.flops


POWER = "\n".join(f"  {b} = {a} * {a}" for a, b in pairwise("iabcdef"))
"""One term, which is too many terms at the position of another query."""


@pytest.mark.parametrize(
    ("positions", "mask"),
    [
        (
            "a = i + j + i // 2 + j // 2 + i // 3 + j // 3 + i // 5",
            "a * a * a * a * a * a * a * a * a * a * a * a >= 3",
        ),
        ("a = pick(0, 0)(reshape([seq, 1])(7 // i))", "i + a >= j"),
        (POWER, "f >= j"),
    ],
)
def test_positions_without_a_normal_form_hide_nothing(positions: str, mask: str) -> None:
    """They are too large an expression, or undefined."""
    statements = f"""
  i = reshape([seq, 1])(arange(seq))
  j = arange(seq)
  {positions}
  return attention(q, k, v, keys and {mask}) |> merge_heads"""
    model = archspec.loads(SPEC.format(statements=statements))
    work = archspec.cost(model, batch=1, seq=6).work
    assert work.score_macs == 6 * 6 * 8 and archspec.cost(model, batch=1, seq=6, causal_half=True).work == work
