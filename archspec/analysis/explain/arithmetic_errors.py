"""Arithmetic errors: how a written number differs from the intended one."""

from __future__ import annotations


def arithmetic_error(meant: int, written: int) -> str | None:
    """Return the single error that turns `meant` into `written` (wrong digit, swapped digits, carry), or None."""
    if meant <= 0 or written <= 0 or meant == written:
        return None
    a, b = str(meant), str(written)
    places = [i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    if len(a) == len(b) and len(places) == 1:
        return f"one digit is wrong: {b[places[0]]} for {a[places[0]]}"
    if len(a) == len(b) and len(places) == 2:
        both = slice(places[0], places[1] + 1)
        if a[both] == b[both][::-1] and len(a[both]) == 2:
            return f"two digits are swapped: {b[both]} for {a[both]}"
    difference = str(abs(written - meant))
    if len(difference) > 1 and difference.strip("0") == "1":
        return f"a carry is {'added' if written > meant else 'lost'}: {int(difference):,}"
    return None


def describe(meant: int, written: int) -> str | None:
    """Describe how the digits of two numbers differ; None if that is not informative."""
    found = arithmetic_error(meant, written)
    if found is not None or min(meant, written) <= 0:
        return found
    a, b = str(meant), str(written)
    differing = sum(x != y for x, y in zip(a, b, strict=False))
    return f"two of its {len(a)} digits differ" if len(a) == len(b) >= 4 and differing == 2 else None
