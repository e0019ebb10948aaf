"""Arguments of PyTorch's calls: their kinds, lists, and the refusal of those that have no normal form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeGuard, TypeVar, cast

from archspec.core.algebra import Dim
from archspec.core.record import is_tuple

if TYPE_CHECKING:
    from torch.fx import Node

T = TypeVar("T")


class UntranslatableError(Exception):
    """A module has no normal form; the message is the reason."""


Axes: TypeAlias = int | Sequence[int] | None
"""The axes that an operation works along; None, and in most operations an empty list, stands for all."""

Sizes: TypeAlias = Dim | Sequence[Dim]
"""What windows have along each spatial axis, such as their size or step; one number stands for all axes."""


def operation_name(node: Node) -> str:
    """Return the name of the operation of a node in an exported program, without its namespace; empty for others."""
    return getattr(getattr(node.target, "_schema", None), "name", "").rpartition("::")[2]


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a value is a list or tuple, but no record, which is a tuple of its fields."""
    return isinstance(value, list) or (is_tuple(value) and not hasattr(value, "_fields"))


def as_list(value: T | Sequence[T]) -> list[T]:
    """Return a list or tuple as a list, and anything else as a list of one."""
    return [*cast("Sequence[T]", value)] if is_list(value) else [cast("T", value)]


def refuse(name: str) -> NoReturn:
    """Raise Untranslatable for the arguments of an operation."""
    raise UntranslatableError(f"the operation `aten.{name}` has no normal form with these arguments")
