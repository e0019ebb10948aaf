"""From a configuration to the text of a spec: each field is carried over, changes nothing, or is an error."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from archspec.configs.family import Family, Field, known_types, read_family
from archspec.configs.read import Member, Plain, Value, read_json
from archspec.lower.units import Definition, Library, Unit
from archspec.source import Note, Report, Source, Span, suggest
from archspec.syntax import tree

LARGEST = 10**18 - 1  # integers of specs have 18 digits
WIDEST = 100


class Name(NamedTuple):
    """A definition or function as a value of a hyperparameter."""

    text: str


class Setting(NamedTuple):
    """What a hyperparameter is set to, and the member that says so; None for a default."""

    value: Any
    member: Member | None


def spec_of(source: Source, library: Library, report: Report) -> str | None:
    """The text of a spec of one model, which is called after the file; None with diagnostics.

    What was read to make it is added to `library.raw`. Raises ArchError where the source is no JSON.
    """
    root = read_json(source)
    if not isinstance(root.plain, dict):
        report.error("wrong-kind", "a configuration is an object: `{...}`", root.span)
        return None
    family = _family(root, root.plain, library, report)
    if family is None:
        return None
    architecture = _architecture(root.plain, family, report)
    members = {name: member for name, member in root.plain.items() if name not in ("model_type", "architectures")}
    settings = _Settings(family, architecture or "", report)
    settings.take(members, "")
    settings.complete()
    if architecture is None or report.failed:
        return None
    unit = library.bundled(family.architectures[architecture].file, report)
    if unit is None:
        return None
    return _text(source.label, family, architecture, unit, settings.found)


def _family(root: Value, members: dict[str, Member], library: Library, report: Report) -> Family | None:
    known = known_types(library.specs)
    member = members.get("model_type")
    if member is None:
        at = Span(root.span.source, root.span.start, root.span.start + 1)
        help = f"known are {', '.join(known)}"
        report.error("missing-argument", "a configuration needs a `model_type`", at, help=help)
        return None
    type = member.value.plain
    if not isinstance(type, str):
        report.error("wrong-kind", "`model_type` is text", member.value.span)
        return None
    if type not in known:
        help = suggest(type, known) or f"known are {', '.join(known)}"
        report.error("unknown-name", f"no model type is called `{type}` here", member.value.span, help=help)
        return None
    return read_family(library.specs, type, library.raw)


def _architecture(members: dict[str, Member], family: Family, report: Report) -> str | None:
    """The architecture that a configuration names, or the family's first."""
    member = members.get("architectures")
    if member is None or member.value.plain in (None, []):
        return next(iter(family.architectures))
    items = member.value.plain
    names = [item.plain for item in items] if isinstance(items, list) else []
    if len(names) != 1 or not isinstance(names[0], str):
        report.error("wrong-kind", "`architectures` is a list of one name", member.value.span)
        return None
    if names[0] not in family.architectures:
        help = suggest(names[0], [*family.architectures]) or f"known are {', '.join(family.architectures)}"
        message = f"`{names[0]}` is no architecture of `{family.type}` that is known here"
        report.error("unknown-name", message, member.value.span, help=help)
        return None
    return names[0]


class _Settings:
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
                    self._wrong("wrong-kind", f"`{full}` is an object", member)
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

    def _set(self, name: str, hyperparameter: str, value: Any, member: Member | None) -> None:
        """Sets a hyperparameter; two fields that say different things of one are an error."""
        other = self.found.setdefault(hyperparameter, Setting(value, member))
        if other.value == value:
            return
        where = member or other.member
        assert where is not None, f"defaults of the family say different things of {hyperparameter}"
        now = f"`{name}`" if member is not None else f"`{name}`, which is not given,"
        message = f"{now} says that `{hyperparameter}` is {_written(value)}; elsewhere it is {_written(other.value)}"
        notes = (Note("elsewhere is here", other.member.name),) if member and other.member else ()
        self.report.error("unsupported", message, where.name, notes=notes)

    def _applies(self, field: Field) -> bool:
        return field.among is None or self.architecture in field.among

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

    def _value(self, name: str, field: Field, member: Member) -> Any:
        """The value of a field, checked; Ellipsis with a diagnostic where it cannot be carried over."""
        value, data = member.value, member.value.data()
        if field.only is not None:
            if not any(_same(data, each) for each in field.only):
                known = " or ".join(_json(each) for each in field.only)
                return self._unsupported(name, member, f"what is known is {known}")
            return field.only[0]
        if field.values is not None:
            if not any(_same(data, each) for each, _ in field.values):
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
        return float(data) if field.kind == "number" and isinstance(data, int) else data

    def _cycle(self, name: str, field: Field, member: Member) -> Any:
        """The n for which every n-th item of a list, from the first, is the first word, and all others the second."""
        items = member.value.data()
        if not isinstance(items, list) or not items:
            return self._wrong("wrong-kind", f"`{name}` is a list of words", member)
        one, other = field.cycle
        said = self.found.get(field.sets or "")
        for n in (said.value if said is not None else field.default, *range(1, len(items) + 1)):
            if all(item == (one if i % n == 0 else other) for i, item in enumerate(items)):
                return n
        return self._unsupported(name, member, f"known are lists in which every n-th is {one}, and others are {other}")

    def _unsupported(self, name: str, member: Member, known: str) -> Any:
        message = f"`{name}` is {member.value.written()}, which the spec of `{self.family.type}` has no form for"
        return self._wrong("unsupported", message, member, known)

    def _unknown(self, name: str, member: Member) -> None:
        inside = name.rpartition(".")[0]
        names = [n for n in (*self.family.fields, *self.family.ignored) if n.rpartition(".")[0] == inside]
        help = suggest(name, names) or "remove it, if it changes neither tensors nor outputs"
        message = f"`{name}` is not understood, and may change the structure of a `{self.family.type}`"
        self.report.error("unknown-name", message, member.name, help=help)

    def _wrong(self, code: str, message: str, member: Member, help: str | None = None) -> Any:
        self.report.error(code, message, member.value.span, help=help)
        return ...


