"""The standard library in normal form: what its functions and layers compute for given arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archspec.algebra import Dim, symbols
from archspec.equivalence.bodies import Bodies
from archspec.equivalence.places import Places
from archspec.ir import Body, Module
from archspec.lifting.numbers import literal
from archspec.model import internals
from archspec.normal.arrays import Array, Arrays
from archspec.ops.record import Settings
from archspec.pipeline.compile import loads
from archspec.source import ArchError


class Library:
    """Definitions of the standard library over one table of expressions."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self._bodies: dict[str, Body | None] = {}
        self._found: dict[tuple[object, ...], Array | None] = {}

    def function(
        self, name: str, settings: Settings, inputs: Sequence[Array], shape: Sequence[Dim], dtype: str = "real"
    ) -> Array | None:
        """Return what a function makes of inputs, if its result has this shape; None if it does not accept them."""
        return self._apply(f"{name}{_listed(settings)}", name, inputs, shape, dtype, {})

    def layer(
        self, name: str, settings: Settings, tensors: Mapping[str, Array], x: Array, shape: Sequence[Dim]
    ) -> Array | None:
        """Return what a layer with these tensors makes of an input; None if it does not accept it."""
        return self._apply(f"layer: {name}{_listed(settings)}", name, [x], shape, "real", tensors)

    def _apply(
        self,
        applied: str,
        name: str,
        inputs: Sequence[Array],
        shape: Sequence[Dim],
        dtype: str,
        tensors: Mapping[str, Array],
    ) -> Array | None:
        key = applied, tuple(inputs), tuple(shape), dtype, tuple(tensors.items())
        if key not in self._found:
            self._found[key] = self._applied(applied, name, inputs, shape, dtype, tensors)
        return self._found[key]

    def _applied(
        self,
        applied: str,
        name: str,
        inputs: Sequence[Array],
        shape: Sequence[Dim],
        dtype: str,
        tensors: Mapping[str, Array],
    ) -> Array | None:
        names = [f"x{turn}" for turn in range(len(inputs))]
        types = [f"{name} {self._type(array)}" for name, array in zip(names, inputs, strict=True)]
        result = f"{dtype if dtype != 'real' else ''} [{', '.join(map(str, shape))}]"
        returned = f"{applied}({', '.join(names)})" if names else applied
        text = f"block Probe()({', '.join(types)}) -> {result} {{\n  return {returned}\n}}"
        body = self._body(text, name, [*inputs, Array(tuple(shape), self.arrays.elements.true)])
        if body is None:
            return None
        return _Bodies(self.arrays, body.module, tensors).outputs(body, inputs)[0]

    def _type(self, array: Array) -> str:
        dtype = self.arrays.dtype(array)
        return f"{'' if dtype == 'real' else dtype + ' '}[{', '.join(map(str, array.shape))}]"

    def _body(self, text: str, name: str, arrays: Sequence[Array]) -> Body | None:
        if text not in self._bodies:
            dims = sorted({name for array in arrays for size in array.shape for name in symbols(size)})
            head = f"import std {{ {name} }}\n" + (f"dim {', '.join(dims)}\n" if dims else "")
            try:
                self._bodies[text] = internals(loads(f'{head}{text}\nmodel "probe" = Probe()')).body
            except ArchError:
                self._bodies[text] = None
        return self._bodies[text]


class _Bodies(Bodies):
    """Bodies of a probe, whose layer has given tensors."""

    def __init__(self, arrays: Arrays, module: Module | None, tensors: Mapping[str, Array]) -> None:
        super().__init__(arrays, module, Places(arrays))
        self._given = tensors

    def _tensor(self, name: str) -> Array:
        return self._given.get(name.removeprefix("layer.")) or super()._tensor(name)


def _listed(settings: Settings) -> str:
    return f"({', '.join([f'{name} = {literal(value)}' for name, value in settings.items()])})" if settings else ""
