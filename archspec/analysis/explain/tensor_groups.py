"""The tensor groups of a model and its family, which counting conventions include or exclude.

The tensors of a group differ only in the numbers in their names (`encoder.layer.*.output.dense.bias`). Sets of groups
are integers with one bit per group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from math import prod
from typing import NamedTuple

from archspec.core.addresses import address_pattern, is_inside, join, last_segment, prefixes, relative
from archspec.ir.module import Body
from archspec.ir.ops import OPS
from archspec.ir.table import Table, Tensor
from archspec.pipeline.family import Relative

# The number of applications of each layer of a model, which may be more than one per module.


def uses(body: Body) -> Counter[str]:
    """Count the applications of each layer and block, by address."""

    @cache
    def counted(body: Body) -> Counter[str]:
        found: Counter[str] = Counter()
        for call in body.calls:
            if call.address and call.body is not None:
                found[call.address] += 1
                found.update({join(call.address, inner): times for inner, times in counted(call.body).items()})
        return found

    return counted(body)


def table_types(body: Body) -> frozenset[str]:
    """The definitions that look rows up in a tensor of their own: those of embedding tables."""

    @cache
    def found(body: Body, definition: str, given: frozenset[int]) -> frozenset[str]:
        """Find those in the body of a definition, or of a loop in it whose inputs `given` are stored."""
        stored = {slot for _, slot in body.weights} | given
        types: set[str] = set()
        for call in body.calls:
            if call.body is None:
                operands = dict(call.inputs)
                indexed = [name for entry in OPS[call.type].inputs for name in entry.indexes.split()]
                if any(operands.get(name) in stored for name in indexed):
                    types.add(definition)
            elif call.body.loop is None:
                types |= found(call.body, call.body.type, frozenset[int]())
            else:
                inside = frozenset([i for i, (_, operand) in enumerate(call.inputs) if operand in stored])
                types |= found(call.body, definition, inside)
        return frozenset(types)

    return found(body, body.type, frozenset[int]())


class TensorGroup(NamedTuple):
    """`times` tensors of `each` elements, called `name` with `*` for numbers, in a `layer` of a `type`.

    `part` is "" for what the model has, the address of a head of its family, "buffer", or "use": further applications
    of what is owned once. `alias` says that the tensors are counted elsewhere, and these are further names or uses.
    `is_table`: rows are looked up in them. `share` is "used" or "idle" if a token uses only a part of the tensors (the
    experts that it chooses): the group is that part, or the rest. `spread` is the number of their
    `TensorGroups.spreads`.
    """

    name: str
    shape: tuple[int, ...]
    each: int
    role: str | None
    trainable: bool
    layer: str
    type: str
    part: str
    alias: bool
    is_table: bool
    share: str = ""
    spread: int = 0
    times: int = 0

    @property
    def is_bias(self) -> bool:
        return last_segment(self.name) == "bias" or self.name.endswith("_bias")

    @property
    def stack(self) -> str:
        """The address of the repeated layers that contain the group (`encoder.layer.*`), or ""."""
        head, star, _ = self.name.partition("*")
        return head + star if star else ""


class Base(NamedTuple):
    """The start of a count: the model, a relative of it, or the model with one head; `counted` are its groups.

    `more` are groups that belong to it but are not counted: further names, buffers. `parts` and `missing` are the
    addresses that it adds to the model and lacks; `models` are the equal models of the file. `rank` is 1 for a single
    head. `guess` is 1 for a relative with sizes that the model does not have; it counts as one adjustment if there
    are others.
    """

    name: str
    models: tuple[str, ...]
    counted: int
    more: int
    parts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    rank: int = 0
    guess: int = 0


class TensorGroups:
    """All groups of a model and of the heads of its family.

    `bases` begins with the model itself. `heads` are the model's own heads by address, and those of its family.
    `spreads` are the ways in which groups are spread over repeated layers: how many tensors by the number of the layer,
    or of its application; the first is that of a single tensor. `again` is how many layers are applied more than once.
    `active_without_tables` is the number of parameters that a token uses without tables of which it only reads rows.
    """

    def __init__(
        self, table: Table, relatives: Sequence[Relative], uses: Mapping[str, int], tables: Collection[str] = ()
    ) -> None:
        """`uses` is how often layers are applied; `tables` are the definitions whose tensors rows are looked up in."""
        self._tables = tables
        self.active_without_tables = table.active and table.active.without_tables
        self.groups: list[TensorGroup] = []
        self.spreads: list[Counter[str]] = [Counter()]
        self._bits: dict[TensorGroup, int] = {}
        own = self._grouped(table)
        tensors = self._add(own)
        once = [buffer for buffer in table.buffers if buffer.name not in table.buffer_ties]
        buffers = self._add(
            {
                TensorGroup(b.name, b.shape, prod(b.shape), None, False, b.name, "", "buffer", False, False): 1
                for b in once
            }
        )
        repeated = [t for t in table.tensors if not t.tied_to and uses.get(t.layer, 1) > 1]
        self.again = len({tensor.layer for tensor in repeated})
        self._uses = self._add(self._further_uses(repeated, uses))
        counted = self._counted(tensors)
        uncounted = tensors & ~counted | buffers | self._uses
        outermost = set(map(address_pattern, _outermost(table)))
        heads = self.by(lambda group: _around(address_pattern(group.layer), outermost), tensors)
        roles = {address: {group.role for _, group in self.members(groups)} for address, groups in heads.items()}
        self.heads = {a: groups for a, groups in heads.items() if {"head"} <= roles[a] <= {"head", "norm"}}
        self.bases = [Base(table.model, (), counted, uncounted)]
        self.bases += [base for r in relatives if (base := self._relative(own, r)) is not None]
        for part in dict.fromkeys(part for base in self.bases[1:] for part in base.parts):
            head = self.where(lambda group, part=part: group.part == part)
            self.heads.setdefault(part, head)
            more = (uncounted | head) & ~self._counted(head)
            self.bases.append(Base("", (), counted | self._counted(head), more, (part,), (), 1))
        values = [group.times * group.each for group in self.groups]
        self._sums = [_sums(values[i : i + 8]) for i in range(0, len(values), 8)]

    @property
    def everything(self) -> int:
        """The set of all groups."""
        return (1 << len(self.groups)) - 1

    def total(self, groups: int) -> int:
        """Return the number of elements in a set of groups."""
        total = 0
        for sums in self._sums:
            total += sums[groups & 255]
            groups >>= 8
        return total

    def members(self, groups: int) -> list[tuple[int, TensorGroup]]:
        """Return the groups of a set, each with its bit."""
        bits = reversed(f"{groups:b}")
        return [(1 << i, group) for i, (bit, group) in enumerate(zip(bits, self.groups, strict=False)) if bit == "1"]

    def where(self, condition: Callable[[TensorGroup], object], among: int | None = None) -> int:
        """Return the set of the groups that meet a condition, of all groups or of the set `among`."""
        members = self.members(self.everything if among is None else among)
        return sum(bit for bit, group in members if condition(group))

    def by(self, labels: Callable[[TensorGroup], Iterable[str]], among: int) -> dict[str, int]:
        """Return the set of the groups with each label."""
        found: dict[str, int] = {}
        for bit, group in self.members(among):
            for label in labels(group):
                found[label] = found.get(label, 0) | bit
        return found

    def layers(self, addends: Iterable[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
        """Return how many equal layers there are at each address, and the elements of one.

        `addends` are elements: their address, spread and number. Where the layers are not equal, all of them are one.
        """
        totals: dict[str, Counter[int]] = {}
        for address, spread, elements in addends:
            totals.setdefault(address, Counter())[spread] += elements
        return {address: self._equal_layers(spreads) for address, spreads in totals.items()}

    def _equal_layers(self, totals: Mapping[int, int]) -> tuple[int, int]:
        by_layer = Counter[str]()
        for spread, total in totals.items():
            counts = self.spreads[spread]
            for layer, count in counts.items():
                by_layer[layer] += count * (total // counts.total())
        sizes = set(by_layer.values())
        is_stack = len(sizes) == 1 and 0 not in totals
        return (len(by_layer), sizes.pop()) if is_stack else (1, sum(totals.values()))

    def _counted(self, groups: int) -> int:
        return self.where(lambda group: not group.alias, groups)

    def _add(self, grouped: Mapping[TensorGroup, int]) -> int:
        """Return the set of the groups in `grouped`, which maps them to their `times`; new groups are added."""
        found = 0
        for group, times in grouped.items():
            bit = self._bits.get(group)
            if bit is None:
                bit = self._bits[group] = 1 << len(self.groups)
                self.groups.append(group._replace(times=times))
            found |= bit
        return found

    def _grouped(self, table: Table, body: str = "", home: str = "") -> dict[TensorGroup, int]:
        """Count the tensors of each group; addresses in `body` are moved to `home`.

        A group of a single tensor keeps that tensor's name.
        """
        names: dict[TensorGroup, tuple[str, str]] = {}
        spreads: dict[TensorGroup, Counter[str]] = {}
        for tensor, choice in zip(table.tensors, _choices(table), strict=True):
            name, layer = _moved(tensor.name, body, home), _moved(tensor.layer, body, home)
            for group in _parts(self._group(tensor, name, layer), choice):
                names.setdefault(group, (name, layer))
                spreads.setdefault(group, Counter())[_number(name)] += 1
        found: dict[TensorGroup, int] = {}
        for group, spread in spreads.items():
            if spread.total() == 1:
                name, layer = names[group]
                found[group._replace(name=name, layer=layer)] = 1
            else:
                found[group._replace(spread=self._spread(spread))] = spread.total()
        return found

    def _further_uses(self, tensors: Sequence[Tensor], uses: Mapping[str, int]) -> dict[TensorGroup, int]:
        """Count the applications, after the first, of each group of tensors."""
        spreads: dict[TensorGroup, Counter[str]] = {}
        for tensor in tensors:
            group = self._group(tensor, tensor.name, tensor.layer)._replace(part="use", alias=True)
            number = _number(tensor.name)
            numbers = [f"{number}@{use}" for use in range(1, uses[tensor.layer])]
            spreads.setdefault(group, Counter()).update(numbers)
        return {g._replace(spread=self._spread(spread)): spread.total() for g, spread in spreads.items()}

    def _group(self, tensor: Tensor, name: str, layer: str) -> TensorGroup:
        """Return the group of a tensor, without its `times` and `spread`."""
        return TensorGroup(
            address_pattern(name),
            tensor.shape,
            prod(tensor.shape),
            tensor.role,
            tensor.trainable,
            address_pattern(layer),
            tensor.type,
            "",
            tensor.tied_to is not None,
            tensor.type in self._tables,
        )

    def _spread(self, spread: Counter[str]) -> int:
        if spread not in self.spreads:
            self.spreads.append(spread)
        return self.spreads.index(spread)

    def _relative(self, own: Mapping[TensorGroup, int], other: Relative) -> Base | None:
        """Return a relative as a base, or None if its body has other sizes than the model's."""
        outermost = set(_outermost(other.table)) - {other.body}
        own_names = {group.name for group in own}
        found: dict[TensorGroup, int] = {}
        for group, times in self._grouped(other.table, other.body, other.home).items():
            if own.get(group, times) != times or (group not in own and group.name in own_names):
                return None
            part, *_ = *_around(group.name, outermost), group.layer or group.name
            found[group if group in own else group._replace(part=part)] = times
        groups = self._add(found)
        model = self.bases[0]
        parts = dict.fromkeys(group.part for _, group in self.members(groups & ~(model.counted | model.more)))
        missing = dict.fromkeys(group.layer for _, group in self.members(model.counted & ~groups))
        counted = self._counted(groups)
        more = groups & ~counted | self._uses
        return Base(
            other.definition, other.models, counted, more, tuple(parts), tuple(missing), guess=int(other.guessed)
        )


