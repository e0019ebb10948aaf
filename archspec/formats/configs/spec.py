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
from archspec.formats.configs.configuration import MAX_CONFIGURATION_BYTES
from archspec.formats.configs.family import Family, family_of
from archspec.formats.configs.read import Member, read_json
from archspec.formats.configs.settings import Setting, Settings, as_read, same, without_scaling
from archspec.ir.table import Quantization
from archspec.language.syntax import tree

# The storage of quantized weights, as `quantization_config` describes it. It affects no count.

FIELD = "quantization_config"


def quantization_of(members: dict[str, Member], report: Report) -> Quantization | None:
    """Return the quantization that a configuration describes; None if there is none, and after a diagnostic."""
    member = members.get(FIELD)
    fields = member.value.data() if member is not None else None
    if member is None or fields is None:
        return None
    if not isinstance(fields, dict):
        message = f"`{FIELD}` expects an object, found {member.value.written()}"
        report.error("wrong-kind", message, member.value.span)
        return None
    fields = cast("dict[str, object]", fields)
    names = [f"{before}load_in_{bits}bit" for before in ("", "_") for bits in (4, 8)]
    is_loaded = any(fields.get(name) for name in names)
    method = fields.get("quant_method", "bitsandbytes" if is_loaded else None)
    if method == "bitsandbytes" and not is_loaded:
        return None  # written by `transformers` for models that were loaded without it
    if not isinstance(method, str):
        message = f"missing `quant_method` in `{FIELD}`: {member.value.written()}"
        report.error("unsupported", message, member.value.span, help='specify it, as in `"quant_method": "gptq"`')
        return None
    stated = [members[name].value.plain for name in ("dtype", "torch_dtype") if name in members]
    dtype = next((each for each in stated if isinstance(each, str)), "float16")
    return Quantization(method, fields, dtype.removeprefix("torch."))


MAX_LINE_WIDTH = 100


class ReadingOptions(NamedTuple):
    """How to read a configuration: its model type if it states none, patterns of unknown fields to ignore."""

    type: str | None = None
    ignore: tuple[str, ...] = ()
    has_path: bool = True  # which gives the model its name


AS_WRITTEN = ReadingOptions()


def load_config(path: str, label: str, library: Library, report: Report, reading: ReadingOptions) -> Unit | None:
    """Load the unit that the configuration at `path` describes; None after diagnostics.

    The files read are added to `library.raw`.
    """
    data = read_bytes(path, label, report, largest=MAX_CONFIGURATION_BYTES)
    text = decode(data, label, report, largest=MAX_CONFIGURATION_BYTES) if data is not None else None
    if data is None or text is None:
        return None
    library.raw[os.path.abspath(path)] = data
    return config_unit(Source(label, text), library, report, reading)


def config_unit(source: Source, library: Library, report: Report, reading: ReadingOptions) -> Unit | None:
    """Return the unit that a configuration describes; None after diagnostics.

    The files read are added to `library.raw`.
    """
    described = _described(source, library, report, reading)
    if described is None:
        return None
    label, path = f"the spec of {source.label}", os.path.realpath(source.label)
    unit = library.define(Source(label, described.text), report, folder=None, root=None, path=path)
    unit.quantization, unit.deferred = described.quantization, described.deferred
    return unit


class _Described(NamedTuple):
    """The spec of a configuration, and what is not in it: how weights are stored, and fields of other computations."""

    text: str
    quantization: Quantization | None
    deferred: tuple[str, ...]


def _described(source: Source, library: Library, report: Report, reading: ReadingOptions) -> _Described | None:
    root = read_json(source)
    if not isinstance(root.plain, dict):
        report.error("wrong-kind", f"expected a JSON object, found {root.written()}", root.span)
        return None
    family = family_of(root, root.plain, reading.type, library, report)
    if family is None:
        return None
    architecture = _architecture(root.plain, family, report)
    quantization = quantization_of(root.plain, report)
    apart = ("model_type", "architectures", FIELD)
    members = {name: member for name, member in root.plain.items() if name not in apart}
    members, deferred = without_scaling(as_read(members, family), family, reading.ignore)
    settings = Settings(family, architecture or "", report, reading.ignore)
    settings.take(members, "")
    settings.complete()
    if architecture is None or report.failed:
        return None
    unit = library.bundled(family.architectures[architecture].file, report)
    if unit is None:
        return None
    bound = {name.partition(".")[0] for name in settings.found if "." in name} & settings.found.keys()
    library.add_override_names(unit, [str(settings.found[name].value) for name in bound], report)
    title = _title(source.label, family) if reading.has_path else family.type
    heading = _heading(source.label, architecture, "model_type" in root.plain, reading, family, settings.skipped)
    heading += f"# {quantization.note.capitalize()}.\n" if quantization is not None else ""
    return _Described(f"{heading}\n{_text(title, family, architecture, unit, settings.found)}", quantization, deferred)


def _architecture(members: dict[str, Member], family: Family, report: Report) -> str | None:
    """Return the architecture that a configuration names, by default the first of the family."""
    member = members.get("architectures")
    if member is None or member.value.plain in (None, []):
        return next(iter(family.architectures))
    items = member.value.plain
    names = [item.plain for item in items] if isinstance(items, list) else []
    if len(names) != 1 or not isinstance(names[0], str):
        message = f"`architectures` expects a list of one name, found {member.value.written()}"
        report.error("wrong-kind", message, member.value.span)
        return None
    if names[0] not in family.architectures:
        help = suggest(names[0], [*family.architectures]) or f"supported: {', '.join(family.architectures)}"
        message = f"unknown architecture `{names[0]}` for model type `{family.type}`"
        report.error("unknown-name", message, member.value.span, help=help)
        return None
    return names[0]


