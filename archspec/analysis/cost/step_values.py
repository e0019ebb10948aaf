"""Values and operations of a decoding step, with labels of positions as sizes, and the earlier positions read."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

from archspec.core.addresses import join
from archspec.core.algebra import Dim, substitute, symbol, symbols
from archspec.ir.module import Call
from archspec.ir.structure.masks import VisibleKeys

Shape = tuple[Dim, ...]


class Application:
    """An application of a body, and the equal ones in the same body, which are not expanded.

    `address` is that of the applied module. `addresses` has one address for each of the equal applications, relative to
    the module of `parent`, the enclosing application; for the model, `parent` is None.
    """

    __slots__ = ("address", "addresses", "parent")

    def __init__(self, address: str, parent: Application | None = None) -> None:
        self.address = join(parent.address, address) if parent else address
        self.addresses = [address]
        self.parent = parent

    @property
    def repeated(self) -> Application:
        """The innermost enclosing application that has equal ones, or the model."""
        return self if self.parent is None or len(self.addresses) > 1 else self.parent.repeated

    @property
    def times(self) -> int:
        """The number of applications that this one stands for."""
        return len(self.addresses) * (self.parent.times if self.parent else 1)

    def names(self, name: str) -> list[str]:
        """Return the names of a tensor in all applications, from its name relative to the module."""
        names = [join(address, name) for address in dict.fromkeys(self.addresses)]
        return [full_name for inner in names for full_name in self.parent.names(inner)] if self.parent else names


Parameter: TypeAlias = tuple[Application, str]
"""A parameter that an application reads, with its name relative to the applied module."""


class StepValue:
    """A value in a step: its element type and its labelled shape.

    `is_static`: the value depends on no input. `in_step`: it depends on the new position; other values were computed
    earlier. `is_known`: it is computed from integers or booleans, as masks are, so it is available for all positions.
    `parameter` is the parameter whose value it is, or None. `product` is the number of the score product from which the
    value is computed, -1 if there is none. `has_other_uses`: applications that are not expanded use it.
    """

    __slots__ = (
        "dtype",
        "has_other_uses",
        "in_step",
        "is_known",
        "is_static",
        "node",
        "parameter",
        "product",
        "shape",
        "users",
    )

    def __init__(self, shape: Shape, dtype: str, *, static: bool = False, step: bool = False) -> None:
        self.shape = shape
        self.dtype = dtype
        self.is_static = static
        self.in_step = step
        self.is_known = dtype != "real"
        self.parameter: Parameter | None = None
        self.node: StepNode | None = None
        self.users: list[tuple[StepNode, int]] = []
        self.product = -1
        self.has_other_uses = False

    def signature(self) -> Hashable:
        """Return a key that is equal for values for which an application is expanded in the same way."""
        source = self if self.is_static and (self.parameter or self.node) else None
        return self.shape, self.dtype, self.is_static, self.in_step, self.is_known, self.product, source


class StepNode:
    """An operation in a step: its operands with the shapes that it reads, and its results.

    `attention` is the number of the attention of which the operation is a product, otherwise -1. `is_convolution`: the
    operation reads earlier positions, but computes only the new one.
    """

    __slots__ = ("application", "attention", "call", "is_convolution", "operands", "results", "shapes")

    def __init__(
        self, call: Call, application: Application, operands: list[StepValue | None], shapes: list[Shape | None]
    ) -> None:
        self.call = call
        self.application = application
        self.operands = operands
        self.shapes = shapes
        self.results: list[StepValue] = []
        self.attention = -1
        self.is_convolution = False
        for i, operand in enumerate(operands):
            if operand is not None:
                operand.users.append((self, i))


class AttentionRead:
    """The keys and values that one attention reads at all positions.

    `visible` are the keys that a query sees; None for keys of another sequence, which are all visible.
    """

    def __init__(self, application: Application, visible: VisibleKeys | None) -> None:
        self.application = application
        self.visible = visible
        self.values: list[StepValue] = []


class SequenceState:
    """The input of a convolution along the sequence, at the positions that its kernel covers; or a carried state."""

    def __init__(self, application: Application, kind: str, shape: Shape, positions: int) -> None:
        self.application = application
        self.kind = kind
        self.shape = shape
        self.positions = positions


NEW_POSITION = "__new"
"""The label of an axis along the sequence."""

KEYS_PREFIX = "__keys"
"""The prefix of the labels of axes of keys."""


class NoDecodingStepError(Exception):
    """The reason why a model has no decoding step."""


def step_error(application: Application, reason: str) -> NoDecodingStepError:
    """Create the error that an application has no decoding step."""
    return NoDecodingStepError(f"{describe_address(application.address)} {reason}")


def describe_address(address: str) -> str:
    """Describe an address for messages."""
    return f"`{address}`" if address else "the model"


def contains_label(shape: Sequence[Dim], name: str) -> bool:
    return any(name in symbols(size) for size in shape)


def remove_label(size: Dim, dimension: str) -> Dim:
    names = [name for name in symbols(size) if name == NEW_POSITION or name.startswith(KEYS_PREFIX)]
    return substitute(size, {name: symbol(dimension) for name in names}) if names else size
