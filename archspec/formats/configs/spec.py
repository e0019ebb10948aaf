"""Conversion of a configuration to a spec with one model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple, cast

from archspec.compiler.resolve.files import Library
from archspec.compiler.resolve.unit import Definition, Unit
from archspec.core.diagnostics import Report, Source, decode, escape_controls, read_bytes, suggest
from archspec.core.reports.text import literal
from archspec.core.resources import bundled_name
from archspec.formats.configs.classes import ConfigurationReader
from archspec.formats.configs.configuration import MAX_CONFIGURATION_BYTES
from archspec.formats.configs.facts import read_facts
from archspec.formats.configs.family import Family, find_family, suggest_lift
from archspec.formats.configs.layers import resolve_layer_overrides
from archspec.formats.configs.settings import (
    Setting,
    Settings,
    are_equal_values,
    resolve_replaced_fields,
    split_unsupported_scaling,
)
from archspec.formats.strict_json import Member, read_json
from archspec.ir.ops import Op
from archspec.ir.table import Quantization
from archspec.language.syntax import tree

QUANTIZATION_FIELD = "quantization_config"


def read_quantization(members: dict[str, Member], report: Report) -> Quantization | None:
    """Return how quantized weights are stored, which affects no count; None without them, and after a diagnostic."""
    member = members.get(QUANTIZATION_FIELD)
    fields = member.value.data() if member is not None else None
    if member is None or fields is None:
        return None
    if not isinstance(fields, dict):
        message = f"`{QUANTIZATION_FIELD}` expects an object, found {member.value.written()}"
        report.error("wrong-kind", message, member.value.span)
        return None
    fields = cast("dict[str, object]", fields)
    names = [f"{prefix}load_in_{bits}bit" for prefix in ("", "_") for bits in (4, 8)]
    is_loaded = any(fields.get(name) for name in names)
    method = fields.get("quant_method", "bitsandbytes" if is_loaded else None)
    if method == "bitsandbytes" and not is_loaded:
        return None  # `transformers` also writes it for models loaded without quantization
    if not isinstance(method, str):
        message = f"missing `quant_method` in `{QUANTIZATION_FIELD}`: {member.value.written()}"
        report.error("unsupported", message, member.value.span, help='specify it, as in `"quant_method": "gptq"`')
        return None
    dtypes = [members[name].value.plain for name in ("dtype", "torch_dtype") if name in members]
    dtype = next((dtype for dtype in dtypes if isinstance(dtype, str)), "float16")
    return Quantization(method, fields, dtype.removeprefix("torch."))


MAX_LINE_WIDTH = 100


class ReadingOptions(NamedTuple):
    """Options for reading a configuration: a model type to replace its own, patterns of unknown fields to ignore, and
    whether fields that the class of `transformers` does not read are errors.
    """

    type: str | None = None
    ignore: tuple[str, ...] = ()
    strict: bool = False
    has_path: bool = True  # the file name becomes the model name


DEFAULT_READING = ReadingOptions()


def load_config(path: str, label: str, library: Library, report: Report, reading: ReadingOptions) -> Unit | None:
    """Load the unit that the configuration at `path` describes; None after diagnostics.

    The files read are added to `library.raw`.
    """
    data = read_bytes(path, label, report, max_bytes=MAX_CONFIGURATION_BYTES)
    text = decode(data, label, report, max_bytes=MAX_CONFIGURATION_BYTES) if data is not None else None
    if data is None or text is None:
        return None
    library.raw[os.path.abspath(path)] = data
    return build_config_unit(Source(label, text), library, report, reading)


def build_config_unit(source: Source, library: Library, report: Report, reading: ReadingOptions) -> Unit | None:
    """Return the unit that a configuration describes; None after diagnostics.

    The files read are added to `library.raw`.
    """
    config_spec = _describe_config(source, library, report, reading)
    if config_spec is None:
        return None
    label, path = f"the spec of {source.label}", os.path.realpath(source.label)
    unit = library.define(Source(label, config_spec.text), report, folder=None, root=None, path=path)
    unit.quantization, unit.deferred, unit.notes, unit.default_architecture = config_spec[1:]
    return unit


class _ConfigSpec(NamedTuple):
    """The spec of a configuration, and facts outside it: the storage of weights, unsupported scalings, notes, and the
    architecture if the configuration names none.
    """

    text: str
    quantization: Quantization | None
    deferred: tuple[str, ...]
    notes: tuple[str, ...]
    default_architecture: str | None


def _describe_config(source: Source, library: Library, report: Report, reading: ReadingOptions) -> _ConfigSpec | None:
    root = read_json(source)
    if not isinstance(root.plain, dict):
        report.error("wrong-kind", f"expected a JSON object, found {root.written()}", root.span)
        return None
    family = find_family(root, root.plain, reading.type, library, report)
    if family is None:
        return None
    architecture = _read_architecture(root.plain, family, library, report)
    quantization = read_quantization(root.plain, report)
    special_fields = ("model_type", "architectures", QUANTIZATION_FIELD)
    members = {name: member for name, member in root.plain.items() if name not in special_fields}
    members = resolve_layer_overrides(resolve_replaced_fields(members, family), family)
    members, unsupported = split_unsupported_scaling(members, family, reading.ignore)
    deferred = tuple(f"`{name}` {description}" for name, description in unsupported.items())
    reader = ConfigurationReader(library.specs, root.plain, family, architecture or "")
    settings = Settings(family, architecture or "", report, reading.ignore, None if reading.strict else reader)
    settings.process(members, "")
    settings.complete()
    if architecture is None or report.failed:
        return None
    unit = library.bundled(family.architectures[architecture].file, report)
    if unit is None:
        return None
    definitions = _Definitions(unit, library, report)
    title = _model_title(source.label, family) if reading.has_path else family.type
    heading = _format_heading(source.label, architecture, "model_type" in root.plain, reading, family, settings.skipped)
    notes = _describe_replaced_type(root.plain, family, reading.type is not None)
    notes += [quantization.note] if quantization is not None else []
    notes += [reader.describe([escape_controls(name) for name in settings.unread])] if settings.unread else []
    heading += "".join(f"# {note[0].upper()}{note[1:]}.\n" for note in notes)
    notes += [f"not included: {field}, which affects no tensor" for field in deferred]
    text = f"{heading}\n{_format_spec(title, family, architecture, definitions, settings.hyperparameters)}"
    default = None if _names_architecture(root.plain) else architecture
    if default is not None and family.headless:
        notes.append(f"read as {default}: the configuration names no `architectures`")
        default = None
    return _ConfigSpec(text, quantization, deferred, tuple(notes), default)


def _describe_replaced_type(members: dict[str, Member], family: Family, is_specified: bool) -> list[str]:
    """Return a note if the family has a different type than the configuration states."""
    member = members.get("model_type")
    if member is None or member.value.plain == family.type:
        return []
    reason = "as specified" if is_specified else "which has its architecture"
    return [
        f"read as `{family.type}`, {reason}, instead of its `model_type`, {escape_controls(member.value.written())}"
    ]


def _read_architecture(members: dict[str, Member], family: Family, library: Library, report: Report) -> str | None:
    """Return the architecture that a configuration names, by default the first of the family."""
    if not _names_architecture(members):
        return next(iter(family.architectures))
    member = members["architectures"]
    items = member.value.plain
    names = [item.plain for item in items] if isinstance(items, list) else []
    if len(names) != 1 or not isinstance(names[0], str):
        message = f"`architectures` expects a list of one name, found {member.value.written()}"
        report.error("wrong-kind", message, member.value.span)
        return None
    if names[0] not in family.architectures:
        entry = read_facts(library.specs)["types"].get(family.type)
        is_class = entry is not None and names[0] in entry["classes"]
        suggestion = suggest_lift(member.name.source.label) if is_class else suggest(names[0], [*family.architectures])
        help = suggestion or f"supported: {', '.join(family.architectures)}"
        message = f"unknown architecture `{names[0]}` for model type `{family.type}`"
        report.error("unknown-name", message, member.value.span, help=help)
        return None
    return names[0]


def _names_architecture(members: dict[str, Member]) -> bool:
    return "architectures" in members and members["architectures"].value.plain not in (None, [])


# Source of the spec ---------------------------------------------------------------------------------------------------

_MODEL_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*", re.ASCII)


def _format_heading(
    label: str, architecture: str, has_type: bool, reading: ReadingOptions, family: Family, skipped: list[str]
) -> str:
    """Return the comments above the spec: the source, and the decisions that the configuration left open."""
    lines = [f"# {architecture}, from {os.path.basename(label)}."]
    if not has_type:
        reason = "as specified" if reading.type is not None else f"the one with {architecture}"
        lines.append(f"# Without `model_type`: {family.type}, {reason}.")
    lines += [f"# Ignored as specified: {escape_controls(name)}" for name in skipped]
    return "\n".join(lines) + "\n"


def _format_spec(
    title: str, family: Family, architecture: str, definitions: _Definitions, settings: dict[str, Setting]
) -> str:
    file, name, constants = family.architectures[architecture]
    unit = definitions.unit
    settings = {name: Setting(value, None) for name, value in constants.items()} | settings
    values = _bind_hyperparameters(unit, definitions.find(unit, name), settings, definitions)
    arguments = [f"{n} = {_format_argument(value)}" for n, value in values.items()]
    opening = f'model "{title}" = {name}('
    body = f"{opening}{', '.join(arguments)})"
    if len(body) > MAX_LINE_WIDTH:
        body = opening + "".join(f"\n  {line}" for line in _fill_lines(arguments)) + "\n)"
    names: dict[str, set[str]] = {}
    for value in _iter_references(values):
        names.setdefault(definitions.file(value) or file, set()).add(value.name)
    own = names.pop(file, set())
    imports = [f"import {source} {{ {', '.join(sorted(names[source]))} }}" for source in sorted(names)]
    return "\n".join([*imports, f"import {file} {{ {', '.join([name, *sorted(own - {name})])} }}", "", body]) + "\n"


class _Reference(NamedTuple):
    """A definition or function as the value of a hyperparameter, perhaps with hyperparameters of its own."""

    name: str
    target: Definition | Op
    values: dict[str, object]


class _Definitions:
    """The definitions that hyperparameters can have as values: of the family's file, of other files and of `std`."""

    def __init__(self, unit: Unit, library: Library, report: Report) -> None:
        self.unit = unit
        self._library = library
        self._report = report

    def find(self, unit: Unit, name: str) -> Definition | Op:
        """Find the definition with a name in a bundled file or in `std`; `FILE.NAME` is in any bundled file."""
        file, dot, word = name.rpartition(".")
        source = self._library.bundled(file, self._report) if dot else unit
        assert source is not None
        for names in (source.names, self.unit.names):
            target = names[word].target if word in names else None
            if target is not None:
                return target
        self._library.add_override_names(self.unit, [word], self._report)
        return self.unit.override_names[word]

    def file(self, reference: _Reference) -> str | None:
        """Return the name of the file from which to import a definition; None for the file of the family."""
        if not isinstance(reference.target, Definition):
            return "std"
        if reference.target.unit is self.unit:
            return None
        return bundled_name(reference.target.unit.source.label)


