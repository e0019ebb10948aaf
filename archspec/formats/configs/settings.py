"""Conversion of configuration fields to hyperparameters.

A field is ignored only if it is known to have no effect, or if the user says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from json import dumps
from math import inf, prod
from typing import cast

from archspec.core.diagnostics import Note, Report, Source, suggest
from archspec.core.record import Record
from archspec.core.reports.text import literal
from archspec.formats.configs.classes import ConfigurationReader
from archspec.formats.configs.family import Family, Field
from archspec.formats.strict_json import Member, Plain, read_json

# Fields that are read in another way than the file of a family describes.

_SCALING_FIELDS = ("rope_parameters", "rope_scaling")
_SCALING_TYPE_FIELDS = ("rope_type", "type")


_NO_MODEL_CLASSES = ("AutoConfig", "AutoTokenizer", "AutoProcessor", "AutoImageProcessor", "AutoFeatureExtractor")


def resolve_replaced_fields(members: dict[str, Member], family: Family) -> dict[str, Member]:
    """Apply the members that replace others in `transformers`, and remove them.

    `vision_config_dict` replaces `vision_config`. `auto_map` has no effect if `transformers` has its classes.
    """
    effective = dict(members)
    for part in family.parts:
        alternative = effective.get(f"{part}_dict")
        if alternative is not None and isinstance(alternative.value.plain, dict):
            effective[part] = effective.pop(f"{part}_dict")
    auto_map = effective.get("auto_map")
    if auto_map is not None and isinstance(auto_map.value.plain, dict):
        classes = auto_map.value.plain.items()
        class_names = [member.value.plain for key, member in classes if key not in _NO_MODEL_CLASSES]
        if all(isinstance(name, str) and name.rpartition(".")[2] in family.architectures for name in class_names):
            del effective["auto_map"]
    return effective


def split_unsupported_scaling(
    members: dict[str, Member], family: Family, ignore: Sequence[str], prefix: str = ""
) -> tuple[dict[str, Member], dict[str, str]]:
    """Split off the scalings of rotary positions that a family does not support; return the others, and descriptions.

    They affect no tensor, so a count is still possible; the computation of outputs is refused. The members may be those
    of a part, whose fields have a `prefix`.
    """
    unsupported: dict[str, str] = {}
    supported: dict[str, Member] = {}
    for name, member in members.items():
        fields = member.value.plain
        description = _describe_unsupported(prefix, name, member, family, ignore) if name in _SCALING_FIELDS else None
        if description is not None:
            unsupported[prefix + name] = description
        elif not prefix and name in family.parts and isinstance(fields, dict):
            fields, descriptions = split_unsupported_scaling(fields, family, ignore, f"{name}.")
            unsupported |= descriptions
            supported[name] = member._replace(value=member.value._replace(plain=fields))
        else:
            supported[name] = member
    return supported, unsupported


def _describe_unsupported(prefix: str, name: str, member: Member, family: Family, ignore: Sequence[str]) -> str | None:
    """Describe the type or field of a scaling that the family does not support; None if it supports the scaling."""
    fields = member.value.plain
    if not isinstance(fields, dict):
        return None
    kinds = [fields[key].value.plain for key in _SCALING_TYPE_FIELDS if key in fields]
    kind = kinds[0] if kinds else None
    names = [*(f"{scaling}.{key}" for scaling in (name, *_SCALING_FIELDS) for key in _SCALING_TYPE_FIELDS), name]
    full_names = [prefix + name for name in names]
    field = next((family.fields[full_name] for full_name in full_names if full_name in family.fields), None)
    if not isinstance(kind, str) or field is None:
        return None
    supported_kinds = field.only if field.only is not None else [value for value, _ in field.values or ()]
    if kind not in supported_kinds:
        return f"of the type `{kind:.40}`"
    unknown_key = next((key for key in fields if not _is_known_field(f"{prefix}{name}.{key}", family, ignore)), None)
    return None if unknown_key is None else f"with the field `{unknown_key:.40}`"


def _is_known_field(full_name: str, family: Family, ignore: Sequence[str]) -> bool:
    is_ignored = any(full_name == pattern or fnmatchcase(full_name, pattern) for pattern in ignore)
    return full_name in family.fields or full_name in family.ignored or is_ignored


MAX_NUMBER = 10**18 - 1  # integers in specs have at most 18 digits
_REAL_KINDS = ("number", "positive", "rate")  # the kinds of fields whose integers are reals in a spec


class Setting(Record):
    """The value of a hyperparameter, and the member that sets it (None for a default).

    A string is the name of a definition or function.
    """

    value: object
    member: Member | None


class Settings:
    """Collector of the hyperparameters that a configuration sets."""

    def __init__(
        self,
        family: Family,
        architecture: str,
        report: Report,
        ignore: Sequence[str] = (),
        reader: ConfigurationReader | None = None,
    ) -> None:
        self.family = family
        self.architecture = architecture
        self.report = report
        self.ignore = ignore
        self.reader = reader
        self.skipped: list[str] = []
        self.unread: list[str] = []  # fields that the class of `transformers` does not read
        self.hyperparameters: dict[str, Setting] = {}
        self._first_member: Member | None = None
        self._present_fields: dict[str, Member] = {}
        self._present_objects: set[str] = set()  # nested objects of the configuration
        self._lists: list[tuple[str, Field, Member]] = []  # evaluated last: they depend on other fields

    def process(self, members: dict[str, Member], prefix: str) -> None:
        """Process the members of an object, and of nested objects that have known fields."""
        for name, member in members.items():
            self._first_member = self._first_member or member
            full_name = prefix + name
            field = self.family.fields.get(full_name)
            if field is not None and field.length is not None:
                if member.value.plain is not None:
                    self._lists.append((full_name, field, member))
            elif field is not None:
                self._process_field(full_name, field, member)
            elif full_name in self.family.ignored:
                continue
            elif any(known_name.startswith(f"{full_name}.") for known_name in self.family.fields):
                value = member.value.plain
                if isinstance(value, dict):
                    self._present_objects.add(full_name)
                    self.process(value, f"{full_name}.")
                elif value is not None:
                    self._report_expected(full_name, "an object", member)
            elif any(full_name == pattern or fnmatchcase(full_name, pattern) for pattern in self.ignore):
                self.skipped.append(full_name)
                continue
            elif self.reader is not None and self.reader.is_unread(full_name):
                self.unread.append(full_name)
            else:
                self._report_unknown(full_name, member)
            if full_name in self.ignore:
                message = f"`{full_name}` cannot be ignored: it has an effect for {self.family.title}"
                self.report.error("usage", message, member.name, help=f"remove `--ignore {full_name}`")

    def complete(self) -> None:
        """Apply the defaults of the family, and check the constraints between fields."""
        for name, default in self.family.absent.items():
            within = [field.objects for alias, field in self.family.fields.items() if alias.startswith(f"{name}.")]
            if not self._present_objects & frozenset[str]().union(*within):
                source = Source(f"`{name}` of {self.family.title} by default", dumps(default))
                self.process(cast("dict[str, Member]", read_json(source).plain), f"{name}.")
        for name, field, member in self._lists:
            self._process_field(name, field, member)
        fields = [f for f in {id(f): f for f in self.family.fields.values()}.values() if self._applies(f)]
        for field in fields:
            # A list of the cycle is only a longer form of the hyperparameter, which another field may have set.
            is_set = field.kind == "cycle" and field.sets in self.hyperparameters
            if field.name not in self._present_fields and field.has_default and not is_set:
                is_inside = field.nested_default is not None and bool(self._present_objects & field.objects)
                for name, value in _list_settings(field, field.nested_default if is_inside else field.default):
                    self._set(field.name, name, value, None)
            self._check_needs(field)
        if self.report.failed:
            return
        for field in fields:
            if field.like is not None:
                self._set_like(field)
            for name in _list_targets(field) if field.unless is not None else ():
                if self._are_equal(name, field.unless or ""):
                    del self.hyperparameters[name]
            self._check_product(field)
        for name, field, member in self._lists:
            items, length = member.value.plain, self.hyperparameters[str(field.length)].value
            if isinstance(items, list) and len(items) != length:
                self._report("wrong-kind", f"`{name}`: expected {length} items, found {len(items)}", member)

    def _set_like(self, field: Field) -> None:
        """Set the hyperparameter of a field that is absent or null to the value of the hyperparameter `like`."""
        member = self._present_fields.get(field.name)
        value = member.value.plain if member is not None else field.default
        source = self.hyperparameters[field.like or ""]
        for name in _list_targets(field) if value is None else ():
            self._set(field.name, name, source.value, member, source.member)

    def _check_product(self, field: Field) -> None:
        member = self._present_fields.get(field.name)
        factors = [self.hyperparameters[name].value for name in field.product]
        if member is None or not factors:
            return
        expected = prod([factor for factor in factors if isinstance(factor, int)])
        if member.value.plain != expected:
            self._report_unsupported(
                field.name, member, f"supported value: `{expected}`, which is {' * '.join(field.product)}"
            )

    def _check_needs(self, field: Field) -> None:
        member = self._present_fields.get(field.name)
        if member is None or not isinstance(member.value.plain, str):
            return
        for name in field.needs.get(member.value.plain, ()):
            if name not in self._present_fields:
                message = f"missing `{name}`: required when `{field.name}` is {member.value.written()}"
                self._report("missing-argument", message, member)

    def _are_equal(self, left: str, right: str) -> bool:
        return left in self.hyperparameters and self.hyperparameters[left].value == self.hyperparameters[right].value

    def _set(
        self, name: str, hyperparameter: str, value: object, member: Member | None, source: Member | None = None
    ) -> None:
        """Set a hyperparameter; report an error if it already has a different value.

        `source` is the member that a default depends on.
        """
        current = self.hyperparameters.setdefault(hyperparameter, Setting(value, member))
        if current.value == value:
            return
        cause = member or current.member or source or self._first_member
        assert cause is not None, f"conflicting defaults of {hyperparameter} in the family"
        field = f"`{name}`" if member is not None else f"the default of `{name}`"
        message = f"{field} sets `{hyperparameter}` to {literal(value)}, but it is already {literal(current.value)}"
        notes = (Note("first set here", current.member.name),) if member and current.member else ()
        self.report.error("unsupported", message, cause.name, notes=notes)

    def _applies(self, field: Field) -> bool:
        patterns = field.architectures
        return patterns is None or any(fnmatchcase(self.architecture, pattern) for pattern in patterns)

    def _process_field(self, name: str, field: Field, member: Member) -> None:
        first = self._present_fields.setdefault(field.name, member)
        if first is not member and first.value.data() != member.value.data():
            note = Note("first specified here", first.name)
            message = f"`{name}` conflicts with another name of the same field"
            self.report.error("duplicate-name", message, member.name, notes=(note,))
        if not self._applies(field):
            return
        value = self._evaluate_field(name, field, member)
        for hyperparameter, setting in _list_settings(field, value) if value is not ... else ():
            self._set(name, hyperparameter, setting, member)

    def _evaluate_field(self, name: str, field: Field, member: Member) -> object:
        """Return the value of a field, or Ellipsis after reporting that it is invalid or unsupported."""
        value, data = member.value, member.value.data()
        supported = field.only if field.only is not None else field.values and [option for option, _ in field.values]
        if supported is not None:
            if not any(are_equal_values(data, option) for option in supported):
                listing = (" or " if field.only is not None else ", ").join(
                    f"`{dumps(option)}`" for option in supported
                )
                return self._report_unsupported(name, member, f"supported values: {listing}")
            return field.only[0] if field.only is not None else data
        is_unset = field.unset is not None and are_equal_values(data, field.unset)
        if is_unset or (data is None and field.optional):
            return None
        if field.kind == "cycle":
            return self._evaluate_cycle(name, field, member)
        if field.kind == "integers":
            return self._evaluate_integers(name, field, member)
        if field.kind == "items":
            return self._evaluate_items(name, field, member)
        if expected := _describe_expected(field, value.plain):
            return self._report_expected(name, expected, member)
        if field.kind == "entries" and isinstance(value.plain, dict):
            return len(value.plain)
        if field.kind == "pairs":
            return [[int(key), number] for key, number in cast("dict[str, int]", data).items()]
        if field.kind == "size":
            return self._evaluate_size(name, field, member)
        if field.kind == "numbers":
            return [float(item) for item in cast("list[float]", data)]
        return float(data) if field.kind in _REAL_KINDS and isinstance(data, int) else data

    def _evaluate_cycle(self, name: str, field: Field, member: Member) -> object:
        """Return the n for which every n-th item is the first string of the cycle and all others the second."""
        items = [item.plain for item in member.value.plain] if isinstance(member.value.plain, list) else []
        if not items:
            return self._report_expected(name, "a list of strings", member)
        first, second = field.cycle[0], field.cycle[-1]
        setting = self.hyperparameters.get(field.sets or "")
        start = 0 if field.last else 1  # index from which to search for the end of the first cycle
        next_index = items.index(first, start) if first in items[start:] else len(items)
        guesses = (setting.value if setting is not None else field.default, next_index + field.last)
        for n in guesses:
            if isinstance(n, int) and all(
                item == (first if (i + field.last) % n == 0 else second) for i, item in enumerate(items)
            ):
                return n
        remainder = f' and all others are "{second}"' if second != first else ""
        help = f'use a list in which every {"n-th " * (second != first)}item is "{first}"{remainder}'
        return self._report_unsupported(name, member, help)

    def _evaluate_integers(self, name: str, field: Field, member: Member) -> object:
        """Return a list of integers: one for an integer or, in a list by layer, equal integers, otherwise all."""
        items = member.value.plain if isinstance(member.value.plain, list) else [member.value]
        descriptions = (_describe_expected(field, item.plain) for item in items)
        expected = next(filter(None, descriptions), None if items else "integers")
        if expected is not None:
            return self._report_expected(name, f"{expected}, or a list of them", member)
        numbers = [item.plain for item in items]
        return numbers[:1] if field.length and len(set(map(str, numbers))) == 1 else numbers

    def _evaluate_items(self, name: str, field: Field, member: Member) -> object:
        """Return a list with the value of each item."""
        values = dict(field.items or ())
        kind = type(next(iter(values)))
        stated = member.value.data()
        is_text = isinstance(stated, str) and all(len(str(value)) == 1 for value in values)
        items = [*cast("list[object]", stated)] if is_text or isinstance(stated, list) else [None]
        if not all(item.__class__ is kind for item in items):
            return self._report_expected(name, f"a list of {'strings' if kind is str else 'integers'}", member)
        if not values.keys() >= set(items):
            return self._report_unsupported(name, member, f"supported items: {', '.join(map(dumps, values))}")
        return [values[item] for item in items]

    def _evaluate_size(self, name: str, field: Field, member: Member) -> object:
        """Return a size for all axes, or the sizes of two axes if they set two hyperparameters."""
        sizes = member.value.data()
        height, width = cast("list[int]", sizes) if isinstance(sizes, list) else (sizes, sizes)
        if field.others:
            return [height, width]
        return height if height == width else self._report_unsupported(name, member, "supported values: equal sizes")

    def _report_expected(self, name: str, expected: str, member: Member) -> object:
        return self._report("wrong-kind", f"`{name}` expects {expected}, found {member.value.written()}", member)

    def _report_unsupported(self, name: str, member: Member, help: str) -> object:
        message = f"unsupported value of `{name}` for {self.family.title}: {member.value.written()}"
        return self._report("unsupported", message, member, help)

    def _report_unknown(self, name: str, member: Member) -> None:
        parent = name.rpartition(".")[0]
        names = [n for n in (*self.family.fields, *self.family.ignored) if n.rpartition(".")[0] == parent]
        suggestion = suggest(name, names)
        ignore = f"use `--ignore {name}` if it affects neither tensors nor outputs"
        help = f"{suggestion} otherwise, {ignore}" if suggestion else ignore
        message = f"unknown field `{name}` for {self.family.title}"
        self.report.error("unknown-name", message, member.name, help=help)

    def _report(self, code: str, message: str, member: Member, help: str | None = None) -> object:
        self.report.error(code, message, member.value.span, help=help)
        return ...


def _list_settings(field: Field, value: object) -> list[tuple[str, object]]:
    """Return the hyperparameters that a field sets, with their values.

    None keeps the default of the definition if the default of the field is None; otherwise it sets `none`.
    """
    if field.values is not None:
        value = next((mapped for option, mapped in field.values if are_equal_values(value, option)), None)
        if isinstance(value, dict):
            return [*cast("dict[str, object]", value).items()]
    if value is None and (field.default is None or field.like is not None):
        return []
    targets = _list_targets(field)
    values = cast("list[object]", value) if field.kind == "size" and isinstance(value, list) else [value] * len(targets)
    return [*zip(targets, values, strict=True)]


def _list_targets(field: Field) -> list[str]:
    """Return the hyperparameters that a field sets."""
    return [] if field.sets is None else [field.sets, *field.others]


def _describe_expected(field: Field, value: Plain) -> str | None:
    """Describe the expected value; None if `value` is valid."""
    if field.kind == "boolean":
        return None if isinstance(value, bool) else "`true` or `false`"
    if field.kind == "entries":
        return None if isinstance(value, dict) and len(value) >= field.minimum else "a non-empty object"
    if field.kind == "list":
        fits = isinstance(value, list) and value and all(_is_integer(item.plain, field.minimum) for item in value)
        return None if fits else "a list of positive integers"
    if field.kind == "lists":
        rows = [item.plain for item in value] if isinstance(value, list) else []
        fits = rows and all(isinstance(row, list) and row for row in rows)
        items = [item.plain for row in rows if isinstance(row, list) for item in row]
        fits = fits and all(_is_integer(item, field.minimum) for item in items)
        return None if fits else "a list of lists of positive integers"
    if field.kind == "numbers":
        is_valid = _is_positive if field.minimum else _is_non_negative
        fits = isinstance(value, list) and value and all(is_valid(item.plain) for item in value)
        return None if fits else "a list of positive numbers" if field.minimum else "a list of non-negative numbers"
    if field.kind == "size":
        items = [item.plain for item in value] if isinstance(value, list) and len(value) == 2 else [value]
        return None if all(_is_integer(item, field.minimum) for item in items) else "a positive integer, or two of them"
    if field.kind == "indices":
        items = [item.plain for item in value] if isinstance(value, list) else [value]
        return None if all(_is_integer(item, 0) for item in items) else "a non-negative integer, or a list of them"
    if field.kind == "sizes":
        fits = isinstance(value, dict) and all(_is_integer(m.value.plain, field.minimum) for m in value.values())
        return None if fits else "an object of positive integers"
    if field.kind == "pairs":
        entries = value.items() if isinstance(value, dict) else ()
        fits = entries and all(key.isdecimal() and _is_integer(m.value.plain, field.minimum) for key, m in entries)
        return None if fits else "an object of positive integers by integers"
    if field.kind in _TEXT_KINDS:
        expected, is_valid = _TEXT_KINDS[field.kind]
        return None if is_valid(value) else expected
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1
    if field.kind == "positive":
        return None if _is_positive(value) else "a positive number"
    if field.kind == "number":
        return None if 0 <= number <= MAX_NUMBER else "a non-negative number"
    if field.kind == "rate":
        return None if 0 <= number < 1 else "a number from 0 to below 1"
    minimum = field.minimum
    return None if _is_integer(value, minimum) else f"an integer of at least {minimum} with at most 18 digits"


def _is_string(value: Plain) -> bool:
    return isinstance(value, str)


def _are_strings(value: Plain) -> bool:
    return isinstance(value, list) and all(isinstance(item.plain, str) for item in value)


_TEXT_KINDS: dict[str, tuple[str, Callable[[Plain], bool]]] = {
    "string": ("a string", _is_string),
    "names": ("a list of strings", _are_strings),
    "strings": ("a string or a list of strings", lambda value: _is_string(value) or _are_strings(value)),
}
"""The kinds of fields with text: a description of valid values, and a test for them."""


def _is_integer(value: Plain, minimum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= MAX_NUMBER


def _is_positive(value: Plain) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_NUMBER


def _is_non_negative(value: Plain) -> bool:
    """Whether a value is a number of at least 0; `Infinity` is one."""
    return not isinstance(value, bool) and (value in (0, inf) or _is_positive(value))


def are_equal_values(left: object, right: object) -> bool:
    """Whether two values are equal; `True` and 1 are not."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)
