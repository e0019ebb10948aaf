"""Construction of values: operations and functions of the language over one table of expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from archspec.core.algebra import Dim, Polynomial
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.bodies import apply
from archspec.ir.normal.forms.elementwise import constant
from archspec.ir.ops import OPS
from archspec.ir.ops.check import OpError
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.library import LibraryMatcher
from archspec.pytorch.values.values import (
    Argument,
    ModuleCall,
    Operand,
    Setting,
    Value,
    flat_arguments,
    values_in,
)


class Builder:
    """Makes values that nobody reads: each operation is applied as it is called, for the normal form of its result.

    `SpecBuilder` in `lift` makes the same values in their simplest form.
    """

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.library = LibraryMatcher(arrays)
        self.frame: ModuleCall = ModuleCall("", "", None)

    # Making -----------------------------------------------------------------------------------------------------------

    def made(
        self,
        op: str,
        args: Sequence[Argument],
        array: Array,
        settings: Mapping[str, Setting] | None = None,
        kind: str = "ops",
    ) -> Value:
        """Return a value with a given normal form."""
        if any(values_in(list((settings or {}).values()))):
            raise UntranslatableError(f"it has `{op}` with a size or position that it computes")
        return Value(op, args, settings, array=array, dtype=self.arrays.dtype(array), frame=self.frame, kind=kind)

    def form(self, name: str, array: Array, write: Callable[[], Value] | None = None, reason: str = "") -> Value:
        """Return a value with a given normal form, which operations of the language make of it where `write` does; if
        it is None, nothing expresses the value, for a `reason` that has a default.
        """
        return self.made(name, [], array)

    def empty(self, shape: Sequence[Dim], dtype: str) -> Value:
        """Return a tensor without elements."""
        return self.made("empty", [], Array(tuple(shape), constant(self.arrays.elements, 0, dtype)))

    def op(self, name: str, *args: Argument, **settings: Setting) -> Value:
        """Return the result of an operation."""
        return self.ops(name, *args, **settings)[0]

    def ops(self, name: str, *args: Argument, **settings: Setting) -> list[Value]:
        """Return the results of an operation."""
        settings = {key: as_tuple(value) for key, value in settings.items()}
        results = self.results(name, flat_arguments(args), OPS[name].settings(settings))
        return [self.made(name, args, array, settings) for array in results]

    def op_array(self, name: str, *args: Operand, **settings: Setting) -> Array:
        """Return the normal form of the result of an operation."""
        return self.results(name, args, OPS[name].settings(settings))[0]

    def recognize(self, name: str, made: Value, *args: object, **settings: Setting) -> Value:
        """Return the result of an operation, or of a call that consists of several, with these arguments."""
        return made

    def function(
        self, name: str, args: Sequence[Value], shape: Sequence[Dim], dtype: str = "real", **settings: Setting
    ) -> Value | None:
        """Return the result of a function of the library; None if it does not accept the arguments."""
        array = self.library.function(name, settings, [arg.array for arg in args], shape, dtype)
        return None if array is None else self.made(name, args, array, settings, "std")

    def functions(
        self, name: str, args: Sequence[Value], results: Mapping[str, Sequence[Dim]], **settings: Setting
    ) -> list[Value]:
        """Return the results of a function of the library that has several, of these shapes by name. Raises
        Untranslatable if it does not accept the arguments.
        """
        arrays = self.library.functions(name, settings, [arg.array for arg in args], [*results.values()])
        if arrays is None:
            raise UntranslatableError(f"the function `{name}` does not accept its arguments")
        whole = self.made(name, args, arrays[0], settings, "std")
        parts = [self.made("part", [whole], array, {"index": turn}, "part") for turn, array in enumerate(arrays)]
        for part, called in zip(parts, results, strict=True):
            part.names = [called]
        return parts

    def activation(self, name: str, x: Value) -> Value:
        """Return an elementwise function of the library of one tensor."""
        return self.made(name, [x], self.activation_form(name, x), {}, "std")

    def activation_form(self, name: str, x: Value) -> Array:
        """Return the normal form of an elementwise function of the library of one tensor."""
        single = self.library.function(name, {}, [Array((), x.array.element)], ())
        assert single is not None
        return Array(x.shape, single.element)

    def results(self, name: str, args: Sequence[Operand | None], settings: dict[str, object]) -> list[Array]:
        """Return the normal forms of the results of an operation with all its settings. Raises Untranslatable."""
        types = [None if arg is None else _type_of(arg) for arg in args]
        arrays = [None if arg is None else self.array(arg) for arg in args]
        try:
            results = OPS[name].rule(types, settings)
        except OpError as error:
            raise UntranslatableError(f"the operation {error.message}") from None
        return apply(self.arrays, name, arrays, settings, results)

    def array(self, arg: Operand) -> Array:
        """Return the normal form of an operand."""
        return arg.array if isinstance(arg, Value) else Array((), constant(self.arrays.elements, arg))

    # Views ------------------------------------------------------------------------------------------------------------

    def reshape(self, x: Value, shape: Sequence[Dim]) -> Value:
        """Return a value with another shape."""
        return self._viewed(x, "reshape", {"shape": tuple(shape)})

    def permute(self, x: Value, order: Sequence[int]) -> Value:
        """Return a value with its axes reordered."""
        return self._viewed(x, "permute", {"order": tuple([axis % len(x.shape) for axis in order])})

    def expand(self, x: Value, shape: Sequence[Dim]) -> Value:
        """Return a value that is repeated until it has a shape."""
        return self._viewed(x, "expand", {"shape": tuple(shape)})

    def _viewed(self, x: Value, op: str, settings: dict[str, Setting]) -> Value:
        return self.made(op, [x], apply(self.arrays, op, [x.array], settings, [])[0], settings)

    def spread(self, x: Value, shape: Sequence[Dim]) -> Value:
        """Return a value with a shape that it broadcasts to."""
        whole = (1,) * (len(shape) - len(x.shape)) + x.shape
        return self.expand(self.reshape(x, whole), shape)

    # How a value is written -------------------------------------------------------------------------------------------

    def written(self, value: Value) -> Value:
        """Return a value as it is written."""
        return value

    def shortened(self, value: Value) -> Value:
        """Return a value as it is written, without leading axes that broadcasting makes superfluous."""
        return value

    def unflattened(self, x: Value) -> Value:
        """Return a matrix whose rows are flattened from several axes with these axes."""
        return x


def _type_of(arg: Operand) -> Type:
    if isinstance(arg, Value):
        return Type(arg.shape, arg.dtype)
    return Type((), "bool" if isinstance(arg, bool) else "int" if isinstance(arg, int | Polynomial) else "real")


def as_tuple(value: Setting) -> Setting:
    """Return a list in a setting as a tuple."""
    return tuple(map(as_tuple, value)) if isinstance(value, list) else value
