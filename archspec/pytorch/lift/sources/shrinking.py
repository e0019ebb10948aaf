"""Small configurations of an architecture: the fields of a configuration with small values, all of them different.

A configuration class says neither which fields are sizes nor how they depend on each other. The name of a field and its
value say what it most likely is; a proposal that turns out to be wrong does not construct or does not run, and is
followed by one that changes less.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count, islice

from archspec.pytorch.lift.sources.fields import (
    MIN_VALUES,
    Fields,
    are_fields,
    are_integers,
    common_divisor,
    has_sections,
    head_of,
    is_configuration,
    is_integer,
    is_list,
    kind_of,
    lists_in,
    named_scopes,
    numbers_in,
    numbers_of_groups,
    rotary_part,
    rotary_share,
    rotary_unit,
    scopes_of,
)
from archspec.pytorch.lift.sources.proposals import Choices, Depths, Proposal

_SCALED = {False: ("head", "rotary", "hidden", "width"), True: ("heads", "groups", "hidden", "width")}
"""Kinds of sizes that add up to each other, without and with the sizes of heads being their own."""

_IMAGES = "image_size", "img_size", "size"
"""Names of the fields that are the size of an image, if there is one that is the size of its patches."""

_PATCHES = "patch_size", "patch"

_DERIVED = ("stage_names", "out_features", "out_indices")
"""Fields that follow from the number of layers."""

_OF_OTHERS = re.compile(
    r"^(out|output|cross|text|llm|lm|adapter|decoder|encoder|backbone)_\w*(hidden_size|dim|input_size)$|groups$"
)
"""Names of fields that are the width of another part, or its channels one by one, if that width has the same value.
The former may also be separate.
"""


def shrink_fields(fields: Mapping[str, object], proposal: Proposal, choices: Choices) -> Fields:
    """Return the fields of a configuration with small values."""
    return _Shrinking(fields, proposal, choices).fields


def merge_fields(fields: Mapping[str, object], changes: Mapping[str, object]) -> Fields:
    """Return the fields of a configuration with changes, also to those of configurations inside of it."""
    found = {**fields, **changes}
    for name, value in changes.items():
        inner = fields.get(name)
        if are_fields(value) and is_configuration(inner):
            found[name] = merge_fields(inner, value)
    return found


def hidden_changes(
    actual: Mapping[str, object], first: Mapping[str, object], second: Mapping[str, object]
) -> list[str]:
    """Return the fields that are the same in two small configurations, but not in the actual one."""
    found: list[str] = []
    for name, value in actual.items():
        a, b = first.get(name, value), second.get(name, value)
        if is_configuration(value) and are_fields(a) and are_fields(b):
            found += hidden_changes(value, a, b)
        elif a == b != value and name not in _DERIVED and not isinstance(value, list):
            found.append(name)
    return found


def without_shrunk_lists(actual: Mapping[str, object], changed: Mapping[str, object]) -> Fields:
    """Return the fields of a small configuration without the items of those lists that have other sizes in it.

    A spec has numbers for such sizes.
    """
    found = dict(changed)
    for name, value in actual.items():
        inner = changed.get(name)
        if is_configuration(value) and are_fields(inner):
            found[name] = without_shrunk_lists(value, inner)
    for name, sizes in lists_in(actual):
        other = changed.get(name)
        has_sizes = is_list(other) and len(other) == len(sizes) and kind_of(name) not in ("at_layer", "token")
        if has_sizes and other != sizes:
            found[name] = []
    return found


class _Shrinking:
    """The values that fields have been given."""

    def __init__(self, actual: Mapping[str, object], proposal: Proposal, choices: Choices) -> None:
        self.proposal = proposal
        self.choices = choices
        self._actual = actual
        self._prefixes = {id(scope): prefix for prefix, scope in named_scopes(actual)}
        self._keeps_heads = not proposal.unit and proposal.has_own_heads
        share = rotary_share(actual)
        self._step = rotary_unit(actual, math.lcm(MIN_VALUES["head"], share))
        unit = rotary_unit(actual, proposal.unit * share) * choices.scale * (2 if has_sections(actual) else 1)
        self._unit = unit or (head_of(actual) if self._keeps_heads else 0)
        self._scaled_kinds = _SCALED[proposal.has_own_heads] if proposal.is_scaled else ()
        divisor = common_divisor(actual, proposal.has_own_heads)
        self._divisor = divisor // 2 if choices.scale > 1 else divisor
        self._used: set[int] = set()
        self._known: dict[tuple[str, int, int], int] = {}
        self._hidden = [width for scope in scopes_of(actual) if is_integer(width := scope.get("hidden_size"))]
        self._turns: dict[str, int] = {}
        self._known_groups: dict[int, int] = {}
        self._depths = Depths(actual)
        places = [
            value for scope in scopes_of(actual) for name, value in numbers_in(scope) if kind_of(name) == "at_layer"
        ]
        self._has_first_layers = any(value > 1 for value in places)
        """Whether several layers at the beginning are of another kind: one alone would be written in another way."""
        self._heads = math.lcm(*self._head_counts(actual))
        self._groups = math.lcm(*numbers_of_groups(actual))
        self.fields = self._scope(actual)

    def _head_counts(self, actual: Mapping[str, object]) -> list[int]:
        """Return the small numbers of heads, by which widths are divided."""
        found: list[int] = []
        for scope in scopes_of(actual):
            found += [self._number(scope, name, value) for name, value in numbers_in(scope) if kind_of(name) == "heads"]
            found += [value[0] for name, value in lists_in(scope) if kind_of(name) == "heads"]
        return found

    def _scope(self, actual: Mapping[str, object]) -> Fields:
        """Return the fields of a configuration, or of one inside of it."""
        found: Fields = {}
        cropped = self._cropped(actual)
        stages = {len(value) for name, value in lists_in(actual) if kind_of(name) in ("heads", "hidden", "kept")}
        for name, value in actual.items():
            if is_configuration(value):
                found[name] = self._scope(value)
            elif name in cropped:
                found[name] = cropped[name]
            elif is_integer(value):
                found[name] = (
                    value if kind_of(name) == "layers" and value in stages else self._number(actual, name, value)
                )
        if not self.proposal.is_distinct or self.proposal.has_equal_heads:
            self._equalize(actual, found)
        found |= self._rotary_sizes(actual, found) | self._distinct_groups(actual, found)
        numbers = dict(numbers_in(found))
        layers = [(value, numbers[name]) for name, value in numbers_in(actual) if kind_of(name) == "layers"]
        large = [name for name, value in numbers_in(actual) if value >= MIN_VALUES["vocabulary"]]
        most = min([numbers[name] for name in large if kind_of(name) == "vocabulary"], default=0)
        is_shallow = any(few != many for many, few in layers)
        for name, value in actual.items():
            if name in _DERIVED and is_shallow:
                found[name] = None
            elif kind_of(name) == "token" and most:
                found[name] = _within(value, most)
            elif kind_of(name) == "at_layer" and layers:
                found[name] = _rescaled(value, *layers[0])
            elif are_fields(value) and "layer" in name and layers:
                found[name] = self._for_layers(value, layers[0][1])
            elif are_fields(value) and not is_configuration(value) and not self.proposal.is_shallow:
                found[name] = _sectioned(value, head_of(actual), head_of({**actual, **found}))
            elif is_list(value):
                found[name] = self._list(name, value, layers)
        return found

    def _equalize(self, actual: Mapping[str, object], found: Fields) -> None:
        """Give as many heads to keys as to queries if that is so in the configuration."""
        heads = {value: found[name] for name, value in numbers_in(actual) if kind_of(name) == "heads"}
        for name, value in numbers_in(actual):
            if kind_of(name) == "groups" and value in heads and name not in self.proposal.separate:
                found[name] = heads[value]

    def _distinct_groups(self, actual: Mapping[str, object], found: Fields) -> Fields:
        """Return numbers of heads of keys that differ from those of other parts, if they do in the configuration."""
        changed: Fields = {}
        numbers = dict(numbers_in(found))
        heads = next((numbers[name] for name, _ in numbers_in(actual) if kind_of(name) == "heads"), 0)
        for name, value in numbers_in(actual):
            if kind_of(name) == "groups" and 1 < numbers[name] < heads:
                known = self._known_groups.setdefault(numbers[name], value)
                others = [few for few in range(2, heads) if heads % few == 0]
                others = others[::-1] if self.choices.scale > 1 else others
                free = [few for few in others if self._known_groups.get(few, value) == value]
                if known != value and free:
                    changed[name] = free[0]
                    self._known_groups[free[0]] = value
        return changed

    def _rotary_sizes(self, actual: Mapping[str, object], found: Fields) -> Fields:
        """Return sizes that are the share of a head that has rotary positions, if they are in the configuration."""
        rotary, head = actual.get("rope_parameters"), actual.get("head_dim")
        part = rotary.get("partial_rotary_factor") if are_fields(rotary) else None
        small_head = found.get("head_dim")
        if not isinstance(part, float) or not is_integer(head) or not is_integer(small_head):
            return {}
        names = [name for name, value in numbers_in(actual) if "rope" in name and value == head * part]
        return {name: round(small_head * part) for name in names}

    def _list(self, name: str, value: list[object], layers: list[tuple[int, int]]) -> Sequence[object]:
        few = next((few for many, few in layers if many == len(value) and many > few), None)
        if few is not None and (not are_integers(value) or "layer" in name):
            return value[:few]
        if not self.choices.layers:
            return value
        if kind_of(name) in self._scaled_kinds:
            return [self._scaled(size) for size in value]
        if not are_integers(value):
            return value
        if re.search(r"depths$|num_blocks$|block_repeats$", name):
            return [min(count, 3 + (turn + self.choices.width // 2) % 2) for turn, count in enumerate(value)]
        if self.proposal.unit == 8 and kind_of(name) in ("hidden", "width") and min(value, default=0) >= 32:
            by = math.gcd(*value, 2 ** (min(value) // 16).bit_length() // 2)
            return [size // by for size in value]
        return value

    def _cropped(self, actual: Mapping[str, object]) -> Fields:
        """Return a small image and a small patch."""
        numbers = dict(numbers_in(actual))
        names = [next((name for name in known if name in numbers), "") for known in (_IMAGES, _PATCHES)]
        image, patch = [numbers.get(name, 0) for name in names]
        if not self.proposal.is_cropped or min(image, patch) <= 0 or image % patch:
            return {}
        size, count = self.choices.patches
        return dict(zip(names, (size * count, size), strict=True))

    def _number(self, scope: Mapping[str, object], name: str, value: int) -> int:
        kind = kind_of(name)
        if name in self.choices.multiples:
            return self.choices.multiples[name] * value
        if kind == "positions" and 2 < value < MIN_VALUES[kind]:
            return value + self.choices.scale // 2
        if value < MIN_VALUES.get(kind, 2) or (kind == "layers" and not self.choices.layers):
            return value
        if kind != "layers" and self.proposal.is_shallow:
            return value
        if kind in self._scaled_kinds:
            return self._divided(value)
        if not self.proposal.unit and (kind == "head" or (kind in ("heads", "groups") and not self._keeps_heads)):
            return value
        separate = self.proposal.separate
        named = self._prefixes.get(id(scope), "") + name
        is_apart = named in separate or (self.choices.are_apart and kind != "vocabulary")
        part = id(scope) if is_apart else 0
        is_distinct = self.proposal.is_distinct or name in separate
        key = (name, value, part) if is_distinct else (kind, value, part)
        is_separate = (name in separate or named in separate) and not name.endswith("groups")
        if _OF_OTHERS.search(name) and value in self._hidden and not is_separate:
            kind, key = "hidden", ("hidden_size", value, self._part_of_width(value))
        if kind == "hidden" and not is_distinct:
            key = "width", value, part
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._chosen(name, kind, value)
        return found

    def _part_of_width(self, width: int) -> int:
        """Return the part of the configuration that has a width, if parts are apart."""
        parts = (id(scope) for scope in scopes_of(self._actual) if scope.get("hidden_size") == width)
        return next(parts) if self.choices.are_apart else 0

    def _for_layers(self, value: Fields, few: int) -> Fields:
        """Return values by the numbers of layers, for few layers; fields of some layers are small."""
        kept = {key: part for key, part in value.items() if not str(key).isdecimal() or int(key) < few}
        if not self.proposal.has_own_heads:
            return kept
        for key, part in kept.items():
            if are_fields(part):
                kept[key] = part | {name: self._number(part, name, size) for name, size in numbers_in(part)}
        return kept

    def _scaled(self, value: object) -> object:
        """Return a size, or the sizes in a list, over the number by which all of them are divided."""
        if is_list(value):
            return [self._scaled(item) for item in value]
        return self._divided(value) if is_integer(value) else value

    def _divided(self, value: int) -> int:
        return value // self._divisor if value % self._divisor == 0 else value

    def _chosen(self, name: str, kind: str, value: int) -> int:
        choices, turn = self.choices, self._turns.get(kind, 0)
        self._turns[kind] = turn + 1
        match kind:
            case "layers":
                turns, place = divmod(turn, len(choices.layers))
                least = choices.layers[place] + turns * len(choices.layers) + self._has_first_layers
                return self._depths.small(value, least, choices.scale > 1, self.proposal.ends_alike)
            case "heads":
                return choices.heads[turn % len(choices.heads)]
            case "groups":
                return choices.groups
            case "vocabulary":
                return choices.vocabulary + 6 * turn
            case "positions" | "queries":
                return choices.positions + 8 * turn
            case "experts":
                return choices.experts[0]
            case "chosen":
                return choices.experts[1]
            case "expert_groups":
                return choices.experts[2]
            case "chosen_groups":
                return min(value, choices.experts[3])
            case "head":
                return self._head(name, turn)
            case "rotary" if self._unit:
                return round(self._unit * rotary_part(self._actual))
            case "hidden" | "width" if self._unit:
                return self._width(kind)
            case _:
                return value

    def _head(self, name: str, turn: int) -> int:
        """Return the size of a head: that of the first width, or one that is no simple multiple of it.

        These do not grow evenly either.
        """
        scale = self.choices.scale
        width = self._heads * self._unit // self.choices.heads[0]
        more = next(islice(_continued(self.choices.head_steps), turn, None))
        is_own = self.proposal.has_own_heads or name in self.proposal.separate
        return width + self._step * (scale + 1 + more * scale) if is_own else width

    def _width(self, kind: str) -> int:
        """Return the next width, which is divided by the numbers of heads if it is that of a hidden state, and by those
        of groups.

        Widths do not grow evenly, so that none is a simple sum of others in both configurations.
        """
        is_hidden = kind == "hidden" or not self.proposal.is_distinct
        step = math.lcm(self._unit * self._heads if is_hidden else self._unit, self._groups)
        least = step if is_hidden else step * self.choices.width
        widths = (least + step * more for more in _continued(self.choices.steps))
        width = next(width for width in widths if width not in self._used)
        self._used.add(width)
        return width


def _continued(steps: Sequence[int]) -> Iterator[int]:
    return chain(steps, count(max(steps) + 1))


def _sectioned(value: Fields, head: int, small_head: int) -> Fields:
    """Return the parameters of rotary positions with sections that add up for heads of a small size."""
    found = dict(value)
    for name, sizes in lists_in(value):
        whole = sum(sizes) * small_head // head if head else 0
        if name.endswith("section") and len(sizes) <= whole != sum(sizes):
            few = [max(size * whole // sum(sizes), 1) for size in sizes]
            other = next((turn for turn, size in enumerate(sizes) if sizes.count(size) == 1), 0)
            few[other] += whole - sum(few)
            found[name] = few
    return found


def _within(value: object, vocabulary: int) -> object:
    """Return the identifiers of tokens, moved into a small vocabulary."""
    if is_list(value):
        return [_within(item, vocabulary) for item in value]
    return vocabulary - 1 - value % 16 if is_integer(value) and value >= vocabulary else value


def _rescaled(value: object, many: int, few: int) -> object:
    """Return numbers of layers, moved into few layers: all are all, and some are all but two."""
    if few == many:
        return value
    if is_list(value):
        found = [-(-item * few // many) if is_integer(item) and item > 0 else item for item in value]
        return list(dict.fromkeys(found))
    if not is_integer(value) or value <= 0:
        return value
    return few if value >= many else min(value, max(few - 2, 1))
