"""Values and operations of a decoding step, and the earlier positions that they read (see `steps.py`)."""

from __future__ import annotations

from archspec.analysis.cost.masks import VisibleKeys
from archspec.core.algebra import Dim
from archspec.ir.module import Call

Shape = tuple[Dim, ...]


class StepValue:
    """A value in a step: its element type and its labelled shape.

    `is_static`: it depends on no input. `in_step`: it depends on the newest position; others were computed before.
    `is_known`: it is made of integers or booleans, as masks are, so it can be had for all positions. `name` is that of
    a parameter. `product` is the number of the score product that it comes from, -1 if there is none.
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
    """An operation in a step: its operands with the shapes as it reads them, and its results.

    `attention` is the number of the attention of which it is a product; -1 for any other operation. `is_convolution`:
    it reads earlier positions, but computes only the newest.
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

    `seen` are the keys that a query sees; None for keys of another sequence, which are all seen.
    """

    def __init__(self, address: str, seen: VisibleKeys | None) -> None:
        self.address = address
        self.seen = seen
        self.values: list[StepValue] = []


class ConvolutionWindow:
    """The input of a convolution along the sequence, and the positions that its kernel covers; or a carried state."""

    def __init__(self, address: str, kind: str, shape: Shape, positions: int) -> None:
        self.address = address
        self.kind = kind
        self.shape = shape
        self.positions = positions
