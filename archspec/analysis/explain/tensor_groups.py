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


def count_uses(body: Body) -> Counter[str]:
    """Count the applications of each layer and block, by address."""

    @cache
    def count(body: Body) -> Counter[str]:
        counts: Counter[str] = Counter()
        for call in body.calls:
            if call.address and call.body is not None:
                counts[call.address] += 1
                counts.update({join(call.address, nested): times for nested, times in count(call.body).items()})
        return counts

    return count(body)


def find_table_types(body: Body) -> frozenset[str]:
    """Return the definitions of embedding tables: layers that look up rows in one of their tensors."""

    @cache
    def find(body: Body, definition: str, stored_inputs: frozenset[int]) -> frozenset[str]:
        """Return the definitions in a body; `stored_inputs` are the inputs of a loop that are stored tensors."""
        stored = {slot for _, slot in body.weights} | stored_inputs
        types: set[str] = set()
        for call in body.calls:
            if call.body is None:
                operands = dict(call.inputs)
                indexed = [name for entry in OPS[call.type].inputs for name in entry.indexes.split()]
                if any(operands.get(name) in stored for name in indexed):
                    types.add(definition)
            elif call.body.loop is None:
                types |= find(call.body, call.body.type, frozenset[int]())
            else:
                stored_operands = frozenset([i for i, (_, operand) in enumerate(call.inputs) if operand in stored])
                types |= find(call.body, definition, stored_operands)
        return frozenset(types)

    return find(body, body.type, frozenset[int]())


class TensorGroup(NamedTuple):
    """A group of `times` tensors of `each` elements with the pattern `name`, in a `layer` of a `type`.

    `part` is "" for tensors of the model, the address of a head of its family, "buffer", or "use" for repeated
    applications of the tensors. `alias` is whether the tensors are counted in another group, under their first names.
    `is_table` is whether rows are looked up in them. `share` is "used" or "idle" if a token uses only a part of the
    tensors (the chosen experts): the group is this part, or the remainder. `spread` is an index of
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
    """The start of a count: the model, one of its relatives, or the model with one head; `counted` are its groups.

    `more` are its groups that are not counted: further names, buffers, repeated applications. `parts` and `missing` are
    the addresses that it adds to the model and lacks; `models` are the equal models of the file. `rank` is 1 for the
    model with a head. `guess` is 1 for a relative with sizes that the model does not have. A guess counts as one
    adjustment if there are other adjustments.
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

    `bases` begins with the model. `heads` are the heads of the model and of its family, by address. `spreads` are the
    distributions of groups over repeated layers: the number of tensors by the index of the layer, or of its
    application; the first is the distribution of a single tensor. `reapplied` is the number of layers that are applied
    more than once. `active_without_tables` is the number of parameters that a token uses, without the tables of which
    it only reads rows.
    """

    def __init__(
        self, table: Table, relatives: Sequence[Relative], uses: Mapping[str, int], tables: Collection[str] = ()
    ) -> None:
        """`uses` has the numbers of applications of layers; `tables` are the definitions of embedding tables."""
        self._tables = tables
        self.active_without_tables = table.active and table.active.without_tables
        self.groups: list[TensorGroup] = []
        self.spreads: list[Counter[str]] = [Counter()]
        self._bits: dict[TensorGroup, int] = {}
        model_groups = self._group_tensors(table)
        tensors = self._add(model_groups)
        untied = [buffer for buffer in table.buffers if buffer.name not in table.buffer_ties]
        buffers = self._add(
            {
                TensorGroup(b.name, b.shape, prod(b.shape), None, False, b.name, "", "buffer", False, False): 1
                for b in untied
            }
        )
        repeated = [t for t in table.tensors if not t.tied_to and uses.get(t.layer, 1) > 1]
        self.reapplied = len({tensor.layer for tensor in repeated})
        self._uses = self._add(self._further_uses(repeated, uses))
        counted = self._counted_groups(tensors)
        uncounted = tensors & ~counted | buffers | self._uses
        outermost = set(map(address_pattern, _outermost_modules(table)))
        heads = self.group_by(lambda group: _enclosing_address(address_pattern(group.layer), outermost), tensors)
        roles = {address: {group.role for _, group in self.members(groups)} for address, groups in heads.items()}
        self.heads = {a: groups for a, groups in heads.items() if {"head"} <= roles[a] <= {"head", "norm"}}
        self.bases = [Base(table.model, (), counted, uncounted)]
        self.bases += [base for r in relatives if (base := self._build_relative_base(model_groups, r)) is not None]
        for part in dict.fromkeys(part for base in self.bases[1:] for part in base.parts):
            head = self.select(lambda group, part=part: group.part == part)
            self.heads.setdefault(part, head)
            more = (uncounted | head) & ~self._counted_groups(head)
            self.bases.append(Base("", (), counted | self._counted_groups(head), more, (part,), (), 1))
        values = [group.times * group.each for group in self.groups]
        self._chunk_sums = [_subset_sums(values[i : i + 8]) for i in range(0, len(values), 8)]

    @property
    def everything(self) -> int:
        """The set of all groups."""
        return (1 << len(self.groups)) - 1

    def total(self, groups: int) -> int:
        """Return the number of elements in a set of groups."""
        total = 0
        for sums in self._chunk_sums:
            total += sums[groups & 255]
            groups >>= 8
        return total

    def members(self, groups: int) -> list[tuple[int, TensorGroup]]:
        """Return the groups of a set, each with its bit."""
        bits = reversed(f"{groups:b}")
        return [(1 << i, group) for i, (bit, group) in enumerate(zip(bits, self.groups, strict=False)) if bit == "1"]

    def select(self, condition: Callable[[TensorGroup], object], among: int | None = None) -> int:
        """Return the set of the groups that satisfy a condition, of all groups or of the set `among`."""
        members = self.members(self.everything if among is None else among)
        return sum(bit for bit, group in members if condition(group))

    def group_by(self, labels: Callable[[TensorGroup], Iterable[str]], among: int) -> dict[str, int]:
        """Return the set of the groups with each label."""
        result: dict[str, int] = {}
        for bit, group in self.members(among):
            for label in labels(group):
                result[label] = result.get(label, 0) | bit
        return result

    def equal_layers(self, addends: Iterable[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
        """Return the number of equal layers at each address, and the elements of one layer.

        `addends` are elements: their address, spread and number. Unequal layers are counted as one.
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

    def _counted_groups(self, groups: int) -> int:
        return self.select(lambda group: not group.alias, groups)

    def _add(self, grouped: Mapping[TensorGroup, int]) -> int:
        """Add the groups in `grouped`, which maps groups to `times`, and return their set."""
        result = 0
        for group, times in grouped.items():
            bit = self._bits.get(group)
            if bit is None:
                bit = self._bits[group] = 1 << len(self.groups)
                self.groups.append(group._replace(times=times))
            result |= bit
        return result

    def _group_tensors(self, table: Table, body: str = "", home: str = "") -> dict[TensorGroup, int]:
        """Count the tensors of each group, with addresses moved from `body` to `home`.

        A group of a single tensor keeps the name of the tensor.
        """
        names: dict[TensorGroup, tuple[str, str]] = {}
        spreads: dict[TensorGroup, Counter[str]] = {}
        for tensor, choice in zip(table.tensors, _token_choices(table), strict=True):
            name, layer = _move(tensor.name, body, home), _move(tensor.layer, body, home)
            for group in _split_by_use(self._group(tensor, name, layer), choice):
                names.setdefault(group, (name, layer))
                spreads.setdefault(group, Counter())[_first_index(name)] += 1
        result: dict[TensorGroup, int] = {}
        for group, spread in spreads.items():
            if spread.total() == 1:
                name, layer = names[group]
                result[group._replace(name=name, layer=layer)] = 1
            else:
                result[group._replace(spread=self._spread(spread))] = spread.total()
        return result

    def _further_uses(self, tensors: Sequence[Tensor], uses: Mapping[str, int]) -> dict[TensorGroup, int]:
        """Count the applications of each group of tensors after the first."""
        spreads: dict[TensorGroup, Counter[str]] = {}
        for tensor in tensors:
            group = self._group(tensor, tensor.name, tensor.layer)._replace(part="use", alias=True)
            number = _first_index(tensor.name)
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

    def _build_relative_base(self, model_groups: Mapping[TensorGroup, int], relative: Relative) -> Base | None:
        """Return a relative as a base; None if the sizes of its body differ from the model."""
        outermost = set(_outermost_modules(relative.table)) - {relative.body}
        model_names = {group.name for group in model_groups}
        relative_groups: dict[TensorGroup, int] = {}
        for group, times in self._group_tensors(relative.table, relative.body, relative.home).items():
            if model_groups.get(group, times) != times or (group not in model_groups and group.name in model_names):
                return None
            part, *_ = *_enclosing_address(group.name, outermost), group.layer or group.name
            relative_groups[group if group in model_groups else group._replace(part=part)] = times
        groups = self._add(relative_groups)
        model = self.bases[0]
        parts = dict.fromkeys(group.part for _, group in self.members(groups & ~(model.counted | model.more)))
        missing = dict.fromkeys(group.layer for _, group in self.members(model.counted & ~groups))
        counted = self._counted_groups(groups)
        uncounted = groups & ~counted | self._uses
        return Base(
            relative.definition,
            relative.models,
            counted,
            uncounted,
            tuple(parts),
            tuple(missing),
            guess=int(relative.guessed),
        )


