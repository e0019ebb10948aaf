"""Random models of the families."""

from typing import NamedTuple

from hypothesis import strategies as st

TEXT = """
import std {{ Linear, Embedding, LayerNorm, attention, split_heads, merge_heads, first, gelu }}

dim batch, seq

block Attention(hidden, heads, bias)(x [batch, seq, hidden]) -> [batch, seq, hidden] {{
  role attention
  q = query: Linear(hidden, hidden, bias)(x) |> split_heads(heads)
  k = key:   {key_frozen}Linear(hidden, hidden, bias)(x) |> split_heads(heads)
  v = value: Linear(hidden, hidden, bias)(x) |> split_heads(heads)
  return attention(q, k, v) |> merge_heads
}}

block Layer(hidden, heads, bias, wide, i)(x [batch, seq, hidden]) -> [batch, seq, hidden] {{
  require hidden % heads == 0
  scale: param []
  h = x
    |> before: LayerNorm(hidden) if i > 0
    |> attention: Attention(hidden, heads, bias)
    |> * .scale
    |> + x
  return h
    |> up:   Linear(hidden, wide, bias)
    |> gelu
    |> down: Linear(wide, hidden, bias)
    |> + h
    |> after: LayerNorm(hidden)
}}

block Encoder(vocab = 11, hidden = {hidden}, heads = {heads}, layers = {layers}, every = {every})
             (ids int [batch, seq])
             -> (states [batch, seq, hidden], pooled [batch, hidden]?, logits [batch, seq, vocab]?) {{
  role pooler for pool
  table: {table} [vocab, hidden]
  spare: unused param [{spare}] if {spare} > 0
  h = ids
    |> embeddings.words: Embedding(vocab, hidden)
    |> + embedding(ids, .table)
  {shared}
  for i in 0..layers {{
    {step}
  }}
  pooled = (first(h) |> pool: Linear(hidden, hidden) |> tanh) if {pooler}
  logits = (h |> head: Linear(hidden, vocab, bias = false)) if {head}
  tie head.weight = embeddings.words.weight if {tied}
  return h, pooled, logits
}}
model "encoder" = Encoder()
"""


class Options(NamedTuple):
    """What a random encoder is like; `total` says what it must count."""

    size: int
    heads: int
    layers: int
    every: int
    bias: bool
    table: str
    spare: int
    shared: bool
    key_frozen: bool
    pooler: bool
    head: bool
    tied: bool

    @property
    def hidden(self) -> int:
        return self.size * self.heads

    @property
    def text(self) -> str:
        def flag(value: bool) -> str:
            return "true" if value else "false"

        made = f"Layer(hidden, heads, {flag(self.bias)}, hidden * 2 if i % every == 0 else hidden, i)"
        one = f"Layer(hidden, heads, {flag(self.bias)}, hidden * every, 1)"
        return TEXT.format(
            hidden=self.hidden,
            heads=self.heads,
            layers=self.layers,
            every=self.every,
            table=self.table,
            spare=self.spare,
            key_frozen="frozen " if self.key_frozen else "",
            shared=f"layers.0: {one}" if self.shared else "",
            step="h = h |> .layers.0" if self.shared else f"h = h |> layers[i]: {made}",
            pooler=flag(self.pooler),
            head=flag(self.head),
            tied=flag(self.tied and self.head),
        )

    def layer(self, i: int, wide: int) -> int:
        """Parameters of the layer with index `i` (0 has no norm before)."""
        n, bias = self.hidden, int(self.bias)
        attention = 3 * (n * n + bias * n)
        return 1 + attention + 2 * n * wide + bias * (n + wide) + 2 * n * (2 if i > 0 else 1)

    @property
    def total(self) -> int:
        n, table = self.hidden, 11 * self.hidden
        own = table * (2 if "param" in self.table else 1) + self.spare
        widths = [n * (2 if i % self.every == 0 else 1) for i in range(self.layers)]
        stack = self.layer(1, n * self.every) if self.shared else sum(map(self.layer, range(self.layers), widths))
        return own + stack + self.pooler * (n * n + n) + (self.head and not self.tied) * table


@st.composite
def options(draw: st.DrawFn) -> Options:
    shared = draw(st.booleans())
    return Options(
        size=draw(st.integers(1, 3)),
        heads=draw(st.integers(1, 3)),
        layers=draw(st.integers(1 if shared else 0, 5)),
        every=draw(st.integers(1, 3)),
        bias=draw(st.booleans()),
        table=draw(st.sampled_from(["param", "frozen param", "buffer"])),
        spare=draw(st.integers(0, 2)),
        shared=shared,
        key_frozen=draw(st.booleans()),
        pooler=draw(st.booleans()),
        head=draw(st.booleans()),
        tied=draw(st.booleans()),
    )
