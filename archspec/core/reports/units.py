"""Large numbers as people say them: 109M parameters, 22.3 GFLOPs, 438 MB. They stand beside the exact numbers."""

from __future__ import annotations

from collections.abc import Iterable

_PARAMETERS = ("", "K", "M", "B", "T")
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


def beside(rounded: str) -> str:
    """Format a rounded number to follow the exact one: ` (109M)`, or nothing if there is none."""
    return f" ({rounded})" if rounded else ""


def active(total: int, without_tables: int, choices: Iterable[tuple[int, int]]) -> str:
    """Describe the parameters that a model uses for one token."""
    experts = ", ".join(f"{number} of {of}" for number, of in choices)
    found = f"{total:,} active{beside(parameters(total))}: used for one token, with {experts} experts"
    if without_tables != total:
        found += f"; {without_tables:,}{beside(parameters(without_tables))} without the tables that are only indexed"
    return found


def _scaled(count: object, prefixes: tuple[str, ...], unit: str) -> str:
    """Round to three digits; "" for a number below 1000, which needs no rounding, and for a formula."""
    if not isinstance(count, int) or count < 1000:
        return ""
    fitting = (n for n in range(len(prefixes)) if count / 1000**n < 999.5)  # 999,999 is 1.00M rather than 1000K
    exponent = next(fitting, len(prefixes) - 1)
    scaled = count / 1000**exponent
    digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
    text = f"{scaled:,.{digits}f}"
    return f"{text} {prefixes[exponent]}{unit}" if unit else f"{text}{prefixes[exponent]}"
