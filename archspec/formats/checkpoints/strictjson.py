"""Strict JSON for untrusted files: rejects duplicate names, NaN, deep nesting and excessive size."""

from __future__ import annotations

from archspec.formats.checkpoints.entries import damaged

MAX_ITEMS = 4_000_000


def parse(data: bytes, label: str, what: str) -> dict[str, object]:
    """Parse the JSON object in `data`; `what` names it in messages. Raises ArchError if it is invalid."""
    import json

    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_ITEMS:
        raise damaged(label, f"too many items in {what}: the limit is {MAX_ITEMS:,}")
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise damaged(label, f"{what} is not UTF-8 text: invalid byte at offset {error.start}") from None
    except RecursionError:
        raise damaged(label, f"{what} is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise damaged(label, f"{what} is not valid JSON: {error.msg.lower()} at character {error.pos}") from None
    except ValueError as error:
        raise damaged(label, f"{what} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise damaged(label, f"{what} is not a JSON object")
    return value  # pyright: ignore[reportUnknownVariableType]


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"`{name}` appears more than once")
            seen.add(name)
    return found


def _constant(word: str) -> object:
    raise ValueError(f"`{word}` is not a number")
