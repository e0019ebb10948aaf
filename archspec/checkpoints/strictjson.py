"""JSON from files that nobody has checked: names that are there twice, NaN, endless nesting and size are errors."""

from __future__ import annotations

from archspec.checkpoints.faults import damaged

MOST_ITEMS = 4_000_000


def parse(data: bytes, label: str, what: str) -> dict[str, object]:
    """The object in `data`; `what` names it in messages. Raises ArchError where it is none, or is no proper JSON."""
    import json

    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_ITEMS:
        raise damaged(label, f"{what} has more than {MOST_ITEMS:,} items")
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise damaged(label, f"{what} is no UTF-8 text: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise damaged(label, f"{what} is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise damaged(label, f"{what} is no JSON: {error.msg}, at character {error.pos}") from None
    except ValueError as error:
        raise damaged(label, f"{what} is no proper JSON: {error}") from None
    if not isinstance(value, dict):
        raise damaged(label, f"{what} is no JSON object")
    return value  # pyright: ignore[reportUnknownVariableType]


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"`{name}` is there twice")
            seen.add(name)
    return found


def _constant(word: str) -> object:
    raise ValueError(f"{word} is no number")
