"""Fields that are read in other ways than the file of a family describes.

Scalings of rotary positions affect no tensor: those that a family does not have do not stop a count. What needs the
computation itself is refused.
"""

from __future__ import annotations

from archspec.configs.family import Family
from archspec.configs.read import Member

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


def without_scaling(members: dict[str, Member], family: Family) -> tuple[dict[str, Member], tuple[str, ...]]:
    """Return the members without scalings of rotary positions that a family does not have; and what these are."""
    found = {name: kind for name in _OBJECTS if (kind := _unsupported(name, members.get(name), family)) is not None}
    kept = {name: member for name, member in members.items() if name not in found}
    return kept, tuple(f"`{name}` of the type `{kind:.40}`" for name, kind in found.items())


def _unsupported(name: str, member: Member | None, family: Family) -> str | None:
    """Return the type of scaling in an object, if it is one that the family does not have."""
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
    return None if kind in known else kind