def _settings(field: Field, value: Any) -> list[tuple[str, Any]]:
    """The hyperparameters that a value of a field sets, and to what. None leaves one to its definition."""
    if field.values is not None:
        value = next((mapped for each, mapped in field.values if _same(value, each)), None)
        if isinstance(value, dict):
            return [(name, _named(each)) for name, each in value.items() if each is not None]  # pyright: ignore
        value = _named(value)
    return [(field.sets, value)] if field.sets is not None and value is not None else []


def _named(value: Any) -> Any:
    return Name(value) if isinstance(value, str) else value


def _problem(field: Field, value: Plain) -> str | None:
    """What a field should be and is not."""
    if field.kind == "boolean":
        return None if isinstance(value, bool) else "true or false"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if field.kind == "number":
        return None if is_number and 0 <= value <= LARGEST else "a number from 0"
    fits = is_number and isinstance(value, int) and field.least <= value <= LARGEST
    return None if fits else f"an integer from {field.least}, of at most 18 digits"


def _same(one: Any, other: Any) -> bool:
    """Equality in which true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _json(value: Any) -> str:
    from json import dumps

    return f"`{dumps(value)}`"


# The text -------------------------------------------------------------------------------------------------------------

_WORDS = re.compile(r"[A-Za-z0-9][\w.+-]*", re.ASCII)


def _text(label: str, family: Family, architecture: str, unit: Unit, found: dict[str, Setting]) -> str:
    file, name, fixed = family.architectures[architecture]
    binding = unit.names[name].target
    assert isinstance(binding, Definition)
    given = fixed | {n: s.value for n, s in found.items() if not _is_default(binding, n, found)}
    arguments = [f"{n} = {_written(given[n])}" for n in binding.hyperparameters if n in given]
    assert len(arguments) == len(given), f"{name} has no hyperparameter for some of {sorted(given)}"
    model = f'model "{_title(label, family)}" = {name}('
    body = f"{model}{', '.join(arguments)})"
    if len(body) > WIDEST:
        body = model + "".join(f"\n  {line}" for line in _filled(arguments)) + "\n)"
    words = {value.text for value in given.values() if isinstance(value, Name)}
    own = {word for word in words if word in unit.names and not unit.names[word].imported}
    imports = [f"import {file} {{ {', '.join([name, *sorted(own)])} }}"]
    if words - own:
        imports.insert(0, f"import std {{ {', '.join(sorted(words - own))} }}")
    heading = f"# {architecture}, from {os.path.basename(label)}."
    return "\n".join([heading, "", *imports, "", body]) + "\n"


def _title(label: str, family: Family) -> str:
    """The name of the model: that of the file, or for a `config.json` that of its folder."""
    folder, file = os.path.split(os.path.realpath(label))
    name = file.removesuffix(".json")
    name = os.path.basename(folder) if name == "config" else name
    return name if _WORDS.fullmatch(name) else family.type


def _filled(arguments: list[str]) -> list[str]:
    """The arguments on as few lines as hold them."""
    lines = [""]
    for i, argument in enumerate(arguments):
        text = argument + ("," if i + 1 < len(arguments) else "")
        if lines[-1] and len(lines[-1]) + len(text) > WIDEST - 4:
            lines.append("")
        lines[-1] = f"{lines[-1]} {text}".strip()
    return lines


def _is_default(definition: Definition, name: str, found: dict[str, Setting]) -> bool:
    """Whether a hyperparameter has its value without being set, as far as its default is a word or a number."""
    value = found[name].value
    declared = definition.hyperparameters.get(name)
    match declared.default if declared is not None else None:
        case tree.Literal(value=default):
            return _same(default, value)
        case tree.Name(text=text):
            return value == (found[text].value if text in found else Name(text))
        case _:
            return False


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.text if isinstance(value, Name) else repr(value)
