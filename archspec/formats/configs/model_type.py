"""The family of a configuration, by its model type or by its architecture."""

from __future__ import annotations

import os

from archspec.compiler.resolve.files import Library
from archspec.core.diagnostics import Report, Span, make_error, suggest
from archspec.formats.configs.family import Family, known_types, read_family
from archspec.formats.configs.read import JsonValue, Member


def family_of(
    root: JsonValue, members: dict[str, Member], type: str | None, library: Library, report: Report
) -> Family | None:
    """Return the family of a configuration; None after diagnostics. `type` is the one specified by the user."""
    known = known_types(library.specs)
    if type is not None and type not in known:
        help = suggest(type, known) or f"supported: {', '.join(known)}"
        raise make_error("usage", f"unknown model type `{type}`", help=help)
    member = members.get("model_type")
    if member is not None:
        return _stated(member, type, known, library, report)
    if type is None:
        type = _by_architecture(root, members, known, library, report)
    return read_family(library.specs, type, library.raw) if type is not None else None


def _stated(member: Member, type: str | None, known: list[str], library: Library, report: Report) -> Family | None:
    """Return the family that the configuration states."""
    stated = member.value.plain
    if not isinstance(stated, str):
        report.error("wrong-kind", f"`model_type` expects a string, found {member.value.written()}", member.value.span)
    elif stated not in known:
        help = suggest(stated, known) or f"supported: {', '.join(known)}"
        report.error("unknown-name", f"unknown model type `{stated}`", member.value.span, help=help)
    elif type not in (None, stated):
        message = f"`model_type` is `{stated}`, but `{type}` was specified"
        report.error("unsupported", message, member.value.span, help="remove `--type`")
    else:
        return read_family(library.specs, stated, library.raw)
    return None


def _by_architecture(
    root: JsonValue, members: dict[str, Member], known: list[str], library: Library, report: Report
) -> str | None:
    """Return the only model type with the architecture of a configuration; None after a diagnostic."""
    member = members.get("architectures")
    items = member.value.plain if member is not None else None
    names = [item.plain for item in items] if isinstance(items, list) else []
    name = names[0] if len(names) == 1 and isinstance(names[0], str) else None
    found = [type for type in known if _has_architecture(library, type, name)] if name else []
    if len(found) == 1:
        return found[0]
    if found:
        why = f": {' and '.join(f'`{type}`' for type in found)} have `{name}`"
    else:
        why = f", and no model type has the architecture `{name:.80}`" if name else ""
    at = member.name if member is not None else Span(root.span.source, root.span.start, root.span.start + 1)
    help = f"specify it, as in `--type {found[0] if found else 'bert'}`; supported: {', '.join(found or known)}"
    report.error("missing-argument", f"missing field `model_type`{why}", at, help=help)
    return None


def _has_architecture(library: Library, type: str, name: str) -> bool:
    path = os.path.join(library.specs, "configs", f"{type}.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if name not in text and "like:" not in text:
        return False  # reading it as YAML takes much longer
    return name in read_family(library.specs, type, {}).architectures
