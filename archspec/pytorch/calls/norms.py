"""Normalization of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.core.algebra import Dim, product
from archspec.pytorch.calls.layers import mean
from archspec.pytorch.calls.reductions import norm
from archspec.pytorch.calls.rows import Results, Row, Types, fixed_size
from archspec.pytorch.values.arguments import UntranslatableError, refuse
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Setting, Value


def _layer_norm(
    b: Builder,
    types: Types,
    x: Value,
    shape: Sequence[Dim],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    *rest: object,
) -> Value:
    if weight is not None or len(shape) == 1:  # a weight has the axes along which it normalizes
        return _normalized("layer_norm", b, x, weight, bias, eps=eps)
    flat = b.reshape(x, (*x.shape[: -len(shape)], product(shape)))
    made = b.reshape(b.op("layer_norm", flat, eps=eps), x.shape)
    return made if bias is None else b.op("add", made, bias)


def _group_norm(
    b: Builder,
    types: Types,
    x: Value,
    groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    *rest: object,
) -> Value:
    return _normalized("group_norm", b, x, weight, bias, 1, groups=groups, eps=eps)


def _normalized(
    name: str, b: Builder, x: Value, weight: Value | None, bias: Value | None, axis: int = -1, **settings: Setting
) -> Value:
    """Return the result of an operation that normalizes; only together with a weight can it have a bias."""
    if weight is None:
        made = b.op(name, x, **settings)
        return made if bias is None else b.op("add", made, _along_axis(b, bias, len(x.shape), axis))
    return b.op(name, x, weight, *([bias] if bias is not None else []), **settings)


def _along_axis(b: Builder, x: Value, rank: int, axis: int) -> Value:
    """Return a vector as a tensor that broadcasts along the other axes."""
    return b.reshape(x, (*x.shape, *[1] * (rank - 1 - axis % rank)))


def _rms_norm(
    b: Builder, types: Types, x: Value, shape: Sequence[Dim], weight: Value | None = None, eps: float | None = None
) -> Value:
    if eps is None:
        refuse("rms_norm")
    square = mean(b, types, b.op("mul", x, x), list(range(-len(shape), 0)), True)
    made = b.op("div", x, b.op("sqrt", b.op("add", square, eps)))
    return made if weight is None else b.op("mul", made, weight)


def _weight_norm(b: Builder, types: Types, v: Value, g: Value, dim: int = 0) -> Results:
    """Return directions times magnitudes, and the norms that the directions had."""
    rank = len(v.shape)
    axes = [axis for axis in range(rank) if dim == -1 or axis != dim % rank]  # -1 stands for no axis
    size = norm(b, types, v, 2, axes, True) if axes else b.op("abs", v)
    made = b.op("mul", v, b.op("div", g, size))
    return [made, size] if len(types) == 2 else made


def _batch_norm(
    b: Builder,
    types: Types,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    variance: Value | None,
    training: bool,
    momentum: float,
    eps: float,
    *rest: object,
) -> Value:
    """Return elements less a stored mean, over the root of a stored variance. Without these, a single sample is
    normalized by its own statistics, such as the weights of a layer.
    """
    if mean is None and variance is None and training and x.shape[0] == 1:
        return _group_norm(b, types, x, fixed_size("batch_norm", x.shape[1]), weight, bias, eps)
    if mean is None or variance is None or training:
        raise UntranslatableError("batch normalization uses batch statistics: the module is in training mode")
    center, size, by, plus = [part and _along_axis(b, part, len(x.shape), 1) for part in (mean, variance, weight, bias)]
    assert center is not None and size is not None
    made = b.op("div", b.op("sub", x, center), b.op("sqrt", b.op("add", size, eps)))
    made = made if by is None else b.op("mul", made, by)
    return made if plus is None else b.op("add", made, plus)


def _evaluated_batch_norm(b: Builder, types: Types, x: Value, weight: Value | None, bias: Value | None, mean: Value,
                          variance: Value, momentum: float, eps: float) -> list[Value | None]:  # fmt: skip
    made = _batch_norm(b, types, x, weight, bias, mean, variance, False, momentum, eps)
    return [made, *[None] * (len(types) - 1)]


def _batch_statistics(b: Builder, types: Types, x: Value, weight: Value | None, bias: Value | None, training: bool,
                      momentum: float, eps: float) -> list[Value | None]:  # fmt: skip
    made = _batch_norm(b, types, x, weight, bias, None, None, training, momentum, eps)
    return [made, *[None] * (len(types) - 1)]


def _instance_norm(
    b: Builder,
    types: Types,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    variance: Value | None,
    own: bool,
    momentum: float,
    eps: float,
    *rest: object,
) -> Value:
    if not own:
        return _batch_norm(b, types, x, weight, bias, mean, variance, False, momentum, eps)
    return _group_norm(b, types, x, fixed_size("instance_norm", x.shape[1]), weight, bias, eps)


NAMES: dict[Row, str] = {
    _layer_norm: "layer_norm",
    _group_norm: "group_norm",
    _rms_norm: "rms_norm",
    _weight_norm: "_weight_norm _weight_norm_interface",
    _batch_norm: "batch_norm",
    _evaluated_batch_norm: "_native_batch_norm_legit_no_training",
    _batch_statistics: "_native_batch_norm_legit",
    _instance_norm: "instance_norm",
}
"""The names of the operations that each row is for."""
