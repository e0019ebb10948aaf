"""Values and operations of a decoding step, with labels of positions as sizes, and the earlier positions read."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.analysis.cost.masks import VisibleKeys
from archspec.core.algebra import Dim, substitute, symbol, symbols
from archspec.ir.module import Call

Shape = tuple[Dim, ...]


class StepValue:
    """A value in a step: its element type and its labelled shape.

    `is_static`: the value depends on no input. `in_step`: it depends on the new position; other values were computed
    earlier. `is_known`: it is computed from integers or booleans, as masks are, so it is available for all positions.
    `name` is the name of a parameter, otherwise "". `product` is the number of the score product from which the value
    is computed, -1 if there is none.
    """

    __slots__ = ("dtype", "in_step", "is_known", "is_static", "name", "node", "product", "shape", "users")

    def __init__(self, shape: Shape, dtype: str, *, static: bool = False, step: bool = False, name: str = "") -> None:
        self.shape = shape
        self.dtype = dtype
        self.is_static = static
        self.in_step = step
        self.is_known = dtype != "real"
        self.name = name
        self.node: StepNode | None = None
        self.users: list[tuple[StepNode, int]] = []
        self.product = -1


class StepNode:
    """An operation in a step: its operands with the shapes that it reads, and its results.

    `attention` is the number of the attention of which the operation is a product, otherwise -1. `is_convolution`: the
    operation reads earlier positions, but computes only the new one.
    """

    __slots__ = ("address", "attention", "call", "is_convolution", "operands", "results", "shapes")

    def __init__(self, call: Call, address: str, operands: list[StepValue | None], shapes: list[Shape | None]) -> None:
        self.call = call
        self.address = address
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

    def __init__(self, address: str, visible: VisibleKeys | None) -> None:
        self.address = address
        self.visible = visible
        self.values: list[StepValue] = []


class SequenceState:
    """The input of a convolution along the sequence, at the positions that its kernel covers; or a carried state."""

    def __init__(self, address: str, kind: str, shape: Shape, positions: int) -> None:
        self.address = address
        self.kind = kind
        self.shape = shape
        self.positions = positions


NEW_POSITION = "__new"
"""The label of an axis along the sequence."""

KEYS_PREFIX = "__keys"
"""The prefix of the labels of axes of keys."""


class NoDecodingStepError(Exception):
    """The reason why a model has no decoding step."""


def step_error(address: str, reason: str) -> NoDecodingStepError:
    """Create the error that a module at an address has no decoding step."""
    return NoDecodingStepError(f"{describe_address(address)} {reason}")


def describe_address(address: str) -> str:
    """Describe an address for messages."""
    return f"`{address}`" if address else "the model"


def contains_label(shape: Sequence[Dim], name: str) -> bool:
    return any(name in symbols(size) for size in shape)


def remove_label(size: Dim, dimension: str) -> Dim:
    names = [name for name in symbols(size) if name == NEW_POSITION or name.startswith(KEYS_PREFIX)]
    return substitute(size, {name: symbol(dimension) for name in names}) if names else size
