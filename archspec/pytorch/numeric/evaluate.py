"""Evaluation of normal forms in float64: an interpreter that shares no operation with generated code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from archspec.core.algebra import Atom, Dim, Expression, Polynomial, symbols
from archspec.core.algebra.polynomial import expression, terms_of
from archspec.core.algebra.terms import only_atom
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.nodes import Element, ElementNode, Factors, children
from archspec.pytorch.numeric.contraction import Operand, contract

if TYPE_CHECKING:
    import torch


# The values that an evaluation keeps, within a limit of memory.

MAX_BYTES = 2**30
"""Evaluation stops at a value that needs more memory, unless it is that of a reduction."""

MAX_TOTAL_BYTES = 2**32
"""Limit on the memory of all cached values; beyond it, the largest are evicted and recomputed."""

REDUCTION = 4
"""A reduction is forgotten like another value with so many times fewer bytes, as it takes longer to compute again."""


class EvaluationError(Exception):
    """A normal form has an operation that the interpreter lacks, or values that need too much memory or time."""


class Values:
    """Values of elements, with an axis for each of their indices. `most` limits the bytes that are computed."""

    def __init__(self, most: int | None) -> None:
        self._values: dict[Element, torch.Tensor] = {}
        self._reductions: set[Element] = set()
        self._held = 0
        """The most memory that these values may need, in bytes."""
        self._left = math.inf if most is None else most

    def get(self, element: Element) -> torch.Tensor | None:
        """Return the values of an element, if they are kept."""
        return self._values.get(element)

    def keep(self, element: Element, value: torch.Tensor, is_reduction: bool = False) -> torch.Tensor:
        """Keep the values of an element, whose memory is counted, and return them."""
        self._values[element] = value
        if is_reduction:
            self._reductions.add(element)
        return value

    def counted(self, value: torch.Tensor) -> torch.Tensor:
        """Count the memory of a value, and make room for it. Raises Unevaluated if too many are computed."""
        size = value.untyped_storage().nbytes()
        self._left -= 0 if value._is_view() else size
        if self._left < 0:
            raise EvaluationError("its values take too long to compute")
        if self._held + size > MAX_TOTAL_BYTES:
            self._held = self._forget_largest(MAX_TOTAL_BYTES // 2)
        self._held += size
        return value

    def storages(self) -> dict[int, int]:
        """Return the bytes of each storage that the kept values use, by its address."""
        storages = (value.untyped_storage() for value in self._values.values())
        return {storage.data_ptr(): storage.nbytes() for storage in storages}

    def forget(self, is_stale: Callable[[Element], bool]) -> None:
        """Forget the values of some elements."""
        self._values = {element: value for element, value in self._values.items() if not is_stale(element)}

    def _forget_largest(self, most: int) -> int:
        """Forget the largest values until the others need at most this memory; return what they need.

        Small ones, such as hidden states, are what computing the others again takes; reductions, such as convolutions,
        take longer than others of their size.
        """
        users: dict[int, list[Element]] = {}
        for element, value in self._values.items():
            users.setdefault(value.untyped_storage().data_ptr(), []).append(element)
        sizes = self.storages()
        held = sum(sizes.values())

        def cost(pointer: int) -> float:
            is_reduction = any(element in self._reductions for element in users[pointer])
            return sizes[pointer] / (REDUCTION if is_reduction else 1)

        for pointer in sorted(sizes, key=cost, reverse=True):
            if held <= most:
                break
            held -= sizes[pointer]
            for element in users[pointer]:
                del self._values[element]
        return held


Loop: TypeAlias = tuple[int, tuple[int, ...], Expression, Expression]
"""The settings of a loop: its depth, the axes that it collects values along, its first index, and its iterations."""


class Evaluation:
    """Values of elements. `stored` are those of inputs and tensors by ("input" or "tensor", name). Evaluation stops
    where it has computed values with `most` bytes. `hidden` are the shares of scores that are all -inf.
    """

    def __init__(
        self,
        arrays: Arrays,
        stored: Mapping[tuple[str, str], torch.Tensor],
        sizes: Mapping[str, int],
        most: int | None = None,
        hidden: float = math.nan,
    ) -> None:
        import torch

        self.torch = torch
        self._hidden = hidden
        self.arrays = arrays
        self.elements = arrays.elements
        self.stored = stored
        self.sizes = sizes
        self._loops: dict[tuple[Loop, tuple[Array, ...]], list[torch.Tensor]] = {}
        """The results of loops."""
        self.turns: dict[str, int] = {}
        """The indices of the loops in which a value is computed."""
        self._carried: dict[object, torch.Tensor] = {}
        self._depths: dict[Element, frozenset[int]] = {}
        self._extents: dict[str, int] = {}
        self._values = Values(most)

    def array(self, array: Array) -> torch.Tensor:
        """Return the values of an array."""
        own = self.arrays.own(array.shape)
        names = [_name(index) or f"#{axis}" for axis, index in enumerate(own)]
        shape = [self._size(size) for size in array.shape]
        return _Context(self, names, shape).element(array.element).expand(shape)

    def _size(self, size: Expression) -> int:
        return size.at(self.sizes) if isinstance(size, Polynomial) else size

    def extent(self, name: str) -> int:
        """Return how many values the index of an axis has."""
        if name not in self._extents:
            self._extents[name] = self._size(self.arrays.axes.extent(name))
        return self._extents[name]

    def value(self, element: Element) -> tuple[Sequence[str], torch.Tensor]:
        """Return the indices in an element, and its values, which broadcast to one axis for each index."""
        names = sorted(self.elements.nodes[element].names, key=_order)
        found = self._values.get(element)
        if found is None:
            context = _Context(self, names, [self.extent(name) for name in names])
            node = self.elements.nodes[element]
            item = 1 if node.dtype == "bool" else 8
            if node.kind != "load" and math.prod(context.shape) * item > MAX_BYTES:  # before they are computed
                raise EvaluationError("its values need too much memory")
            computed = context.computed(element)
            if not computed._is_view() and computed.numel() * computed.element_size() > MAX_BYTES:
                raise EvaluationError("its values need too much memory")
            found = self._values.keep(element, context.with_all_axes(self._values.counted(computed)))
        return names, found

    def base(self, base: Element) -> torch.Tensor:
        """Return the values of a base: one axis for each index that it is loaded with."""
        found = self._values.get(base)
        if found is None:
            found = self._values.keep(base, self._values.counted(self._base(base)), is_reduction=True)
        return found

    def depths(self, element: Element) -> frozenset[int]:
        """Return the depths of the loops around an element on whose iteration it depends."""
        found = self._depths.get(element)
        if found is None:
            node = self.elements.nodes[element]
            arguments = node.arguments
            inner = [self.depths(part) for part in children(self.elements.table, element)]
            found = frozenset[int]().union(_depths_in(arguments), *inner)
            if node.kind == "carried":
                found = frozenset([arguments[0][0]])
            if node.kind == "operation" and arguments[0] == "for":
                found -= {arguments[1][0]}
            self._depths[element] = found
        return found

    def _base(self, base: Element) -> torch.Tensor:
        node = self.elements.nodes[base]
        if node.kind in ("input", "tensor"):
            value = self.stored[node.kind, node.arguments[0]]
            value = value.double() if value.is_floating_point() else value
            return self._squeeze(value, node.arguments[1])
        if node.kind == "carried":
            return self._squeeze(self._carried[node.arguments[0]], node.arguments[1])
        if node.kind == "operation" and node.arguments[0] == "for":
            return self._result(*node.arguments[1:])
        if node.kind in ("total", "largest", "shares", "sorted", "order"):
            return self._reduction(node.kind, node.parts[0])
        if node.kind == "operation" and node.arguments[0] == "table":
            return self._table(node)
        if node.kind == "operation" and node.arguments[0] == "forward substitution":
            return self._squeeze(self._solution(*map(self.array, node.arguments[3:])), node.arguments[1])
        raise EvaluationError(f"`{node.arguments[0] if node.kind == 'operation' else node.kind}` is not evaluated")

    def _squeeze(self, value: torch.Tensor, shape: Iterable[Dim]) -> torch.Tensor:
        """Return values without the axes that have no index."""
        return value.reshape([actual for actual, size in zip(value.shape, shape, strict=True) if size != 1])

    def _reduction(self, kind: str, body: Element) -> torch.Tensor:
        names = sorted(self.elements.nodes[body].names, key=_order)
        free = [name for name in names if name[1] == "i"]
        over = [name for name in names if name[1] == "r"]
        axes = list(range(len(free), len(names)))
        context = _Context(self, [*free, *over], [self.extent(name) for name in (*free, *over)])
        if kind == "total":
            return context.total(body, len(free))
        values = context.element(body).expand(context.shape)
        if kind in ("sorted", "order"):
            ordered = values.sort(dim=axes[0], descending=True, stable=True)
            return ordered.values if kind == "sorted" else ordered.indices
        if kind == "largest":
            return values.amax(axes)
        is_hidden = (values == -math.inf).all(axes[0], keepdim=True)
        return values.softmax(axes[0]).masked_fill(is_hidden, self._hidden)

    def _result(self, settings: Loop, output: int, *arrays: Array) -> torch.Tensor:
        """Return one of the results of a loop."""
        found = self._loops.get((settings, arrays))
        if found is None:
            found = self._loops[settings, arrays] = self._looped(settings, arrays)
        _, axes, _, iterations = settings
        carried = (len(arrays) - len(axes)) // 2
        shape = list(arrays[output if output < carried else output + carried].shape)
        if output >= carried:
            shape.insert(axes[output - carried], iterations)
        return self._squeeze(found[output], shape)

    def _looped(self, settings: Loop, arrays: Sequence[Array]) -> list[torch.Tensor]:
        """Return what a loop carries, and what it collects."""
        depth, axes, first, iterations = settings
        carried = (len(arrays) - len(axes)) // 2
        state = [self.array(start) for start in arrays[:carried]]
        rows: list[list[torch.Tensor]] = [[] for _ in axes]
        outer = {**self.turns}, {**self._carried}
        begin = self._size(first)
        for turn in range(begin, begin + self._size(iterations)):
            self._forget(depth)
            self.turns[f"@{depth}"] = turn
            self._carried |= {(depth, place): value for place, value in enumerate(state)}
            found = [self.array(array) for array in arrays[carried:]]
            state = found[:carried]
            for row, value in zip(rows, found[carried:], strict=True):
                row.append(value)
        self._forget(depth)
        self.turns, self._carried = outer
        return [*state, *[self.torch.stack(row, axis) for row, axis in zip(rows, axes, strict=True)]]

    def _forget(self, depth: int) -> None:
        """Forget what depends on an iteration of the loops at a depth."""
        self._values.forget(lambda element: depth in self.depths(element))
        self._loops = {
            key: values
            for key, values in self._loops.items()
            if key[0][0] == depth or all(depth not in self.depths(array.element) for array in key[1])
        }

    def _table(self, node: ElementNode) -> torch.Tensor:
        _, settings, _, *_ = node.arguments
        values = self.torch.tensor(_listed(settings[0][1]), dtype=self.torch.float64)
        values = values if node.dtype == "real" else values.long() if node.dtype == "int" else values.bool()
        return self._squeeze(values, values.shape)

    def _solution(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        b = b + self.torch.zeros_like(a[..., :1])  # with all leading axes
        rows: list[torch.Tensor] = []
        for i, row in enumerate(b.unbind(-2)):
            above = [a[..., i, k, None] * known for k, known in enumerate(rows)]
            rows.append(row - sum(above, self.torch.zeros_like(row)))
        return self.torch.stack(rows, -2)


class _Context:
    """Elements over some indices: each index is an axis."""

    def __init__(self, whole: Evaluation, names: Sequence[str], shape: Sequence[int]) -> None:
        self.whole = whole
        self.torch = whole.torch
        self._names = names
        self.names = {name: axis for axis, name in enumerate(names)}
        self.shape = list(shape)
        self._totals: dict[Element, torch.Tensor] = {}

    def total(self, body: Element, free: int) -> torch.Tensor:
        """Return the sum of an element over all axes from `free` on.

        Sums are added up term by term, as all terms of one together may have more axes than any of them.
        """
        found = self._totals.get(body)
        if found is None:
            found = self._totals[body] = self._total(body, free).expand(self.shape[:free])
        return found

    def _total(self, body: Element, free: int) -> torch.Tensor:
        node = self.whole.elements.nodes[body]
        if node.kind == "terms":
            return self._combined(node, lambda term: self.total(term, free), math.prod(self.shape[free:]))
        if node.kind == "where":
            test, a, b = node.parts
            if all(self.names[name] < free for name in self.whole.elements.nodes[test].names):
                value = self.with_all_axes(self.element(test))
                return self.torch.where(value.reshape(value.shape[:free]), self.total(a, free), self.total(b, free))
        return self._product_total(node.factors if node.kind == "product" else ((body, 1.0),), free)

    def with_all_axes(self, value: torch.Tensor) -> torch.Tensor:
        """Return values with leading axes for the indices that they have no axis for."""
        return value.reshape([1] * (len(self.shape) - value.dim()) + list(value.shape))

    def _product_total(self, factors: Factors, free: int) -> torch.Tensor:
        operands: list[Operand] = []
        for factor, power in factors:
            value = self.element(factor)
            value = self.with_all_axes(value if power == 1.0 else value**power)
            axes = [axis for axis, size in enumerate(value.shape) if size != 1]
            operands.append((value.reshape([value.shape[axis] for axis in axes]), axes))
        present = {axis for _, axes in operands for axis in axes}
        kept = [axis for axis in range(free) if axis in present]
        found = contract(operands, kept)
        times = math.prod(size for axis, size in enumerate(self.shape) if axis >= free and axis not in present)
        found = found * times if times != 1 else found
        return found.reshape([self.shape[axis] if axis in kept else 1 for axis in range(free)])

    def element(self, element: Element) -> torch.Tensor:
        """Return the values of an element, which broadcast to the shape."""
        names, found = self.whole.value(element)
        if names == self._names:
            return found
        shape = [1] * len(self.shape)
        for name, size in zip(names, found.shape, strict=True):
            shape[self.names[name]] = size
        return found.reshape(shape)

    def computed(self, element: Element) -> torch.Tensor:
        """Compute the values of an element from those of its parts."""
        node = self.whole.elements.nodes[element]
        match node.kind:
            case "number":
                return self.torch.tensor(node.number, dtype=self.torch.float64)
            case "bool":
                return self.torch.tensor(node.number)
            case "int":
                return self.integer(node.integer)
            case "real":
                return self.integer(node.integer).double()
            case "ge0":
                return self.integer(node.integer) >= 0
            case "eq0":
                return self.integer(node.integer) == 0
            case "terms":
                return self._combined(node, self.element)
            case "product":
                found = self.torch.ones((), dtype=self.torch.float64)
                for factor, power in node.factors:
                    value = self.element(factor)
                    found = found * (value if power == 1.0 else value**power)
                return found
            case "power":
                base, power = node.arguments
                return self.element(base) ** power
            case "positive":
                return self.element(node.parts[0]) > 0
            case "zero":
                return self.element(node.parts[0]) == 0
            case "not":
                return ~self.element(node.parts[0])
            case "and" | "or":
                found = self.element(node.parts[0])
                for part in node.parts[1:]:
                    found = found & self.element(part) if node.kind == "and" else found | self.element(part)
                return found
            case "where":
                test, a, b = [self.element(part) for part in node.parts]
                return self.torch.where(test, a, b)
            case "load":
                return self._load(self.whole.base(node.base), node.indices)
            case "apply":
                name, _, *parts = node.arguments
                return self._apply(name, node.dtype, [self.element(part) for part in parts])
            case kind:
                raise EvaluationError(f"`{kind}` is not evaluated")

    def _combined(self, node: ElementNode, value: Callable[[Element], torch.Tensor], times: int = 1) -> torch.Tensor:
        """Return the sum of terms and of `times` the constant, those with large factors first.

        These may cancel, as in `lowest * (1 - mask)`, and would leave nothing of what is added to one of them.
        """
        terms, constant = node.terms
        one = self.torch.tensor(float(times), dtype=self.torch.float64)
        found = self.torch.zeros((), dtype=self.torch.float64)
        for coefficient, term in sorted([(constant, None), *terms], key=lambda item: -abs(item[0])):
            found = found + coefficient * (one if term is None else value(term))
        return found

    def _apply(self, name: str, dtype: str, parts: list[torch.Tensor]) -> torch.Tensor:
        """Return a function that PyTorch has under the same name; `min` and `max` are others there."""
        name = {"min": "minimum", "max": "maximum", "int": "trunc"}.get(name, name)
        function = getattr(self.torch, name, None)
        if function is None:
            raise EvaluationError(f"`{name}` is not evaluated")
        found = function(*[part.double() if dtype == "real" else part for part in parts])
        return found.long() if dtype == "int" else found

    def _load(self, base: torch.Tensor, indices: Sequence[Expression]) -> torch.Tensor:
        """Elements outside of the base, which a condition around them leaves out, are any of its elements.

        Where all indices are axes with as many elements as the base has, they only rearrange it.
        """
        if not indices:
            return base
        axes = [axis for index in indices if (axis := self._axis(index)) is not None]
        if [self.shape[axis] for axis in axes] == [*base.shape] and len({*axes}) == len(axes):
            rearranged = base.permute(sorted(range(len(axes)), key=axes.__getitem__))
            return rearranged[tuple([slice(None) if axis in axes else None for axis in range(len(self.shape))])]
        places = [self.integer(index) for index in indices]
        return base[tuple([place.clamp(0, size - 1) for place, size in zip(places, base.shape, strict=True)])]

    def _axis(self, index: Expression) -> int | None:
        """Return the axis of an integer that is only the index of one; None for any other."""
        atom = only_atom(terms_of(index))
        return self.names.get(atom.text) if atom is not None and atom.kind == "index" else None

    def integer(self, value: Expression) -> torch.Tensor:
        """Return the values of an integer."""
        found = self.torch.tensor(0)
        for monomial, coefficient in terms_of(value):
            part: torch.Tensor | int = int(coefficient)
            for atom, power in monomial:
                part = part * self._atom(atom) ** power
            found = found + part
        return found

    def _atom(self, atom: Atom) -> torch.Tensor:
        if atom.kind == "symbol":
            return self.torch.tensor(self.whole.sizes[atom.text])
        if atom.kind == "index":
            if atom.text.startswith("#v"):
                return self.element(int(atom.text[2:])).long()
            if atom.text in self.whole.turns:
                return self.torch.tensor(self.whole.turns[atom.text])
            axis = self.names[atom.text]
            return self.torch.arange(self.shape[axis]).reshape([-1] + [1] * (len(self.shape) - 1 - axis))
        parts = [self.integer(expression(argument)) for argument in atom.arguments]
        match atom.kind:
            case "//" | "%":  # divisors are only 0 at indices outside of their axis, which a condition leaves out
                by = self.torch.where(parts[1] == 0, 1, parts[1])
                return self.torch.floor_divide(parts[0], by) if atom.kind == "//" else parts[0].remainder(by)
            case _:
                found = parts[0]
                for part in parts[1:]:
                    found = self.torch.minimum(found, part) if atom.kind == "min" else self.torch.maximum(found, part)
                return found


def _depths_in(arguments: Iterable[object]) -> frozenset[int]:
    """Return the depths of the loops whose indices are in integers."""
    found = [item for item in arguments if isinstance(item, Polynomial)]
    return frozenset([int(name[1:]) for value in found for name in symbols(value) if name.startswith("@")])


def _order(name: str) -> tuple[str, int, str]:
    """Sort the indices of axes by their kind and the number of the axis."""
    return name[1], int(name[2:].partition(".")[0]), name


def _name(index: Expression) -> str:
    return next(iter(symbols(index)), "")


def _listed(value: object) -> object:
    """Return the numbers in a key of `archspec.ir.normal.bodies`."""
    if not isinstance(value, tuple):
        return value
    kind, *items = cast("tuple[object, ...]", value)
    if kind == "list":
        return [_listed(item) for item in items]
    return float(str(items[0])) if kind == "float" else items[0] == "True"
