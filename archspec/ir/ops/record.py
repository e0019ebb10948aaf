"""The record of a primitive operation: its arguments, its exact meaning, its cost and its code.

The checker, costs, `diff`, generated PyTorch and the documentation read records; they have no tables of operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import Any, Literal, Protocol, TypeAlias, cast

from archspec.core.algebra import MAX_SIZE, Dim, Polynomial, check_size_limits
from archspec.core.record import Record
from archspec.ir.module import Type
from archspec.ir.ops.check import (
    MAX_DIMENSIONS,
    OpError,
    Shape,
    check_elements,
    check_unmixed,
    element_type,
    is_certainly_below,
    per_axis_values,
    promote_types,
)

Group: TypeAlias = Literal["Elementwise", "Along an axis", "Weights and positions", "Shape", "Creation"]

Interval: TypeAlias = tuple[int, int]
"""The minimum and maximum integer in a tensor."""

Scalar: TypeAlias = int | float | Polynomial
"""A number, boolean or symbolic dimension."""

Settings: TypeAlias = Mapping[str, object]
"""The values of hyperparameters by name."""


class Required:
    """Marks a hyperparameter without a default."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = Required()


class Attribute(Record):
    """A hyperparameter: a compile-time constant. `is_position`: it may depend on the index of a loop."""

    name: str
    default: bool | int | float | str | None = REQUIRED
    is_position: bool = False


class Input(Record):
    """A tensor input.

    `elements` are the accepted element types: "int", "bool", "number" (int or real) or "" (any; several such inputs
    are all boolean or all numbers). `shape` is for documentation. An `optional` input may be None; the last input may
    be `variadic`: one or more tensors. `indexes` are the names of the inputs into which the elements are indices, along
    the hyperparameter `axis`, or along the first axis if the operation has none.

    In an OpError, the tensors of a variadic input `x` are called `x`, `x2`, `x3`, ...
    """

    name: str
    elements: Literal["number", "int", "bool", ""] = ""
    shape: str = "[...]"
    optional: bool = False
    variadic: bool = False
    indexes: str = ""

    @property
    def type(self) -> str:
        """The accepted type, as in `int [...]`."""
        return f"{self.elements} {self.shape}".lstrip()


class Operands(Protocol):
    """An application of an operation in generated code. Inputs and hyperparameters are identified by name."""

    def literal(self, name: str) -> object:
        """Return the value of a hyperparameter if it is a literal, otherwise an object that equals no value."""
        ...

    def is_given(self, name: str) -> bool:
        """Whether an input is present in any use."""
        ...

    def is_optional(self, name: str) -> bool:
        """Whether an input is None in some uses."""
        ...

    def is_number(self, name: str) -> bool:
        """Whether an input is a number rather than a tensor."""
        ...

    def rank(self, name: str) -> int | None:
        """Return the number of axes of an input; None if it differs between uses."""
        ...


class TorchForm(Record):
    """An operation in PyTorch.

    `form` is an expression over the names of the inputs and hyperparameters, or a function that returns one and may
    raise OpError. In its calls, `*shape` stands for the items of a list, `**new` for the `dtype` and `device` of a new
    tensor, and `training` for the mode of the module. `helper` is the source of a function with the name of the
    operation, which the generated file then contains. Unless it `promotes`, its tensors must have the same element
    type. A number among the inputs that it `fills` becomes a tensor. `memory` is the memory of the result: separate
    ("new"), or shared with the input in full ("whole"), in part or repeated ("view"), or in a different order
    ("turned").
    """

    form: str | Callable[[Operands], str]
    helper: str = ""
    promotes: bool = True
    fills: tuple[str, ...] = ()
    memory: Literal["new", "whole", "view", "turned"] = "new"


