"""The tensor groups of a model and its family, which counting conventions include or exclude.

The tensors of a group differ only in the numbers in their names (`encoder.layer.*.output.dense.bias`). Sets of groups
are integers with one bit per group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from archspec.addresses import is_inside, join, last, pattern_of, prefixes, relative
from archspec.explanations.relative import Relative
from archspec.table import Table, Tensor


class TensorGroup(NamedTuple):
    """`times` tensors of `each` elements, called `name` with `*` for numbers.

    `part` is "" for what the model has, the address of a head of its family, "buffer", or "use": further applications
    of what is owned once. `alias` says that the tensors are counted elsewhere, and these are further names or uses.
    `is_table`: rows are looked up in them. `spread` is the number of their `TensorGroups.spreads`.
    """

    name: str
    times: int
    each: int
    dimensions: int
    role: str | None
    trainable: bool
    layer: str
    part: str
    alias: bool
    is_table: bool
    spread: int

    @property
    def is_bias(self) -> bool:
        return last(self.name) == "bias" or self.name.endswith("_bias")


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
    parts: tuple[str, ...]
    missing: tuple[str, ...]
    rank: int
    guess: int = 0


class TensorGroups:
    """All groups of a model and of the heads of its family.

    `bases` begins with the model itself. `heads` are the model's own heads by address, and those of its family.
    `spreads` are the ways in which groups are spread over repeated layers: how many tensors by the number of the layer,
    or of its application.
    `again` is how many layers are applied more than once.
    """

    def __init__(
        self, table: Table, relatives: Sequence[Relative], uses: Mapping[str, int], tables: Collection[str] = ()
    ) -> None:
        """`tables` are the definitions whose tensors rows are looked up in."""
        self._tables = tables
        self.groups: list[TensorGroup] = []
        self.heads: dict[str, int] = {}
        self.spreads: list[dict[str, int]] = []
        self.again = len({t.layer for t in table.tensors if not t.tied_to and uses.get(t.layer, 1) > 1})
        self._bits: dict[_Key, int] = {}
        own = _grouped(table.tensors, "", "")
        tensors = self._add(own)
        once = [buffer for buffer in table.buffers if buffer.name not in table.buffer_ties]
        buffers = self._add(Counter({_Key(b.name, b.shape, None, False, b.name, "buffer", False, ""): 1 for b in once}))
        again = Counter[_Key]()
        spreads: dict[_Key, Counter[str]] = {}
        for tensor in table.tensors:
            if not tensor.tied_to and uses.get(tensor.layer, 1) > 1:
                key = _key(tensor, pattern_of(tensor.name), pattern_of(tensor.layer))._replace(part="use", alias=True)
                again[key] += uses[tensor.layer] - 1
                number = _number(tensor.name)
                spreads.setdefault(key, Counter()).update(f"{number}@{use}" for use in range(1, uses[tensor.layer]))
        uncounted = buffers | self._add(_spread(again, spreads))
        counted = self._counted(tensors)
        roles: dict[str, set[str | None]] = {}
        outer = {pattern_of(address) for address in _outermost(table)}
        for bit, group in self.members(tensors):
            address = _around(pattern_of(group.layer), outer)
            if address is not None:
                roles.setdefault(address, set()).add(group.role)
                self.heads[address] = self.heads.get(address, 0) | bit
        self.heads = {a: groups for a, groups in self.heads.items() if {"head"} <= roles[a] <= {"head", "norm"}}
        self.bases = [Base(table.model, (), counted, (tensors & ~counted) | uncounted, (), (), 0)]
        self.bases += [base for r in relatives if (base := self._relative(own, r)) is not None]
        self._add_heads(tensors, uncounted)
        values = [group.times * group.each for group in self.groups]
        self._sums = [_sums(values[i : i + 8]) for i in range(0, len(values), 8)]

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

    def layers(self, totals: Mapping[int, int]) -> tuple[int, int]:
        """How many equal layers share the elements `totals`, given by spread, and the elements of one.

        Where the layers are not equal, all of them are one.
        """
        by_layer = Counter[str]()
        for spread, total in totals.items():
            counts = self.spreads[spread]
            if not counts:
                return 1, sum(totals.values())
            each = total // sum(counts.values())
            for layer, count in counts.items():
                by_layer[layer] += count * each
        sizes = set(by_layer.values())
        return (len(by_layer), sizes.pop()) if len(sizes) == 1 else (1, sum(totals.values()))

    def _counted(self, groups: int) -> int:
        return sum(bit for bit, group in self.members(groups) if not group.alias)

    def _add(self, grouped: Counter[_Key]) -> int:
        """Return the set of the groups in `grouped`; new groups are added."""
        found = 0
        for key, times in grouped.items():
            bit = self._bits.get(key)
            if bit is None:
                bit = self._bits[key] = 1 << len(self.groups)
                spread = dict(key.spread)
                if spread not in self.spreads:
                    self.spreads.append(spread)
                self.groups.append(_group(key, times, key.type in self._tables, self.spreads.index(spread)))
            found |= bit
        return found

    def _relative(self, own: Counter[_Key], other: Relative) -> Base | None:
        """Return a relative as a base, or None if its body has other sizes than the model's."""
        theirs = _grouped(other.table.tensors, other.body, other.home)
        outer = {address for address in _outermost(other.table) if address != other.body}
        own_names = {key.name for key in own}
        found: Counter[_Key] = Counter()
        for key, times in theirs.items():
            if (own[key] and own[key] != times) or (not own[key] and key.name in own_names):
                return None
            part = "" if own[key] else _around(key.name, outer) or key.layer or key.name
            found[key._replace(part=part)] = times
        groups = self._add(found)
        before = self.bases[0].counted | self.bases[0].more
        parts = dict.fromkeys(group.part for _, group in self.members(groups & ~before))
        missing = dict.fromkeys(group.layer for _, group in self.members(self.bases[0].counted & ~groups))
        counted = self._counted(groups)
        return Base(
            other.definition,
            other.models,
            counted,
            groups & ~counted | self._uses(),
            tuple(parts),
            tuple(missing),
            0,
            int(other.guessed),
        )

    def _uses(self) -> int:
        return sum(bit for bit, group in self.members((1 << len(self.groups)) - 1) if group.part == "use")

    def _add_heads(self, tensors: int, uncounted: int) -> None:
        """Yield bases with one head each, for the components that relatives add."""
        for part in dict.fromkeys(part for base in self.bases[1:] for part in base.parts):
            groups = sum(1 << i for i, group in enumerate(self.groups) if group.part == part)
            counted = self.bases[0].counted | self._counted(groups)
            self.heads.setdefault(part, groups)
            self.bases.append(Base("", (), counted, ((tensors | groups) & ~counted) | uncounted, (part,), (), 1))


