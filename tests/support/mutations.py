"""Specs, and random changes of their text."""

import random
import re

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from paths import SPECS as FOLDER

SMALL = """
import std { Linear, Embedding, LayerNorm, SelfAttention, first, key_mask, gelu }

dim batch, seq

fn scaled(factor = 2, shift = none)(x [...], y [...] = none) -> [...] {
  z = x * factor + y if y != none else x
  return z |> + shift if shift != none
}

layer Scale(width, by = 1e-3, kind = "plain")(x [..., width]) -> [..., width] {
  role norm
  require width % 2 == 0 and by > 0.0, "width must be even"
  weight: param [width] ~ normal(0.02)
  table:  frozen param [width] = arange(width) * 1.0
  spare:  unused buffer int [2, 3]
  return x * .weight + .table if kind == "plain" else x * .weight - .table
}

block Layer(hidden, heads, inner, act = gelu)(x [batch, seq, hidden], mask bool [...] = none) -> [batch, seq, hidden] {
  role feed_forward for up, down
  h = x |> self: SelfAttention(hidden, heads)(_, mask) |> + x |> norm: LayerNorm(hidden)
  return h |> up: Linear(hidden, inner) |> act |> down: Linear(inner, hidden) |> + h
}

block Model(words = 11, hidden = 8, layers = 4, heads = [2, 4], inner = 4 * hidden, pooler = true, Kind = Layer)
           (ids int [batch, seq], mask int [batch, seq] = none)
           -> (states [batch, seq, hidden], pooled [batch, hidden]?) {
  keys = key_mask(mask) if mask != none
  embedded = embeddings.words: Embedding(words, hidden)(ids)
  scale: Scale(hidden, kind = "other")
  tie decoder.weight = embeddings.words.weight
  h = embedded |> scaled(_, .scale(embedded)) |> scaled(3, shift = 1)
  for i in 0..layers {
    if i % 2 == 0 {
      h = h |> encoder.layer[i]: Kind(hidden, heads[i // 2], inner)(_, keys)
    } else {
      h = h |> scaled |> .scale
    }
  }
  a, b = split([hidden - 3, 3], axis = -1)(h)
  logits = concat(axis = -1)(a, b) |> decoder: Linear(hidden, words, bias = false) |> softmax(axis = -1)
  g = h |> + sum(axis = -1, keep = true)(logits)
  pooled = (first(g) |> pooler: Linear(hidden, hidden) |> tanh) if pooler
  return g, pooled
}

model "small" = Model() { expect params == 1744 }
model "plain" = Model(layers = 1, pooler = false)
"""
SPECS = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.rglob("*.arch"))}
SPECS["small"] = SMALL
WORD = re.compile(r'#[^\n]*|"[^"\n]*"|\w+|\|>|->|\.{2,3}|\*\*|//|[=!<>]=|\s+|.')
HUGE = re.findall(r"[^,]+", "0,-1,1.5,1e300,999_999_999_999_999_999,10 ** 18,2 ** 10 ** 10,4096,100_001,inf,none")
OTHERS = re.findall(
    r"\S+",
    """( ) [ ] { } , . : = + - * / % < > _ " # ~ \\ ; @ é |> -> .. ... ** // == != <= >= if else for in return tie
    require role param buffer frozen unused expect and or not true false none inf as import export dim fn layer block
    model int bool x hidden i batch seq Linear Layer Model LayerNorm softmax split concat sum arange full len min""",
)


def mutate(text: str, chance: random.Random) -> str:
    """The text with a few words or lines deleted, doubled, swapped or replaced."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        by_line = chance.random() < 0.3
        parts = text.splitlines(keepends=True) if by_line else WORD.findall(text)
        if not parts:
            break
        i, j = chance.randrange(len(parts)), chance.randrange(len(parts))
        match chance.randrange(7 if by_line else 9):
            case 0:
                del parts[i]
            case 1:
                parts.insert(j, parts[i])
            case 2:
                parts[i], parts[j] = parts[j], parts[i]
            case 3:
                del parts[min(i, j) : min(i, j) + 4]
            case 4:
                parts.insert(i, parts[i])
            case 5:
                parts[i] = parts[j]
            case 6:
                del parts[i : None if chance.random() < 0.1 else i + 2]
            case 7:
                parts[i] = chance.choice(OTHERS)
            case _:
                numbers = [k for k, part in enumerate(parts) if part[0].isdigit()]
                if numbers:
                    parts[chance.choice(numbers)] = chance.choice(HUGE)
        text = "".join(parts)
    return text


EXAMPLES = settings(
    max_examples=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
words = st.sampled_from([*OTHERS, *HUGE, "\n", *dict.fromkeys(WORD.findall(SMALL))])
noise = st.one_of(st.binary(max_size=200), st.text(max_size=200), st.lists(words, max_size=60).map(" ".join))
