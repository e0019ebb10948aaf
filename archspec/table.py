"""The tensors, totals and modules of a model as plain data, for counting and for the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from archspec.record import Record

Plain: TypeAlias = "bool | int | float | str | Sequence[Plain] | None"
"""The value of a hyperparameter in Python and JSON: definitions and operations are named, and lists are sequences."""

Values: TypeAlias = dict[str, Any]
"""Hyperparameters by name: numbers, booleans, strings, None, lists of these; definitions and functions by name."""


class Tensor(Record):
    """A named parameter tensor. `size` is its number of elements, `params` the number that it adds to the total.

    `params` is 0 if `tied_to` names the tensor that is counted instead. `layer` is the address of the owning module
    ("" for the model itself), and `type` is the name of its definition.
    """

    name: str
    shape: tuple[int, ...]
    params: int
    size: int
    trainable: bool
    tied_to: str | None
    role: str | None
    layer: str
    type: str


class Buffer(Record):
    """A stored tensor that is not a parameter."""

    name: str
    shape: tuple[int, ...]


class ModuleRow(Record):
    """A module: its address, the name of its definition, and its kind ("layer" or "block")."""

    address: str
    type: str
    kind: str


class Params(Record):
    """Parameter counts, with tied tensors counted once; `total` = `trainable` + `frozen`."""

    total: int
    trainable: int
    frozen: int


class Table(Record):
    """The properties of a model that do not depend on input shapes, in program order.

    `buffer_ties` maps a tied buffer to the one stored. `unchecked` is the number of `expect` lines skipped,
    because they apply to the model without overrides. `notes` are remarks on what was counted.
    """

    model: str
    hyperparameters: Values
    overrides: Values
    params: Params
    tensors: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    modules: tuple[ModuleRow, ...]
    buffer_ties: dict[str, str]
    unchecked: int = 0
    notes: tuple[str, ...] = ()

    def to_data(self) -> list[object]:
        """Return the table as lists and dictionaries, for JSON."""
        return list(self)

    @staticmethod
    def from_data(data: Any) -> Table | None:
        """Return the table that `to_data` converted; None for invalid data."""
        try:
            model, hyperparameters, overrides, params, tensors, buffers, modules, ties, unchecked, notes = data
            table = Table(
                model,
                dict(hyperparameters),
                dict(overrides),
                Params(*params),
                tuple([Tensor(name, tuple(shape), *rest) for name, shape, *rest in tensors]),
                tuple([Buffer(name, tuple(shape)) for name, shape in buffers]),
                tuple([ModuleRow(*row) for row in modules]),
                dict(ties),
                unchecked,
                tuple(notes),
            )
            return table if table.is_sound() else None
        except (TypeError, ValueError):
            return None

    def is_sound(self) -> bool:
        """Whether the fields have the right types and the tensors add up to the totals."""
        total, trainable, frozen = self.params
        texts = [self.model, *self.notes, *(text for row in (*self.modules, *self.buffer_ties.items()) for text in row)]
        texts += [text for t in self.tensors for text in (t.name, t.layer, t.type)] + [b.name for b in self.buffers]
        texts += [text for t in self.tensors for text in (t.tied_to, t.role) if text is not None]
        numbers = [total, trainable, frozen, self.unchecked, *(n for b in self.buffers for n in b.shape)]
        numbers += [n for t in self.tensors for n in (t.params, t.size, *t.shape)]
        return (
            {type(text) for text in texts} == {str}
            and {type(number) for number in numbers} == {int}
            and {type(t.trainable) for t in self.tensors} <= {bool}
            and sum(t.params for t in self.tensors) == total == trainable + frozen
            and sum(t.params for t in self.tensors if t.trainable) == trainable
        )
