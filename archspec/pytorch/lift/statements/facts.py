"""Facts about a body that its writer needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from archspec.pytorch.lift.definitions.blocks import Body
from archspec.pytorch.lift.definitions.runs import LayerRun
from archspec.pytorch.lift.values.values import Value


class BorrowedLayer(NamedTuple):
    """A layer that is declared in a block, or in others like it, and only applied outside of it."""

    value: Value
    path: str
    is_declared: bool


class WritingContext(NamedTuple):
    """What is known of a body when it is written: runs of layers in it, by their last value; the layers of all
    iterations of its loops, by those that stand for them; names of its inputs and outputs, and those that are `taken`;
    the tensors that it declares itself, with what is written before their shapes, and those that it ties; the layers
    that it declares for blocks around it; the masks that may be left out; the addresses of blocks inside.
    """

    body: Body
    runs: Mapping[Value, LayerRun]
    looped: Mapping[Value, LayerRun]
    inputs: Sequence[str]
    outputs: Sequence[str]
    taken: Sequence[str]
    owned: Sequence[tuple[str, str, tuple[int, ...]]]
    ties: Sequence[tuple[str, str]]
    lent: Sequence[BorrowedLayer]
    masks: Collection[Value]
    inner: Collection[str]
