"""Operations of PyTorch that arrange or make elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archspec.algebra import Dim
from archspec.equivalence.calls.values import Handler, Untranslatable, array_of, typed
from archspec.ir import Type
from archspec.normal.arrays import Array, Arrays
from archspec.ops.forms import shape as forms
from archspec.ops.forms import weights
from archspec.ops.forms.elementwise import constant


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
    return typed(n, forms.concat(n, *kept, axis=dim), types[0])


def _stack(n: Arrays, types: Sequence[Type], tensors: list[Array], dim: int = 0) -> Array:
    return typed(n, forms.stack(n, *tensors, axis=dim), types[0])


def _split(n: Arrays, types: Sequence[Type], x: Array, sizes: Any, dim: int = 0) -> list[Array]:
    axis = dim % len(x.shape)
    return forms.split(n, x, [type.shape[axis] for type in types], axis)


def _unbind(n: Arrays, types: Sequence[Type], x: Array, dim: int = 0) -> list[Array]:
    return [forms.pick(n, x, dim, i) for i in range(len(types))]


def _repeat(n: Arrays, types: Sequence[Type], x: Array, repeats: list[Dim]) -> Array:
    new = len(repeats) - len(x.shape)
    return n.view(
        x, types[0].shape, lambda i: [n.axes.divide(at, size)[1] for at, size in zip(i[new:], x.shape, strict=True)]
    )


def _repeat_interleave(n: Arrays, types: Sequence[Type], x: Array, repeats: int, dim: int) -> Array:
    axis = dim % len(x.shape)
    return n.view(x, types[0].shape, lambda i: [*i[:axis], n.axes.divide(i[axis], repeats)[0], *i[axis + 1 :]])


def _flip(n: Arrays, types: Sequence[Type], x: Array, dims: list[int]) -> Array:
    axes = {dim % len(x.shape) for dim in dims}
    return n.view(x, x.shape, lambda i: [x.shape[axis] - 1 - at if axis in axes else at for axis, at in enumerate(i)])


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
    return weights.gather(n, x, index, dim)


def _index_select(n: Arrays, types: Sequence[Type], x: Array, dim: int, index: Array) -> Array:
    axis = dim % len(x.shape)

    def at(i: tuple[Any, ...]) -> list[Any]:
        return [*i[:axis], n.elements.polynomial(n.at(index, [i[axis]])), *i[axis + 1 :]]

    return n.view(x, types[0].shape, at)


def _embedding(n: Arrays, types: Sequence[Type], table: Array, ids: Array, *rest: Any) -> Array:
    return weights.embedding(n, ids, table)


def _arange(n: Arrays, types: Sequence[Type], *values: Any, **keywords: Any) -> Array:
    start, step = (values[0] if len(values) > 1 else 0), (values[2] if len(values) > 2 else 1)
    return typed(n, n.make(types[0].shape, lambda i: n.elements.integer(i[0] * step + start)), types[0])


def _full(n: Arrays, types: Sequence[Type], shape: Any, value: Any, **keywords: Any) -> Array:
    return typed(n, n.array(types[0].shape, constant(n.elements, value)), types[0])


def _new_full(n: Arrays, types: Sequence[Type], like: Array, shape: Any, value: Any, **keywords: Any) -> Array:
    return _full(n, types, shape, value)


def _filled(value: float) -> Handler:
    def call(n: Arrays, types: Sequence[Type], *rest: Any, **keywords: Any) -> Array:
        return typed(n, n.array(types[0].shape, constant(n.elements, value)), types[0])

    return call


def _scalar(n: Arrays, types: Sequence[Type], value: Any, **keywords: Any) -> Array:
    return typed(n, array_of(n, value), types[0])


NAMES: dict[Handler, str] = {
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
    _full: "full full_like",
    _new_full: "new_full",
    _scalar: "scalar_tensor",
    _filled(0): "zeros zeros_like new_zeros",
    _filled(1): "ones ones_like new_ones",
}
"""The names of the operations that each function is for."""
