"""Scaled dot-product attention of the standard library, also of modules that write products, masks and a softmax."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from archspec.core.algebra import Dim, product
from archspec.ir.normal.arrays import Array
from archspec.ir.normal.forms.shape import LOWEST_FLOAT32
from archspec.ir.ops.check import broadcast_shapes
from archspec.pytorch.calls.layers import attended
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.values import Argument, Setting, Value, live_values, number_in

VISIBLE = "visible"
"""What a mask is called that is only known as its normal form."""


MAX_STEPS = 6
"""Scores are scaled, biased and masked in at most so many steps."""


class _Scores(NamedTuple):
    """Scores: a product that is scaled, and may be limited by a cap, to which biases are added, and which is hidden
    where it is not visible: by -inf, or by the least finite number.
    """

    product: Value
    scale: float = 1.0
    cap: float | None = None
    bias: Value | None = None
    visible: Value | None = None
    finite: bool = False


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
    b: SpecBuilder,
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
        by = float(size**-0.5) if scale is None and isinstance(size, int) else scale
        assert by is not None
        array = attended(b, query, key, value, whole, causal, by).array
    else:
        arrays = {name: value.array for name, value in named.items()}
        inputs, shape = [query.array, key.array, value.array], (*query.shape[:-1], value.shape[-1])
        found = b.library.function("attention", settings, inputs, shape, named=arrays)
        if found is None:
            return None
        array = found
    last = max([[*given].index(name) + 1 for name in named], default=0)
    return b.made("attention", [query, key, value, *[*given.values()][:last]], array, settings, "std")


def recognize_attention(
    b: SpecBuilder, made: Value, q: Value, k: Value, v: Value, mask: Value | None, causal: bool, scale: float | None
) -> Value | None:
    """Return PyTorch's attention as the function of the library."""
    return attention(b, q, k, v, mask, causal, scale)


def _seen(b: SpecBuilder, bias: Value) -> tuple[Value | None, dict[str, Setting]] | None:
    """Return which keys are visible with a bias that hides the others, if that can be written as settings or a mask."""
    mask = as_mask(b, bias)
    if mask is None:
        return None
    visible, settings = b.mask(mask)
    is_unknown = visible is not None and any(other.op == VISIBLE for other in live_values([visible]))
    return None if is_unknown else (visible, settings)


def as_mask(b: SpecBuilder, bias: Value, hidden: float = -math.inf) -> Value | None:
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