class Op(Record):
    """A primitive operation.

    `doc` describes the computation and `result` the type of the result, in terms of its inputs and hyperparameters.

    Types: `shapes` takes the inputs' types in order and the hyperparameters by name, and returns the shape of the
    result. `dtypes` are the element types of the results: "real", "int" or "bool"; or the names of the inputs, or of
    the hyperparameter, with the type of the result, as in "x weight bias" (real if one of them is real, else int).
    `("x", ...)` stands for any number of results.

    Meaning: `symbol` is its operator. `scalar` computes the operation on plain numbers and dimensions at compile time;
    it raises ArithmeticError, ValueError or TypeError if the result is undefined. `least` is the minimum integer with a
    defined result, None if all integers have one. `interval` takes the intervals of the inputs, the type of the result
    and the hyperparameters, and returns the interval of the result, whose bounds are reached for some input; None if it
    is unknown. `casts` marks conversions of the element type, `widens` the conversion to reals of at least 32 bits, and
    `mixes` operations that apply weights to their input or mix positions. `trains` marks operations that return their
    input in evaluation mode. `chooses` is the index of the result that contains indices of different elements along
    `axis`. `rearranges`: each element of the inputs occurs exactly once in the results. `attention` is the role in
    attention: a `product`, the `weights` between two products, or a `mask`, which replaces products by a number.
    `alone`: as an operand, the name without an input is applied to the first real tensor among the other operands.

    Cost: `macs` takes the inputs' types, the first result's type and the hyperparameters, and returns sizes whose
    product is the number of multiply-accumulates; None for an operation that is not a matrix product. `work` is the
    number of elementwise operations per element of the result; of the first input if `over` is "input"; or of the
    windows if `over` is "window" (one per element of the result, with the sizes in the hyperparameter `kernel`). Each
    optional input that is present adds one.

    Code: `python` is the expression on plain numbers, `torch` the expression on tensors; None if there is none, or if
    each use chooses the precision (a conversion to reals). `normal` names the normal form, a function of
    `archspec.ir.normal.forms` (MODULE.FUNCTION); without a normal form, the operation is equal only to itself.
    """

    name: str
    group: Group
    doc: str
    inputs: tuple[Input, ...]
    attributes: tuple[Attribute, ...]
    result: str
    shapes: Callable[..., Shape | Sequence[Shape]]
    dtypes: tuple[str | EllipsisType, ...]
    symbol: str | None = None
    commutative: bool = False
    associative: bool = False
    scalar: Callable[..., Scalar] | None = None
    least: int | None = None
    interval: Callable[[Sequence[Interval], Type, Settings], Interval | None] | None = None
    casts: bool = False
    widens: bool = False
    mixes: bool = False
    trains: bool = False
    chooses: int | None = None
    rearranges: bool = False
    attention: Literal["", "product", "weights", "mask"] = ""
    macs: Callable[[Sequence[Type | None], Type, Settings], Sequence[Dim]] | None = None
    alone: bool = False
    work: int = 0
    over: Literal["result", "input", "window"] = "result"
    python: str = ""
    torch: TorchForm | None = None
    normal: str = ""

    @property
    def has_several(self) -> bool:
        """Whether the operation returns a list of results."""
        return len(self.dtypes) > 1

    def dtype(self, output: int = 0) -> str:
        """Return the entry of `dtypes` for a result."""
        dtype = self.dtypes[output] if output < len(self.dtypes) else ...
        return dtype if isinstance(dtype, str) else str(self.dtypes[0])

    def affects_result_type(self, index: int) -> bool:
        """Whether the type of an input affects the type of the result; indices and conditions do not."""
        dtype = self.dtype()
        return dtype in ("real", "int", "bool") or self.input(index).name in dtype.split()

    def input(self, index: int) -> Input:
        """Return the input that receives the operand `index`."""
        return self.inputs[min(index, len(self.inputs) - 1)]

    def work_sizes(self, inputs: Sequence[Type | None], result: Type, attributes: Settings) -> Sequence[Dim]:
        """Return sizes whose product is the number of elements that `work` counts."""
        if self.over == "input":
            first = inputs[0]
            assert first is not None
            return first.shape
        if self.over == "window":
            return (*result.shape, *per_axis_values(attributes["kernel"], len(result.shape) - 2, "kernel", 1))
        return result.shape

    def rule(self, inputs: Sequence[Type | None], attributes: Settings) -> tuple[Type, ...]:
        """Return the types of the results. `attributes` may omit defaults. Raises only OpError."""
        try:
            operands, settings = self._operands(inputs), self.settings(attributes)
            self._accept(operands)
            result = self.shapes(*operands, **settings)
            shapes = cast("Sequence[Shape]", result if self.has_several else (result,))
            types = tuple([Type(shape, self._element_type(i, operands, settings)) for i, shape in enumerate(shapes)])
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
            expected = self.input(i)
            if operand is None and not expected.optional:
                raise OpError(f"is missing its input `{expected.name}`", expected.name)
        return operands

    def settings(self, attributes: Settings) -> dict[str, object]:
        """Return all hyperparameters, with defaults for those that `attributes` omits. Raises OpError."""
        settings: dict[str, object] = {attribute.name: attribute.default for attribute in self.attributes}
        for name, value in attributes.items():
            if name not in settings:
                raise OpError(f"has no hyperparameter `{name}`", name)
            settings[name] = value
        for name, value in settings.items():
            if value is REQUIRED:
                raise OpError(f"is missing its hyperparameter `{name}`", name)
        return settings

    def _accept(self, operands: Sequence[Type | None]) -> None:
        """Check the element types of the inputs."""
        any_type: list[tuple[str, Type]] = []
        for i, type in enumerate(operands):
            if type is None:
                continue
            expected = self.input(i)
            number = i - len(self.inputs) + 2
            argument = expected.name if number < 2 else f"{expected.name}{number}"
            if expected.elements:
                check_elements(expected.elements, argument, type)
            else:
                any_type.append((argument, type))
        check_unmixed(any_type)

    def _element_type(self, output: int, operands: Sequence[Type | None], settings: Settings) -> str:
        dtype = self.dtype(output)
        if dtype in ("real", "int", "bool"):
            return dtype
        if dtype in settings:
            return element_type(settings[dtype])
        names = dtype.split()
        return promote_types([type.dtype for i, type in enumerate(operands) if type and self.input(i).name in names])


def _check_shape(type: Type) -> None:
    if len(type.shape) > MAX_DIMENSIONS:
        raise OpError(f"produces {len(type.shape)} axes, but a tensor has at most {MAX_DIMENSIONS}")
    for size in type.shape:
        if isinstance(size, int):
            if not 1 <= size <= MAX_SIZE:
                raise OpError(f"produces a size that {'is below 1' if size < 1 else 'does not fit in 64 bits'}")
        elif is_certainly_below(check_size_limits(size), 1):
            raise OpError(f"produces the size {size}, which is always below 1")


def identity_interval(inputs: Sequence[Interval], result: Type, attributes: Settings) -> Interval:
    """Return the interval of an operation whose result has the elements of its input, for `Op.interval`."""
    return inputs[0]
