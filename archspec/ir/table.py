"""The tensors, totals and modules of a model as plain data, for counting and for the cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, TypeAlias, TypeVar, overload

from archspec.core.record import Record, from_values

# Storage of the weights of a quantized model.


class Quantization(Record):
    """How the weights of a model are stored: the method, the fields of the configuration, the type of other weights."""

    method: str
    fields: dict[str, object]
    dtype: str

    @property
    def title(self) -> str:
        """The method, with the number of bits if it is stated."""
        bits = self.fields.get("bits")
        if self.method == "bitsandbytes":
            bits = 4 if self.fields.get("load_in_4bit") or self.fields.get("_load_in_4bit") else 8
        return f"{self.method}, {bits} bits" if isinstance(bits, int) else self.method

    @property
    def note(self) -> str:
        """The note about the quantization in the output of `count`."""
        return f"quantized ({self.title}): counted at its logical size"


PlainValue: TypeAlias = "bool | int | float | str | Sequence[PlainValue] | None"
"""The value of a hyperparameter in Python and JSON: definitions and operations are named, and lists are sequences."""

V = TypeVar("V")

HyperparameterValues: TypeAlias = dict[str, PlainValue]
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


class Repeat(Record):
    """A module whose tensors are those of an earlier one: the tensors from `start` to `stop` differ from as many from
    `first` on only in their address, where `address` replaces `of`.
    """

    address: str
    of: str
    start: int
    stop: int
    first: int


class Tensors(Sequence[Tensor]):
    """Tensors in program order: `distinct` ones, and `repeats` of them, which are made when they are first read.

    `repeats` are in order, and do not overlap.
    """

    def __init__(self, distinct: Sequence[Tensor], repeats: Sequence[Repeat] = ()) -> None:
        self.distinct = tuple(distinct)
        self.repeats = tuple(repeats)
        self._number = len(self.distinct) + sum(repeat.stop - repeat.start for repeat in self.repeats)
        self._all = None if self.repeats else self.distinct

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.all())

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Tensor, ...]: ...
    def __getitem__(self, index: int | slice) -> Tensor | tuple[Tensor, ...]:
        return self.all()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensors) and self.all() == other.all()

    def __repr__(self) -> str:
        return f"Tensors({self.all()!r})"

    def all(self) -> tuple[Tensor, ...]:
        """Return all tensors."""
        if self._all is None:
            tensors = self.column(self.distinct)
            for address, of, start, stop, first in self.repeats:
                tensors[start:stop] = _relocate_tensors(tensors[first : first + stop - start], address, of)
            self._all = tuple(tensors)
        return self._all

    def names(self) -> list[str]:
        """Return the names of all tensors."""
        return self._addresses([tensor.name for tensor in self.distinct])

    def layers(self) -> list[str]:
        """Return the addresses of the modules that own the tensors."""
        return self._addresses([tensor.layer for tensor in self.distinct])

    def _addresses(self, values: Sequence[str]) -> list[str]:
        """Return the address of each tensor, or in it, from those of the distinct ones."""
        found = self.column(values)
        for address, of, start, stop, first in self.repeats:
            cut = len(of)
            found[start:stop] = [address + value[cut:] for value in found[first : first + stop - start]]
        return found

    def column(self, values: Sequence[V]) -> list[V]:
        """Return the value of each tensor; `values` are those of the distinct ones."""
        found: list[V] = []
        used = 0
        for _, _, start, stop, first in self.repeats:
            behind = used + start - len(found)
            found += values[used:behind]
            found += found[first : first + stop - start]
            used = behind
        found += values[used:]
        return found

    def is_sound(self) -> bool:
        """Whether each repeat is behind the tensors that it repeats and those of the repeat before."""
        end = 0
        for address, of, start, stop, first in self.repeats:
            if [*map(type, (address, of, start, stop, first))] != [str, str, int, int, int]:
                return False
            if not (end <= start < stop <= len(self) and first >= 0 and first + stop - start <= start):
                return False
            end = stop
        return True


class Params(Record):
    """Parameter counts, with tied tensors counted once; `total` = `trainable` + `frozen`."""

    total: int
    trainable: int
    frozen: int


class ActiveParameters(Record):
    """The parameters used for one token, if they are fewer than all; a table from which a token reads rows is used.

    `without_tables` is the total without tables from which it only reads rows. `choices` are pairs of numbers: of the
    experts that a token chooses, and of those among which it chooses. `runs` are pairs of numbers, too: the position of
    a choice, or -1 for tensors of which all is used, and of how many tensors one after the other it is the choice.
    """

    total: int
    without_tables: int
    choices: tuple[tuple[int, int], ...]
    runs: tuple[tuple[int, int], ...]

    def by_tensor(self) -> list[tuple[int, int] | None]:
        """Return, for each tensor, the choice of which it is a part; None if all of it is used."""
        return [self.choices[choice] if choice >= 0 else None for choice, tensors in self.runs for _ in range(tensors)]

    def to_dict(self) -> dict[str, object]:
        """Return the totals and choices for a document."""
        return {"total": self.total, "without_tables": self.without_tables, "choices": list(map(list, self.choices))}


class Table(Record):
    """The properties of a model that do not depend on input shapes, in program order.

    `buffer_ties` maps a tied buffer to the one stored. `unchecked` is the number of `expect` lines skipped,
    because they apply to the model without overrides. `active` is None if a token uses all parameters, or if the
    number that it uses is unknown. `notes` are remarks on what was counted.
    """

    model: str
    hyperparameters: HyperparameterValues
    overrides: HyperparameterValues
    params: Params
    tensors: Tensors
    buffers: tuple[Buffer, ...]
    modules: tuple[ModuleRow, ...]
    buffer_ties: dict[str, str]
    unchecked: int = 0
    active: ActiveParameters | None = None
    notes: tuple[str, ...] = ()

    @property
    def repeats(self) -> tuple[Repeat, ...]:
        """The modules whose tensors are those of an earlier one."""
        return self.tensors.repeats

    def to_data(self) -> list[object]:
        """Return the table as lists and dictionaries, for JSON; of repeated tensors, only the first are included."""
        return [*self._replace(tensors=self.tensors.distinct), self.repeats]

    @staticmethod
    def from_data(data: Any) -> Table | None:
        """Return the table that `to_data` converted; None for invalid data."""
        try:
            model, hyperparameters, overrides, params, tensors, buffers, modules, ties, *more, repeats = data
            unchecked, active, notes = more
            distinct = [Tensor(name, tuple(shape), *rest) for name, shape, *rest in tensors]
            table = Table(
                model,
                dict(hyperparameters),
                dict(overrides),
                Params(*params),
                Tensors(distinct, [Repeat(*row) for row in repeats]),
                tuple([Buffer(name, tuple(shape)) for name, shape in buffers]),
                tuple([ModuleRow(*row) for row in modules]),
                dict(ties),
                unchecked,
                _active(active),
                tuple(notes),
            )
            return table if table.is_sound() else None
        except (TypeError, ValueError):
            return None

    def is_sound(self) -> bool:
        """Whether the fields have the right types and the tensors add up to the totals."""
        total, trainable, frozen = self.params
        if not self.tensors.is_sound():
            return False
        distinct = self.tensors.distinct
        counted = self.tensors.column([tensor.params for tensor in distinct])
        texts = [self.model, *self.notes, *(text for row in (*self.modules, *self.buffer_ties.items()) for text in row)]
        texts += [text for t in distinct for text in (t.name, t.layer, t.type)] + [b.name for b in self.buffers]
        texts += [text for t in distinct for text in (t.tied_to, t.role) if text is not None]
        numbers = [total, trainable, frozen, self.unchecked, *(n for b in self.buffers for n in b.shape)]
        numbers += [n for t in distinct for n in (t.params, t.size, *t.shape)]
        if self.active is not None:
            used, without_tables, choices, runs = self.active
            numbers += [used, without_tables, *(n for pair in (*choices, *runs) for n in pair)]
            parts = Counter[tuple[int, int]]()
            end = 0
            for choice, length in runs:
                if not (-1 <= choice < len(choices) and length > 0):
                    return False
                if choice >= 0:
                    parts[choices[choice]] += sum(counted[end : end + length])
                end += length
            if end != len(counted) or count_active_parameters(total, parts) != used:
                return False
        return (
            {type(text) for text in texts} == {str}
            and {type(number) for number in numbers} == {int}
            and {type(t.trainable) for t in distinct} <= {bool}
            and sum(counted) == total == trainable + frozen
            and sum(compress(counted, self.tensors.column([t.trainable for t in distinct]))) == trainable
        )


def count_active_parameters(total: int, parts: Mapping[tuple[int, int], int]) -> int | None:
    """Return the number of active parameters in `total`; `parts` maps (used, available) to the number of parameters
    divided that way.

    None if a part is not divisible.
    """
    for (number, of), params in parts.items():
        used, rest = divmod(params * number, of)
        if rest:
            return None
        total -= params - used
    return total


def _relocate_tensors(tensors: Sequence[Tensor], address: str, of: str) -> list[Tensor]:
    """Return the tensors below the address `of`, relocated below `address`."""
    cut = len(of)
    layers = {layer: address + layer[cut:] for layer in {tensor.layer for tensor in tensors}}
    return [
        from_values(Tensor, (address + name[cut:], shape, params, size, trainable, tied_to, role, layers[layer], type))
        for name, shape, params, size, trainable, tied_to, role, layer, type in tensors
    ]


def _active(data: Any) -> ActiveParameters | None:
    if data is None:
        return None
    total, without_tables, choices, runs = data
    return ActiveParameters(
        total, without_tables, tuple([(a, b) for a, b in choices]), tuple([(a, b) for a, b in runs])
    )
