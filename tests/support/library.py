"""Layers of the standard library, and what they are called in PyTorch."""

import numpy as np
from reference import Array
from small import load

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return RANDOM.normal(size=shape)


def stored(text: str) -> dict[str, Array]:
    """Random values for the tensors of a spec's model; buffers of reals are positive."""
    model = load(text)
    found = {tensor.name: normal(*tensor.shape) for tensor in model.tensors}
    return found | {b.name: RANDOM.uniform(0.5, 2, b.shape) for b in model.buffers if b.shape}


GROUP = """
import std { GroupNorm }
dim batch, height, width
block Net()(x [batch, 6, height, width]) -> [batch, 6, height, width] {
  return x |> norm: GroupNorm(3, 6, eps = 0.1)
}
"""
BATCH = """
import std { BatchNorm, relu }
dim batch, height, width
block Net(n = 4)(x [batch, n, height, width]) -> [batch, n, height, width] {
  return x |> norm: BatchNorm(n, eps = 0.1) |> relu
}
"""
LINE = """
import std { ConvTranspose1d }
dim batch, length
block Net(n = 4)(x [batch, n, length]) -> [batch, 6, (length - 1) * 3 + 4] {
  return x |> up: ConvTranspose1d(n, 6, kernel = 4, stride = 3, groups = 2)
}
"""
IMAGE = """
import std { ConvTranspose2d }
dim batch, height, width
block Net(n = 4)(x [batch, n, height, width]) -> [batch, 5, 2 * height, 2 * width] {
  return x |> up: ConvTranspose2d(n, 5, kernel = 4, stride = 2, padding = 1, bias = false)
}
"""
TOKENS = """
import std { token_at }
dim batch, seq
block Net(end = 9)(x [batch, seq, 3], ids int [batch, seq]) -> [batch, 3] {
  return token_at(x, argmax(axis = 1)(int(ids == end)))
}
"""
WINDOWS = """
import std { window_partition, window_reverse }
dim batch, n
fn there(x [batch, 6, 4, n]) -> [6 * batch, 2, 2, n] { return window_partition(2)(x) }
block Net()(x [batch, 6, 4, n]) -> [batch, 6, 4, n] {
  return there(x) |> window_reverse(6, 4)
}
block There()(x [batch, 6, 4, n]) -> [6 * batch, 2, 2, n] {
  return there(x)
}
"""
BIASED = """
import std { attention }
dim batch, seq
block Net()(q [batch, 2, seq, 4], mask bool [seq, seq], bias [2, seq, seq]) -> [batch, 2, seq, 4] {
  return attention(q, q, q, mask, bias)
}
"""
BASES = {GROUP: "nn.GroupNorm", BATCH: "nn.BatchNorm2d", LINE: "nn.ConvTranspose1d", IMAGE: "nn.ConvTranspose2d"}
