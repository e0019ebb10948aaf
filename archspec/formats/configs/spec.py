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
from archspec.formats.configs.classes import ConfigurationReader, read_facts
from archspec.formats.configs.configuration import MAX_CONFIGURATION_BYTES
from archspec.formats.configs.family import Family, find_family, suggest_lift
from archspec.formats.configs.settings import (
    Setting,
    Settings,
    are_equal_values,
    resolve_replaced_fields,
    split_unsupported_scaling,
)
from archspec.formats.strict_json import Member, read_json
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
    members, deferred = split_unsupported_scaling(resolve_replaced_fields(members, family), family, reading.ignore)
    reader = ConfigurationReader(library.specs, root.plain, family, architecture or "")
    settings = Settings(family, architecture or "", report, reading.ignore, None if reading.strict else reader)
    settings.process(members, "")
    settings.complete()
    if architecture is None or report.failed:
        return None
    unit = library.bundled(family.architectures[architecture].file, report)
    if unit is None:
        return None
    hyperparameters = settings.hyperparameters
    bound_names = {name.partition(".")[0] for name in hyperparameters if "." in name} & hyperparameters.keys()
    library.add_override_names(unit, [str(hyperparameters[name].value) for name in bound_names], report)
    title = _model_title(source.label, family) if reading.has_path else family.type
    heading = _format_heading(source.label, architecture, "model_type" in root.plain, reading, family, settings.skipped)
    notes = _describe_replaced_type(root.plain, family, reading.type is not None)
    notes += [quantization.note] if quantization is not None else []
    notes += [reader.describe([escape_controls(name) for name in settings.unread])] if settings.unread else []
    heading += "".join(f"# {note[0].upper()}{note[1:]}.\n" for note in notes)
    notes += [f"not included: {field}, which affects no tensor" for field in deferred]
    text = f"{heading}\n{_format_spec(title, family, architecture, unit, hyperparameters)}"
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


def _format_spec(title: str, family: Family, architecture: str, unit: Unit, settings: dict[str, Setting]) -> str:
    file, name, constants = family.architectures[architecture]
    values = constants | _bind_hyperparameters(unit, _find_definition(unit, name), settings)
    arguments = [f"{n} = {_format_argument(value)}" for n, value in values.items()]
    opening = f'model "{title}" = {name}('
    body = f"{opening}{', '.join(arguments)})"
    if len(body) > MAX_LINE_WIDTH:
        body = opening + "".join(f"\n  {line}" for line in _fill_lines(arguments)) + "\n)"
    names = {*_iter_names(values)}
    local_names = {word for word in names if word in unit.names and not unit.names[word].imported}
    imports = [f"import {file} {{ {', '.join([name, *sorted(local_names)])} }}"]
    if names - local_names:
        imports.insert(0, f"import std {{ {', '.join(sorted(names - local_names))} }}")
    return "\n".join([*imports, "", body]) + "\n"


class _BoundDefinition(NamedTuple):
    """A definition with hyperparameters, as the value of a hyperparameter."""

    definition: str
    values: dict[str, object]


def _bind_hyperparameters(unit: Unit, definition: Definition, settings: dict[str, Setting]) -> dict[str, object]:
    """Return the hyperparameters of a definition whose values are not their defaults, in order.

    `Text.layers` is the hyperparameter `layers` of the definition that `Text` is by default, and `scaling.factor` the
    hyperparameter `factor` of the function that is the value of `scaling`, if it has one.
    """
    unknown = {name.partition(".")[0] for name in settings} - definition.hyperparameters.keys()
    assert not unknown, f"{definition.name} has no hyperparameters {sorted(unknown)}"
    values: dict[str, object] = {}
    for name, hyperparameter in definition.hyperparameters.items():
        nested = {
            full_name.removeprefix(f"{name}."): setting
            for full_name, setting in settings.items()
            if full_name.startswith(f"{name}.")
        }
        if name in settings and not _is_default(definition, name, settings):
            values[name] = settings[name].value
        if nested and name in settings:
            function = _find_definition(unit, str(settings[name].value))
            nested = {name: setting for name, setting in nested.items() if name in function.hyperparameters}
            nested_values = _bind_hyperparameters(unit, function, nested)
            values |= {name: _BoundDefinition(function.name, nested_values)} if nested_values else {}
        elif nested:
            assert isinstance(hyperparameter.default, tree.Name)
            default = hyperparameter.default.text
            bound = _BoundDefinition(default, _bind_hyperparameters(unit, _find_definition(unit, default), nested))
            values |= {name: bound} if bound.values else {}
    return values


def _find_definition(unit: Unit, name: str) -> Definition:
    """Return the definition with a name in a bundled file, or in the standard library."""
    definition = unit.names[name].target if name in unit.names else unit.override_names[name]
    assert isinstance(definition, Definition)
    return definition


def _format_argument(value: object) -> str:
    if not isinstance(value, _BoundDefinition):
        return literal(value)
    return f"{value.definition}({', '.join(f'{n} = {_format_argument(nested)}' for n, nested in value.values.items())})"


def _iter_names(values: dict[str, object]) -> Iterator[str]:
    """Yield the names of definitions and functions among the values of hyperparameters."""
    for value in values.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, _BoundDefinition):
            yield value.definition
            yield from _iter_names(value.values)


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


def _is_default(definition: Definition, name: str, settings: dict[str, Setting]) -> bool:
    """Whether a value is the default of its hyperparameter; only literal and name defaults are compared."""
    value = settings[name].value
    hyperparameter = definition.hyperparameters.get(name)
    match hyperparameter.default if hyperparameter is not None else None:
        case tree.Literal(value=default):
            return are_equal_values(default, value)
        case tree.ListLiteral(items=items):
            return [item.value if isinstance(item, tree.Literal) else None for item in items] == value
        case tree.Name(text=text):
            return value == (settings[text].value if text in settings else text)
        case _:
            return False
