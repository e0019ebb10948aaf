"""A table of PyTorch's calls in text: a call in each line, and how archspec writes it, after a comparison of values.

A line is an expression of Python in which unknown names are operations of `torch.ops.aten`, and calls may be arguments
of others. `r`, `i`, `b` and `c` make random reals, integers below a bound, booleans and complex numbers of a shape, `n`
makes a tensor of its numbers, and `known` a constant of the module. A size `seq` may be any, and `length` any from 4.
"""

import functools
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from builders import builder, given, text
from paths import GOLDEN

from archspec import Type
from archspec.core.algebra import symbol
from archspec.ir.normal.arrays import Arrays
from archspec.pytorch.calls.complex import ComplexValue, Pairs
from archspec.pytorch.calls.registry import call
from archspec.pytorch.lift.idioms.constants import constant
from archspec.pytorch.lift.values.builder import SpecBuilder
from archspec.pytorch.numeric.evaluate import Evaluation
from archspec.pytorch.values.arguments import UntranslatableError, as_list
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Value

SEQ, SIZE = symbol("seq"), 97
"""A size that may be any, and what it is where a call is translated."""

OTHER_SIZES = {"seq": (1, 4), "length": (4,)}
"""The names of that size, and what it is where values are compared again."""

SIZES = {factor * SIZE: factor * SEQ for factor in (-1, 2, 3)} | {SIZE + n: SEQ + n for n in (-2, -1, 0, 1, 2, 5)}
SIZES[SIZE // 2] = SEQ // 2
"""Sizes that depend on it."""

NAMESPACES = [torch.ops.aten]
"""Where the operations are."""

TENSORS = {
    "BELOW": torch.tensor([[0, -2, 1], [-1, 2, -3]]),
    "FLAGS": torch.tensor([[True, False, False], [True, True, True]]),
    "SMALL": torch.tensor([[0.5, 0.0, -0.25], [0.0, 0.0, 0.0]]),
    "HALVES": torch.tensor([-2.5, -0.5, 0.0, 0.5, 1.5]),
}


class Call(NamedTuple):
    """A call of an operation, whose arguments may be calls."""

    name: str
    args: tuple[Any, ...]
    named: dict[str, Any]


class Known(NamedTuple):
    """A constant of a module."""

    value: torch.Tensor


class Names(dict[str, Any]):
    """The names in a line: those that are not known are operations."""

    def __missing__(self, name: str) -> Any:
        return lambda *args, **named: Call(name, args, named)


def sources(group: str) -> list[str]:
    """Return the calls of a group."""
    return [re.split(" [=~!] ", line)[0] for line in (GOLDEN / "calls" / f"{group}.txt").read_text().splitlines()]


def parse(source: str, size: int = SIZE) -> Call:
    """Return the call in a line."""
    normal = functools.partial(torch.randn, generator=torch.Generator().manual_seed(0))
    integers = torch.Generator().manual_seed(0)
    names = Names(TENSORS, torch=torch, seq=size, length=size, inf=math.inf, nan=math.nan, known=Known)
    names["r"] = lambda *shape: normal(shape)
    names["b"] = lambda *shape: normal(shape) > 0
    names["c"] = lambda *shape: torch.complex(normal(shape), normal(shape))
    names["i"] = lambda bound, *shape: torch.randint(0, bound, shape, generator=integers)
    names["n"] = lambda *numbers: torch.tensor(numbers)
    return eval(source, {"__builtins__": {}}, names)


def names_in(item: Any) -> Iterator[str]:
    """The operations that are called in a call."""
    if isinstance(item, Call):
        yield item.name
        item = [*item.args, *item.named.values()]
    if isinstance(item, list):
        for part in item:
            yield from names_in(part)


def dtype_of(x: Any) -> str:
    return (
        "bool" if x.dtype == torch.bool else "complex" if x.is_complex() else "real" if x.is_floating_point() else "int"
    )


def sized(size: Any) -> Any:
    return SIZES.get(size, size) if isinstance(size, int) and not isinstance(size, bool) else size


class Translation:
    """What a builder makes of a call, and PyTorch; only PyTorch without a builder. `inputs` are its tensors by name."""

    def __init__(self, b: Builder | None, spec: SpecBuilder) -> None:
        self.b, self.spec = b, spec
        self.inputs: dict[tuple[str, str], Any] = {}
        self._values: dict[int, Any] = {}

    def call(self, case: Call) -> tuple[list[Any], list[Any]]:
        """Return the results of PyTorch, and of the builder."""
        pairs = [self.argument(arg) for arg in case.args]
        named = {name: self.argument(arg) for name, arg in case.named.items()}
        operation = next(getattr(space, case.name) for space in NAMESPACES if hasattr(space, case.name))
        expected = as_list(operation(*[x for x, _ in pairs], **{name: x for name, (x, _) in named.items()}))
        if self.b is None:
            return expected, [None] * len(expected)
        types = [Type(tuple(map(sized, x.shape)), dtype_of(x)) for x in expected]
        values = call(self.b, case.name, types, [x for _, x in pairs], {name: x for name, (_, x) in named.items()})
        return expected, as_list(values)

    def argument(self, item: Any) -> tuple[Any, Any]:
        """Return an argument for PyTorch, and for the builder."""
        if isinstance(item, Call):
            expected, values = self.call(item)
            return expected[0], values[0]
        if isinstance(item, list):
            pairs = [self.argument(part) for part in item]
            return [x for x, _ in pairs], [x for _, x in pairs]
        if isinstance(item, Known):
            return item.value, constant(self.spec, item.value, "it")
        return item, self.input(item) if isinstance(item, torch.Tensor) else sized(item)

    def input(self, x: Any) -> Any:
        if id(x) not in self._values:
            self._values[id(x)] = ComplexValue(self.real(x.real), self.real(x.imag)) if x.is_complex() else self.real(x)
        return self._values[id(x)]

    def real(self, x: Any) -> Value:
        name = "xyzuvwabcdefghjklmno"[len(self.inputs)]
        self.inputs["input", name] = x
        return given(self.spec, name, tuple(map(sized, x.shape)), dtype_of(x))


def parts(value: Any) -> list[Value | None]:
    """Return the values in a result: two for complex numbers."""
    value = value.whole if isinstance(value, Pairs) else value
    return [value.real, value.imaginary] if isinstance(value, ComplexValue) else [value]


def write(value: Any, b: SpecBuilder) -> str:
    if isinstance(value, ComplexValue):
        return f"{write(value.real, b)} + {write(value.imaginary, b)} i"
    return text(b.written(value)) if isinstance(value, Value) else str(value)


def compare_values(
    arrays: Arrays, results: list[Any], inputs: dict[tuple[str, str], Any], expected: list[Any], sizes: dict[str, int]
) -> None:
    """Compare what a call is translated to with the results of PyTorch."""
    evaluation = Evaluation(arrays, inputs, sizes)
    for result, tensor in zip(results, expected, strict=True):
        values = [part and evaluation.array(part.array) for part in parts(result)]
        if isinstance(result, Pairs) or values[-1] is None:
            continue
        value = torch.complex(*values) if len(values) == 2 else values[0]
        assert value.shape == tensor.shape
        kind = torch.complex128 if tensor.is_complex() else torch.float64
        torch.testing.assert_close(value.to(kind), tensor.to(kind), atol=2e-5, rtol=1e-5, equal_nan=True)


def translated(source: str) -> str:
    """Return a call and what it is written as, or the reason for a refusal, after a comparison of its values.

    ` = ` is before what is written, ` ~ ` before the reason for which `lift` refuses a call that proofs know, and ` ! `
    before the one for which both do.
    """
    spec, case = builder(), parse(source)
    own, plain = Translation(spec, spec), Translation(Builder(spec.arrays), spec)
    refusal, written_results = "", []
    try:
        _, written_results = own.call(case)
    except UntranslatableError as error:
        refusal = str(error)
    try:
        expected, results = plain.call(case)
    except UntranslatableError:
        assert refusal
        return f"{source} ! {refusal}"
    compare_values(spec.arrays, results, plain.inputs, expected, {"seq": SIZE})
    for size in [size for name, sizes in OTHER_SIZES.items() if re.search(rf"\b{name}\b", source) for size in sizes]:
        other = Translation(None, spec)
        expected, _ = other.call(parse(source, size))
        compare_values(spec.arrays, results, other.inputs, expected, {"seq": size})
    if refusal:
        return f"{source} ~ {refusal}"
    for one, other in zip(written_results, results, strict=True):
        for part, same in [] if isinstance(one, Pairs) else zip(parts(one), parts(other), strict=True):
            assert part is None or same is None or part.array == same.array == spec.written(part).array
    return f"{source} = {'; '.join([write(result, spec) for result in written_results])}"
