"""Text and numbers in reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast


def number(count: int, noun: str) -> str:
    """Format a number with a noun: `1 tensor`, `2 tensors`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(items: Sequence[str]) -> str:
    """Format a list: `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def literal(value: object) -> str:
    """Format a value in the syntax of the language; a string without quotes, because it may name a definition."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, cast('Sequence[object]', value)))}]"
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def title(model: str, overrides: Mapping[str, object]) -> str:
    """Format the name of a model with its overrides."""
    changed = ", ".join(f"{name} = {literal(value)}" for name, value in overrides.items())
    return f"{model}, with {changed}" if changed else model


def titles(models: Iterable[tuple[str, Mapping[str, object]]]) -> list[str]:
    """Format the names of several models with their overrides; equal ones are numbered."""
    names = [title(model, overrides) for model, overrides in models]
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]