# Source of the spec ---------------------------------------------------------------------------------------------------

_WORDS = re.compile(r"[A-Za-z0-9][\w.+-]*", re.ASCII)


def _heading(
    label: str, architecture: str, has_type: bool, reading: ReadingOptions, family: Family, skipped: list[str]
) -> str:
    """Return the comments above the spec: what it was made from, and what the configuration did not decide."""
    lines = [f"# {architecture}, from {os.path.basename(label)}."]
    if not has_type:
        why = "as specified" if reading.type is not None else f"the one with {architecture}"
        lines.append(f"# Without `model_type`: {family.type}, {why}.")
    lines += [f"# Ignored as specified: {escape_controls(name)}" for name in skipped]
    return "\n".join(lines) + "\n"


def _text(title: str, family: Family, architecture: str, unit: Unit, found: dict[str, Setting]) -> str:
    file, name, fixed = family.architectures[architecture]
    given = fixed | _given(unit, _named(unit, name), found)
    arguments = [f"{n} = {_argument(value)}" for n, value in given.items()]
    model = f'model "{title}" = {name}('
    body = f"{model}{', '.join(arguments)})"
    if len(body) > MAX_LINE_WIDTH:
        body = model + "".join(f"\n  {line}" for line in _filled(arguments)) + "\n)"
    words = {*_words(given)}
    own = {word for word in words if word in unit.names and not unit.names[word].imported}
    imports = [f"import {file} {{ {', '.join([name, *sorted(own)])} }}"]
    if words - own:
        imports.insert(0, f"import std {{ {', '.join(sorted(words - own))} }}")
    return "\n".join([*imports, "", body]) + "\n"


class _Part(NamedTuple):
    """A definition with hyperparameters, as the value of a hyperparameter."""

    definition: str
    given: dict[str, object]


def _given(unit: Unit, definition: Definition, found: dict[str, Setting]) -> dict[str, object]:
    """Return the hyperparameters of a definition that do not have their defaults, in order.

    `Text.layers` is the hyperparameter `layers` of the definition that `Text` is by default, and `scaling.factor` the
    hyperparameter `factor` of the function that `scaling` is set to, if that has one.
    """
    unknown = {n.partition(".")[0] for n in found} - definition.hyperparameters.keys()
    assert not unknown, f"{definition.name} has no hyperparameters {sorted(unknown)}"
    given: dict[str, object] = {}
    for n, declared in definition.hyperparameters.items():
        inner = {each.removeprefix(f"{n}."): setting for each, setting in found.items() if each.startswith(f"{n}.")}
        if n in found and not _is_default(definition, n, found):
            given[n] = found[n].value
        if inner and n in found:
            function = _named(unit, str(found[n].value))
            inner = {name: setting for name, setting in inner.items() if name in function.hyperparameters}
            bound = _given(unit, function, inner)
            given |= {n: _Part(function.name, bound)} if bound else {}
        elif inner:
            assert isinstance(declared.default, tree.Name)
            part = _Part(declared.default.text, _given(unit, _named(unit, declared.default.text), inner))
            given |= {n: part} if part.given else {}
    return given


def _named(unit: Unit, name: str) -> Definition:
    """Return the definition that a name means in a bundled file, or in the standard library."""
    definition = unit.names[name].target if name in unit.names else unit.override_names[name]
    assert isinstance(definition, Definition)
    return definition


def _argument(value: object) -> str:
    if not isinstance(value, _Part):
        return literal(value)
    return f"{value.definition}({', '.join(f'{n} = {_argument(inner)}' for n, inner in value.given.items())})"


def _words(given: dict[str, object]) -> Iterator[str]:
    """Yield the names of definitions and functions among the values of hyperparameters."""
    for value in given.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, _Part):
            yield value.definition
            yield from _words(value.given)


def _title(label: str, family: Family) -> str:
    """Return the model name: the name of the file, or of its directory for a `config.json`."""
    folder, file = os.path.split(os.path.abspath(label))
    name = file.removesuffix(".json")
    name = os.path.basename(folder) if name == "config" else name
    return name if _WORDS.fullmatch(name) else family.type


def _filled(arguments: list[str]) -> list[str]:
    """Return the arguments on as few lines as possible; one that is too long for a line continues on the next."""
    widest = MAX_LINE_WIDTH - len("  ")
    items = [item for each in arguments for item in (each.split(", ") if len(each) >= widest else [each])]
    lines: list[str] = []
    for text in [f"{item}," for item in items[:-1]] + items[-1:]:
        if lines and len(f"{lines[-1]} {text}") <= widest:
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    return lines


def _is_default(definition: Definition, name: str, found: dict[str, Setting]) -> bool:
    """Whether a value is the default of its hyperparameter; only literal and name defaults are compared."""
    value = found[name].value
    declared = definition.hyperparameters.get(name)
    match declared.default if declared is not None else None:
        case tree.Literal(value=default):
            return same(default, value)
        case tree.ListLiteral(items=items):
            return [item.value if isinstance(item, tree.Literal) else None for item in items] == value
        case tree.Name(text=text):
            return value == (found[text].value if text in found else text)
        case _:
            return False
