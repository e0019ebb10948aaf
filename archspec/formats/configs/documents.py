"""Composition of family files: what a file inherits (`like`, `includes`), drops (`without`) and contains (`parts`).

`docs/import.md` describes the format. The files are part of the package, so they are not validated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from itertools import product
from typing import Any, NamedTuple, TypeAlias, cast

COMMON = "_common"

_MODEL_FIELDS = ("model_type", "architectures", "num_labels", "id2label", "tie_word_embeddings")
"""Fields that have an effect in the configuration of a model, and none in that of a part."""

Document: TypeAlias = dict[str, Any]
"""A file, or a mapping in one."""


class FieldEntries(NamedTuple):
    """The entries of fields by their names, and the names of ignored fields."""

    fields: dict[str, Document]
    ignored: set[str]


class NameLists(NamedTuple):
    """The pairs of published and live names, and the pairs of published names and names in GGUF files."""

    names: list[list[str]]
    gguf: list[list[Any]]


class DocumentReader:
    """Reads the files of families; the contents of the files are added to `raw`."""

    def __init__(self, specs: str, raw: dict[str, bytes]) -> None:
        self.specs = specs
        self.raw = raw

    def read(self, name: str) -> Document:
        """Read one file."""
        path = os.path.abspath(os.path.join(self.specs, "configs", name + ".yaml"))
        with open(path, "rb") as file:
            self.raw[path] = file.read()
        return _parse_yaml(self.raw[path])

    def read_inherited(self, type: str) -> list[Document]:
        """Read the file of a type and the files that it inherits, which come first, with what they include."""
        documents = [self.read(type)]
        while "like" in documents[0]:
            documents.insert(0, self.read(documents[0]["like"]))
        return [self._merge_included(document) for document in documents]

    def _merge_included(self, document: Document) -> Document:
        """Return a file with the fields of the files that it includes, which its own fields replace."""
        entries = document.get("includes", ())
        included = [self.read(entry) if isinstance(entry, str) else self._read_included(entry) for entry in entries]
        fields, ignored = merge_fields([*included, {**document, "without": ()}])
        return {**document, "fields": fields, "ignored": ignored}

    def _read_included(self, entry: Document) -> Document:
        """Read the fields of a file below one of its objects, with names of their own (`under`, `sets`).

        Other names of these fields that begin with one of `also` stay as they are.
        """
        (old, new), sets, also = entry["under"], cast("dict[str, str]", entry["sets"]), entry.get("also", ())

        def rename(name: str) -> str | None:
            if name.startswith(f"{old}."):
                return f"{new}.{name.removeprefix(f'{old}.')}"
            return name if name.partition(".")[0] in also else None

        fields = cast("dict[str, Document]", self.read(entry["file"])["fields"])
        return {"fields": _place_fields(fields, rename, _target_renamer(sets))}

    def read_part(self, part: str, entry: Document, type: str | None) -> FieldEntries:
        """Read the fields of a part: fields common to all parts, and fields of its family.

        The family is `like`, regardless of the type that the part states, or for an `interface`, that `type`. Its
        fields set hyperparameters of the definition that is the value of `as`, and those in `sets` of the outer one.
        """
        common = self.read(COMMON)
        only = {name: field for name, field in common["fields"].items() if "only" in field}
        entries = FieldEntries(dict(only), {*common["ignored"], *_MODEL_FIELDS})
        family = part_family(entry, type)
        prefix = f"{entry['as']}." if "as" in entry else ""
        if family is not None:
            inherited = merge_fields([common, *self.read_inherited(family)])
            # The architectures of the family are not those of the part, which has no head unless the outer one sets it.
            sets = entry.get("sets", {})
            applicable = {
                name: {key: value for key, value in field.items() if key != "for"}
                for name, field in inherited.fields.items()
                if "for" not in field or field.get("sets") in sets
            }
            names = {alias for name, field in inherited.fields.items() for alias in (name, *field.get("also", ()))}
            entries = FieldEntries(applicable, entries.ignored | inherited.ignored | names)
        fields = _place_fields(
            entries.fields, lambda name: f"{part}.{name}", _target_renamer(entry.get("sets", {}), prefix)
        )
        ignored = {f"{part}.{name}" for name in entries.ignored}
        if entry.get("flat", False):
            ignored |= entries.ignored
            for name, field in fields.items():
                names = [name, *field.get("also", ())]
                outer = [alias.removeprefix(f"{part}.") for alias in names]
                if type is None:
                    fields[name] = {**field, "also": [*names[1:], *outer]}
                else:
                    ignored |= {alias.partition(".")[0] for alias in outer}
        if "interface" in entry:
            definition = self.read(str(family))["interfaces"][entry["interface"]]
            fields[f"{part}.model_type"] = {"sets": entry["as"], "default": family, "values": {family: definition}}
        return FieldEntries(fields, ignored)

    def read_part_names(self, entry: Document, type: str | None) -> NameLists:
        """Read the names of a part that is declared at the address `at` of the outer definition."""
        family, address = part_family(entry, type), entry.get("at")
        if family is None or address is None:
            return NameLists([], [])
        names, gguf = merge_names(self.read_inherited(family))
        return NameLists([[f"{address}.**.{run}" for run in pair] for pair in names], gguf)

    def iter_part_types(self, type: str, types: Iterable[str]) -> Iterator[dict[str, str]]:
        """Yield the choices of types for the parts of a family, one for each combination of lists of names."""
        choices: list[list[tuple[str, str]]] = []
        for part, entry in part_entries(self.read_inherited(type)).items():
            if "interface" in entry:
                options = [entry["default"], *self.types_with_interface(types, entry["interface"])]
                distinct = {repr(self.read_part_names(entry, option)): option for option in reversed(options)}
                choices.append([(part, option) for option in reversed(distinct.values())])
        yield from map(dict, product(*choices))

    def types_with_interface(self, types: Iterable[str], interface: str) -> list[str]:
        """Return the types with a definition for an interface."""
        return [type for type in types if interface in self.read(type).get("interfaces", {})]


def merge_fields(documents: Iterable[Document], parts: Iterable[FieldEntries] = ()) -> FieldEntries:
    """Merge the fields of parts and of documents: later ones replace earlier ones, and `without` drops them."""
    fields: dict[str, Document] = {}
    ignored = set[str]()
    for part in parts:
        fields |= part.fields
        ignored |= part.ignored
    for document in documents:
        for pattern in document.get("without", ()):
            fields = {name: field for name, field in fields.items() if not fnmatchcase(name, pattern)}
            ignored = {name for name in ignored if not fnmatchcase(name, pattern)}
        fields |= document.get("fields", {})
        ignored.update(document.get("ignored", ()))
    return FieldEntries(fields, ignored)


def merge_names(documents: Iterable[Document]) -> NameLists:
    """Merge the lists of names of documents: GGUF names by published name, others as a whole."""
    names: list[list[str]] = []
    gguf: list[list[Any]] = []
    for document in documents:
        names = document.get("names", names)
        replacements = document.get("gguf", [])
        replaced = [published for published, *_ in replacements]
        gguf = [*[entry for entry in gguf if entry[0] not in replaced], *replacements]
    return NameLists(names, gguf)


def part_family(entry: Document, type: str | None) -> str | None:
    """Return the type whose file describes a part that states `type`, if there is one."""
    return type or entry.get("like") or entry.get("default")


def part_entries(documents: Iterable[Document]) -> dict[str, Document]:
    """Return the parts of a family with their entries, from the last document that has any."""
    parts: Any = ()
    for document in documents:
        parts = document.get("parts", parts)
    return cast("dict[str, Document]", parts if isinstance(parts, dict) else {name: {} for name in parts})


def _target_renamer(sets: Mapping[str, str], prefix: str = "") -> Callable[[str], str]:
    """Return a function that renames hyperparameters: those in `sets`, and others with a prefix."""

    def rename(name: str) -> str:
        head, dot, remainder = name.partition(".")
        return f"{sets[head]}{dot}{remainder}" if head in sets else prefix + name

    return rename


def _place_fields(
    fields: Mapping[str, Document], rename: Callable[[str], str | None], rename_target: Callable[[str], str]
) -> dict[str, Document]:
    """Return fields with other names that set other hyperparameters; those without a new name are left out."""
    names = {name: rename(name) for name in fields}
    return {new: _place_field(fields[name], rename, rename_target) for name, new in names.items() if new is not None}


def _place_field(field: Document, rename: Callable[[str], str | None], rename_target: Callable[[str], str]) -> Document:
    def place_value(value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {rename_target(name): item for name, item in cast("dict[str, object]", value).items()}

    placed = dict(field)
    for key in ("sets", "like", "unless", "length", "product"):
        if key in field:
            target: str | list[str] = field[key]
            is_name = isinstance(target, str)
            placed[key] = rename_target(target) if is_name else [rename_target(name) for name in target]
    if "also" in field:
        placed["also"] = [name for name in map(rename, field["also"]) if name is not None]
    if "needs" in field:
        placed["needs"] = {value: [rename(name) for name in names] for value, names in field["needs"].items()}
    values = field.get("values")
    if isinstance(values, dict):
        placed["values"] = {value: place_value(item) for value, item in cast("dict[object, object]", values).items()}
    elif isinstance(values, list):
        placed["values"] = [(value, place_value(item)) for value, item in cast("list[tuple[object, object]]", values)]
    return placed


@cache
def _parse_yaml(data: bytes) -> Document:
    """Parse a document. It is cached, because tensor names are searched in all families, so it must not be changed."""
    import yaml

    return yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
