"""Overrides of fields for single layers (`per_layer_config`), read as fields of kinds of layers."""

from __future__ import annotations

from json import dumps

from archspec.core.diagnostics import Source
from archspec.formats.configs.family import Family
from archspec.formats.strict_json import Member, Plain, read_json

_OVERRIDES = "per_layer_config"
_KINDS = "layer_types"


def resolve_layer_overrides(members: dict[str, Member], family: Family, prefix: str = "") -> dict[str, Member]:
    """Replace overrides that all layers of a kind share by fields `per_layer_config.KIND.NAME`, if a family has these.

    Overrides that the family cannot express stay as they are. The members may be those of a part, whose fields have a
    `prefix`.
    """
    if not prefix:
        for part in family.parts:
            fields = members[part].value.plain if part in members else None
            if isinstance(fields, dict):
                fields = resolve_layer_overrides(fields, family, f"{part}.")
                members = {**members, part: members[part]._replace(value=members[part].value._replace(plain=fields))}
    expressible = [name for name in family.fields if name.startswith(f"{prefix}{_OVERRIDES}.")]
    if _OVERRIDES not in members or _KINDS not in members or not expressible:
        return members
    overrides = _read_overrides(members[_OVERRIDES].value.plain, members[_KINDS].value.plain)
    if overrides is None or not {f"{prefix}{_OVERRIDES}.{name}" for name in overrides} <= {*expressible}:
        return members
    resolved = {name: member for name, member in members.items() if name != _OVERRIDES}
    for full_name in expressible:
        name = full_name.removeprefix(f"{prefix}{_OVERRIDES}.")
        base = name.rpartition(".")[2]
        default = family.fields[prefix + base].default
        source = Source(f"`{base}` of {family.title} by default", dumps(default))
        absent = members[_OVERRIDES]._replace(value=read_json(source))
        resolved[f"{_OVERRIDES}.{name}"] = overrides.get(name) or members.get(base) or absent
    return resolved


def _read_overrides(overrides: Plain, kinds: Plain) -> dict[str, Member] | None:
    """Return overrides by `KIND.NAME`; None if layers of a kind differ."""
    if not isinstance(overrides, dict | None) or not isinstance(kinds, list):
        return None
    by_layer: dict[str, dict[str, Member]] = {}
    for key, member in (overrides or {}).items():
        if not key.isdecimal() or not isinstance(member.value.plain, dict):
            return None
        by_layer[str(int(key))] = member.value.plain
    by_kind: dict[str, dict[str, Member]] = {}
    for index, kind in enumerate(kinds):
        fields = by_layer.pop(str(index), {})
        first = by_kind.setdefault(str(kind.plain), fields)
        if _plain_fields(first) != _plain_fields(fields):
            return None
    if by_layer:
        return None
    return {f"{kind}.{name}": member for kind, fields in by_kind.items() for name, member in fields.items()}


def _plain_fields(fields: dict[str, Member]) -> dict[str, object]:
    return {name: member.value.data() for name, member in fields.items()}