def _token_choices(table: Table) -> Sequence[tuple[int, int] | None]:
    """Return for each tensor the numbers of used parts and of all equal parts; None if a token uses all."""
    active = table.active
    if active is None:
        return [None] * len(table.tensors)
    choices = active.by_tensor()
    divides = all(c is None or tensor.size % c[1] == 0 for tensor, c in zip(table.tensors, choices, strict=True))
    return choices if divides else [None] * len(choices)


def _split_by_use(group: TensorGroup, choice: tuple[int, int] | None) -> list[TensorGroup]:
    """Divide a group into the part that a token uses and the idle part."""
    if choice is None:
        return [group]
    used = group.each // choice[1] * choice[0]
    return [group._replace(share="used", each=used), group._replace(share="idle", each=group.each - used)]


def _first_index(name: str) -> str:
    """Return the first number in a name; "" if there is none."""
    return next((segment for segment in name.split(".") if segment.isdigit()), "")


def _outermost_modules(table: Table) -> list[str]:
    """Return the addresses of the modules that a model declares directly."""
    addresses: list[str] = []
    for module in table.modules:  # parents precede children
        if module.address and not (addresses and is_inside(module.address, addresses[-1])):
            addresses.append(module.address)
    return addresses


def _enclosing_address(name: str, addresses: set[str]) -> list[str]:
    """Return the outermost of some addresses that contains a name, as a list; empty if none contains it."""
    return [outer for outer in prefixes(name) if outer in addresses][:1]


def _move(name: str, body: str, home: str) -> str:
    return join(home, relative(name, body)) if is_inside(name, body) else name


def _subset_sums(values: list[int]) -> list[int]:
    """Return the sum of every subset of up to eight values, indexed by the subset's bits."""
    sums = [0]
    for value in values:
        sums += [partial + value for partial in sums]
    return sums + [0] * (256 - len(sums))
