"""Numbers and lists as they are written in a spec."""

from __future__ import annotations

import math
import re
from typing import Any


def literal(value: Any) -> str:
    """Return a value in the notation of the language."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _real(value)
    if isinstance(value, int):
        return f"{value:_}" if abs(value) >= 100_000 else str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join([literal(item) for item in value])}]"  # pyright: ignore[reportUnknownVariableType]
    return str(value)


def _real(value: float) -> str:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    text = re.sub(r"e([+-])0*", lambda match: "e-" if match[1] == "-" else "e", repr(value))
    return text if "." in text or "e" in text else f"{text}.0"