def _bind_hyperparameters(
    unit: Unit, definition: Definition | Op, settings: dict[str, Setting], definitions: _Definitions
) -> dict[str, object]:
    """Return the hyperparameters of a definition whose values are not their defaults, in order.

    `Text.layers` is the hyperparameter `layers` of the definition that `Text` is by default, and `scaling.factor` the
    hyperparameter `factor` of the function that is the value of `scaling`, if it has one. `unit` is the file in which
    values are named.
    """
    assert isinstance(definition, Definition)
    unknown = {name.partition(".")[0] for name in settings} - definition.hyperparameters.keys()
    assert not unknown, f"{definition.name} has no hyperparameters {sorted(unknown)}"
    values: dict[str, object] = {}
    for name, hyperparameter in definition.hyperparameters.items():
        nested = {
            full_name.removeprefix(f"{name}."): setting
            for full_name, setting in settings.items()
            if full_name.startswith(f"{name}.")
        }
        if name in settings and not _is_default(unit, definition, name, settings, definitions):
            values[name] = _refer(unit, settings[name].value, definitions)
        if not nested:
            continue
        if name in settings:
            target = definitions.find(unit, str(settings[name].value))
            accepted = target.hyperparameters if isinstance(target, Definition) else ()
            nested = {name: setting for name, setting in nested.items() if name.partition(".")[0] in accepted}
        else:
            assert isinstance(hyperparameter.default, tree.Name)
            target = definitions.find(hyperparameter.unit, hyperparameter.default.text)
        if nested:
            assert isinstance(target, Definition)
            nested_values = _bind_hyperparameters(target.unit, target, nested, definitions)
            values |= {name: _Reference(target.name, target, nested_values)} if nested_values else {}
    return values


