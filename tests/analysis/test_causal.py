"""Causal attention in costs: found by the masks between scores and their softmax, and counted in full or as half."""

import json
from itertools import pairwise

import pytest

import archspec
from archspec.analysis.cost.attention import AttentionPart, AttentionSlots, AttentionTracer, BodyContext
from archspec.analysis.cost.masks import VisibleKeys
from archspec.ir.module import Body
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
