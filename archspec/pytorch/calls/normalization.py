"""Normalization of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.core.algebra import Dim
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.forms import elementwise as forms
from archspec.ir.normal.forms import weights
from archspec.pytorch.calls.layers import mean
from archspec.pytorch.calls.reductions import norm
from archspec.pytorch.calls.values import Handler, UntranslatableError, refuse


def _layer_norm(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    shape: list[Dim],
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    *rest: object,
) -> Array:
    rank = len(x.shape)
    result = weights.standardize(n, x, list(range(rank - len(shape), rank)), eps)
    if weight is not None:
        result = n.each(x.shape, forms.multiply, result, weight)
    return result if bias is None else n.each(x.shape, forms.add, result, bias)


def _rms_norm(
    n: Arrays, types: Sequence[Type], x: Array, shape: list[Dim], weight: Array | None = None, eps: float | None = None
) -> Array:
    if eps is None:
        refuse("rms_norm")
    e = n.elements
    axes = list(range(len(x.shape) - len(shape), len(x.shape)))
    square = mean(n, types, n.each(x.shape, forms.multiply, x, x), axes, True)
    scale = n.array(square.shape, e.product([(e.combination([(1.0, square.element)], eps), -0.5)]))
    result = n.each(x.shape, forms.multiply, x, scale)
    return result if weight is None else n.each(x.shape, forms.multiply, result, weight)


def _group_norm(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    *rest: object,
) -> Array:
    return weights.group_norm(n, x, weight, bias, groups=groups, eps=eps)


def _weight_norm(n: Arrays, types: Sequence[Type], v: Array, g: Array, dim: int = 0) -> Array | list[Array]:
    """Return directions times magnitudes, and the norms that the directions had."""
    axes = [axis for axis in range(len(v.shape)) if axis != dim % len(v.shape)]
    size = norm(n, types, v, 2, axes, True)
    scaled = n.each(v.shape, forms.multiply, v, n.each(g.shape, forms.divide, g, size))
    return [scaled, size] if len(types) == 2 else scaled


def _batch_norm(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array | None,
    variance: Array | None,
    training: bool,
    momentum: float,
    eps: float,
    *rest: object,
) -> Array:
    """Return elements less a stored mean, over the root of a stored variance. Without these, a single sample is
    normalized by its own statistics, such as the weights of a layer.
    """
    if mean is None and variance is None and training and x.shape[0] == 1:
        return weights.group_norm(n, x, weight, bias, groups=_whole(x.shape[1]), eps=eps)
    if mean is None or variance is None or training:
        raise UntranslatableError("batch normalization uses batch statistics: the module is in training mode")
    e = n.elements
    scale = n.array(variance.shape, e.product([(e.combination([(1.0, variance.element)], eps), -0.5)]))
    steps = [(mean, forms.subtract), (scale, forms.multiply), (weight, forms.multiply), (bias, forms.add)]
    for part, function in steps:
        if part is not None:
            x = n.each(x.shape, function, x, n.reshape(part, (*part.shape, *[1] * (len(x.shape) - 2))))
    return x


def _evaluated_batch_norm(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array,
    variance: Array,
    momentum: float,
    eps: float,
) -> list[Array]:
    return _without_statistics(n, types, _batch_norm(n, types, x, weight, bias, mean, variance, False, momentum, eps))


def _batch_statistics(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    weight: Array | None,
    bias: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> list[Array]:
    return _without_statistics(n, types, _batch_norm(n, types, x, weight, bias, None, None, training, momentum, eps))


def _without_statistics(n: Arrays, types: Sequence[Type], result: Array) -> list[Array]:
    """Return a result, and zeros for the statistics that training would use."""
    return [result, *[n.array(type.shape, n.elements.number(0.0)) for type in types[1:]]]


def _instance_norm(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array | None,
    variance: Array | None,
    own: bool,
    momentum: float,
    eps: float,
    *rest: object,
) -> Array:
    if not own:
        return _batch_norm(n, types, x, weight, bias, mean, variance, False, momentum, eps)
    return weights.group_norm(n, x, weight, bias, groups=_whole(x.shape[1]), eps=eps)


def _whole(size: Dim) -> int:
    return size if isinstance(size, int) else refuse("instance_norm")


NAMES: dict[Handler, str] = {
    _layer_norm: "layer_norm",
    _rms_norm: "rms_norm",
    _group_norm: "group_norm",
    _weight_norm: "_weight_norm _weight_norm_interface",
    _batch_norm: "batch_norm",
    _evaluated_batch_norm: "_native_batch_norm_legit_no_training",
    _batch_statistics: "_native_batch_norm_legit",
    _instance_norm: "instance_norm",
}
"""The names of the operations that each function is for."""
