"""Fields that are read in other ways than the file of a family describes.

Scalings of rotary positions affect no tensor: those that a family does not have do not stop a count. What needs the
computation itself is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from archspec.formats.configs.family import Family
from archspec.formats.configs.read import Member

_OBJECTS = ("rope_parameters", "rope_scaling")
_KINDS = ("rope_type", "type")


_NO_MODELS = ("AutoConfig", "AutoTokenizer", "AutoProcessor", "AutoImageProcessor", "AutoFeatureExtractor")


def as_read(members: dict[str, Member], family: Family) -> dict[str, Member]:
    """Return the members as `transformers` reads them.

    `vision_config_dict` replaces `vision_config`, and it has the classes that `auto_map` names if these are its own.
    """
    found = dict(members)
    for part in family.parts:
        other = found.get(f"{part}_dict")
        if other is not None and isinstance(other.value.plain, dict):
            found[part] = found.pop(f"{part}_dict")
    own = found.get("auto_map")
    if own is not None and isinstance(own.value.plain, dict):
        named = [member.value.plain for key, member in own.value.plain.items() if key not in _NO_MODELS]
        if all(isinstance(name, str) and name.rpartition(".")[2] in family.architectures for name in named):
            del found["auto_map"]
    return found


def without_scaling(
    members: dict[str, Member], family: Family, ignore: Sequence[str]
) -> tuple[dict[str, Member], tuple[str, ...]]:
    """Return the members without scalings of rotary positions that a family does not have; and what these are."""
    found: dict[str, str] = {}
    for name in _OBJECTS:
        described = _unsupported(name, members.get(name), family, ignore)
        if described is not None:
            found[name] = described
    kept = {name: member for name, member in members.items() if name not in found}
    return kept, tuple(f"`{name}` {described}" for name, described in found.items())


def _unsupported(name: str, member: Member | None, family: Family, ignore: Sequence[str]) -> str | None:
    """Describe what the family does not have in a scaling: its type, or a field."""
    fields = member.value.plain if member is not None else None
    if not isinstance(fields, dict):
        return None
    kinds = [fields[key].value.plain for key in _KINDS if key in fields]
    kind = kinds[0] if kinds else None
    names = (*(f"{each}.{key}" for each in (name, *_OBJECTS) for key in _KINDS), name)
    field = next((family.fields[each] for each in names if each in family.fields), None)
    if not isinstance(kind, str) or field is None:
        return None
    known = field.only if field.only is not None else [value for value, _ in field.values or ()]
    if kind not in known:
        return f"of the type `{kind:.40}`"
    fulls = {key: f"{name}.{key}" for key in fields}
    other = next((key for key, full in fulls.items() if not _is_known(full, family, ignore)), None)
    return None if other is None else f"with the field `{other:.40}`"


def _is_known(full: str, family: Family, ignore: Sequence[str]) -> bool:
    is_ignored = any(full == pattern or fnmatchcase(full, pattern) for pattern in ignore)
    return full in family.fields or full in family.ignored or is_ignored
