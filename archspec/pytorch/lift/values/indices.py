"""Values that depend on positions alone, such as masks and position ids, written anew from their normal forms.

A module computes a mask in many steps, most of which have no effect. Its normal form gives one element for the indices
of its axes; from this, it is written as a library function, or as comparisons of positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from archspec.core.algebra import Atom, Dim, Expression, expression, terms_of
from archspec.ir.normal.nodes import OPAQUE, Element, index_name
from archspec.pytorch.values.values import Argument, ModuleCall, Operand, Setting, Value

if TYPE_CHECKING:
    from archspec.ir.normal.arrays import Array, Arrays


class NoShortFormError(Exception):
    """An element has no short form."""


class ValueFactory(Protocol):
    """What values are made with."""

    arrays: Arrays
    frame: ModuleCall

    def op(self, name: str, *args: Argument, **settings: Setting) -> Value: ...
    def made(
        self, op: str, args: Sequence[Argument], array: Array, settings: Mapping[str, Setting] | None = None
    ) -> Value: ...
    def function(
        self, name: str, args: Sequence[Value], shape: Sequence[Dim], dtype: str = "real", **settings: Setting
    ) -> Value | None: ...
    def written(self, value: Value) -> Value: ...


class IndexWriter:
    """Writes values from their normal forms."""

    def __init__(self, builder: ValueFactory) -> None:
        self.builder = builder
        self.arrays = builder.arrays
        self.sources: dict[int, Value] = {}
        """Inputs and tensors, by the element that they are loaded from."""
        self._known: dict[Value, Value | None] = {}
        self._interned: dict[tuple[object, ...], Value] = {}
        self._rank = 0
        self._shape: tuple[Dim, ...] = ()

    def written(self, value: Value) -> Value | None:
        """Return a short form that broadcasts to a value; None if there is none."""
        if value not in self._known:
            self._known[value] = self._found(value, lambda: self._element(value.array.element))
        return self._known[value]

    def exactly(self, value: Value) -> Value | None:
        """Return a short form of a value with its shape; None if there is none."""
        found = self.written(value)
        if found is None or found.array == value.array:
            return found
        full = (1,) * (len(value.shape) - len(found.shape)) + found.shape
        return self._reshaped(found, value.shape) if full == value.shape else None

    def mask(self, value: Value) -> tuple[Value | None, dict[str, Setting]]:
        """Return which keys are visible in attention, as a mask and settings of the function `attention`."""
        e = self.arrays.elements
        node = e.nodes[value.array.element]
        terms = list(cast("tuple[int, ...]", node.arguments)) if node.kind == "and" else [value.array.element]
        terms = [term for term in terms if term != e.true]
        settings, rest = self._distances(value, terms)
        if not rest:
            return None, settings
        found = self._found(value, lambda: self._conjunction(rest))
        if found is None:
            return self.builder.written(value), {}
        return found, settings

    def _distances(self, value: Value, terms: list[int]) -> tuple[dict[str, Setting], list[int]]:
        """Return the settings for the terms of a mask that compare the positions of query and key, and the others."""
        e, (rows, columns) = self.arrays.elements, value.shape[-2:]
        if rows != columns:
            return {}, terms
        row, column = self.arrays.own(value.shape)[-2:]
        settings: dict[str, Setting] = {}
        limits: dict[int, int] = {}
        for term in terms:
            node = e.nodes[term]
            if node.kind != "ge0":
                continue
            bound = cast("Expression", node.arguments[0])
            if bound == row - column:
                settings["causal"] = True
                limits[term] = 0
                continue
            for distance in (row - column, column - row):
                least = bound + distance
                if isinstance(least, int) and least > 0:
                    limits[term] = least
        windows = {limit for limit in limits.values() if limit}
        both = len([limit for limit in limits.values() if limit]) == 2 or "causal" in settings
        if len(windows) == 1 and both:
            settings["window"] = windows.pop()
        elif windows:
            limits = {term: limit for term, limit in limits.items() if not limit}
        return settings, [term for term in terms if term not in limits]

    def _found(self, value: Value, make: Callable[[], Operand]) -> Value | None:
        outer, self.builder.frame = self.builder.frame, value.frame
        self._rank, self._shape = len(value.shape), value.shape
        try:
            found = make()
        except NoShortFormError:
            return None
        finally:
            self.builder.frame = outer
        if not isinstance(found, Value) or found.dtype != value.dtype:
            return None
        if not found.names:
            found.names = value.names
        return found

    # Elements ---------------------------------------------------------------------------------------------------------

    def _element(self, element: Element) -> Operand:
        node = self.arrays.elements.nodes[element]
        match node.kind:
            case "bool" | "number":
                return cast("bool | float", node.arguments[0])
            case "int":
                return self._integer(cast("Expression", node.arguments[0]))
            case "ge0":
                return self._compared(cast("Expression", node.arguments[0]))
            case "eq0":
                return self._op("eq", *self._sides(cast("Expression", node.arguments[0])))
            case "load":
                base, *indices = node.arguments
                return self._loaded(cast("Element", base), cast("list[Expression]", indices))
            case _:
                return self._joined(node.kind, cast("tuple[Element, ...]", node.arguments))

    def _joined(self, kind: str, elements: Sequence[Element]) -> Operand:
        match kind:
            case "not":
                inner = self.arrays.elements.nodes[elements[0]]
                if inner.kind == "eq0":
                    compared = cast("Expression", inner.arguments[0])
                    return self._key_mask(compared) or self._op("ne", *self._sides(compared))
                return self._op("not", self._element(elements[0]))
            case "and":
                return self._conjunction(elements)
            case "or":
                found, *rest = [self._element(part) for part in elements]
                for part in rest:
                    found = self._op("or", found, part)
                return found
            case "where":
                return self._op("where", *[self._element(part) for part in elements])
            case _:
                raise NoShortFormError

    def _conjunction(self, terms: Sequence[Element]) -> Operand:
        parts = [self._element(term) for term in terms]
        parts.sort(key=lambda part: not isinstance(part, Value) or part.op != "key_mask")
        found = parts[0]
        for part in parts[1:]:
            found = self._op("and", found, part)
        return found

    def _key_mask(self, value: Expression) -> Value | None:
        """Return the mask of the keys that are not padding, if a comparison with 0 is that."""
        name = index_name(value)
        if self._rank != 4 or not name.startswith(OPAQUE):
            return None
        node = self.arrays.elements.nodes[int(name[2:])]
        if node.kind != "load":
            return None
        source = self.sources.get(cast("int", node.arguments[0]))
        own = self.arrays.own(self._shape)
        if source is None or node.arguments[1:] != (own[0], own[3]):
            return None
        batch, keys = source.shape
        found = self.builder.function("key_mask", [source], (batch, 1, 1, keys), "bool")
        return None if found is None else self._interning(("key_mask", source), lambda: found)

    def _sides(self, value: Expression) -> tuple[Operand, Operand]:
        """Return an integer as a difference of two, without subtractions as far as possible."""
        above: Expression = 0
        below: Expression = 0
        for term in terms_of(value):
            if isinstance(term[1], int) and term[1] < 0:
                below = below - expression((term,))
            else:
                above = above + expression((term,))
        return self._integer(above), self._integer(below)

    def _compared(self, value: Expression) -> Operand:
        """Return whether an integer is at least 0 as a comparison of two, of which a number is the second."""
        signs = {cast("int", coefficient) > 0 for monomial, coefficient in terms_of(value) if monomial}
        is_strict = len(signs) == 2 and ((), -1) in terms_of(value)
        left, right = self._sides(value + 1 if is_strict else value)
        if isinstance(left, Value):
            return self._op("gt" if is_strict else "ge", left, right)
        return self._op("lt" if is_strict else "le", right, left)

    def _integer(self, value: Expression) -> Operand:
        if isinstance(value, int):
            return value
        found: Operand | None = None
        for monomial, coefficient in sorted(terms_of(value), key=lambda term: not term[0]):
            if not isinstance(coefficient, int):
                raise NoShortFormError
            part: Operand | None = None
            for atom, power in monomial:
                for _ in range(power):
                    factor = self._atom(atom)
                    part = factor if part is None else self._op("mul", part, factor)
            if part is None:
                part = abs(coefficient)
            elif abs(coefficient) != 1:
                part = self._op("mul", part, abs(coefficient))
            if found is None:
                found = part if coefficient > 0 else self._op("neg", part)
            else:
                found = self._op("add" if coefficient > 0 else "sub", found, part)
        return 0 if found is None else found

    def _atom(self, atom: Atom) -> Operand:
        if atom.kind == "symbol":
            return expression((((((atom, 1),)), 1),))
        if atom.kind != "index":
            names = {"//": "floordiv", "%": "mod", "min": "min", "max": "max"}
            parts = [self._integer(expression(argument)) for argument in atom.arguments]
            if atom.kind not in names or len(parts) != 2:
                raise NoShortFormError
            return self._op(names[atom.kind], *parts)
        if atom.text.startswith(OPAQUE):
            inner = self._element(int(atom.text[2:]))
            return self._op("int", inner) if isinstance(inner, Value) and inner.dtype == "bool" else inner
        own = [index_name(at) for at in self.arrays.own(self._shape)]
        if atom.text not in own:
            raise NoShortFormError
        axis = own.index(atom.text)
        size = self._shape[axis]
        positions = self._made("arange", stop=size)
        after = self._rank - 1 - axis
        return self._reshaped(positions, (size,) + (1,) * after) if after else positions

    def _loaded(self, base: int, indices: Sequence[Expression]) -> Value:
        source = self.sources.get(base)
        own = [index_name(at) for at in self.arrays.own(self._shape)]
        names = [index_name(at) for at in indices]
        if source is None or not all(name and name in own for name in names):
            raise NoShortFormError
        axes = [own.index(name) for name in names]
        if axes != sorted(set(axes)) or [self._shape[axis] for axis in axes] != [*source.shape]:
            raise NoShortFormError
        first = axes[0] if axes else self._rank
        shape = tuple([self._shape[axis] if axis in axes else 1 for axis in range(first, self._rank)])
        return source if shape == source.shape else self._reshaped(source, shape)

    # Making -----------------------------------------------------------------------------------------------------------

    def _op(self, name: str, *args: Operand) -> Operand:
        if not any(isinstance(arg, Value) for arg in args):
            return self._folded(name, *cast("tuple[Expression, ...]", args))
        return self._made(name, *args)

    def _made(self, name: str, *args: Operand, **settings: Setting) -> Value:
        key = (name, *args, *settings.items())
        return self._interning(key, lambda: self.builder.op(name, *args, **settings))

    def _folded(self, name: str, *args: Expression) -> Expression:
        match name:
            case "add":
                return args[0] + args[1]
            case "sub":
                return args[0] - args[1]
            case "mul":
                return args[0] * args[1]
            case "neg":
                return -args[0]
            case _:
                raise NoShortFormError

    def _reshaped(self, value: Value, shape: Sequence[Dim]) -> Value:
        made = self.arrays.reshape(value.array, shape)
        key = ("reshape", value, *shape)
        return self._interning(key, lambda: self.builder.made("reshape", [value], made, {"shape": tuple(shape)}))

    def _interning(self, key: tuple[object, ...], make: Callable[[], Value]) -> Value:
        """Return a value that is made once in each call of a module."""
        whole = (self.builder.frame, *key)
        if whole not in self._interned:
            self._interned[whole] = make()
        return self._interned[whole]
