"""What a primitive operation is: its name, arguments, exact meaning, and how the type of its result follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from archspec.dims import LARGEST, Dim, bounds
from archspec.ir import Type

MOST_DIMENSIONS = 64


class Required:
    """The default of a hyperparameter that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = Required()


class OpError(Exception):
    """An operation cannot be applied so: one sentence, the input or hyperparameter at fault, what would mend it."""

    def __init__(self, message: str, argument: str | None = None, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.argument = argument
        self.help = help


class Attribute(NamedTuple):
    """A hyperparameter: a value known when a spec is compiled."""

    name: str
    default: Any = REQUIRED


class Input(NamedTuple):
    """A tensor taken. `optional` ones may be absent (None); the last may be `variadic`: one or more.

    `type` says what is accepted, for readers, as in `int [...]`; a `number` is int or real, and a bare shape is any.
    In an OpError the tensors of a variadic input `x` are called `x`, `x2`, `x3`, ...
    """

    name: str
    type: str
    optional: bool = False
    variadic: bool = False


class Op(NamedTuple):
    """A primitive operation.

    `doc` says what it computes and `result` what comes out, in terms of its inputs and hyperparameters. `types` takes
    the inputs' types in order and the hyperparameters by name, and gives the type or types of the result. `mixes` marks
    those that take a stream through weights or mix positions. `symbol` is the operator that stands for it. `scalar`
    computes the same on plain numbers and dimensions, where a spec is compiled; it raises ArithmeticError, ValueError
    or TypeError where there is no answer.

    What it costs: `macs` takes the inputs' types, the first result's and the hyperparameters, and gives sizes whose
    product is the number of multiply-accumulates; None for what is no matrix product. `work` counts elementwise
    operations for each element of the result, or of the first input where `over` says so; each optional input that is
    given is one more.
    """

    name: str
    group: str
    doc: str
    inputs: tuple[Input, ...]
    attributes: tuple[Attribute, ...]
    result: str
    types: Callable[..., Type | tuple[Type, ...]]
    mixes: bool = False
    symbol: str | None = None
    scalar: Callable[..., Any] | None = None
    macs: Callable[[Sequence[Type | None], Type, Mapping[str, Any]], Sequence[Dim]] | None = None
    work: int = 0
    over: Literal["result", "input"] = "result"

    def rule(self, inputs: Sequence[Type | None], attributes: Mapping[str, Any]) -> tuple[Type, ...]:
        """The types of the outputs. `attributes` may leave out what has a default. Raises OpError, and nothing else."""
        try:
            result = self.types(*self._operands(inputs), **self._settings(attributes))
            types = (result,) if isinstance(result, Type) else result
            for type in types:
                _check_shape(type)
        except OpError as error:
            raise OpError(f"`{self.symbol or self.name}` {error.message}", error.argument, error.help) from None
        except OverflowError as error:
            raise OpError(f"`{self.symbol or self.name}` received sizes that are too large: {error}") from None
        return types

    def _operands(self, inputs: Sequence[Type | None]) -> list[Type | None]:
        variadic = bool(self.inputs) and self.inputs[-1].variadic
        if len(inputs) > len(self.inputs) and not variadic:
            raise OpError(f"expects {len(self.inputs)} tensors, found {len(inputs)}")
        operands = [*inputs, *[None] * (len(self.inputs) - len(inputs))]
        for i, operand in enumerate(operands):
            expected = self.inputs[min(i, len(self.inputs) - 1)]
            if operand is None and not expected.optional:
                raise OpError(f"is missing its input `{expected.name}`", expected.name)
        return operands

    def _settings(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        settings = {attribute.name: attribute.default for attribute in self.attributes}
        for name, value in attributes.items():
            if name not in settings:
                raise OpError(f"has no hyperparameter `{name}`", name)
            settings[name] = value
        for name, value in settings.items():
            if value is REQUIRED:
                raise OpError(f"is missing its hyperparameter `{name}`", name)
        return settings


def _check_shape(type: Type) -> None:
    if len(type.shape) > MOST_DIMENSIONS:
        raise OpError(f"produces {len(type.shape)} axes, but a tensor has at most {MOST_DIMENSIONS}")
    for size in type.shape:
        if isinstance(size, int):
            if not 1 <= size <= LARGEST:
                raise OpError(f"produces a size that {'is below 1' if size < 1 else 'does not fit in 64 bits'}")
        else:
            most = bounds(size)[1]
            if most is not None and most < 1:
                raise OpError(f"produces the size {size}, which is always below 1")
