"""Scaled dot-product attention as that of the standard library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from archspec.core.algebra import Dim, product
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.ops.check import broadcast_shapes
from archspec.pytorch.calls.registry import CALLS
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.values import Setting, Value, live_values

VISIBLE = "visible"
"""What a mask is called that is only known as its normal form."""


class Options(NamedTuple):
    """What the attention of the library has and that of PyTorch does not: see `attention` in `specs/std`."""

    cap: float | None = None
    finite: bool = False
    sinks: Value | None = None

    def settings(self) -> dict[str, Setting]:
        """Return the settings that are not the usual ones."""
        capped: dict[str, Setting] = {} if self.cap is None else {"cap": self.cap}
        return capped | ({} if self.finite == (self.cap is not None) else {"finite": self.finite})


DEFAULT_OPTIONS = Options()


def attention(
    b: Builder,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None,
    causal: bool,
    scale: float | None,
    bias: Value | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> Value | None:
    """Return scaled dot-product attention; `bias` is besides a mask of booleans, and only for four axes, and so are
    options. None if the library does not accept these.
    """
    lead = broadcast_shapes(broadcast_shapes(q.shape[:-3], k.shape[:-3], "k"), v.shape[:-3], "v")
    q, k, v = [x if x.shape[:-3] == lead else b.spread(x, (*lead, *x.shape[-3:])) for x in (q, k, v)]
    if len(q.shape) != 4:
        if mask is not None:
            mask = b.spread(mask, (*q.shape[:-1], k.shape[-2]))
            mask = b.reshape(mask, _with_four_axes(mask.shape))
        query, key, value = [b.reshape(x, _with_four_axes(x.shape)) for x in (q, k, v)]
        found = attention(b, query, key, value, mask, causal, scale)
        return found and b.reshape(found, (*q.shape[:-1], v.shape[-1]))
    query, key, value = b.written(q), b.written(k), b.written(v)
    if key.op == value.op == "repeat_heads":
        key, value = key.operands[0], value.operands[0]
    settings: dict[str, Setting] = {}
    size = query.shape[-1]
    if scale is not None and not (isinstance(size, int) and math.isclose(scale, size**-0.5, rel_tol=1e-12)):
        settings["scale"] = float(scale)
    visible: Value | None = None
    whole = mask
    if bias is not None:
        bias = b.spread(bias, (*bias.shape[:-3], *query.shape[-3:-1], key.shape[-2]))
        whole = bias if mask is None else b.op("where", mask, bias, -math.inf)
        bias = b.written(bias)
    if mask is not None and mask.dtype == "bool":
        visible, found = b.mask(mask)
        settings |= found
    elif mask is not None and (seen := _seen(b, mask)) is not None:
        visible, found = seen
        settings |= found
    elif mask is not None:
        bias = b.written(b.spread(mask, (*mask.shape[:-3], *query.shape[-3:-1], key.shape[-2])))
    if causal:
        settings["causal"] = True
    settings |= options.settings()
    given = {"mask": visible, "bias": bias, "sinks": options.sinks}
    named = {name: value for name, value in given.items() if value is not None}
    if options == DEFAULT_OPTIONS:
        array = _attended(b.arrays, query, key, value, whole, causal, scale)
    else:
        arrays = {name: value.array for name, value in named.items()}
        inputs, shape = [query.array, key.array, value.array], (*query.shape[:-1], value.shape[-1])
        found = b.library.function("attention", settings, inputs, shape, named=arrays)
        if found is None:
            return None
        array = found
    last = max([[*given].index(name) + 1 for name in named], default=0)
    return b.made("attention", [query, key, value, *[*given.values()][:last]], array, settings, "std")


def _seen(b: Builder, bias: Value) -> tuple[Value | None, dict[str, Setting]] | None:
    """Return which keys are visible with a bias that hides the others, if that can be written as settings or a mask."""
    mask = as_mask(b, bias)
    if mask is None:
        return None
    visible, settings = b.mask(mask)
    is_unknown = visible is not None and any(other.op == VISIBLE for other in live_values([visible]))
    return None if is_unknown else (visible, settings)


def as_mask(b: Builder, bias: Value, hidden: float = -math.inf) -> Value | None:
    """Return where a bias is 0, if it is what hides scores elsewhere: -inf, or the least finite number."""
    e = b.arrays.elements
    node = e.nodes[bias.array.element]
    if node.kind != "where":
        return None
    condition, *sides = node.parts
    numbers = [e.as_number(side) for side in sides]
    if sorted([number for number in numbers if number is not None]) != [hidden, 0]:
        return None
    return b.made(VISIBLE, [], Array(bias.shape, condition if numbers[0] == 0 else e.negation(condition)))


def _attended(n: Arrays, q: Value, k: Value, v: Value, mask: Value | None, causal: bool, scale: float | None) -> Array:
    array = CALLS["scaled_dot_product_attention"](
        n,
        [],
        q.array,
        k.array,
        v.array,
        None if mask is None else mask.array,
        is_causal=causal,
        scale=scale,
        enable_gqa=k.shape[1] != q.shape[1],
    )
    assert isinstance(array, Array)
    return array


def _with_four_axes(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return the shape of a tensor whose axes before the last three are one."""
    return (*[1] * (4 - len(shape)), product(shape[:-3]), *shape[-3:])[-4:]
