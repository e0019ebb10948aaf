"""Operations of PyTorch, as `torch.export` records them, in normal form.

Each function takes the arrays, the types of the results, and the arguments: arrays, sizes and plain values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from archspec.algebra import Dim, Polynomial
from archspec.ir import Type
from archspec.normal.arrays import Array, Arrays
from archspec.ops import normal_forms as forms


class Untranslatable(Exception):
    """A module has no normal form; the message says why."""


Handler = Callable[..., "Array | list[Array]"]


def _array(n: Arrays, value: Any) -> Array:
    return value if isinstance(value, Array) else n.array((), forms.constant(n.elements, value))


def _each(function: forms.Each) -> Handler:
    def call(n: Arrays, types: Sequence[Type], *values: Any, alpha: Any = 1) -> Array:
        given = [_array(n, value) for value in values]
        if alpha != 1:
            given[1] = n.each(given[1].shape, forms.multiply, given[1], _array(n, alpha))
        return _typed(n, n.each(types[0].shape, function, *[_number(n, array, types[0]) for array in given]), types[0])

    return call


def _number(n: Arrays, array: Array, result: Type) -> Array:
    """Booleans among numbers are 0 and 1."""
    if n.dtype(array) == "bool" and result.dtype != "bool":
        return n.array(array.shape, forms.to_integer(n.elements, array.element))
    return array


def _typed(n: Arrays, array: Array, type: Type) -> Array:
    e = n.elements
    if n.dtype(array) == type.dtype:
        return array
    if type.dtype == "real":
        return n.array(array.shape, e.real(array.element))
    if type.dtype == "int":
        return n.array(array.shape, forms.to_integer(e, array.element))
    return n.array(array.shape, e.negation(e.is_zero(array.element)))


def _function(name: str) -> Handler:
    def call(n: Arrays, types: Sequence[Type], x: Array) -> Array:
        return n.each(types[0].shape, lambda e, part: e.apply(name, (e.real(part),), "real"), x)

    return call


def _compare(function: forms.Each) -> Handler:
    def call(n: Arrays, types: Sequence[Type], a: Any, b: Any) -> Array:
        a, b = _array(n, a), _array(n, b)
        if {n.dtype(a), n.dtype(b)} != {"bool"}:
            a, b = _number(n, a, Type((), "int")), _number(n, b, Type((), "int"))
        return n.each(types[0].shape, function, a, b)

    return call


def _logic(function: forms.Each) -> Handler:
    def call(n: Arrays, types: Sequence[Type], *values: Any) -> Array:
        given = [_array(n, value) for value in values]
        if any(n.dtype(array) != "bool" for array in given):
            raise Untranslatable("it has bitwise operations on integers")
        return n.each(types[0].shape, function, *given)

    return call


def _same(n: Arrays, types: Sequence[Type], x: Array, *rest: Any, **keywords: Any) -> Array:
    return _typed(n, x, types[0])


def _reshape(n: Arrays, types: Sequence[Type], x: Array, *rest: Any, **keywords: Any) -> Array:
    return n.reshape(x, types[0].shape)


def _expand(n: Arrays, types: Sequence[Type], x: Array, *rest: Any, **keywords: Any) -> Array:
    return forms.expand(n, x, types[0].shape)


def _permute(n: Arrays, types: Sequence[Type], x: Array, order: list[int]) -> Array:
    return forms.permute(n, x, order)


def _transpose(n: Arrays, types: Sequence[Type], x: Array, a: int, b: int) -> Array:
    return forms.transpose(n, x, a, b)


def _matrix_transpose(n: Arrays, types: Sequence[Type], x: Array) -> Array:
    return forms.transpose(n, x, -1, -2) if len(x.shape) > 1 else x


def _slice(
    n: Arrays, types: Sequence[Type], x: Array, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Array:
    axis = dim % len(x.shape)
    size, first = x.shape[axis], 0 if start is None else start
    if isinstance(first, int) and first < 0:
        first = first + size
    if isinstance(first, int) and isinstance(size, int):
        first = min(max(first, 0), size)
    return n.view(x, types[0].shape, lambda i: [*i[:axis], i[axis] * step + first, *i[axis + 1 :]])


def _select(n: Arrays, types: Sequence[Type], x: Array, dim: int, index: Dim) -> Array:
    return forms.pick(n, x, dim, index)


def _concat(n: Arrays, types: Sequence[Type], tensors: list[Array], dim: int = 0) -> Array:
    kept = [tensor for tensor in tensors if tensor.shape != (0,)]
    return _typed(n, forms.concat(n, *kept, axis=dim), types[0])


def _stack(n: Arrays, types: Sequence[Type], tensors: list[Array], dim: int = 0) -> Array:
    axis = dim % len(types[0].shape)
    parts = [n.reshape(tensor, (*tensor.shape[:axis], 1, *tensor.shape[axis:])) for tensor in tensors]
    return _typed(n, forms.concat(n, *parts, axis=axis), types[0])


def _split(n: Arrays, types: Sequence[Type], x: Array, sizes: Any, dim: int = 0) -> list[Array]:
    axis = dim % len(x.shape)
    return forms.split(n, x, [type.shape[axis] for type in types], axis)


def _unbind(n: Arrays, types: Sequence[Type], x: Array, dim: int = 0) -> list[Array]:
    return [forms.pick(n, x, dim, i) for i in range(len(types))]


def _repeat(n: Arrays, types: Sequence[Type], x: Array, repeats: list[Dim]) -> Array:
    new = len(repeats) - len(x.shape)
    return n.view(x, types[0].shape, lambda i: [n.elements.divide(at, size)[1] for at, size in zip(i[new:], x.shape)])


def _repeat_interleave(n: Arrays, types: Sequence[Type], x: Array, repeats: int, dim: int) -> Array:
    axis = dim % len(x.shape)
    return n.view(x, types[0].shape, lambda i: [*i[:axis], n.elements.divide(i[axis], repeats)[0], *i[axis + 1 :]])


def _flip(n: Arrays, types: Sequence[Type], x: Array, dims: list[int]) -> Array:
    axes = {dim % len(x.shape) for dim in dims}
    return n.view(
        x, x.shape, lambda i: [x.shape[axis] - 1 - at if axis in axes else at for axis, at in enumerate(i)]
    )


def _roll(n: Arrays, types: Sequence[Type], x: Array, shifts: Any, dims: Any = ()) -> Array:
    return forms.roll(n, x, shifts, dims)


def _pad(n: Arrays, types: Sequence[Type], x: Array, pad: list[Dim], value: Any = 0, mode: str = "constant") -> Array:
    if isinstance(value, str):
        value, mode = 0, value
    if mode != "constant":
        raise Untranslatable(f"it pads by `{mode}`")
    for turn in range(len(pad) // 2):
        before, after = pad[2 * turn : 2 * turn + 2]
        if (before, after) != (0, 0):
            axis = len(x.shape) - 1 - turn
            found = 0 if value is None else value
            x = forms.pad(n, x, axis, before, after, bool(found) if n.dtype(x) == "bool" else found)
    return x


def _index(n: Arrays, types: Sequence[Type], x: Array, indices: list[Array | None]) -> Array:
    given = {axis: index for axis, index in enumerate(indices) if index is not None}
    if any(n.dtype(index) == "bool" for index in given.values()):
        raise Untranslatable("it selects by a mask")
    axes = sorted(given)
    together = axes == list(range(axes[0], axes[-1] + 1))
    first = axes[0] if together else 0
    rank = max(len(index.shape) for index in given.values())

    def element(i: tuple[Any, ...]) -> int:
        chosen = i[first : first + rank]
        rest = iter([*i[:first], *i[first + rank :]])
        return n.at(
            x,
            [
                n.elements.polynomial(n.stretched(given[axis], chosen)) if axis in given else next(rest)
                for axis in range(len(x.shape))
            ],
        )

    return n.make(types[0].shape, element)


def _gather(n: Arrays, types: Sequence[Type], x: Array, dim: int, index: Array) -> Array:
    return forms.gather(n, x, index, dim)


def _index_select(n: Arrays, types: Sequence[Type], x: Array, dim: int, index: Array) -> Array:
    axis = dim % len(x.shape)

    def at(i: tuple[Any, ...]) -> list[Any]:
        return [*i[:axis], n.elements.polynomial(n.at(index, [i[axis]])), *i[axis + 1 :]]

    return n.view(x, types[0].shape, at)


def _embedding(n: Arrays, types: Sequence[Type], table: Array, ids: Array, *rest: Any) -> Array:
    return forms.embedding(n, ids, table)


def _arange(n: Arrays, types: Sequence[Type], *values: Any, **keywords: Any) -> Array:
    start, step = (values[0] if len(values) > 1 else 0), (values[2] if len(values) > 2 else 1)
    return _typed(n, n.make(types[0].shape, lambda i: n.elements.integer(i[0] * step + start)), types[0])


def _full(n: Arrays, types: Sequence[Type], shape: Any, value: Any, **keywords: Any) -> Array:
    return _typed(n, n.array(types[0].shape, forms.constant(n.elements, value)), types[0])


def _filled(value: float) -> Handler:
    def call(n: Arrays, types: Sequence[Type], *rest: Any, **keywords: Any) -> Array:
        return _typed(n, n.array(types[0].shape, forms.constant(n.elements, value)), types[0])

    return call


def _scalar(n: Arrays, types: Sequence[Type], value: Any, **keywords: Any) -> Array:
    return _typed(n, _array(n, value), types[0])


def _where(n: Arrays, types: Sequence[Type], condition: Array, a: Any, b: Any) -> Array:
    return _typed(n, n.each(types[0].shape, forms.choose, condition, _array(n, a), _array(n, b)), types[0])


def _masked_fill(n: Arrays, types: Sequence[Type], x: Array, mask: Array, value: Any) -> Array:
    return _where(n, types, mask, value, x)


def _clamp(n: Arrays, types: Sequence[Type], x: Array, min: Any = None, max: Any = None) -> Array:
    for bound, function in ((min, forms.larger), (max, forms.smaller)):
        if bound is not None:
            x = n.each(types[0].shape, function, x, _array(n, bound))
    return _typed(n, x, types[0])


def _pow_scalar(n: Arrays, types: Sequence[Type], base: Any, exponent: Any) -> Array:
    return _typed(n, n.each(types[0].shape, forms.power, _array(n, base), _array(n, exponent)), types[0])


def _rsub(n: Arrays, types: Sequence[Type], a: Any, b: Any, alpha: Any = 1) -> Array:
    return _each(forms.subtract)(n, types, b, a) if alpha == 1 else _fail("rsub")


def _fail(name: str) -> Any:
    raise Untranslatable(f"the operation `aten.{name}` has no normal form with these arguments")


def _div(n: Arrays, types: Sequence[Type], a: Any, b: Any, rounding_mode: str | None = None) -> Array:
    function = {None: forms.divide, "floor": forms.floor_divide}.get(rounding_mode)
    return _each(function)(n, types, a, b) if function is not None else _fail("div")


def _relu(n: Arrays, types: Sequence[Type], x: Array) -> Array:
    return n.each(x.shape, forms.larger, x, _typed(n, _array(n, 0), types[0]))


def _silu(n: Arrays, types: Sequence[Type], x: Array) -> Array:
    return n.each(x.shape, forms.multiply, x, _function("sigmoid")(n, types, x))


def _gelu(n: Arrays, types: Sequence[Type], x: Array, approximate: str = "none") -> Array:
    def of(e: Any, part: int) -> int:
        if approximate == "tanh":
            cubic = e.product([(part, 3.0)])
            inner = e.combination([(1.0, part), (0.044715, cubic)])
            turned = e.apply("tanh", (e.combination([(math.sqrt(2 / math.pi), inner)]),), "real")
        else:
            turned = e.apply("erf", (e.combination([(1 / math.sqrt(2), part)]),), "real")
        return e.product([(e.number(0.5), 1.0), (part, 1.0), (e.combination([(1.0, turned)], 1.0), 1.0)])

    return n.each(x.shape, of, x)


def _softplus(n: Arrays, types: Sequence[Type], x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    if beta != 1.0:
        _fail("softplus")

    def of(e: Any, part: int) -> int:
        size = e.apply("abs", (part,), "real")
        exponential = e.apply("exp", (e.combination([(-1.0, size)]),), "real")
        logarithm = e.apply("log", (e.combination([(1.0, exponential)], 1.0),), "real")
        return e.combination([(1.0, e.extreme("max", part, e.number(0.0))), (1.0, logarithm)])

    return n.each(x.shape, of, x)


def _softmax(n: Arrays, types: Sequence[Type], x: Array, dim: int, *rest: Any, **keywords: Any) -> Array:
    return forms.softmax(n, x, dim)


def _reduction(function: Callable[..., Array]) -> Handler:
    def call(n: Arrays, types: Sequence[Type], x: Array, dim: Any = None, keepdim: bool = False, **rest: Any) -> Array:
        axes = list(range(len(x.shape))) if dim is None or dim == [] else dim
        return _typed(n, function(n, _number(n, x, Type((), "int")), axes, keepdim), types[0])

    return call


def _mean(n: Arrays, types: Sequence[Type], x: Array, dim: Any = None, keepdim: bool = False, **rest: Any) -> Array:
    axes = list(range(len(x.shape))) if dim is None or dim == [] else dim
    e = n.elements
    summed = forms.total(n, n.array(x.shape, e.real(x.element)), axes, keepdim)
    count: Dim = 1
    for axis in axes if isinstance(axes, list) else [axes]:
        count = count * x.shape[axis]
    return n.array(summed.shape, e.product([(summed.element, 1.0), (e.real(e.integer(count)), -1.0)]))


def _cumsum(n: Arrays, types: Sequence[Type], x: Array, dim: int, **rest: Any) -> Array:
    return forms.running_total(n, _number(n, x, types[0]), dim)


def _sort(n: Arrays, types: Sequence[Type], x: Array, *, stable: bool = False, dim: int = -1, descending: bool = False) -> list[Array]:
    if not stable or not descending:
        _fail("sort")
    return forms.topk(n, x, x.shape[dim], dim)


def _argmax(n: Arrays, types: Sequence[Type], x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    return forms.argmax(n, x, dim, keepdim) if dim is not None else _fail("argmax")


def _matmul(n: Arrays, types: Sequence[Type], a: Array, b: Array) -> Array:
    left = n.reshape(a, (1, *a.shape)) if len(a.shape) == 1 else a
    right = n.reshape(b, (*b.shape, 1)) if len(b.shape) == 1 else b
    return n.reshape(forms.matmul(n, left, right), types[0].shape)


def _linear(n: Arrays, types: Sequence[Type], x: Array, weight: Array, bias: Array | None = None) -> Array:
    return forms.linear(n, x, weight, bias)


def _addmm(n: Arrays, types: Sequence[Type], bias: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    if (beta, alpha) != (1, 1):
        _fail("addmm")
    return n.each(types[0].shape, forms.add, forms.matmul(n, a, b), bias)


def _baddbmm(n: Arrays, types: Sequence[Type], bias: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    product = n.each(types[0].shape, forms.multiply, forms.matmul(n, a, b), _array(n, float(alpha)))
    return n.each(types[0].shape, forms.add, product, n.each(bias.shape, forms.multiply, bias, _array(n, float(beta))))


def _convolution(rank: int) -> Handler:
    def call(
        n: Arrays,
        types: Sequence[Type],
        x: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Array:
        if isinstance(padding, str):
            _fail("conv")
        spaces = {"stride": _spread(stride, rank), "padding": _spread(padding, rank), "dilation": _spread(dilation, rank)}
        return forms.convolution(n, x, weight, bias, **spaces, groups=groups, transposed=False)

    return call


def _transposed_convolution(rank: int) -> Handler:
    def call(
        n: Arrays,
        types: Sequence[Type],
        x: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Array:
        if any(_spread(output_padding, rank)):
            _fail("conv_transpose")
        spaces = {"stride": _spread(stride, rank), "padding": _spread(padding, rank), "dilation": _spread(dilation, rank)}
        return forms.convolution(n, x, weight, bias, **spaces, groups=groups, transposed=True)

    return call


def _spread(value: Any, rank: int) -> list[Any]:
    return value * rank if isinstance(value, list) and len(value) == 1 else value if isinstance(value, list) else [value] * rank


def _pool(function: Callable[..., Array], rank: int) -> Handler:
    def call(n: Arrays, types: Sequence[Type], x: Array, kernel: Any, stride: Any = None, padding: Any = 0, *rest: Any) -> Array:
        if any(value not in (1, [1] * rank, False, True, None, [1]) for value in rest):
            _fail("pool")
        steps = kernel if stride is None or stride == [] else stride
        return function(n, x, _spread(kernel, rank), _spread(steps, rank), _spread(padding, rank))

    return call


def _layer_norm(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    shape: list[Dim],
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    *rest: Any,
) -> Array:
    rank = len(x.shape)
    result = forms.standardized(n, x, list(range(rank - len(shape), rank)), eps)
    if weight is not None:
        result = n.each(x.shape, forms.multiply, result, weight)
    return result if bias is None else n.each(x.shape, forms.add, result, bias)


def _rms_norm(
    n: Arrays, types: Sequence[Type], x: Array, shape: list[Dim], weight: Array | None = None, eps: float | None = None
) -> Array:
    if eps is None:
        _fail("rms_norm")
    e = n.elements
    axes = list(range(len(x.shape) - len(shape), len(x.shape)))
    square = _mean(n, types, n.each(x.shape, forms.multiply, x, x), axes, True)
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
    *rest: Any,
) -> Array:
    return forms.group_norm(n, x, weight, bias, groups=groups, eps=eps)


def _attention(
    n: Arrays,
    types: Sequence[Type],
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    if dropout_p:
        raise Untranslatable("it drops attention weights, so it is in training")
    e = n.elements
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = (_repeat_interleave(n, [Type((*x.shape[:-3], query.shape[-3], *x.shape[-2:]))], x, times, -3) for x in (key, value))
    size = query.shape[-1]
    if scale is None and isinstance(size, Polynomial):
        _fail("scaled_dot_product_attention")
    factor = scale if scale is not None else int(size) ** -0.5  # pyright: ignore
    scores = forms.matmul(n, query, forms.transpose(n, key, -1, -2))
    scores = n.each(scores.shape, forms.multiply, scores, _array(n, float(factor)))
    if attn_mask is not None:
        function = _hide if n.dtype(attn_mask) == "bool" else forms.add
        scores = n.each(scores.shape, function, scores, attn_mask)
    if is_causal:
        rows, columns = scores.shape[-2:]
        visible = n.make((rows, columns), lambda i: e.at_least_zero(e.integer(i[0] - i[1])))
        scores = n.each(scores.shape, _hide, scores, visible)
    return forms.matmul(n, forms.softmax(n, scores, -1), value)


def _hide(e: Any, score: int, visible: int) -> int:
    return e.where(visible, score, e.number(-math.inf))


_NAMES: dict[Handler, str] = {
    _same: "clone contiguous alias detach _to_copy to lift_fresh_copy lift_fresh dropout _to_copy type_as",
    _reshape: "view _unsafe_view reshape unsqueeze squeeze flatten unflatten",
    _expand: "expand broadcast_to",
    _permute: "permute",
    _transpose: "transpose swapaxes",
    _matrix_transpose: "t numpy_T mT",
    _slice: "slice narrow",
    _select: "select",
    _concat: "cat concat",
    _stack: "stack",
    _split: "split split_with_sizes chunk",
    _unbind: "unbind",
    _repeat: "repeat",
    _repeat_interleave: "repeat_interleave",
    _flip: "flip",
    _roll: "roll",
    _pad: "pad constant_pad_nd",
    _index: "index",
    _gather: "gather",
    _index_select: "index_select",
    _embedding: "embedding",
    _arange: "arange",
    _full: "full new_full",
    _scalar: "scalar_tensor",
    _filled(0): "zeros zeros_like new_zeros",
    _filled(1): "ones ones_like new_ones",
    _where: "where",
    _masked_fill: "masked_fill",
    _clamp: "clamp clamp_min",
    _pow_scalar: "pow",
    _rsub: "rsub",
    _div: "div",
    _relu: "relu",
    _silu: "silu",
    _gelu: "gelu",
    _softplus: "softplus",
    _softmax: "softmax _softmax",
    _mean: "mean",
    _cumsum: "cumsum",
    _sort: "sort",
    _argmax: "argmax",
    _matmul: "matmul bmm mm",
    _linear: "linear",
    _addmm: "addmm",
    _baddbmm: "baddbmm",
    _layer_norm: "layer_norm",
    _rms_norm: "rms_norm",
    _group_norm: "group_norm",
    _attention: "scaled_dot_product_attention",
    _reduction(forms.total): "sum",
    _reduction(forms.largest): "amax",
    _each(forms.add): "add",
    _each(forms.subtract): "sub",
    _each(forms.multiply): "mul",
    _each(forms.negate): "neg",
    _each(forms.absolute): "abs",
    _each(forms.floor_divide): "floor_divide",
    _each(forms.remainder): "remainder",
    _each(forms.smaller): "minimum",
    _each(forms.larger): "maximum",
    _each(forms.square_root): "sqrt",
    _each(lambda e, x: e.product([(e.real(x), -0.5)])): "rsqrt",
    _each(lambda e, x: e.product([(e.real(x), -1.0)])): "reciprocal",
    _each(lambda e, x: e.product([(e.real(x), 2.0)])): "square",
    _compare(forms.equal): "eq",
    _compare(forms.unequal): "ne",
    _compare(forms.less): "lt",
    _compare(forms.less_or_equal): "le",
    _compare(forms.greater): "gt",
    _compare(forms.greater_or_equal): "ge",
    _logic(forms.both): "logical_and bitwise_and __and__",
    _logic(forms.either): "logical_or bitwise_or __or__",
    _logic(forms.opposite): "logical_not bitwise_not",
    **{_function(name): name for name in ("exp", "log", "sin", "cos", "tanh", "sigmoid", "erf")},
    **{_convolution(rank): f"conv{rank}d" for rank in (1, 2, 3)},
    **{_transposed_convolution(rank): f"conv_transpose{rank}d" for rank in (1, 2, 3)},
    **{_pool(forms.max_pool, rank): f"max_pool{rank}d" for rank in (1, 2, 3)},
    **{_pool(forms.mean_pool, rank): f"avg_pool{rank}d" for rank in (1, 2, 3)},
}

CALLS: dict[str, Handler] = {name: handler for handler, names in _NAMES.items() for name in names.split()}
