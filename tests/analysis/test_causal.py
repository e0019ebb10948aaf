"""Causal attention in costs: found by the masks between scores and their softmax, and counted in full or as half."""

from itertools import pairwise

import pytest

import archspec

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