def _with_four_axes(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return the shape of a tensor whose axes before the last three are one."""
    return (*[1] * (4 - len(shape)), product(shape[:-3]), *shape[-3:])[-4:]


def rewrite_attention(b: SpecBuilder, outputs: Sequence[Value]) -> None:
    """Replace products of a softmax of scores, which nothing else uses, by attention."""
    values = live_values(outputs)
    uses = Counter([operand for value in values for operand in value.operands] + [*outputs])
    for value in values:
        outer, b.frame = b.frame, value.frame
        found = _rewritten(b, value, uses)
        b.frame = outer
        if found is not None:
            value.op, value.args, value.settings, value.kind = found.op, found.args, found.settings, found.kind


def _rewritten(b: SpecBuilder, value: Value, uses: Counter[Value]) -> Value | None:
    weights = value.args[0] if _is_operation(value, "matmul") and len(value.shape) == 4 else None
    if not isinstance(weights, Value):
        return None
    softmax = weights.operands[0] if _is_operation(weights, "slice") and uses[weights] == 1 else weights
    if not _is_operation(softmax, "softmax") or uses[softmax] != 1:
        return None
    scores, sinks = _split_sinks(b, *_strip_maximum(softmax.operands[0], uses))
    found = _scores(b, scores, uses) if scores is not None and (sinks is None) == (softmax is weights) else None
    if found is None or len(found.product.shape) != 4:
        return None
    (query, first), (keys, second) = [_strip_scale(b, b.unwritten(side)) for side in found.product.operands]
    if len(query.shape) != 4 or len(keys.shape) != 4:
        return None
    key, result = b.permute(keys, (0, 1, 3, 2)), b.unwritten(value.operands[1])
    scale, options = found.scale * first * second, Options(found.cap, found.finite, sinks)
    try:
        made = attention(b, query, key, result, found.visible, False, scale, found.bias, options)
    except UntranslatableError:
        return None
    if made is None or made.array != value.array:
        return None
    return None if any(other.op == VISIBLE for other in live_values([made])) else made


def _strip_maximum(value: Value, uses: Counter[Value]) -> tuple[Value, bool]:
    """Return scores before their maximum was subtracted, which a softmax does not depend on, and whether only what is
    returned uses them.
    """
    if _is_operation(value, "sub") and _is_operation(value.operands[-1], "amax") and uses[value] == 1:
        scores, most = value.operands[0], value.operands[-1]
        return scores, most.operands == [scores] and uses[most] == 1 and uses[scores] == 2
    return value, uses[value] == 1


def _split_sinks(b: SpecBuilder, value: Value, is_own: bool) -> tuple[Value | None, Value | None]:
    """Return scores and the sinks that are concatenated to them; None for scores that something else uses."""
    if not is_own or not _is_operation(value, "concat"):
        return value if is_own else None, None
    scores, column, *_ = value.operands
    sinks, _ = b.layout(b.unwritten(column))
    return scores, sinks


def _strip_scale(b: SpecBuilder, value: Value) -> tuple[Value, float]:
    """Return queries or keys before they were multiplied by a number, and the number."""
    root, _ = b.layout(value)
    number = _number(root.args[1]) if _is_operation(root, "mul", "div") else None
    if number is None or root.operands[0].shape != root.shape:
        return value, 1.0
    inner = b.unwritten(root.operands[0])
    return b.laid_out(inner, value, root), number if root.op == "mul" else 1 / number


def _scores(b: SpecBuilder, value: Value, uses: Counter[Value], most: int = MAX_STEPS) -> _Scores | None:
    """Return what scores consist of; None if they are no product."""
    if not most:
        return None
    if _is_operation(value, "matmul"):
        return _Scores(value)
    capped = _split_cap(value, uses)
    if capped is not None:
        inner, cap = capped
        scores = _scores(b, inner, uses, most - 1)
        if scores is None or scores != _Scores(scores.product, scores.scale):
            return None
        return scores._replace(cap=cap)
    for inner in value.operands if _is_operation(value, "where", "add", "mul", "div", "max") else ():
        is_scores = inner.shape == value.shape and uses[inner] == 1
        scores = _scores(b, inner, uses, most - 1) if is_scores else None
        if scores is not None:
            return _changed(b, scores, value, inner)
    return None


def _split_cap(value: Value, uses: Counter[Value]) -> tuple[Value, float] | None:
    """Return what `cap * tanh(x / cap)` limits, and the cap; None if a value is not that."""
    cap = _number(value.args[1]) if _is_operation(value, "mul") else None
    limited = value.operands[0]
    if cap is None or not _is_operation(limited, "tanh"):
        return None
    (divided,) = limited.operands
    inner = divided.operands[0]
    is_own = all(uses[item] == 1 for item in (limited, divided, inner))
    return (inner, cap) if is_own and _is_operation(divided, "div") else None


def _changed(b: SpecBuilder, scores: _Scores, value: Value, inner: Value) -> _Scores | None:
    """Return scores after an operation that `value` is of `inner`."""
    if value.op == "where":
        test, first, second = value.args
        hidden = _number(second if first is inner else first)
        if not isinstance(test, Value):
            return None
        return _with_visible(b, scores, test if first is inner else b.op("not", test), hidden)
    other = value.args[1] if value.args[0] is inner else value.args[0]
    number = _number(other)
    if value.op == "add" and isinstance(other, Value):
        for hidden in (-inf, LOWEST_FLOAT32):
            visible = as_mask(b, other, hidden)
            if visible is not None:
                return _with_visible(b, scores, visible, hidden)
        return scores._replace(bias=other if scores.bias is None else b.op("add", scores.bias, other))
    if value.op == "max":
        return scores._replace(finite=True) if number == LOWEST_FLOAT32 else None
    if number is None:
        return None
    return scores._replace(scale=scores.scale * number if value.op == "mul" else scores.scale / number)


def _with_visible(b: SpecBuilder, scores: _Scores, visible: Value, hidden: float | None) -> _Scores:
    both = visible if scores.visible is None else b.op("and", scores.visible, visible)
    return scores._replace(visible=both, finite=scores.finite or hidden == LOWEST_FLOAT32)


def _number(arg: Argument) -> float | None:
    found = number_in(arg) if isinstance(arg, Value) else arg
    return float(found) if isinstance(found, int | float) else None


def _is_operation(value: Value, *names: str) -> bool:
    return value.kind == "ops" and value.op in names
