"""Regular expressions of untrusted configurations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from re import _constants, _parser  # pyright: ignore  # the only way to see what a pattern consists of
from typing import cast

from archspec.core.diagnostics import Span, make_error
from archspec.core.record import is_tuple

MAX_PATTERN_LENGTH = 4000
LONG_REPEAT = 64


def compiled(pattern: str, at: Span | None = None) -> re.Pattern[str]:
    """Compile a pattern. Raises ArchError for an invalid one, and for one that could take exponential time."""
    shown = pattern if len(pattern) <= 60 else f"{pattern[:57]}..."
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise make_error("budget", f"pattern is too long: the limit is {MAX_PATTERN_LENGTH:,} characters", at)
    try:
        found = re.compile(pattern)
        is_nested = _has_nested_repeats(_parser.parse(pattern))  # pyright: ignore
    except (re.error, OverflowError, RecursionError) as problem:
        raise make_error("syntax", f"invalid regular expression `{shown}`: {problem}", at) from None
    if is_nested:
        message = f"regular expression `{shown}` repeats a repetition, which can take exponential time"
        raise make_error("budget", message, at, help="write it without nested `*` or `+`")
    return found


_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)  # pyright: ignore


def _has_nested_repeats(parts: object, inside: bool = False) -> bool:
    """Whether an unbounded repetition contains another one."""
    parts = getattr(parts, "data", parts)
    if not isinstance(parts, list | tuple):
        return False
    for part in cast("Sequence[object]", parts):
        pair = part if is_tuple(part) else ()
        if len(pair) == 2 and pair[0] in _REPEATS:
            _, most, body = cast("tuple[int, int, object]", pair[1])
            is_unbounded = most > LONG_REPEAT
            if (inside and is_unbounded) or _has_nested_repeats(body, inside or is_unbounded):
                return True
        elif _has_nested_repeats(part, inside):
            return True
    return False
