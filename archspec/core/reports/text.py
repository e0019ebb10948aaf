"""Text and numbers in reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

# Rounded numbers, shown next to the exact ones: 109M parameters, 22.3 GFLOPs, 438 MB.

_PARAMETERS = ("", "K", "M", "B", "T")
_DURATIONS = (("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
_SI_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def parameters(count: object) -> str:
    """Format a parameter count: `109M`, `1.24B`."""
    return _scaled(count, _PARAMETERS, "")


def flops(count: object) -> str:
    """Format a number of floating-point operations: `22.3 GFLOPs`."""
    return _scaled(count, _SI_PREFIXES, "FLOPs")


def size(count: object) -> str:
    """Format a number of bytes, in powers of 1000: `438 MB`."""
    return _scaled(count, _SI_PREFIXES, "B")


def duration(seconds: float | None) -> str:
    """Format a time: `16.3 ms`; "" for None."""
    if seconds is None:
        return ""
    unit, factor = next((entry for entry in _DURATIONS if seconds * entry[1] >= 0.9995), _DURATIONS[-1])
    return f"{_three_digits(seconds * factor)} {unit}"


def beside(rounded: str) -> str:
    """Format a rounded number to follow the exact one: ` (109M)`, or nothing if there is none."""
    return f" ({rounded})" if rounded else ""


def active(total: int, without_tables: int, choices: Iterable[tuple[int, int]]) -> str:
    """Describe the parameters that a model uses for one token."""
    experts = ", ".join(f"{number} of {count}" for number, count in choices)
    description = f"{total:,} active{beside(parameters(total))}: used for one token, with {experts} experts"
    if without_tables != total:
        description += (
            f"; {without_tables:,}{beside(parameters(without_tables))} without the tables that are only indexed"
        )
    return description


def _scaled(count: object, prefixes: tuple[str, ...], unit: str) -> str:
    """Round to three digits; "" for a number below 1000, which needs no rounding, and for a formula."""
    if not isinstance(count, int) or count < 1000:
        return ""
    fitting = (n for n in range(len(prefixes)) if count / 1000**n < 999.5)  # 999,999 is 1.00M rather than 1000K
    exponent = next(fitting, len(prefixes) - 1)
    text = _three_digits(count / 1000**exponent)
    return f"{text} {prefixes[exponent]}{unit}" if unit else f"{text}{prefixes[exponent]}"


def _three_digits(number: float) -> str:
    digits = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:,.{digits}f}"


def number(count: int, noun: str) -> str:
    """Format a number with a noun: `1 tensor`, `2 tensors`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(items: Sequence[str], word: str = "and") -> str:
    """Format a list: `a`, `a and b`, `a, b and c`."""
    return f" {word} ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def literal(value: object) -> str:
    """Format a value in the syntax of the language; a string without quotes, because it may name a definition."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, cast('Sequence[object]', value)))}]"
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def title(model: str, overrides: Mapping[str, object]) -> str:
    """Format the name of a model with its overrides."""
    changes = ", ".join(f"{name} = {literal(value)}" for name, value in overrides.items())
    return f"{model}, with {changes}" if changes else model


def titles(models: Iterable[tuple[str, Mapping[str, object]]]) -> list[str]:
    """Format the names of several models with their overrides; equal ones are numbered."""
    names = [title(model, overrides) for model, overrides in models]
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]