class _Key(NamedTuple):
    name: str
    shape: tuple[int, ...]
    role: str | None
    trainable: bool
    layer: str
    part: str
    alias: bool
    type: str
    spread: tuple[tuple[str, int], ...] = ()


def _grouped(tensors: Sequence[Tensor], body: str, home: str) -> Counter[_Key]:
    """Count the tensors of each group; addresses in `body` are moved to `home`.

    A group of a single tensor keeps that tensor's name.
    """
    names: dict[_Key, tuple[str, str]] = {}
    grouped: Counter[_Key] = Counter()
    spreads: dict[_Key, Counter[str]] = {}
    for tensor in tensors:
        name, layer = _moved(tensor.name, body, home), _moved(tensor.layer, body, home)
        key = _key(tensor, pattern_of(name), pattern_of(layer))
        grouped[key] += 1
        names.setdefault(key, (name, layer))
        spreads.setdefault(key, Counter())[_number(name)] += 1
    single = {key: key._replace(name=names[key][0], layer=names[key][1]) for key, n in grouped.items() if n == 1}
    whole = _spread(Counter({key: n for key, n in grouped.items() if n > 1}), spreads)
    groups = {key._replace(spread=()): key for key in whole}
    return Counter({single.get(key) or groups[key]: times for key, times in grouped.items()})


def _spread(grouped: Counter[_Key], spreads: Mapping[_Key, Counter[str]]) -> Counter[_Key]:
    """The same groups, with how they are spread over layers."""
    return Counter({key._replace(spread=tuple(sorted(spreads[key].items()))): n for key, n in grouped.items()})


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


def _around(name: str, addresses: set[str]) -> str | None:
    """Return the one of some addresses that contains a name."""
    return next((outer for outer in prefixes(name) if outer in addresses), None)


def _key(tensor: Tensor, name: str, layer: str) -> _Key:
    return _Key(name, tensor.shape, tensor.role, tensor.trainable, layer, "", tensor.tied_to is not None, tensor.type)


def _moved(name: str, body: str, home: str) -> str:
    return join(home, relative(name, body)) if is_inside(name, body) else name


def _group(key: _Key, times: int, is_table: bool, spread: int) -> TensorGroup:
    each = 1
    for size in key.shape:
        each *= size
    where = (key.layer, key.part, key.alias, is_table, spread)
    return TensorGroup(key.name, times, each, len(key.shape), key.role, key.trainable, *where)


def _sums(values: list[int]) -> list[int]:
    """Return the sum of every subset of up to eight values, indexed by the subset's bits."""
    sums = [0]
    for value in values:
        sums += [before + value for before in sums]
    return sums + [0] * (256 - len(sums))
