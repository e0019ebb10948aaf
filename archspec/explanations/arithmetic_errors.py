"""Arithmetic errors: how a written number differs from the intended one."""

from __future__ import annotations


def arithmetic_error(meant: int, written: int) -> str | None:
    """Return the single error that turns `meant` into `written` (wrong digit, swapped digits, carry), or None."""
    if meant <= 0 or written <= 0 or meant == written:
        return None
    a, b = str(meant), str(written)
    if len(a) == len(b):
        places = [i for i in range(len(a)) if a[i] != b[i]]
        if len(places) == 1:
            return f"one digit is wrong: {b[places[0]]} for {a[places[0]]}"
        if (
            len(places) == 2
            and places[1] == places[0] + 1
            and a[places[0]] == b[places[1]]
            and a[places[1]] == b[places[0]]
        ):
            return f"two digits are swapped: {b[places[0] : places[1] + 1]} for {a[places[0] : places[1] + 1]}"
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
    if len(a) == len(b) and differing == 2 and len(a) >= 4:
        return f"two of its {len(a)} digits differ"
    return None
