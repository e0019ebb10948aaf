"""Expressions of a field and a number that is none, for two values that no candidate has."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import permutations, product
from typing import TypeAlias

from archspec.pytorch.lift.sizes.candidates import LAYERS, WIDTHS, FieldExpression, Values, is_count

Fields: TypeAlias = Mapping[str, "tuple[float, float | None]"]

MAX_PARTS = 4
"""Maximum number of values predicted per pixel."""

MAX_JOINED = 4
"""Maximum number of parts of one width joined with a part of another width."""

MAX_HEADS = 64
"""Maximum head count considered in lists."""

LEAST_HEAD, LARGEST_HEAD = 8, 256
"""The sizes of heads."""

MAX_EXTRA_ROWS = 64
"""Tables have up to so many rows more than a vocabulary, such as those of tokens for images, and sequences so many
tokens more than patches. Widths are joined up to so many times.
"""


def with_some_more(a: float, b: float, fields: Fields) -> list[FieldExpression]:
    """Return widths with some features more."""
    return [
        FieldExpression(f"{name} + {a - c}", (name,))
        for name, (c, d) in fields.items()
        if d is not None and c != d and a - c == b - d and 0 < a - c <= MAX_EXTRA_ROWS and not name.endswith(LAYERS)
    ]


def with_more_rows(a: float, b: float, fields: Fields) -> list[FieldExpression]:
    """Return vocabularies with some rows more."""
    return [
        FieldExpression(f"{name} + {a - c}", (name,))
        for name, (c, d) in fields.items()
        if "vocab" in name and d is not None and a - c == b - d and 0 < a - c <= MAX_EXTRA_ROWS
    ]


def with_more_places(a: float, b: float, places: Values) -> list[FieldExpression]:
    """Return numbers of patches with some tokens more."""
    return [
        FieldExpression(f"{found.text} + {a - c}", found.fields)
        for found, (c, d) in places.items()
        if a - c == b - d and 0 < a - c <= MAX_EXTRA_ROWS
    ]


def with_multiples(a: float, b: float, fields: Fields) -> list[FieldExpression]:
    """Return the widths of what is joined of a part of one width and several of another one."""
    widths = {name: pair for name, pair in fields.items() if not is_count(name) and not name.endswith(LAYERS)}
    return [
        FieldExpression(f"{first} + {times} * {second}", (first, second))
        for (first, (c, d)), (second, (e, f)) in permutations(widths.items(), 2)
        for times in range(2, MAX_JOINED + 1)
        if d is not None and f is not None and c != d and e != f and (a, b) == (c + times * e, d + times * f)
    ]


def with_times(a: float, b: float, fields: Fields) -> list[FieldExpression]:
    """Return multiples of widths by numbers that are not fields, such as the features of all places after
    convolutions, and heads of a size that is no field.
    """
    known = {c for c, _ in fields.values()}
    return [
        FieldExpression(f"{a // c} * {name}", (name,))
        for name, (c, d) in fields.items()
        if d is not None and c != d and a % c == 0 and a * d == b * c and _is_multiple(name, a // c, known)
    ]


def _is_multiple(name: str, times: float, known: Collection[float]) -> bool:
    """Whether sizes may be so many times a field: a width, but for numbers that fields have, or heads of a usual size,
    whose queries, keys and values a projection may have.
    """
    if name.endswith((*WIDTHS, "width", "hidden")) or name == "d":
        return 1 < times <= MAX_EXTRA_ROWS and times not in known
    return name.endswith(("heads", "n_head")) and LEAST_HEAD <= times <= 3 * LARGEST_HEAD


def with_squares(a: float, b: float, fields: Fields) -> list[FieldExpression]:
    """Return multiples of squares, or of products with squares, such as the numbers of pixels in a patch."""
    others = {"": (1, 1)} | {name: pair for name, pair in fields.items() if not is_count(name)}
    found: list[FieldExpression] = []
    for side, (c, d) in fields.items():
        if d is None or c == d or is_count(side):
            continue
        for name, (e, f) in others.items():
            times, rest = divmod(a, e * c * c)
            if name != side and f is not None and rest == 0 and times <= MAX_PARTS and b == times * f * d * d:
                parts = [f"{times}"] * (times > 1) + [name] * (name != "") + [f"{side} ** 2"]
                found.append(FieldExpression(" * ".join(parts), (*([name] if name else []), side)))
    return found


def parts_of_widths(a: float, b: float, fields: Fields) -> list[FieldExpression]:
    """Return the sizes of heads whose number is in a list, and roots of them."""
    found: list[FieldExpression] = []
    for name, (c, d) in fields.items():
        if name.endswith(WIDTHS) and d is not None:
            heads = [count for count in range(2, MAX_HEADS + 1) if c % count == d % count == 0]
            for count, power in product(heads, (1, 0.5, -0.5) if isinstance(a, float) else (1,)):
                sizes = (c // count) ** power, (d // count) ** power
                if math.isclose(sizes[0], a) and math.isclose(sizes[1], b):
                    text = f"{name} // {count}"
                    found.append(FieldExpression(text if power == 1 else f"({text}) ** {power}", (name,)))
    return found