def _refer(unit: Unit, value: object, definitions: _Definitions) -> object:
    """Return a value with its names replaced by references to definitions."""
    if isinstance(value, list):
        return [_refer(unit, item, definitions) for item in cast("list[object]", value)]
    if not isinstance(value, str):
        return value
    target = definitions.find(unit, value)
    return _Reference(target.name, target, {})


def _format_argument(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_format_argument, cast('list[object]', value)))}]"
    if not isinstance(value, _Reference):
        return literal(value)
    values = ", ".join(f"{name} = {_format_argument(nested)}" for name, nested in value.values.items())
    return f"{value.name}({values})" if values else value.name


def _iter_references(value: object) -> Iterator[_Reference]:
    """Yield the definitions and functions among the values of hyperparameters."""
    if isinstance(value, _Reference):
        yield value
        yield from _iter_references(value.values)
    elif isinstance(value, dict | list):
        for item in cast("list[object]", [*value.values()] if isinstance(value, dict) else value):
            yield from _iter_references(item)


def _model_title(label: str, family: Family) -> str:
    """Return the model name: the name of the file, or of its directory for a `config.json`."""
    folder, file = os.path.split(os.path.abspath(label))
    name = file.removesuffix(".json")
    name = os.path.basename(folder) if name == "config" else name
    return name if _MODEL_NAME.fullmatch(name) else family.type


