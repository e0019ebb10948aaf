"""The standard library in normal form: what its functions and layers compute for given arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from archspec.core.algebra import Dim, symbols
from archspec.core.diagnostics import ArchError
from archspec.ir.module import Body, Module
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.bodies import NormalFormBuilder
from archspec.ir.ops.record import Settings
from archspec.pipeline.compile import loads
from archspec.pipeline.model import get_compilation
from archspec.pytorch.values.numbers import literal


class _Probe(NamedTuple):
    """A function or layer as it is written, the names that it needs, what it is applied to, its result, the tensors of
    a layer, the names of the inputs that are given by name, which are the last ones, and the shapes of further results.
    """

    applied: str
    names: str
    inputs: tuple[Array, ...]
    shape: tuple[Dim, ...]
    dtype: str = "real"
    tensors: tuple[tuple[str, Array], ...] = ()
    named: tuple[str, ...] = ()
    others: tuple[tuple[Dim, ...], ...] = ()


class LibraryMatcher:
    """Definitions of the standard library over one table of expressions."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self._bodies: dict[str, Body | None] = {}
        self._found: dict[_Probe, list[Array | None]] = {}

    def function(
        self,
        name: str,
        settings: Settings,
        inputs: Sequence[Array],
        shape: Sequence[Dim],
        dtype: str = "real",
        named: Mapping[str, Array] | None = None,
    ) -> Array | None:
        """Return what a function makes of inputs, some of them by name, if its result has this shape; None if it does
        not accept them.
        """
        applied, last = f"{name}{_listed(settings)}", named or {}
        used = f"{name}, {settings['activation']}" if settings.get("activation") else name
        whole = (*inputs, *last.values())
        return self._results(_Probe(applied, used, whole, tuple(shape), dtype, named=tuple(last)))[0]

    def functions(
        self, name: str, settings: Settings, inputs: Sequence[Array], shapes: Sequence[Sequence[Dim]]
    ) -> list[Array] | None:
        """Return what a function with several results makes of inputs, if they have these shapes; None if it does not
        accept the inputs.
        """
        first, *others = map(tuple, shapes)
        applied, used = f"{name}{_listed(settings)}", name
        if settings.get("activation"):
            used = f"{name}, {settings['activation']}"
        found = self._results(_Probe(applied, used, tuple(inputs), first, others=tuple(others)))
        results = [array for array in found if array is not None]
        return results if len(results) == len(shapes) else None

    def layer(
        self, name: str, settings: Settings, tensors: Mapping[str, Array], x: Array, shape: Sequence[Dim]
    ) -> Array | None:
        """Return what a layer with these tensors makes of an input; None if it does not accept it."""
        applied = f"layer: {name}{_listed(settings)}"
        return self._results(_Probe(applied, name, (x,), tuple(shape), tensors=tuple(tensors.items())))[0]

    def _results(self, probe: _Probe) -> list[Array | None]:
        if probe not in self._found:
            body, tensors = self._body(probe), dict(probe.tensors)
            made = None if body is None else _Bodies(self.arrays, body.module, tensors).outputs(body, probe.inputs)
            self._found[probe] = made or [None]
        return self._found[probe]

    def _body(self, probe: _Probe) -> Body | None:
        """Return the body of a block that only applies what is probed; None if that does not compile."""
        names = [f"x{turn}" for turn in range(len(probe.inputs))]
        given = [
            f"{name} {_type(self.arrays.dtype(array), array.shape)}"
            for name, array in zip(names, probe.inputs, strict=True)
        ]
        first = len(names) - len(probe.named)
        args = [*names[:first], *[f"{name} = x{turn}" for turn, name in enumerate(probe.named, first)]]
        returned = f"{probe.applied}({', '.join(args)})" if args else probe.applied
        results = ", ".join([_type(probe.dtype, shape) for shape in (probe.shape, *probe.others)])
        arrow = f"-> ({results})" if probe.others else f"-> {results}"
        text = f"block Probe()({', '.join(given)}) {arrow} {{\n  return {returned}\n}}"
        if text not in self._bodies:
            shapes = [*[array.shape for array in probe.inputs], probe.shape, *probe.others]
            dims = sorted({name for shape in shapes for size in shape for name in symbols(size)})
            head = f"import std {{ {probe.names} }}\n" + (f"dim {', '.join(dims)}\n" if dims else "")
            try:
                self._bodies[text] = get_compilation(loads(f'{head}{text}\nmodel "probe" = Probe()')).body
            except ArchError:
                self._bodies[text] = None
        return self._bodies[text]


class _Bodies(NormalFormBuilder):
    """Bodies of a probe, whose layer has given tensors."""

    def __init__(self, arrays: Arrays, module: Module | None, tensors: Mapping[str, Array]) -> None:
        super().__init__(arrays, module)
        self._given = tensors

    def _tensor(self, name: str) -> Array:
        return self._given.get(name.removeprefix("layer.")) or super()._tensor(name)


def _type(dtype: str, shape: Sequence[Dim]) -> str:
    return f"{'' if dtype == 'real' else dtype + ' '}[{', '.join(map(str, shape))}]"


def _listed(settings: Settings) -> str:
    return f"({', '.join([f'{name} = {literal(value)}' for name, value in settings.items()])})" if settings else ""