def _choices(table: Table) -> Sequence[tuple[int, int] | None]:
    """Return, for each tensor, how many of how many equal parts a token uses; None for all of them."""
    active = table.active
    if active is None:
        return [None] * len(table.tensors)
    found = active.by_tensor()
    divides = all(c is None or tensor.size % c[1] == 0 for tensor, c in zip(table.tensors, found, strict=True))
    return found if divides else [None] * len(found)


def _parts(group: TensorGroup, choice: tuple[int, int] | None) -> list[TensorGroup]:
    """Divide a group into the part that a token uses and the rest."""
    if choice is None:
        return [group]
    used = group.each // choice[1] * choice[0]
    return [group._replace(share="used", each=used), group._replace(share="idle", each=group.each - used)]


def _number(name: str) -> str:
    """The first number in a name; "" if there is none."""
    return next((segment for segment in name.split(".") if segment.isdigit()), "")


def _outermost(table: Table) -> list[str]:
    """Return the addresses of the modules that a model declares directly."""
    found: list[str] = []
    for module in table.modules:  # each after the one that contains it
        if module.address and not (found and is_inside(module.address, found[-1])):
            found.append(module.address)
    return found


def _around(name: str, addresses: set[str]) -> list[str]:
    """Return the outermost one of some addresses that contains a name; empty if none does."""
    return [outer for outer in prefixes(name) if outer in addresses][:1]


def _moved(name: str, body: str, home: str) -> str:
    return join(home, relative(name, body)) if is_inside(name, body) else name


def _sums(values: list[int]) -> list[int]:
    """Return the sum of every subset of up to eight values, indexed by the subset's bits."""
    sums = [0]
    for value in values:
        sums += [before + value for before in sums]
    return sums + [0] * (256 - len(sums))
