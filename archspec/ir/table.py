"""The tensors, totals and modules of a model as plain data, for counting and for the cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, overload

from archspec.core.record import Record, from_values

# Storage of weights in a quantized model.


class Quantization(Record):
    """Storage of quantized weights: the method, its fields in the configuration, the type of unquantized weights."""

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
    """A module with the same tensors as an earlier module, except for their addresses.

    The tensors from `start` to `stop` repeat the tensors from `first` on, with `address` in place of `of`.
    """

    address: str
    of: str
    start: int
    stop: int
    first: int


class Tensors(Sequence[Tensor]):
    """Tensors in program order: `distinct` tensors, and `repeats` of them, which are created on the first access.

    `repeats` are in order and do not overlap.
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
            for address, original, start, stop, first in self.repeats:
                tensors[start:stop] = _relocate_tensors(tensors[first : first + stop - start], address, original)
            self._all = tuple(tensors)
        return self._all

    def names(self) -> list[str]:
        """Return the names of all tensors."""
        return self._addresses([tensor.name for tensor in self.distinct])

    def layers(self) -> list[str]:
        """Return the addresses of the modules that own the tensors."""
        return self._addresses([tensor.layer for tensor in self.distinct])

    def _addresses(self, values: Sequence[str]) -> list[str]:
        """Return an address for each tensor; `values` are the addresses for the distinct tensors."""
        addresses = self.column(values)
        for address, original, start, stop, first in self.repeats:
            length = len(original)
            addresses[start:stop] = [address + value[length:] for value in addresses[first : first + stop - start]]
        return addresses

    def column(self, values: Sequence[V]) -> list[V]:
        """Return a value for each tensor; `values` are the values for the distinct tensors."""
        result: list[V] = []
        used = 0
        for _, _, start, stop, first in self.repeats:
            copied_until = used + start - len(result)
            result += values[used:copied_until]
            result += result[first : first + stop - start]
            used = copied_until
        result += values[used:]
        return result


class Params(Record):
    """Parameter counts, with tied tensors counted once; `total` = `trainable` + `frozen`."""

    total: int
    trainable: int
    frozen: int


class ActiveParameters(Record):
    """The parameters used for one token, if they are not all. A table from which a token reads rows counts in full.

    `without_tables` is the total without such tables. `choices` are pairs: the number of experts chosen for a token,
    and the number of available experts. `runs` describes consecutive tensors by pairs: the index of a choice, or -1 for
    tensors that are used in full, and the number of tensors.
    """

    total: int
    without_tables: int
    choices: tuple[tuple[int, int], ...]
    runs: tuple[tuple[int, int], ...]

    def by_tensor(self) -> list[tuple[int, int] | None]:
        """Return the choice for each tensor; None for a tensor that is used in full."""
        return [self.choices[choice] if choice >= 0 else None for choice, tensors in self.runs for _ in range(tensors)]

    def to_dict(self) -> dict[str, object]:
        """Return the totals and choices for JSON output."""
        return {"total": self.total, "without_tables": self.without_tables, "choices": list(map(list, self.choices))}


class Table(Record):
    """The properties of a model that do not depend on input shapes, in program order.

    `buffer_ties` maps a tied buffer to the stored buffer. `unchecked` is the number of skipped `expect` lines, which
    apply only to the model without overrides. `active` is None if a token uses all parameters, or if the number that it
    uses is unknown. `notes` are remarks on the count.
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
        """The modules with the same tensors as an earlier module."""
        return self.tensors.repeats

    def to_data(self) -> list[object]:
        """Return the table as lists and dictionaries for JSON, with distinct tensors only."""
        return [*self._replace(tensors=self.tensors.distinct), self.repeats]

    @staticmethod
    def from_data(data: Any) -> Table:
        """Return the table that `to_data` converted."""
        model, hyperparameters, overrides, params, tensors, buffers, modules, ties, *optional, repeats = data
        unchecked, active, notes = optional
        distinct = [Tensor(name, tuple(shape), *fields) for name, shape, *fields in tensors]
        return Table(
            model,
            hyperparameters,
            overrides,
            Params(*params),
            Tensors(distinct, [Repeat(*row) for row in repeats]),
            tuple([Buffer(name, tuple(shape)) for name, shape in buffers]),
            tuple([ModuleRow(*row) for row in modules]),
            ties,
            unchecked,
            _parse_active(active),
            tuple(notes),
        )

    def is_consistent(self) -> bool:
        """Whether the tensors add up to the totals."""
        total, trainable, frozen = self.params
        distinct = self.tensors.distinct
        counted = self.tensors.column([tensor.params for tensor in distinct])
        trained = self.tensors.column([tensor.params if tensor.trainable else 0 for tensor in distinct])
        return sum(counted) == total == trainable + frozen and sum(trained) == trainable


def count_active_parameters(total: int, parts: Mapping[tuple[int, int], int]) -> int | None:
    """Return the number of active parameters among `total`; None if a part is not divisible.

    `parts` maps a choice (used, available) to the number of parameters that are divided by it.
    """
    for (number, available), params in parts.items():
        used, remainder = divmod(params * number, available)
        if remainder:
            return None
        total -= params - used
    return total


def _relocate_tensors(tensors: Sequence[Tensor], address: str, original: str) -> list[Tensor]:
    """Return the tensors below the address `original`, relocated below `address`."""
    length = len(original)
    layers = {layer: address + layer[length:] for layer in {tensor.layer for tensor in tensors}}
    return [
        from_values(
            Tensor, (address + name[length:], shape, params, size, trainable, tied_to, role, layers[layer], type)
        )
        for name, shape, params, size, trainable, tied_to, role, layer, type in tensors
    ]


def _parse_active(data: Any) -> ActiveParameters | None:
    if data is None:
        return None
    total, without_tables, choices, runs = data
    return ActiveParameters(
        total, without_tables, tuple([(a, b) for a, b in choices]), tuple([(a, b) for a, b in runs])
    )
