"""What the fields of a configuration say of hyperparameters: each is carried over, changes nothing, or is an error."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple, cast

from archspec.configs.family import Family, Field
from archspec.configs.read import Member, Plain
from archspec.source import Note, Report, suggest

LARGEST = 10**18 - 1  # integers of specs have 18 digits


class Name(NamedTuple):
    """A definition or function as a value of a hyperparameter."""

    text: str


class Setting(NamedTuple):
    """What a hyperparameter is set to, and the member that says so; None for a default."""

    value: object
    member: Member | None


class Settings:
    """Collects what the fields of a configuration set."""

    def __init__(self, family: Family, architecture: str, report: Report) -> None:
        self.family = family
        self.architecture = architecture
        self.report = report
        self.found: dict[str, Setting] = {}
        self._given: dict[str, Member] = {}
        self._cycles: list[tuple[str, Field, Member]] = []  # what they say depends on other fields

    def take(self, members: dict[str, Member], prefix: str) -> None:
        """Takes the members of an object, and those of objects in it whose fields are known."""
        for name, member in members.items():
            full = prefix + name
            field = self.family.fields.get(full)
            if field is not None and field.kind == "cycle":
                self._cycles.append((full, field, member))
            elif field is not None:
                self._field(full, field, member)
            elif full in self.family.ignored:
                continue
            elif any(known.startswith(f"{full}.") for known in self.family.fields):
                inner = member.value.plain
                if isinstance(inner, dict):
                    self.take(inner, f"{full}.")
                elif inner is not None:
                    self._wrong("wrong-kind", f"`{full}` takes an object", member)
            else:
                self._unknown(full, member)

    def complete(self) -> None:
        """Sets what no field of the configuration says to the defaults of the family."""
        for name, field, member in self._cycles:
            self._field(name, field, member)
        fields = [f for f in {id(f): f for f in self.family.fields.values()}.values() if self._applies(f)]
        for field in fields:
            if field.name not in self._given and field.has_default:
                for name, value in _settings(field, field.default):
                    self._set(field.name, name, value, None)
            self._check_needs(field)
        if self.report.failed:
            return
        for field in fields:
            if field.sets is not None and field.like is not None:
                self.found.setdefault(field.sets, self.found[field.like])
            if field.sets is not None and field.unless is not None and self._repeats(field.sets, field.unless):
                del self.found[field.sets]
        for name, field, member in self._cycles:
            items, length = member.value.plain, self.found[field.length or ""].value
            if isinstance(items, list) and len(items) != length:
                self._wrong("wrong-kind", f"`{name}` has {len(items)} items, and not {length}", member)

    def _check_needs(self, field: Field) -> None:
        member = self._given.get(field.name)
        for name in field.needs.get(member.value.plain, ()) if member and isinstance(member.value.plain, str) else ():
            if name not in self._given and member is not None:
                message = f"`{field.name}` is {member.value.written()}, which takes a `{name}`"
                self._wrong("missing-argument", message, member)

    def _repeats(self, one: str, other: str) -> bool:
        return one in self.found and self.found[one].value == self.found[other].value

    def _set(self, name: str, hyperparameter: str, value: object, member: Member | None) -> None:
        """Sets a hyperparameter; two fields that say different things of one are an error."""
        other = self.found.setdefault(hyperparameter, Setting(value, member))
        if other.value == value:
            return
        where = member or other.member
        assert where is not None, f"defaults of the family say different things of {hyperparameter}"
        now = f"`{name}`" if member is not None else f"`{name}`, which is not given,"
        message = f"{now} says that `{hyperparameter}` is {written(value)}; elsewhere it is {written(other.value)}"
        notes = (Note("elsewhere is here", other.member.name),) if member and other.member else ()
        self.report.error("unsupported", message, where.name, notes=notes)

    def _applies(self, field: Field) -> bool:
        return field.among is None or any(fnmatchcase(self.architecture, each) for each in field.among)

    def _field(self, name: str, field: Field, member: Member) -> None:
        before = self._given.setdefault(field.name, member)
        if before is not member and before.value.data() != member.value.data():
            note = Note("it was first given here", before.name)
            message = f"`{name}` is another name for what was given before, and is not the same"
            self.report.error("duplicate-name", message, member.name, notes=(note,))
        if not self._applies(field):
            return
        value = self._value(name, field, member)
        for hyperparameter, setting in _settings(field, value) if value is not ... else ():
            self._set(name, hyperparameter, setting, member)

    def _value(self, name: str, field: Field, member: Member) -> object:
        """The value of a field, checked; Ellipsis with a diagnostic where it cannot be carried over."""
        value, data = member.value, member.value.data()
        if field.only is not None:
            if not any(same(data, each) for each in field.only):
                known = " or ".join(_json(each) for each in field.only)
                return self._unsupported(name, member, f"what is known is {known}")
            return field.only[0]
        if field.values is not None:
            if not any(same(data, each) for each, _ in field.values):
                known = ", ".join(_json(each) for each, _ in field.values)
                return self._unsupported(name, member, f"known are {known}")
            return data
        if data is None and field.has_default and field.default is None:
            return None
        if field.kind == "cycle":
            return self._cycle(name, field, member)
        problem = _problem(field, value.plain)
        if problem:
            return self._wrong("wrong-kind", f"`{name}` takes {problem}", member)
        if isinstance(value.plain, dict):
            return len(value.plain)
        return float(data) if field.kind == "number" and isinstance(data, int) else data

    def _cycle(self, name: str, field: Field, member: Member) -> object:
        """The n for which every n-th item of a list, from the first, is the first word, and all others the second."""
        items = [item.plain for item in member.value.plain] if isinstance(member.value.plain, list) else []
        if not items:
            return self._wrong("wrong-kind", f"`{name}` takes a list of words", member)
        one, other = field.cycle
        said = self.found.get(field.sets or "")
        again = items.index(one, 1) if one in items[1:] else len(items)
        for n in (said.value if said is not None else field.default, again):
            if isinstance(n, int) and all(item == (one if i % n == 0 else other) for i, item in enumerate(items)):
                return n
        return self._unsupported(name, member, f"known are lists in which every n-th is {one}, and others are {other}")

    def _unsupported(self, name: str, member: Member, known: str) -> object:
        message = f"`{name}` is {member.value.written()}, which the spec of `{self.family.type}` has no form for"
        return self._wrong("unsupported", message, member, known)

    def _unknown(self, name: str, member: Member) -> None:
        inside = name.rpartition(".")[0]
        names = [n for n in (*self.family.fields, *self.family.ignored) if n.rpartition(".")[0] == inside]
        help = suggest(name, names) or "remove it, if it changes neither tensors nor outputs"
        message = f"`{name}` is not understood, and may change the structure of a `{self.family.type}`"
        self.report.error("unknown-name", message, member.name, help=help)

    def _wrong(self, code: str, message: str, member: Member, help: str | None = None) -> object:
        self.report.error(code, message, member.value.span, help=help)
        return ...


def _settings(field: Field, value: object) -> list[tuple[str, object]]:
    """The hyperparameters that a value of a field sets, and to what. None leaves one to its definition."""
    if field.values is not None:
        value = next((mapped for each, mapped in field.values if same(value, each)), None)
        if isinstance(value, dict):
            return [(name, _named(each)) for name, each in cast("dict[str, object]", value).items()]
        value = _named(value)
    return [(field.sets, value)] if field.sets is not None and value is not None else []


def _named(value: object) -> object:
    return Name(value) if isinstance(value, str) else value


def _problem(field: Field, value: Plain) -> str | None:
    """What a field should be and is not."""
    if field.kind == "boolean":
        return None if isinstance(value, bool) else "true or false"
    if field.kind == "entries":
        return None if isinstance(value, dict) and len(value) >= field.least else "an object with entries"
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1
    if field.kind == "number":
        return None if 0 <= number <= LARGEST else "a number from 0"
    fits = isinstance(number, int) and field.least <= number <= LARGEST
    return None if fits else f"an integer from {field.least}, of at most 18 digits"


def same(one: object, other: object) -> bool:
    """Equality in which true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _json(value: object) -> str:
    from json import dumps

    return f"`{dumps(value)}`"


def written(value: object) -> str:
    """A value as a spec writes it."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return value.text if isinstance(value, Name) else repr(value)
