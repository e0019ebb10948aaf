"""Mappings of configuration fields to hyperparameters: `specs/configs/TYPE.yaml`, one file per model type.

`docs/import.md` describes the format. The files are part of the package, so they are not validated.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from shlex import quote
from typing import NamedTuple, cast

from archspec.compiler.resolve.files import Library
from archspec.core.diagnostics import Report, Span, make_error, suggest
from archspec.formats.configs.documents import (
    COMMON,
    Document,
    DocumentReader,
    merge_fields,
    merge_names,
    part_entries,
    part_family,
)
from archspec.formats.configs.facts import read_facts
from archspec.formats.strict_json import JsonValue, Member

MAX_LISTED_TYPES = 12
"""Model types that a message lists one by one."""


class Field(NamedTuple):
    """The effect of one configuration field.

    The field `sets` a hyperparameter to its value, or to the value that `values` maps it to; a mapping sets several.
    Hyperparameters in `others` have the same value, but a size of two numbers sets two hyperparameters.
    `architectures` are patterns of those that use the field. `only` lists the supported values. `kind` is integer,
    integers (one, or a list of them), number, positive (a number above 0), rate (a number from 0 to below 1), boolean,
    string, names (a list of strings), strings (one, or a list of them), list (of integers), lists (of lists of
    integers), numbers (a list of numbers above 0), indices (one, or a list of them, from 0), sizes (an object of
    integers), pairs (an object of integers by integers), entries (an object whose number of entries is the value), size
    (an integer, or a list of two), items (a list of strings or integers, whose values are `items`) or cycle; `minimum`
    is that of integers, and numbers may be 0 if it is 0. The value `unset` means null.
    `nested_default` is the default if one of the `objects` that can contain the field is present without it.

    `optional` permits null: the hyperparameter is then equal to `like`, if that is set, keeps the default of its
    definition, if null is the default of the field, or is none. If it is equal to `unless`, it keeps its default.
    A field with a `product` must be the product of these hyperparameters. `needs` maps values to the fields that they
    require. A `cycle` is a list in which every n-th item is the first string and all others are the second, from the
    first item on or, with `last`, from the n-th; the hyperparameter `length` is the number of items of a list.
    """

    name: str
    sets: str | None
    others: list[str]
    kind: str
    default: object
    nested_default: object
    objects: frozenset[str]
    has_default: bool
    values: list[tuple[object, object]] | None
    items: list[tuple[object, object]] | None
    only: list[object] | None
    minimum: int
    unset: object
    architectures: list[str] | None
    cycle: list[str]
    last: bool
    like: str | None
    unless: str | None
    product: list[str]
    needs: dict[object, list[str]]
    length: str | None
    optional: bool


class Architecture(NamedTuple):
    """The definition of an architecture, its bundled file, and fixed hyperparameters."""

    file: str
    definition: str
    settings: dict[str, object]


class Family(NamedTuple):
    """A model type: its architectures, its fields by each of their names, and the fields without effect.

    `names` pairs runs of segments in the names of published tensors with the runs in live models of `transformers`,
    `gguf` with the runs in GGUF files: (run, runs, effect of the conversion). Published models of a `headless` type
    have no head. `parts` are nested configurations, with the type of each if its family has one. `absent` are the
    objects that the class has if the configuration lacks them.
    """

    type: str
    architectures: dict[str, Architecture]
    fields: dict[str, Field]
    ignored: frozenset[str]
    names: tuple[tuple[str, str], ...]
    gguf: tuple[tuple[str | None, tuple[str, ...], str], ...]
    parts: dict[str, str | None]
    headless: bool
    absent: dict[str, Document]

    @property
    def title(self) -> str:
        """The name of the family in diagnostics."""
        return f"model type `{self.type}`" if self.architectures else f"adapter type `{self.type}`"


class Layers(NamedTuple):
    """The layers that adapters can change: their kinds, by the names of their definitions.

    `fused` are patterns of the models in which `transformers` joins layers that published checkpoints store separately.
    """

    kinds: dict[str, str]
    fused: tuple[str, ...]


def known_types(specs: str) -> list[str]:
    """Return the supported model types, sorted."""
    names = os.listdir(os.path.join(specs, "configs"))
    return sorted(name[:-5] for name in names if name.endswith(".yaml") and not name.startswith("_"))


def read_family(specs: str, type: str, raw: dict[str, bytes], part_types: Mapping[str, str] | None = None) -> Family:
    """Read the family of a supported model type, and add the files read to `raw`.

    `part_types` are the types that parts state, where the family of a part depends on its type.
    """
    reader = DocumentReader(specs, raw)
    return _build_family(type, reader.read_inherited(type), reader.read(COMMON), reader, part_types or {})


def read_adapter_type(specs: str, type: str, raw: dict[str, bytes]) -> Family:
    """Read the fields of the configuration of a type of adapter, and add the file read to `raw`."""
    reader = DocumentReader(specs, raw)
    return _build_family(type, [reader.read(f"_{type.lower()}")], {"values": {}}, reader, {})


def read_layers(specs: str, type: str) -> Layers:
    """Read the layers that a type of adapter can change."""
    document = DocumentReader(specs, {}).read(f"_{type.lower()}")
    return Layers(document["layers"], tuple(document["fused"]))


def _build_family(
    type: str, documents: list[Document], common: Document, reader: DocumentReader, part_types: Mapping[str, str]
) -> Family:
    architectures: dict[str, str | Document] = {}
    parts = part_entries(documents)
    placed = [reader.read_part(part, entry, part_types.get(part)) for part, entry in parts.items()]
    entries, ignored = merge_fields([common, *documents], placed)
    for document in documents:
        architectures = document.get("architectures", architectures)
    own_names = merge_names(documents)
    part_names = [reader.read_part_names(entry, part_types.get(part)) for part, entry in parts.items()]
    # Names of parts are published ones, so their pairs come first; a GGUF file has parts without the prefix.
    names = [pair for lists in part_names for pair in lists.names] + own_names.names
    gguf = own_names.gguf + [entry for lists in part_names for entry in lists.gguf]
    fields: dict[str, Field] = {}
    for name, entry in entries.items():
        fields |= dict.fromkeys((name, *entry.get("also", ())), _build_field(name, entry, common["values"]))
    part_families = {part: part_family(entry, part_types.get(part)) for part, entry in parts.items()}
    return Family(
        type,
        {name: _build_architecture(entry) for name, entry in architectures.items()},
        fields,
        frozenset(ignored - set(fields)),
        tuple((published, live) for published, live in names),
        tuple([_gguf_names(*entry) for entry in gguf]),
        part_families,
        documents[-1].get("headless", False),
        {name: fields for document in documents for name, fields in document.get("absent", {}).items()},
    )


def _gguf_names(
    published: str | None, stored: str | list[str] | None, how: str = ""
) -> tuple[str | None, tuple[str, ...], str]:
    return published, (stored,) if isinstance(stored, str) else tuple(stored or ()), how


def _build_architecture(entry: str | Document) -> Architecture:
    entry = {"is": entry, "with": {}} if isinstance(entry, str) else entry
    file, _, definition = entry["is"].partition(".")
    return Architecture(file, definition, entry["with"])


def _build_field(name: str, entry: Document, shared: Document) -> Field:
    default, values, cycle = entry.get("default"), entry.get("values"), entry.get("cycle", [])
    targets, items = entry.get("sets"), entry.get("items")
    targets = cast("list[str]", targets if isinstance(targets, list) else [targets] if targets is not None else [])
    if isinstance(values, str):
        values = shared[values]
    if isinstance(values, dict):
        values = [*cast("Document", values).items()]
    stated = default if default is not None else entry.get("within")
    kinds = {"int": "integer", "float": "number", "bool": "boolean", "list": "list"}
    return Field(
        name,
        targets[0] if targets else None,
        targets[1:],
        entry.get("kind") or ("cycle" if cycle else "items" if items else kinds.get(type(stated).__name__, "")),
        default,
        entry.get("within"),
        frozenset([alias.rpartition(".")[0] for alias in (name, *entry.get("also", ()))]),
        "default" in entry,
        [(value, meaning) for value, meaning in values] if values is not None else None,
        [*items.items()] if items is not None else None,
        entry.get("only"),
        entry.get("least", 1),
        entry.get("unset"),
        entry.get("for"),
        cycle,
        entry.get("last", False),
        entry.get("like"),
        entry.get("unless"),
        entry.get("product", []),
        entry.get("needs", {}),
        entry.get("length"),
        entry.get("optional", "default" in entry and default is None),
    )


# The family of a configuration --------------------------------------------------------------------------------------


def find_family(
    root: JsonValue, members: dict[str, Member], type: str | None, library: Library, report: Report
) -> Family | None:
    """Return the family of a configuration; None after diagnostics. `type` is the type that the user specified."""
    supported = known_types(library.specs)
    if type is not None and type not in supported:
        help = suggest(type, supported) or _list_types(supported)
        raise make_error("usage", f"unknown model type `{type}`", help=help)
    member = members.get("model_type")
    if type is None and member is not None:
        type = _read_stated_type(member, members, supported, library, report)
    elif type is None:
        type = _find_by_architecture(root, members, supported, library, report)
    if type is None:
        return None
    part_types = _read_part_types(type, members, supported, library, report)
    return read_family(library.specs, type, library.raw, part_types) if part_types is not None else None


def _read_part_types(
    type: str, members: dict[str, Member], supported: list[str], library: Library, report: Report
) -> dict[str, str] | None:
    """Return the types of parts that select a definition by their types, and of those that could be `flat` but are not.

    None after a diagnostic.
    """
    reader = DocumentReader(library.specs, {})
    types: dict[str, str] = {}
    for part, entry in part_entries(reader.read_inherited(type)).items():
        present = _member_at(members, part)
        if present is not None and entry.get("flat", False):
            types[part] = entry["like"]
        fields = present.value.plain if present is not None else None
        member = fields.get("model_type") if isinstance(fields, dict) else None
        stated = member.value.plain if member is not None else None
        if member is None or stated is None:
            continue
        if "interface" in entry:
            options = reader.types_with_interface(supported, entry["interface"])
            is_of_another = stated not in options
        else:  # a part of its own, or of one family; a name that no class has says nothing
            options = [entry.get("like", type), *entry.get("types", ())]
            is_own = stated == type or str(stated).replace("-", "_").startswith(f"{type.replace('-', '_')}_")
            is_of_another = not is_own and stated not in options and stated in read_facts(library.specs)["model_types"]
        if is_of_another:
            message = f"unsupported type of `{part}` for model type `{type}`: {member.value.written()}"
            report.error("unsupported", message, member.value.span, help=_list_types(options))
            return None
        if "interface" in entry:
            types[part] = str(stated)
    return types


def _member_at(members: dict[str, Member], part: str) -> Member | None:
    """Return a part of a configuration, which may be in another part: `outer.text_config`."""
    outer, dot, name = part.partition(".")
    fields = members[outer].value.plain if outer in members else None
    if not dot:
        return members.get(outer)
    return _member_at(fields, name) if isinstance(fields, dict) else None


def _read_stated_type(
    member: Member, members: dict[str, Member], supported: list[str], library: Library, report: Report
) -> str | None:
    """Return the model type that the configuration states; None after a diagnostic."""
    stated = member.value.plain
    if not isinstance(stated, str):
        report.error("wrong-kind", f"`model_type` expects a string, found {member.value.written()}", member.value.span)
        return None
    if stated in supported:
        return stated
    is_known = stated in read_facts(library.specs)["model_types"]
    name, candidates = _find_types(members, supported, library)
    if len(candidates) == 1 and not is_known:
        return candidates[0]
    if is_known:
        help = f"{suggest_lift(member.name.source.label)}, which has this type"
        help += f"; `{candidates[0]}` has `{name}`: use `--type {candidates[0]}`" if len(candidates) == 1 else ""
    else:
        help = suggest(stated, supported) or _list_types(supported)
    report.error("unknown-name", f"unknown model type `{stated}`", member.value.span, help=help)
    return None


def _list_types(types: list[str]) -> str:
    listed = ", ".join(types) if len(types) <= MAX_LISTED_TYPES else f"{len(types)} types (docs/import.md, Families)"
    return f"supported: {listed}"


def suggest_lift(path: str) -> str:
    """Return how to draft a spec from the class of `transformers`, and whether the required packages are installed."""
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    state = f"not installed: {', '.join(missing)}" if missing else "installed"
    return f"draft a spec with `archspec lift {quote(path)}`: it runs transformers ({state})"


def _find_types(members: dict[str, Member], supported: list[str], library: Library) -> tuple[str | None, list[str]]:
    """Return the architecture of a configuration, None if it does not name one, and the model types that have it.

    A class with the name of a type is that of this type, even if another type has it, too.
    """
    member = members.get("architectures")
    items = member.value.plain if member is not None else None
    names = [item.plain for item in items] if isinstance(items, list) else []
    name = names[0] if len(names) == 1 and isinstance(names[0], str) else None
    if name is None:
        return None, []
    types = [type for type in supported if _has_architecture(library, type, name)]
    own = [type for type in types if name.lower().startswith(type.replace("-", "").replace("_", ""))]
    return name, own if len(own) == 1 else types


def _find_by_architecture(
    root: JsonValue, members: dict[str, Member], supported: list[str], library: Library, report: Report
) -> str | None:
    """Return the only model type with the architecture of a configuration; None after a diagnostic."""
    member = members.get("architectures")
    name, candidates = _find_types(members, supported, library)
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        reason = f": {' and '.join(f'`{type}`' for type in candidates)} have `{name}`"
    else:
        reason = f", and no model type has the architecture `{name:.80}`" if name else ""
    span = member.name if member is not None else Span(root.span.source, root.span.start, root.span.start + 1)
    example = candidates[0] if candidates else "bert"
    help = f"specify it, as in `--type {example}`; {_list_types(candidates or supported)}"
    report.error("missing-argument", f"missing field `model_type`{reason}", span, help=help)
    return None


def _has_architecture(library: Library, type: str, name: str) -> bool:
    path = os.path.join(library.specs, "configs", f"{type}.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if name not in text and "like:" not in text:
        return False  # parsing YAML takes much longer
    return name in read_family(library.specs, type, {}).architectures
