"""Normal forms of compiled bodies: the outputs of a model as arrays over its inputs and stored tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from archspec.core.algebra import Expression, Polynomial, index, substitute
from archspec.ir.fold import VisitLimit, arguments, propagate_forward
from archspec.ir.module import Body, Call, LocatedTensor, Loop, Type, canonical_name, find_member
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.elements import Elements
from archspec.ir.normal.forms import elementwise_form, normal_form
from archspec.ir.normal.forms.elementwise import constant
from archspec.ir.normal.nodes import Element
from archspec.ir.normal.origins import LocationIndex
from archspec.ir.ops import OPS, Op

if TYPE_CHECKING:
    from archspec.ir.module import Module


Applied: TypeAlias = "Callable[[Call, list[Array | None]], list[Array | None]]"
"""From the inputs of an applied definition to its outputs."""


class ArrayObserver(Protocol):
    """What is notified of the results of every operation."""

    def note(self, arrays: Iterable[Array | None], /) -> None:
        """Note the results of an operation."""


class NormalFormBuilder:
    """Normal forms of the bodies of one model, whose `places` and `constants` are noted if they are given.

    Tensors are called by their names in `module`, or by those that these have in `counted`, after a `prefix`. With
    `keeps_float32`, a conversion to float32 is not left out: proofs ignore the precision of intermediate values.
    """

    def __init__(
        self,
        arrays: Arrays,
        module: Module | None,
        places: LocationIndex | None = None,
        prefix: str = "",
        constants: ArrayObserver | None = None,
        *,
        keeps_float32: bool = False,
        counted: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.arrays = arrays
        self.module = module
        self.places = places
        self._constants = constants
        self._prefix = prefix
        self._keeps_float32 = keeps_float32
        self._counted = counted
        self._budget = VisitLimit()
        self._indices: dict[str, Expression] = {}

    def outputs(self, body: Body, inputs: Sequence[Array | None], prefix: str = "") -> list[Array | None]:
        """Return the outputs of a body, at an address that `prefix` ends in a dot after; definitions are expanded."""
        for size in {size for type in body.types for size in type.shape}:
            self.arrays.axes.require(size)
        return self.fold(body, inputs, prefix, lambda call, operands: self.opened(call, operands, prefix))

    def table(self, name: str) -> Array | None:
        """Return a constant table, which is not stored; None for any other tensor."""
        leaf = find_member(self.module, name) if self.module is not None else None
        return self._tensor(name) if isinstance(leaf, LocatedTensor) and leaf.weight.kind == "const" else None

    def opened(self, call: Call, inputs: list[Array | None], prefix: str) -> list[Array | None]:
        """Return the outputs of an applied definition, which is expanded."""
        assert call.body is not None
        inner_prefix = f"{prefix}{call.address}." if call.address else prefix
        if call.body.loop is not None:
            return self._loop(call, call.body, call.body.loop, arguments(call, inputs), inner_prefix)
        return self.outputs(call.body, arguments(call, inputs), inner_prefix)

    def fold(self, body: Body, inputs: Sequence[Array | None], prefix: str, applied: Applied) -> list[Array | None]:
        """Return the outputs of a body; `applied` returns those of the definitions in it."""

        def number(value: object) -> Array | None:
            array = self.arrays.array((), constant(self.arrays.elements, self._exact(value)))
            if self._constants is not None:
                self._constants.note([array])
            return array

        def weight(name: str) -> Array | None:
            return self._tensor(prefix + name)

        def operation(call: Call, operands: list[Array | None]) -> list[Array | None]:
            results = self._operation(call, operands)
            if self.places is not None:
                self.places.note(results, prefix.rstrip("."), call.span.location)
            if self._constants is not None:
                self._constants.note(results)
            return results

        return propagate_forward(body, inputs, operation, applied, None, number, weight, self._budget).outputs

    def _exact(self, value: object) -> object:
        """Return a static value in which the indices of loops have their own names."""
        if isinstance(value, Polynomial):
            return substitute(value, self._indices) if self._indices else value
        if isinstance(value, tuple | list):
            return tuple([self._exact(item) for item in cast("Sequence[object]", value)])
        return value

    def _tensor(self, name: str) -> Array:
        assert self.module is not None
        name = canonical_name(self.module, name)
        leaf = find_member(self.module, name)
        assert isinstance(leaf, LocatedTensor)
        weight = leaf.weight
        if weight.kind == "const":
            assert weight.value is not None
            (table,) = self.outputs(weight.value, [])
            assert table is not None
            return table
        return self.arrays.stored(
            "tensor", self._prefix + self._counted.get(name, name), weight.type.shape, weight.type.dtype
        )

    def _operation(self, call: Call, inputs: list[Array | None]) -> list[Array | None]:
        if OPS[call.type].trains:
            return inputs[:1]
        if OPS[call.type].widens and self._keeps_float32:
            (type,) = [type for type in call.outputs if type is not None]
            return [self._kept(call.type, inputs[0], type)]
        settings = {name: self._exact(value) for name, value in OPS[call.type].settings(call.attributes).items()}
        return [*apply(self.arrays, call.type, inputs, settings, [type for type in call.outputs if type is not None])]

    def _kept(self, name: str, operand: Array | None, type: Type) -> Array:
        """Return an elementwise function that has no other form."""
        assert operand is not None
        return self.arrays.each(type.shape, _opaque(OPS[name], type.dtype), operand)

    def _loop(
        self, call: Call, body: Body, loop: Loop, inputs: Sequence[Array | None], prefix: str
    ) -> list[Array | None]:
        """Return the outputs of a loop: each depends on what is carried into it, and on what an iteration computes."""
        depth = len(self._indices)
        carried_types = [type for _, type in body.inputs[: loop.carried]]
        carried = [
            self.arrays.stored("carried", (depth, i), type.shape, type.dtype) for i, type in enumerate(carried_types)
        ]
        outer = dict(self._indices)
        self._indices = {**outer, loop.variable: index(f"@{depth}")}
        computed = self.outputs(body, [*carried, *inputs[loop.carried :]], prefix)
        self._indices = outer
        settings = (depth, loop.axes, self._exact(loop.first), self._exact(loop.iterations))
        types = [type for type in call.outputs if type is not None]
        results = [(type.shape, type.dtype) for type in types]
        return [*self.arrays.loop(settings, [*inputs[: loop.carried], *computed], results)]


def apply(
    arrays: Arrays, name: str, inputs: Sequence[Array | None], settings: Mapping[str, object], types: Sequence[Type]
) -> list[Array]:
    """Return the results of an operation, of these types, with all its hyperparameters."""
    op = OPS[name]
    operands = [array for array in inputs if array is not None]
    if op.group == "Elementwise" and not op.alone:
        return [arrays.each(types[0].shape, elementwise_form(op) or _opaque(op, types[0].dtype), *operands)]
    form = normal_form(op)
    if form is None:
        exact = tuple(sorted([(name, _key(value)) for name, value in settings.items()]))
        return arrays.opaque(name, exact, inputs, [(type.shape, type.dtype) for type in types])
    result = form(arrays, *inputs, **settings)
    return result if isinstance(result, list) else [result]


def _opaque(op: Op, dtype: str) -> Callable[..., int]:
    def function(elements: Elements, *parts: Element) -> Element:
        return elements.apply(op.name, parts, dtype, op.commutative)

    return function


def _key(value: object) -> object:
    if isinstance(value, tuple | list):
        return ("list", *map(_key, cast("Sequence[object]", value)))
    return (type(value).__name__, repr(value)) if isinstance(value, bool | float) else value
