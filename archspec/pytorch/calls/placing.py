"""Replacement of elements, and tensors that depend on places, of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from archspec.core.algebra import Dim, Expression, product
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.axes import Indices
from archspec.ir.normal.forms import along, weights
from archspec.ir.normal.forms import shape as forms
from archspec.ir.normal.forms.elementwise import choose, constant, larger, subtract, to_integer
from archspec.ir.normal.nodes import Element, index_name
from archspec.pytorch.calls.shape import wrap_negative_indices
from archspec.pytorch.calls.values import Handler, Operand, array_of, cast_to_type, refuse


def _scatter(
    n: Arrays, types: Sequence[Type], x: Array, dim: int, index: Array, source: Operand | None = None, **rest: Operand
) -> Array:
    """Return a tensor with one number at indices along an axis."""
    value = rest.pop("value", source)
    if rest or value is None:
        refuse("scatter")
    if isinstance(value, Array) and value.shape:
        value = _one_number(n, value)
    e, axis = n.elements, dim % len(x.shape)
    if any(a != b for at, (a, b) in enumerate(zip(index.shape, x.shape, strict=True)) if at != axis):
        refuse("scatter")

    def element(i: Indices) -> Element:
        over = n.axes.index("s0", index.shape[axis])
        hit = e.is_zero(e.integer(e.polynomial(n.at(index, [*i[:axis], over, *i[axis + 1 :]])) - i[axis]))
        count = n.total(to_integer(e, hit), [(over, index.shape[axis])])
        found = n.at(array_of(n, value), [])
        return e.where(
            e.at_least_zero(e.integer(e.polynomial(count) - 1)),
            e.real(found) if types[0].dtype == "real" else found,
            n.at(x, i),
        )

    return n.make(x.shape, element)


def _one_number(n: Arrays, value: Operand) -> Array:
    """Return the number that all elements of a tensor are."""
    if not isinstance(value, Array) or n.elements.nodes[value.element].names:
        refuse("scatter")
    return n.array((), value.element)


def _slice_scatter(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    source: Array,
    dim: int = 0,
    start: Dim | None = None,
    end: Dim | None = None,
    step: int = 1,
) -> Array:
    """Return a tensor in which a slice is replaced."""
    axis = dim % len(x.shape)
    size, count = x.shape[axis], source.shape[axis]
    first: Dim = 0 if start is None else start
    first = first + size if isinstance(first, int) and first < 0 else first
    if step != 1 and count * step == size and first in range(step):  # a column of rows of so many elements
        column = n.reshape(source, (*x.shape[:axis], count, 1, *x.shape[axis + 1 :]))
        rows = n.reshape(x, (*x.shape[:axis], count, step, *x.shape[axis + 1 :]))
        return n.reshape(_slice_scatter(n, types, rows, column, axis + 1, first), x.shape)
    if step != 1:
        return _replaced(n, cast_to_type(n, source, types[0]), x, axis, first, step)
    parts = [forms.cut(n, x, axis, 0, first), source, forms.cut(n, x, axis, first + count, size)]
    return forms.concat(n, *[cast_to_type(n, part, types[0]) for part in parts if part.shape[axis] != 0], axis=axis)


def _replaced(n: Arrays, source: Array, x: Array, axis: int, first: Dim, step: int) -> Array:
    """Return a tensor in which elements in steps along an axis are replaced."""
    size, count = x.shape[axis], source.shape[axis]
    if not isinstance(size, int) or not isinstance(count, int) or not isinstance(first, int):
        refuse("slice_scatter")
    if forms.cut(n, x, axis, first, first + count * step, step) == source:
        return x
    places = {first + turn * step: turn for turn in range(count)}
    pieces = [(source, places[at]) if at in places else (x, at) for at in range(size)]
    return forms.concat(n, *[forms.cut(n, part, axis, at, at + 1) for part, at in pieces], axis=axis)


def _select_scatter(n: Arrays, types: Sequence[Type], x: Array, source: Array, dim: int, index: int) -> Array:
    axis = dim % len(x.shape)
    return _slice_scatter(n, types, x, n.reshape(source, (*x.shape[:axis], 1, *x.shape[axis + 1 :])), axis, index)


def _triangle(is_upper: bool) -> Handler:
    def call(n: Arrays, types: Sequence[Type], x: Array, diagonal: int = 0) -> Array:
        e = n.elements

        def element(i: Indices) -> Element:
            above = i[-1] - i[-2] - diagonal
            return e.where(e.at_least_zero(e.integer(above if is_upper else -above)), n.at(x, i), nothing)

        nothing = constant(e, False if n.dtype(x) == "bool" else 0, n.dtype(x))
        return n.make(x.shape, element)

    return call


def _diagonal(n: Arrays, types: Sequence[Type], x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    a, b = dim1 % len(x.shape), dim2 % len(x.shape)

    def at(i: Indices) -> list[Expression]:
        rest = iter(i[:-1])
        return [i[-1] + max(-offset, 0) if axis == a else i[-1] + max(offset, 0) if axis == b else next(rest)
                for axis in range(len(x.shape))]  # fmt: skip

    return n.view(x, types[0].shape, at)


def _mesh(n: Arrays, types: Sequence[Type], tensors: list[Array], indexing: str = "ij") -> list[Array]:
    order = list(range(len(tensors)))
    if indexing == "xy":
        order[:2] = order[1::-1]
    return [n.view(tensor, type.shape, lambda i, axis=axis: [i[axis]])
            for tensor, type, axis in zip(tensors, types, order, strict=True)]  # fmt: skip


def _difference(
    n: Arrays,
    types: Sequence[Type],
    x: Array,
    times: int = 1,
    dim: int = -1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """Return the differences of adjacent elements."""
    if times != 1:
        refuse("diff")
    x = forms.concat(n, *[part for part in (prepend, x, append) if part is not None], axis=dim)
    size = x.shape[dim]
    return n.each(types[0].shape, subtract, forms.cut(n, x, dim, 1, size), forms.cut(n, x, dim, 0, size - 1))


def _identity(n: Arrays, types: Sequence[Type], *rest: object, **keywords: object) -> Array:
    e = n.elements
    return cast_to_type(n, n.make(types[0].shape, lambda i: to_integer(e, e.is_zero(e.integer(i[0] - i[1])))), types[0])


def _one_hot(n: Arrays, types: Sequence[Type], ids: Array, count: int = -1) -> Array:
    return weights.one_hot(n, ids, types[0].shape[-1])


def _spaced(n: Arrays, types: Sequence[Type], start: float, end: float, steps: int, **keywords: object) -> Array:
    by = (end - start) / max(steps - 1, 1)
    e = n.elements
    return n.make(types[0].shape, lambda i: e.combination([(by, e.real(e.integer(i[0])))], float(start)))


def _index_put(
    n: Arrays, types: Sequence[Type], x: Array, indices: list[Array | None], value: Array, accumulate: bool = False
) -> Array:
    """Return a tensor with other elements where a mask of its leading axes is true, the same in each place, or with one
    number at indices of its leading axes.

    Indices that follow each other are a slice, which any tensor replaces.
    """
    given = [index for index in indices if index is not None]
    first = first_index(n, given[0]) if len(given) == len(indices) == 1 and not accumulate else None
    if first is not None and value.shape == (*given[0].shape, *x.shape[1:]):
        return _slice_scatter(n, types, x, value, 0, first)
    masks = [index for index in given if n.dtype(index) == "bool"]
    if accumulate or len(given) < len(indices) or (masks and len(given) > 1):
        refuse("index_put")
    mask = masks[0] if masks else _hits(n, x.shape, given)
    is_repeated = bool(masks) and len(value.shape) <= len(x.shape) - len(mask.shape)
    mask = n.reshape(mask, (*mask.shape, *[1] * (len(x.shape) - len(mask.shape))))
    return cast_to_type(n, n.each(x.shape, choose, mask, value if is_repeated else _one_number(n, value), x), types[0])


def _index_copy(n: Arrays, types: Sequence[Type], x: Array, dim: int, index: Array, source: Array) -> Array:
    first = first_index(n, index)
    return _slice_scatter(n, types, x, source, dim, first) if first is not None else refuse("index_copy")


def _masked_scatter(n: Arrays, types: Sequence[Type], x: Array, mask: Array, source: Array) -> Array:
    """Return a tensor with the rows of another one in the rows where a mask is true, in their order."""
    lead = len(x.shape) - axes_of_rows(n, types[0].shape, mask, source.shape)
    sizes, rest = x.shape[:lead], x.shape[lead:]
    hits = n.make(sizes, lambda i: n.broadcast_element(mask, [*i, *[0] * len(rest)]))
    flat = n.reshape(n.each(sizes, to_integer, hits), (product(sizes),))
    counts = n.reshape(along.running_total(n, flat, 0), sizes)
    places = n.each(sizes, larger, n.each(sizes, subtract, counts, array_of(n, 1)), array_of(n, 0))
    rows = n.reshape(source, (product(source.shape[: len(source.shape) - len(rest)]), *rest))
    test = n.reshape(hits, (*sizes, *[1] * len(rest)))
    return n.each(x.shape, choose, test, weights.embedding(n, places, rows), x)


def axes_of_rows(n: Arrays, shape: Sequence[Dim], mask: Array, source: Sequence[Dim]) -> int:
    """Return how many last axes a row has: a mask is the same along them, and two tensors have the same sizes."""
    names = n.elements.nodes[mask.element].names
    varying = [index_name(at) in names for at in n.own(mask.shape)]
    found = 0
    for size, other, is_varying in zip_longest(shape[:0:-1], source[::-1], varying[::-1]):
        if size is None or size != other or is_varying:
            break
        found += 1
    return found or refuse("masked_scatter")


def first_index(n: Arrays, index: Array) -> int | None:
    """Return the first of indices that follow each other; None for others."""
    if len(index.shape) != 1 or n.dtype(index) != "int":
        return None
    over = n.axes.index("s0", index.shape[0])
    first = n.elements.polynomial(n.at(index, [over])) - over
    return first if isinstance(first, int) and first >= 0 else None


def _hits(n: Arrays, shape: Sequence[Dim], indices: list[Array]) -> Array:
    """Return which places of the leading axes of a shape are at indices, which have one axis."""
    e = n.elements
    size = max([index.shape[0] if index.shape else 1 for index in indices], key=str)
    if any(len(index.shape) != 1 or index.shape[0] not in (1, size) for index in indices):
        refuse("index_put")
    over = n.axes.index("s0", size)
    rows = n.make((shape[0],), lambda i: e.integer(i[0]))

    def in_rows(i: Indices) -> Element:
        found = [
            n.broadcast_element(wrap_negative_indices(n, index, shape[axis]), i[:1])
            for axis, index in enumerate(indices)
        ]
        return e.conjunction(
            [e.is_zero(e.integer(e.polynomial(value) - at)) for value, at in zip(found, i, strict=True)]
        )

    if indices[0].element == rows.element and indices[0].shape == rows.shape == (size,):
        return n.make(tuple(shape[: len(indices)]), in_rows)

    def element(i: Indices) -> Element:
        found = [wrap_negative_indices(n, index, shape[axis]) for axis, index in enumerate(indices)]
        ids = [e.polynomial(n.broadcast_element(index, [over])) for index in found]
        equal = [e.is_zero(e.integer(value - at)) for value, at in zip(ids, i, strict=True)]
        count = n.total(to_integer(e, e.conjunction(equal)), [(over, size)])
        return e.at_least_zero(e.integer(e.polynomial(count) - 1))

    return n.make(tuple(shape[: len(indices)]), element)


NAMES: dict[Handler, str] = {
    _scatter: "scatter",
    _slice_scatter: "slice_scatter",
    _select_scatter: "select_scatter",
    _triangle(True): "triu",
    _triangle(False): "tril",
    _diagonal: "diagonal",
    _mesh: "meshgrid",
    _difference: "diff",
    _identity: "eye",
    _one_hot: "one_hot",
    _spaced: "linspace",
    _index_put: "index_put",
    _masked_scatter: "masked_scatter",
    _index_copy: "index_copy",
}
"""The names of the operations that each function is for."""
