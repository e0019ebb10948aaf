"""Hyperparameters from the fields of a configuration. A field that is not known to have no effect is never ignored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from json import dumps
from math import prod
from typing import NamedTuple, cast

from archspec.core.diagnostics import Note, Report, suggest
from archspec.core.reports.text import literal
from archspec.formats.configs.family import Family, Field
from archspec.formats.configs.read import Member, Plain

# Fields that are read in other ways than the file of a family describes.
#
# Scalings of rotary positions affect no tensor: those that a family does not have do not stop a count. What needs the
# computation itself is refused.

_OBJECTS = ("rope_parameters", "rope_scaling")
_KINDS = ("rope_type", "type")


_NO_MODELS = ("AutoConfig", "AutoTokenizer", "AutoProcessor", "AutoImageProcessor", "AutoFeatureExtractor")


def as_read(members: dict[str, Member], family: Family) -> dict[str, Member]:
    """Return the members as `transformers` reads them.

    `vision_config_dict` replaces `vision_config`, and it has the classes that `auto_map` names if these are its own.
    """
    found = dict(members)
    for part in family.parts:
        other = found.get(f"{part}_dict")
        if other is not None and isinstance(other.value.plain, dict):
            found[part] = found.pop(f"{part}_dict")
    own = found.get("auto_map")
    if own is not None and isinstance(own.value.plain, dict):
        named = [member.value.plain for key, member in own.value.plain.items() if key not in _NO_MODELS]
        if all(isinstance(name, str) and name.rpartition(".")[2] in family.architectures for name in named):
            del found["auto_map"]
    return found


def without_scaling(
    members: dict[str, Member], family: Family, ignore: Sequence[str]
) -> tuple[dict[str, Member], tuple[str, ...]]:
    """Return the members without scalings of rotary positions that a family does not have; and what these are."""
    found: dict[str, str] = {}
    for name in _OBJECTS:
        described = _unsupported(name, members.get(name), family, ignore)
        if described is not None:
            found[name] = described
    kept = {name: member for name, member in members.items() if name not in found}
    return kept, tuple(f"`{name}` {described}" for name, described in found.items())


def _unsupported(name: str, member: Member | None, family: Family, ignore: Sequence[str]) -> str | None:
    """Describe what the family does not have in a scaling: its type, or a field."""
    fields = member.value.plain if member is not None else None
    if not isinstance(fields, dict):
        return None
    kinds = [fields[key].value.plain for key in _KINDS if key in fields]
    kind = kinds[0] if kinds else None
    names = (*(f"{each}.{key}" for each in (name, *_OBJECTS) for key in _KINDS), name)
    field = next((family.fields[each] for each in names if each in family.fields), None)
    if not isinstance(kind, str) or field is None:
        return None
    known = field.only if field.only is not None else [value for value, _ in field.values or ()]
    if kind not in known:
        return f"of the type `{kind:.40}`"
    fulls = {key: f"{name}.{key}" for key in fields}
    other = next((key for key, full in fulls.items() if not _is_known(full, family, ignore)), None)
    return None if other is None else f"with the field `{other:.40}`"


def _is_known(full: str, family: Family, ignore: Sequence[str]) -> bool:
    is_ignored = any(full == pattern or fnmatchcase(full, pattern) for pattern in ignore)
    return full in family.fields or full in family.ignored or is_ignored


MAX_NUMBER = 10**18 - 1  # integers of specs have 18 digits
_REALS = ("number", "positive", "rate")  # the kinds of fields whose integers are reals in a spec


class Setting(NamedTuple):
    """The value of a hyperparameter, and the member that sets it (None for a default).

    A string is the name of a definition or function.
    """

    value: object
    member: Member | None


class Settings:
    """Collector of the hyperparameters that a configuration sets."""

    def __init__(self, family: Family, architecture: str, report: Report, ignore: Sequence[str] = ()) -> None:
        self.family = family
        self.architecture = architecture
        self.report = report
        self.ignore = ignore
        self.skipped: list[str] = []
        self.found: dict[str, Setting] = {}
        self._given: dict[str, Member] = {}
        self._objects: set[str] = set()  # nested objects that are given
        self._lists: list[tuple[str, Field, Member]] = []  # evaluated last: they depend on other fields

    def take(self, members: dict[str, Member], prefix: str) -> None:
        """Process the members of an object, and of nested objects that have known fields."""
        for name, member in members.items():
            full = prefix + name
            field = self.family.fields.get(full)
            if field is not None and field.kind in ("cycle", "integers"):
                if member.value.plain is not None:
                    self._lists.append((full, field, member))
            elif field is not None:
                self._field(full, field, member)
            elif full in self.family.ignored:
                continue
            elif any(known.startswith(f"{full}.") for known in self.family.fields):
                inner = member.value.plain
                if isinstance(inner, dict):
                    self._objects.add(full)
                    self.take(inner, f"{full}.")
                elif inner is not None:
                    self._expects(full, "an object", member)
            elif any(full == pattern or fnmatchcase(full, pattern) for pattern in self.ignore):
                self.skipped.append(full)
                continue
            else:
                self._unknown(full, member)
            if full in self.ignore:
                message = f"`{full}` cannot be ignored: it has an effect for {self.family.title}"
                self.report.error("usage", message, member.name, help=f"remove `--ignore {full}`")

    def complete(self) -> None:
        """Apply the defaults of the family, and check the constraints between fields."""
        for name, field, member in self._lists:
            self._field(name, field, member)
        fields = [f for f in {id(f): f for f in self.family.fields.values()}.values() if self._applies(f)]
        for field in fields:
            # A list of the cycle is only a longer form of the hyperparameter, which another field may have set.
            is_set = field.kind == "cycle" and field.sets in self.found
            if field.name not in self._given and field.has_default and not is_set:
                is_inside = field.within is not None and bool(self._objects & field.objects)
                for name, value in _settings(field, field.within if is_inside else field.default):
                    self._set(field.name, name, value, None)
            self._check_needs(field)
        if self.report.failed:
            return
        for field in fields:
            if field.like is not None:
                self._set_like(field)
            if field.sets is not None and field.unless is not None and self._are_equal(field.sets, field.unless):
                del self.found[field.sets]
            self._check_product(field)
        for name, field, member in self._lists:
            items, length = member.value.plain, self.found[field.length or ""].value
            if isinstance(items, list) and len(items) != length:
                self._wrong("wrong-kind", f"`{name}`: expected {length} items, found {len(items)}", member)

    def _set_like(self, field: Field) -> None:
        """Set the hyperparameter of a field that is absent or null to the one that it is then like."""
        member = self._given.get(field.name)
        value, other = member.value.plain if member is not None else field.default, self.found[field.like or ""]
        if value is None:
            self._set(field.name, field.sets or "", other.value, member, other.member)

    def _check_product(self, field: Field) -> None:
        member = self._given.get(field.name)
        factors = [self.found[name].value for name in field.product]
        if member is None or not factors:
            return
        expected = prod([factor for factor in factors if isinstance(factor, int)])
        if member.value.plain != expected:
            self._unsupported(
                field.name, member, f"supported value: `{expected}`, which is {' * '.join(field.product)}"
            )

    def _check_needs(self, field: Field) -> None:
        member = self._given.get(field.name)
        if member is None or not isinstance(member.value.plain, str):
            return
        for name in field.needs.get(member.value.plain, ()):
            if name not in self._given:
                message = f"missing `{name}`: required when `{field.name}` is {member.value.written()}"
                self._wrong("missing-argument", message, member)

    def _are_equal(self, one: str, other: str) -> bool:
        return one in self.found and self.found[one].value == self.found[other].value

    def _set(
        self, name: str, hyperparameter: str, value: object, member: Member | None, source: Member | None = None
    ) -> None:
        """Set a hyperparameter; report an error if it already has a different value.

        `source` is the member that a default depends on.
        """
        other = self.found.setdefault(hyperparameter, Setting(value, member))
        if other.value == value:
            return
        where = member or other.member or source
        assert where is not None, f"conflicting defaults of {hyperparameter} in the family"
        field = f"`{name}`" if member is not None else f"the default of `{name}`"
        message = f"{field} sets `{hyperparameter}` to {literal(value)}, but it is already {literal(other.value)}"
        notes = (Note("first set here", other.member.name),) if member and other.member else ()
        self.report.error("unsupported", message, where.name, notes=notes)

    def _applies(self, field: Field) -> bool:
        return field.among is None or any(fnmatchcase(self.architecture, each) for each in field.among)

    def _field(self, name: str, field: Field, member: Member) -> None:
        before = self._given.setdefault(field.name, member)
        if before is not member and before.value.data() != member.value.data():
            note = Note("first specified here", before.name)
            message = f"`{name}` conflicts with another name of the same field"
            self.report.error("duplicate-name", message, member.name, notes=(note,))
        if not self._applies(field):
            return
        value = self._value(name, field, member)
        for hyperparameter, setting in _settings(field, value) if value is not ... else ():
            self._set(name, hyperparameter, setting, member)

    def _value(self, name: str, field: Field, member: Member) -> object:
        """Return the value of a field, or Ellipsis after reporting that it is invalid or unsupported."""
        value, data = member.value, member.value.data()
        supported = field.only if field.only is not None else field.values and [each for each, _ in field.values]
        if supported is not None:
            if not any(same(data, each) for each in supported):
                known = (" or " if field.only is not None else ", ").join(f"`{dumps(each)}`" for each in supported)
                return self._unsupported(name, member, f"supported values: {known}")
            return field.only[0] if field.only is not None else data
        is_unset = field.unset is not None and same(data, field.unset)
        if is_unset or (data is None and field.optional):
            return None
        if field.kind == "cycle":
            return self._cycle(name, field, member)
        if field.kind == "integers":
            return self._integers(name, field, member)
        if expected := _expected(field, value.plain):
            return self._expects(name, expected, member)
        if field.kind == "entries" and isinstance(value.plain, dict):
            return len(value.plain)
        if field.kind == "numbers":
            return [float(item) for item in cast("list[float]", data)]
        return float(data) if field.kind in _REALS and isinstance(data, int) else data

    def _cycle(self, name: str, field: Field, member: Member) -> object:
        """Return the n for which every n-th item is the first string of the cycle and all others the second."""
        items = [item.plain for item in member.value.plain] if isinstance(member.value.plain, list) else []
        if not items:
            return self._expects(name, "a list of strings", member)
        one, other = field.cycle[0], field.cycle[-1]
        setting = self.found.get(field.sets or "")
        start = 0 if field.last else 1  # where the search for the item that ends the first n begins
        again = items.index(one, start) if one in items[start:] else len(items)
        guesses = (setting.value if setting is not None else field.default, again + field.last)
        for n in guesses:
            if isinstance(n, int) and all(
                item == (one if (i + field.last) % n == 0 else other) for i, item in enumerate(items)
            ):
                return n
        others = f' and all others are "{other}"' if other != one else ""
        help = f'use a list in which every {"n-th " * (other != one)}item is "{one}"{others}'
        return self._unsupported(name, member, help)

    def _integers(self, name: str, field: Field, member: Member) -> object:
        """Return the list of integers that an integer or a list of them means; a list of equal ones is that integer."""
        items = member.value.plain if isinstance(member.value.plain, list) else [member.value]
        expected = next(filter(None, (_expected(field, item.plain) for item in items)), None if items else "integers")
        if expected is not None:
            return self._expects(name, f"{expected}, or a list of them", member)
        numbers = [item.plain for item in items]
        return numbers[:1] if len(set(map(str, numbers))) == 1 else numbers

    def _expects(self, name: str, expected: str, member: Member) -> object:
        return self._wrong("wrong-kind", f"`{name}` expects {expected}, found {member.value.written()}", member)

    def _unsupported(self, name: str, member: Member, help: str) -> object:
        message = f"unsupported value of `{name}` for {self.family.title}: {member.value.written()}"
        return self._wrong("unsupported", message, member, help)

    def _unknown(self, name: str, member: Member) -> None:
        inside = name.rpartition(".")[0]
        names = [n for n in (*self.family.fields, *self.family.ignored) if n.rpartition(".")[0] == inside]
        near = suggest(name, names)
        ignore = f"use `--ignore {name}` if it affects neither tensors nor outputs"
        help = f"{near} otherwise, {ignore}" if near else ignore
        message = f"unknown field `{name}` for {self.family.title}"
        self.report.error("unknown-name", message, member.name, help=help)

    def _wrong(self, code: str, message: str, member: Member, help: str | None = None) -> object:
        self.report.error(code, message, member.value.span, help=help)
        return ...


def _settings(field: Field, value: object) -> list[tuple[str, object]]:
    """Return the hyperparameters that a field sets, with their values.

    A field that is None by default keeps the default of the definition if it is None; any other sets none.
    """
    if field.values is not None:
        value = next((mapped for each, mapped in field.values if same(value, each)), None)
        if isinstance(value, dict):
            return [*cast("dict[str, object]", value).items()]
    sets_none = field.default is not None and field.like is None
    return [(field.sets, value)] if field.sets is not None and (value is not None or sets_none) else []


def _expected(field: Field, value: Plain) -> str | None:
    """Return a description of the expected value, or None if `value` is valid."""
    if field.kind == "boolean":
        return None if isinstance(value, bool) else "`true` or `false`"
    if field.kind == "entries":
        return None if isinstance(value, dict) and len(value) >= field.least else "a non-empty object"
    if field.kind == "list":
        fits = isinstance(value, list) and value and all(_is_integer(item.plain, field.least) for item in value)
        return None if fits else "a list of positive integers"
    if field.kind == "numbers":
        fits = isinstance(value, list) and value and all(_is_positive(item.plain) for item in value)
        return None if fits else "a list of positive numbers"
    if field.kind == "indices":
        items = [item.plain for item in value] if isinstance(value, list) else [value]
        return None if all(_is_integer(item, 0) for item in items) else "a non-negative integer, or a list of them"
    if field.kind == "sizes":
        fits = isinstance(value, dict) and all(_is_integer(m.value.plain, field.least) for m in value.values())
        return None if fits else "an object of positive integers"
    if field.kind in _TEXTS:
        expected, is_valid = _TEXTS[field.kind]
        return None if is_valid(value) else expected
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1
    if field.kind == "positive":
        return None if _is_positive(value) else "a positive number"
    if field.kind == "number":
        return None if 0 <= number <= MAX_NUMBER else "a non-negative number"
    if field.kind == "rate":
        return None if 0 <= number < 1 else "a number from 0 to below 1"
    return None if _is_integer(value, field.least) else f"an integer of at least {field.least} with at most 18 digits"


def _is_string(value: Plain) -> bool:
    return isinstance(value, str)


def _are_strings(value: Plain) -> bool:
    return isinstance(value, list) and all(isinstance(item.plain, str) for item in value)


_TEXTS: dict[str, tuple[str, Callable[[Plain], bool]]] = {
    "string": ("a string", _is_string),
    "names": ("a list of strings", _are_strings),
    "strings": ("a string or a list of strings", lambda value: _is_string(value) or _are_strings(value)),
}
"""The kinds of fields with text: what they expect, and whether a value is that."""


def _is_integer(value: Plain, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MAX_NUMBER


def _is_positive(value: Plain) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_NUMBER


def same(one: object, other: object) -> bool:
    """Whether two values are equal; `True` and 1 are not."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)
