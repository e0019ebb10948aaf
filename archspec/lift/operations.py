"""The operations of PyTorch as values.

Each function takes the builder, the types of the results, and the arguments: values, sizes and plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from archspec.algebra import product
from archspec.equivalence.calls.values import Untranslatable, listed
from archspec.ir import Type
from archspec.lift.builder import Builder
from archspec.lift.rotary import rotation
from archspec.lift.values import Value

Handler: TypeAlias = Callable[..., Any]
Types: TypeAlias = Sequence[Type]


def converted(b: Builder, x: Any, dtype: str) -> Any:
    """Return a value converted to an element type."""
    if not isinstance(x, Value) or x.dtype == dtype:
        return x
    return b.op("ne", x, 0 if x.dtype == "int" else 0.0) if dtype == "bool" else b.op(dtype, x)


def _number(b: Builder, x: Any) -> Any:
    """Return an operand of arithmetic: booleans are 0 and 1."""
    return (
        converted(b, x, "int") if isinstance(x, Value) and x.dtype == "bool" else int(x) if isinstance(x, bool) else x
    )


def _arithmetic(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Any, y: Any, alpha: Any = 1) -> Any:
        if alpha != 1:
            y = b.op("mul", _number(b, y), alpha) if isinstance(y, Value) else y * alpha
        rotated = rotation(b, x, y) if name == "add" else None
        if rotated is not None:
            return rotated
        return converted(b, b.op(name, _number(b, x), _number(b, y)), types[0].dtype)

    return call


def _unary(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Value) -> Any:
        return converted(b, b.op(name, _number(b, x)), types[0].dtype)

    return call


def _compare(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Any, y: Any) -> Value:
        kinds = {item.dtype if isinstance(item, Value) else type(item).__name__ for item in (x, y)}
        return b.op(name, x, y) if kinds == {"bool"} else b.op(name, _number(b, x), _number(b, y))

    return call


def _logic(name: str) -> Handler:
    def call(b: Builder, types: Types, *args: Any) -> Value:
        if types[0].dtype != "bool":
            raise Untranslatable("it has bitwise operations on integers")
        return b.op(name, *[converted(b, arg, "bool") for arg in args])

    return call


def _function(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Value) -> Value:
        return b.activation(name, b.written(x))

    return call


def _same(b: Builder, types: Types, x: Value, *rest: Any, **keywords: Any) -> Any:
    return converted(b, x, types[0].dtype)


def _dropout(b: Builder, types: Types, x: Value, rate: float, train: bool) -> Value:
    if train and rate:
        raise Untranslatable("it drops elements in evaluation too")
    return x


def _div(b: Builder, types: Types, x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode not in (None, "floor"):
        raise Untranslatable("it divides and rounds towards zero")
    return _arithmetic("div" if rounding_mode is None else "floordiv")(b, types, x, y)


def _rsub(b: Builder, types: Types, x: Any, y: Any, alpha: Any = 1) -> Any:
    return _arithmetic("sub")(b, types, y, x, alpha)


def _root(b: Builder, types: Types, x: Value) -> Value:
    return b.op("div", 1.0, b.op("sqrt", x))


def _reciprocal(b: Builder, types: Types, x: Value) -> Value:
    return b.op("div", 1.0, x)


def _square(b: Builder, types: Types, x: Value) -> Any:
    return _arithmetic("pow")(b, types, x, 2)


def _gelu(b: Builder, types: Types, x: Value, approximate: str = "none") -> Value:
    return _function("gelu_tanh" if approximate == "tanh" else "gelu")(b, types, x)


def _ceil(b: Builder, types: Types, x: Value) -> Any:
    return converted(b, b.op("neg", b.op("floor", b.op("neg", x))), types[0].dtype)


def _sign(b: Builder, types: Types, x: Value) -> Any:
    above, below = [b.op("int", b.op(name, x, 0 if x.dtype == "int" else 0.0)) for name in ("gt", "lt")]
    return converted(b, b.op("sub", above, below), types[0].dtype)


def _softplus(b: Builder, types: Types, x: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    if beta != 1:
        raise Untranslatable("it has a softplus with a factor")
    return b.op("log", b.op("add", 1.0, b.op("exp", x)))


def _where(b: Builder, types: Types, test: Value, x: Any, y: Any) -> Any:
    return converted(b, b.op("where", test, x, y), types[0].dtype)


def _masked_fill(b: Builder, types: Types, x: Value, mask: Value, value: Any) -> Any:
    return _where(b, types, mask, value, x)


def _clamp(b: Builder, types: Types, x: Value, min: Any = None, max: Any = None) -> Any:
    for name, bound in (("max", min), ("min", max)):
        if bound is not None:
            x = b.op(name, x, bound)
    return converted(b, x, types[0].dtype)


def _at_most(b: Builder, types: Types, x: Value, max: Any) -> Any:
    return _clamp(b, types, x, max=max)


def _reshape(b: Builder, types: Types, x: Value, *rest: Any, **keywords: Any) -> Value:
    return b.reshape(x, types[0].shape)


def _expand(b: Builder, types: Types, x: Value, *rest: Any, **keywords: Any) -> Value:
    return b.expand(x, types[0].shape)


def _permute(b: Builder, types: Types, x: Value, order: list[int]) -> Value:
    return b.permute(x, order)


def _transpose(b: Builder, types: Types, x: Value, first: int, second: int) -> Value:
    order = list(range(len(x.shape)))
    order[first], order[second] = order[second], order[first]
    return b.permute(x, order)


def _matrix_transpose(b: Builder, types: Types, x: Value) -> Value:
    return _transpose(b, types, x, -1, -2) if len(x.shape) > 1 else x


def _slice(
    b: Builder, types: Types, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Value:
    axis, shape = dim % len(x.shape), types[0].shape
    if shape == x.shape:
        return x
    size, first = x.shape[axis], 0 if start is None else start
    if isinstance(first, int) and first < 0:
        first = first + size
    settings: dict[str, Any] = {} if first == 0 else {"start": first}
    stop = first + shape[axis] * step if step == 1 else end
    if stop != size and not (isinstance(stop, int) and stop > 2**60):
        settings["stop"] = stop
    return b.op("slice", x, axis=_last(axis, x), **settings, **({"step": step} if step != 1 else {}))


def _last(axis: int, x: Value) -> int:
    """Return the number of an axis; -1 for the last."""
    return -1 if axis % len(x.shape) == len(x.shape) - 1 and len(x.shape) > 2 else axis % len(x.shape)


def _select(b: Builder, types: Types, x: Value, dim: int, index: Any) -> Value:
    x = b.written(x)
    axis = dim % len(x.shape)
    if len(x.shape) == 3 and axis == 1 and index == 0:
        found = b.function("first", [x], types[0].shape, x.dtype)
        if found is not None:
            return found
    return b.op("pick", x, axis=axis, index=index)


def _concat(b: Builder, types: Types, tensors: list[Value], dim: int = 0) -> Value:
    kept = [tensor for tensor in tensors if 0 not in tensor.shape]
    return kept[0] if len(kept) == 1 else b.op("concat", *kept, axis=_last(dim, kept[0]))


def _stack(b: Builder, types: Types, tensors: list[Value], dim: int = 0) -> Value:
    return b.op("stack", *tensors, axis=dim)


def _split(b: Builder, types: Types, x: Value, sizes: Any, dim: int = 0) -> list[Value]:
    axis = dim % len(x.shape)
    if len(types) == 1:
        return [x]
    return b.ops("split", x, sizes=tuple([type.shape[axis] for type in types]), axis=_last(axis, x))


def _unbind(b: Builder, types: Types, x: Value, dim: int = 0) -> list[Value]:
    return [b.op("pick", x, axis=dim % len(x.shape), index=turn) for turn in range(len(types))]


def _repeat(b: Builder, types: Types, x: Value, repeats: list[Any]) -> Value:
    sizes = (1,) * (len(repeats) - len(x.shape)) + x.shape
    split = [part for times, size in zip(repeats, sizes, strict=True) for part in (1, size)]
    wide = [part for times, size in zip(repeats, sizes, strict=True) for part in (times, size)]
    return b.reshape(b.expand(b.reshape(x, split), wide), types[0].shape)


def _repeat_interleave(b: Builder, types: Types, x: Value, repeats: int, dim: int) -> Value:
    axis = dim % len(x.shape) + 1
    split = (*x.shape[:axis], 1, *x.shape[axis:])
    return b.reshape(b.expand(b.reshape(x, split), (*x.shape[:axis], repeats, *x.shape[axis:])), types[0].shape)


def _roll(b: Builder, types: Types, x: Value, shifts: Any, dims: Any = ()) -> Value:
    return b.op("roll", x, shift=shifts, axis=dims)


def _pad(b: Builder, types: Types, x: Value, pad: list[Any], value: Any = 0, mode: str = "constant") -> Value:
    if mode != "constant" or isinstance(value, str):
        raise Untranslatable("it pads with other than a constant")
    for turn in range(len(pad) // 2):
        before, after = pad[2 * turn : 2 * turn + 2]
        if (before, after) != (0, 0):
            fill = {"value": bool(value) if x.dtype == "bool" else value} if value else {}
            x = b.op("pad", x, axis=len(x.shape) - 1 - turn, before=before, after=after, **fill)
    return x


def _index(b: Builder, types: Types, x: Value, indices: list[Value | None]) -> Value:
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    if len(given) == 1 and given[0][0] == 0 and given[0][1].dtype == "int":
        return embedding(b, given[0][1], x)
    if len(given) == 1 and given[0][1].op == "full" and given[0][1].shape == (1,):
        axis, index = given[0]
        at = index.settings["value"] % x.shape[axis]
        return b.op("slice", x, axis=_last(axis, x), **({"start": at} if at else {}), stop=at + 1)
    found = _by_form("index", b, types, x, indices)
    if len(x.shape) == 3 and [axis for axis, _ in given] == [0, 1]:
        token = b.function("token_at", [b.written(x), b.shortened(given[1][1])], types[0].shape)
        if token is not None and token.array == found.array:
            return token
    if found.dtype == "real":
        raise Untranslatable("it selects elements by several lists of positions")
    return found


def _diff(
    b: Builder, types: Types, x: Value, n: int = 1, dim: int = -1, prepend: Value | None = None, append: Any = None
) -> Any:
    if n != 1 or append is not None:
        raise Untranslatable("it computes differences of differences")
    x = x if prepend is None else b.op("concat", prepend, x, axis=dim % len(x.shape))
    axis, size = dim % len(x.shape), x.shape[dim]
    above = b.op("slice", x, axis=axis, start=1)
    return b.op("sub", above, b.op("slice", x, axis=axis, stop=size - 1))


def _by_form(name: str, b: Builder, types: Types, x: Value, indices: list[Value | None]) -> Value:
    """Return a value that can only be written from its normal form, as masks can."""
    from archspec.equivalence.calls.table import CALLS

    arrays = [None if index is None else index.array for index in indices]
    return b.made(name, [x, indices], CALLS[name](b.arrays, types, x.array, arrays))


def _gather(b: Builder, types: Types, x: Value, dim: int, index: Value, **rest: Any) -> Value:
    return b.op("gather", x, index, axis=dim)


def embedding(b: Builder, ids: Value, table: Value) -> Value:
    """Return the rows of a table; leading axes of size 1 of the ids become a view."""
    written = b.shortened(ids)
    found = b.op("embedding", written, table)
    return b.spread(found, (*ids.shape, *table.shape[1:]))


def _embedding(b: Builder, types: Types, table: Value, ids: Value, *rest: Any) -> Value:
    return embedding(b, ids, table)


def _arange(b: Builder, types: Types, *values: Any, **keywords: Any) -> Any:
    start, step = (values[0] if len(values) > 1 else 0), (values[2] if len(values) > 2 else 1)
    if not all(isinstance(value, int) or hasattr(value, "terms") for value in (start, step)):
        raise Untranslatable("it counts in steps that are not integers")
    found = b.op("arange", stop=types[0].shape[0])
    for name, by, neutral in (("mul", step, 1), ("add", start, 0)):
        if by != neutral:
            found = b.op(name, found, by)
    return converted(b, found, types[0].dtype)


def _full(b: Builder, types: Types, shape: Any, value: Any, **keywords: Any) -> Value:
    kinds: dict[str, Callable[[Any], Any]] = {"bool": bool, "int": int, "real": float}
    if isinstance(value, Value):
        return b.expand(value, types[0].shape)
    return b.op("full", shape=types[0].shape, value=kinds[types[0].dtype](value))


def _new_full(b: Builder, types: Types, like: Value, shape: Any, value: Any, **keywords: Any) -> Value:
    return _full(b, types, shape, value)


def _filled(value: float) -> Handler:
    def call(b: Builder, types: Types, *rest: Any, **keywords: Any) -> Value:
        return _full(b, types, (), value)

    return call


def _scalar(b: Builder, types: Types, value: Any, **keywords: Any) -> Value:
    return _full(b, types, (), value)


def _softmax(b: Builder, types: Types, x: Value, dim: int, *rest: Any, **keywords: Any) -> Value:
    return b.op("softmax", x, axis=dim % len(x.shape) - len(x.shape))


def _reduction(name: str) -> Handler:
    def call(b: Builder, types: Types, x: Value, dim: Any = None, keepdim: bool = False, **rest: Any) -> Any:
        return converted(b, b.op(name, _number(b, x), **_along(x, dim, keepdim)), types[0].dtype)

    return call


def _along(x: Value, dim: Any, keepdim: bool) -> dict[str, Any]:
    axes = list(range(len(x.shape))) if dim is None or dim == [] else listed(dim)
    places = [axis - len(x.shape) if axis == len(x.shape) - 1 else axis for axis in axes]
    settings: dict[str, Any] = {"axis": places[0] if len(places) == 1 else places}
    return settings | ({"keep": True} if keepdim else {})


def _mean(b: Builder, types: Types, x: Value, dim: Any = None, keepdim: bool = False, **rest: Any) -> Value:
    axes: list[int] = list(range(len(x.shape))) if dim is None or dim == [] else listed(dim)
    return b.op("div", b.op("sum", x, **_along(x, dim, keepdim)), product([x.shape[axis] for axis in axes]))


def _cumsum(b: Builder, types: Types, x: Value, dim: int, **rest: Any) -> Value:
    return b.op("cumsum", _number(b, x), axis=dim)


def _argmax(b: Builder, types: Types, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    if dim is None:
        raise Untranslatable("it looks for the largest of all elements")
    return b.op("argmax", _number(b, x), axis=dim, **({"keep": True} if keepdim else {}))


def _topk(b: Builder, types: Types, x: Value, k: int, dim: int = -1, *rest: Any) -> list[Value]:
    return b.ops("topk", x, k=k, **({} if dim in (-1, len(x.shape) - 1) else {"axis": dim}))


def _matmul(b: Builder, types: Types, x: Value, y: Value) -> Value:
    left = b.reshape(x, (1, *x.shape)) if len(x.shape) == 1 else x
    right = b.reshape(y, (*y.shape, 1)) if len(y.shape) == 1 else y
    found = b.op("mul", left, right) if left.shape[-1] == 1 else b.op("matmul", left, right)
    return b.reshape(found, types[0].shape)


def _linear(b: Builder, types: Types, x: Value, weight: Value, bias: Value | None = None) -> Value:
    return b.op("linear", x, weight, *([bias] if bias is not None else []))


def _addmm(b: Builder, types: Types, bias: Value, x: Value, y: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    if (beta, alpha) != (1, 1):
        raise Untranslatable("it scales a matrix product and what it is added to")
    rows = b.unflattened(x)
    return b.reshape(b.op("add", b.op("matmul", rows, y), bias), types[0].shape)


def _baddbmm(b: Builder, types: Types, bias: Value, x: Value, y: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    found = b.op("matmul", x, y)
    found = found if alpha == 1 else b.op("mul", found, float(alpha))
    return b.op("add", found, bias if beta == 1 else b.op("mul", bias, float(beta)))


def _convolution(
    b: Builder,
    types: Types,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Value:
    if isinstance(padding, str):
        raise Untranslatable("it pads a convolution by name")
    named = {"stride": (stride, 1), "padding": (padding, 0), "dilation": (dilation, 1), "groups": (groups, 1)}
    settings = {name: _alike(value) for name, (value, default) in named.items() if _alike(value) != default}
    return b.op("conv", x, weight, *([bias] if bias is not None else []), **settings)


def _alike(value: Any) -> Any:
    """Return one number for a list of equal ones."""
    values = listed(value)
    return values[0] if len(set(values)) == 1 else values


def _layer_norm(
    b: Builder,
    types: Types,
    x: Value,
    shape: list[Any],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    *rest: Any,
) -> Value:
    args = [weight, bias] if bias is not None else [weight] if weight is not None else []
    return b.op("layer_norm", x, *args, eps=eps)


def _group_norm(
    b: Builder,
    types: Types,
    x: Value,
    groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    *rest: Any,
) -> Value:
    args = [weight, bias] if bias is not None else [weight] if weight is not None else []
    return b.op("group_norm", x, *args, groups=groups, eps=eps)


def _rms_norm(
    b: Builder, types: Types, x: Value, shape: list[Any], weight: Value | None = None, eps: Any = None
) -> Value:
    if eps is None:
        raise Untranslatable("it normalizes with an eps that depends on the precision")
    square = _mean(b, types, b.op("mul", x, x), list(range(-len(shape), 0)), True)
    found = b.op("div", x, b.op("sqrt", b.op("add", square, eps)))
    return found if weight is None else b.op("mul", found, weight)


def _attention(
    b: Builder,
    types: Types,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    if dropout_p:
        raise Untranslatable("it drops attention weights, so it is in training")
    return b.attention(query, key, value, attn_mask, is_causal, scale)


def _max_pool(
    b: Builder, types: Types, x: Value, kernel: Any, stride: Any = None, padding: Any = 0, *rest: Any
) -> Value:
    if any(item not in (1, [1, 1], [1], False) for item in rest):
        raise Untranslatable("it pools with gaps, or rounds sizes up")
    return b.op("max_pool", x, **_window(kernel, stride, padding))


def _mean_pool(
    b: Builder, types: Types, x: Value, kernel: Any, stride: Any = None, padding: Any = 0, *rest: Any
) -> Value:
    if any(rest):
        raise Untranslatable("it pools in a way that the language does not have")
    return b.op("mean_pool", x, **_window(kernel, stride, padding))


def _window(kernel: Any, stride: Any, padding: Any) -> dict[str, Any]:
    settings = {"kernel": _alike(kernel)}
    if stride not in (None, []) and _alike(stride) != _alike(kernel):
        settings["stride"] = _alike(stride)
    return settings | ({"padding": _alike(padding)} if _alike(padding) != 0 else {})


NAMES: dict[Handler, str] = {
    **{_unary(name): name for name in ("neg", "abs", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "erf")},
    _unary("floor"): "floor",
    **{
        _arithmetic(name): called
        for name, called in {
            "add": "add",
            "sub": "sub subtract",
            "mul": "mul multiply",
            "pow": "pow",
            "floordiv": "floor_divide",
            "mod": "remainder",
            "min": "minimum min",
            "max": "maximum max",
        }.items()
    },
    **{_compare(name): name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    _logic("and"): "logical_and bitwise_and __and__",
    _logic("or"): "logical_or bitwise_or __or__",
    _logic("not"): "logical_not bitwise_not",
    **{_function(name): name for name in ("relu", "silu", "mish")},
    _gelu: "gelu",
    _ceil: "ceil",
    _sign: "sign sgn",
    _softplus: "softplus",
    _same: "contiguous clone alias detach lift_fresh_copy lift_fresh to _to_copy type_as float",
    _dropout: "dropout feature_dropout",
    _div: "div divide true_divide",
    _rsub: "rsub",
    _root: "rsqrt",
    _reciprocal: "reciprocal",
    _square: "square",
    _where: "where",
    _masked_fill: "masked_fill",
    _clamp: "clamp clip clamp_min",
    _at_most: "clamp_max",
    _reshape: "view _unsafe_view reshape unsqueeze squeeze flatten unflatten",
    _expand: "expand broadcast_to",
    _permute: "permute",
    _transpose: "transpose swapaxes swapdims",
    _matrix_transpose: "t numpy_T mT",
    _slice: "slice narrow",
    _select: "select",
    _concat: "cat concat",
    _stack: "stack",
    _split: "split split_with_sizes chunk",
    _unbind: "unbind",
    _repeat: "repeat",
    _repeat_interleave: "repeat_interleave",
    _roll: "roll",
    _pad: "pad constant_pad_nd",
    _index: "index",
    _gather: "gather",
    _diff: "diff",
    _embedding: "embedding",
    _arange: "arange",
    _full: "full full_like",
    _new_full: "new_full",
    _scalar: "scalar_tensor",
    _filled(0): "zeros zeros_like new_zeros",
    _filled(1): "ones ones_like new_ones",
    _softmax: "softmax _softmax",
    _reduction("sum"): "sum",
    _reduction("amax"): "amax",
    _mean: "mean",
    _cumsum: "cumsum",
    _argmax: "argmax",
    _topk: "topk",
    _matmul: "matmul bmm mm",
    _linear: "linear",
    _addmm: "addmm",
    _baddbmm: "baddbmm",
    _layer_norm: "layer_norm",
    _group_norm: "group_norm",
    _rms_norm: "rms_norm",
    _attention: "scaled_dot_product_attention",
    _convolution: "conv1d conv2d conv3d",
    _max_pool: "max_pool1d max_pool2d",
    _mean_pool: "avg_pool1d avg_pool2d",
}
"""The names of the operations that each function is for."""

OPERATIONS: dict[str, Handler] = {name: handler for handler, names in NAMES.items() for name in names.split()}
"""By name, without the namespace and the overload."""