def _fill_lines(arguments: list[str]) -> list[str]:
    """Return the arguments on as few lines as possible; a list longer than a line is split at its items."""
    max_width = MAX_LINE_WIDTH - len("  ")
    items = [
        item for argument in arguments for item in (argument.split(", ") if len(argument) >= max_width else [argument])
    ]
    lines: list[str] = []
    for text in [f"{item}," for item in items[:-1]] + items[-1:]:
        if lines and len(f"{lines[-1]} {text}") <= max_width:
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    return lines


def _is_default(
    unit: Unit, definition: Definition, name: str, settings: dict[str, Setting], definitions: _Definitions
) -> bool:
    """Whether a value is the default of its hyperparameter; only literal and name defaults are compared."""
    value = settings[name].value
    match definition.hyperparameters[name].default:
        case tree.Literal(value=default):
            return are_equal_values(default, value)
        case tree.ListLiteral(items=items):
            return [item.value if isinstance(item, tree.Literal) else None for item in items] == value
        case tree.Name(text=text) if text in settings:
            return value == settings[text].value
        case tree.Name(text=text) if text not in definition.hyperparameters and isinstance(value, str):
            # a default that is inherited from another file may have no name in this one
            is_here = text in definition.unit.names
            return is_here and definitions.find(unit, value) is definitions.find(definition.unit, text)
        case _:
            return False
