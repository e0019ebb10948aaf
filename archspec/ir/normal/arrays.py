"""Arrays: tensors as one element for all indices, and the operations on them as operations on elements.

An array is its shape, and its element at the indices of its own axes. Views are other indices, and elementwise
operations other elements. The result of a reduction is loaded from a base: what is reduced, with indices numbered in
the order in which they occur, so that it does not depend on the order of axes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial

from archspec.core.algebra import Dim, Expression, product
from archspec.core.record import Record
from archspec.ir.normal.axes import Indices
from archspec.ir.normal.elements import CommonTerms, Elements
from archspec.ir.normal.nodes import MAX_NODES, Dtype, Element, Names, divisors, index_name, names_in_order
from archspec.ir.normal.sums import IndexSubstitution, SelectionSums, SumSplitter, Values


class Array(Record):
    """A tensor: its element at the indices of its own axes."""

    shape: tuple[Dim, ...]
    element: Element


class Arrays:
    """Arrays over one table of elements; see `Elements` for what all methods raise."""

    def __init__(self, most: int = MAX_NODES) -> None:
        self.elements = Elements(most)
        self.axes = self.elements.axes
        self._replacing = IndexSubstitution(self.elements)
        self._splitting = SumSplitter(self.elements, self._replacing)
        self._selecting = SelectionSums(self.elements, self._replacing)
        self._common = CommonTerms(self.elements)

    def dtype(self, array: Array) -> Dtype:
        """Return the element type of an array."""
        return self.elements.dtype(array.element)

    # Making and reading -----------------------------------------------------------------------------------------------

    def own(self, shape: Sequence[Dim]) -> Indices:
        """Return the indices of the axes of a shape."""
        return tuple([self.axes.index(f"x{i}", size) for i, size in enumerate(shape)])

    def make(self, shape: Sequence[Dim], element: Callable[[Indices], Element]) -> Array:
        """Return the array with an element for the indices of its axes."""
        return Array(tuple(shape), element(self.own(shape)))

    def array(self, shape: tuple[Dim, ...], element: Element) -> Array:
        """Return the array with an element at the indices of its own axes."""
        return Array(shape, element)

    def at(self, array: Array, indices: Sequence[Expression]) -> Element:
        """Return the element of an array at indices, one for each axis."""
        own = self.own(array.shape)
        values = {index_name(name): value for name, value in zip(own, indices, strict=True) if name != value}
        values.pop("", None)
        element = self._replacing.element(array.element, values)
        reduction = self._selecting.whole(element)
        return element if reduction is None else self.total(*reduction)

    def replace(self, element: Element, values: Values) -> Element:
        """Return an element with other integers in the place of indices."""
        return self._replacing.element(element, values)

    def broadcast_element(self, array: Array, indices: Sequence[Expression]) -> Element:
        """Return the element of an array at the indices of a shape that it broadcasts to."""
        last = indices[len(indices) - len(array.shape) :]
        return self.at(array, [0 if size == 1 else i for size, i in zip(array.shape, last, strict=True)])

    def each(self, shape: Sequence[Dim], function: Callable[..., Element], *arrays: Array) -> Array:
        """Return the elementwise `function` of arrays that broadcast to a shape."""
        return self.make(
            shape, lambda i: function(self.elements, *[self.broadcast_element(array, i) for array in arrays])
        )

    def stored(self, kind: str, name: Hashable, shape: tuple[Dim, ...], dtype: Dtype) -> Array:
        """Return an input or a tensor."""
        return self._loaded(self.elements.base(kind, (name, shape, dtype), dtype), shape)

    def _loaded(self, base: Element, shape: Sequence[Dim]) -> Array:
        return self.make(shape, lambda i: self.elements.load(base, tuple([at for at in i if at.__class__ is not int])))

    def opaque(
        self,
        name: str,
        settings: Hashable,
        arrays: Sequence[Array | None],
        results: Sequence[tuple[Sequence[Dim], Dtype]],
    ) -> list[Array]:
        """Return the results of an operation that has no other form, of these shapes and types."""
        arrays_of_results: list[Array] = []
        for output, (shape, dtype) in enumerate(results):
            base = self.elements.base("operation", (name, settings, output, *arrays), dtype)
            arrays_of_results.append(self._loaded(base, shape))
        return arrays_of_results

    def loop(
        self,
        settings: tuple[int, Sequence[int], object, object],
        arrays: Sequence[Array | None],
        results: Sequence[tuple[Sequence[Dim], Dtype]],
    ) -> list[Array]:
        """Return the results of a loop: what it carries, and what it collects along axes, which are the first ones of
        what elements are loaded from. The settings are its depth, these axes, its first index and its iterations.
        """
        depth, axes, first, iterations = settings
        carried, collected = results[: len(results) - len(axes)], results[len(results) - len(axes) :]
        places = [axis % len(shape) for axis, (shape, _) in zip(axes, collected, strict=True)]
        moved = [(_to_front(tuple(shape), at), dtype) for at, (shape, dtype) in zip(places, collected, strict=True)]
        loop_settings = (depth, (0,) * len(axes), first, iterations)
        outputs = self.opaque("for", loop_settings, arrays, [*carried, *moved])
        views = [
            self.view(array, shape, partial(_to_front, at=at))
            for array, at, (shape, _) in zip(outputs[len(carried) :], places, collected, strict=True)
        ]
        return [*outputs[: len(carried)], *views]

    # Reductions -------------------------------------------------------------------------------------------------------

    def reduction(
        self,
        kind: str,
        body: Element,
        reduced: Iterable[Expression],
        kept: Expression | None = None,
        dtype: Dtype | None = None,
    ) -> Element:
        """Return the reduction of an element over indices; with `kept`, its element at that index in their place."""
        divided, parts = self._divided(body, reduced)
        if parts:
            return self.replace(self.reduction(kind, divided, reduced, kept, dtype), parts)
        return self._reduction(kind, body, reduced, kept, dtype)

    def _reduction(
        self,
        kind: str,
        body: Element,
        reduced: Iterable[Expression],
        kept: Expression | None = None,
        dtype: Dtype | None = None,
    ) -> Element:
        elements = self.elements
        among = {index_name(at) for at in reduced} & elements.nodes[body].names
        if not among:
            return body
        values: dict[str, Expression] = {}
        free: list[Expression] = []
        for name in names_in_order(elements.table, body):
            if name in among:
                values[name] = self.axes.like(f"r{len(values) - len(free)}", name)
            else:
                values[name] = self.axes.like(f"i{len(free)}", name)
                free.append(self.axes.like(name.partition(".")[0][1:], name))
        base = elements.base(kind, (self._replacing.element(body, values),), dtype or elements.dtype(body))
        return elements.load(base, (*free, *([] if kept is None else [kept])))

    def _divided(self, body: Element, reduced: Iterable[Expression]) -> tuple[Element, dict[str, Expression]]:
        """Return an element with two indices in place of each that only occurs divided, as in flattened axes.

        The integers that these indices stand for are returned by name.
        """
        among = {index_name(at) for at in reduced}
        values: dict[str, Expression] = {}
        parts: dict[str, Expression] = {}
        for name, by in divisors(self.elements.table, body).items():
            extent = self.axes.extent(name)
            if name not in among and extent % by == 0 and extent != by:
                kind = name.partition(".")[0][1:]
                undivided = self.axes.index(kind, extent)
                above, below = self.axes.index(f"{kind}q", extent // by), self.axes.index(f"{kind}m", by)
                values[name] = above * by + below
                parts |= {index_name(above): undivided // by, index_name(below): undivided % by}
        return (self.replace(body, values), parts) if values else (body, {})

    def total(self, body: Element, over: Sequence[tuple[Expression, Dim]]) -> Element:
        """Return the sum of an element over indices with these extents. Factors without the indices are outside."""
        divided, parts = self._divided(body, [at for at, _ in over])
        return self.replace(self.total(divided, over), parts) if parts else self._total(body, over)

    def _total(self, body: Element, over: Sequence[tuple[Expression, Dim]]) -> Element:
        elements = self.elements
        split = self._splitting.parts(body, over)
        if split:
            return elements.combination([(1.0, self.total(*part)) for part in split])
        selected = self._selecting.selected(body, over)
        if selected is not None:
            return self.total(*selected)
        names = elements.nodes[body].names
        live = [at for at, _ in over if index_name(at) in names]
        times = product([extent for at, extent in over if index_name(at) not in names])
        if elements.dtype(body) == "int":
            summed = self._reduction("total", body, live)
            return elements.integer(elements.polynomial(summed) * times)
        coefficient, factors = elements.factors(body)
        among: Names = frozenset([index_name(at) for at in live])
        outside = [
            (factor, power)
            for factor, power in factors
            if not elements.nodes[factor].names & among and not elements.nodes[factor].infinite
        ]
        inside = elements.product([factor for factor in factors if factor not in outside])
        summed = self._reduction("total", inside, live)
        scale = elements.real(elements.integer(times))
        return elements.product([(elements.number(coefficient), 1.0), (scale, 1.0), *outside, (summed, 1.0)])

    def softmax(self, body: Element, over: Expression, at: Expression) -> Element:
        """Return the softmax of an element over an index, at an index. Terms without the index have no effect, unless
        they are infinite or huge.
        """
        elements = self.elements
        name = index_name(over)
        body = self._without_common(body, over)
        terms, constant = elements.terms(body)
        varying = elements.combination([term for term in terms if name in elements.nodes[term[1]].names])
        same = elements.combination([term for term in terms if name not in elements.nodes[term[1]].names], constant)
        if not elements.nodes[same].infinite and not elements.magnitudes.are_moderate([same]):
            varying = body
        if name in elements.nodes[varying].names:
            shares = self.reduction("shares", varying, [over], at)
        else:
            extent = elements.real(elements.integer(self.axes.extent(name))) if name else elements.number(1.0)
            shares = elements.product([(extent, -1.0)])
        nothing = [(1.0, elements.product([(elements.number(0.0), 1.0), (same, 1.0)]))]
        return elements.combination([(1.0, shares), *nothing]) if elements.nodes[same].infinite else shares

    def _without_common(self, body: Element, over: Expression) -> Element:
        """Return an element without what all its sides have in common, and a softmax over an index ignores: moderate
        terms without the index, and its own largest value, which is subtracted.
        """
        elements = self.elements
        common = self._common.without_index(body, index_name(over))
        moderate = {
            term: c
            for term, c in common.items()
            if elements.magnitudes.are_moderate([elements.combination([(c, term)])])
        }
        body = self._common.remove(body, moderate)
        for term in [term for term, c in common.items() if c == -1.0 and self._is_largest(term)]:
            remainder = self._common.remove(body, {term: -1.0})
            if term not in moderate and self.reduction("largest", remainder, [over]) == term:
                body = remainder
        return body

    def _is_largest(self, element: Element) -> bool:
        node = self.elements.nodes[element]
        return node.kind == "load" and self.elements.nodes[node.base].kind == "largest"

    def descending_element(self, body: Element, over: Expression, at: Expression) -> tuple[Element, Element]:
        """Return what an element is at a place in descending order over an index, and the value of the index there: of
        equal ones the first.
        """
        if index_name(over) not in self.elements.nodes[body].names:
            return body, self.elements.integer(at)
        return self.reduction("sorted", body, [over], at), self.reduction("order", body, [over], at, "int")

    # Views ------------------------------------------------------------------------------------------------------------

    def view(self, array: Array, shape: Sequence[Dim], indices: Callable[[Indices], Sequence[Expression]]) -> Array:
        """Return the array whose element at its indices is that of another one at `indices`."""
        return self.make(shape, lambda i: self.at(array, indices(i)))

    def reshape(self, array: Array, shape: Sequence[Dim]) -> Array:
        """Return the elements in the same order, with another shape. Only the axes that are not alike are divided."""
        old = [axis for axis, size in enumerate(array.shape) if size != 1]
        new = [axis for axis, size in enumerate(shape) if size != 1]

        def indices(i: Indices) -> list[Expression]:
            positions: list[Expression] = [0] * len(array.shape)
            a = b = 0
            while a < len(old) or b < len(new):
                sources, targets = old[a : a + 1], new[b : b + 1]
                while (left := product([array.shape[x] for x in sources])) != (
                    right := product([shape[x] for x in targets])
                ):
                    if len(new) == b + len(targets) or self.axes.is_at_least(right - left, 0):
                        sources.append(old[a + len(sources)])
                    else:
                        targets.append(new[b + len(targets)])
                a, b = a + len(sources), b + len(targets)
                position: Expression = 0
                for axis in targets:
                    position = position * shape[axis] + i[axis]
                for axis in reversed(sources[1:]):
                    position, positions[axis] = self.axes.divide(position, array.shape[axis])
                positions[sources[0]] = position
            return positions

        return self.view(array, shape, indices)


def _to_front(items: tuple[Expression, ...], at: int) -> tuple[Expression, ...]:
    return (items[at], *items[:at], *items[at + 1 :])
