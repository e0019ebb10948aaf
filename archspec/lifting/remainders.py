"""Expressions of a field and a number that is none, for two values that no candidate has."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import permutations, product
from typing import TypeAlias

from archspec.lifting.candidates import LAYERS, WIDTHS, Found, Values, is_count

Fields: TypeAlias = Mapping[str, "tuple[float, float | None]"]

MOST_PARTS = 4
"""Pixels are predicted with up to so many numbers each."""

MOST_JOINED = 4
"""Up to so many parts of a width are joined with one of another width."""

MOST_HEADS = 64
"""Lists have numbers of heads up to this one."""

LEAST_HEAD, LARGEST_HEAD = 8, 256
"""The sizes of heads."""

MOST_MORE = 64
"""Tables have up to so many rows more than a vocabulary, such as those of tokens for images, and sequences so many
tokens more than patches. Widths are joined up to so many times.
"""


def with_some_more(a: float, b: float, fields: Fields) -> list[Found]:
    """Return widths with some features more."""
    return [
        Found(f"{name} + {a - c}", (name,))
        for name, (c, d) in fields.items()
        if d is not None and c != d and a - c == b - d and 0 < a - c <= MOST_MORE and not name.endswith(LAYERS)
    ]


def with_more_rows(a: float, b: float, fields: Fields) -> list[Found]:
    """Return vocabularies with some rows more."""
    return [
        Found(f"{name} + {a - c}", (name,))
        for name, (c, d) in fields.items()
        if "vocab" in name and d is not None and a - c == b - d and 0 < a - c <= MOST_MORE
    ]


def with_more_places(a: float, b: float, places: Values) -> list[Found]:
    """Return numbers of patches with some tokens more."""
    return [
        Found(f"{found.text} + {a - c}", found.fields)
        for found, (c, d) in places.items()
        if a - c == b - d and 0 < a - c <= MOST_MORE
    ]


def with_multiples(a: float, b: float, fields: Fields) -> list[Found]:
    """Return the widths of what is joined of a part of one width and several of another one."""
    widths = {name: pair for name, pair in fields.items() if not is_count(name) and not name.endswith(LAYERS)}
    return [
        Found(f"{first} + {times} * {second}", (first, second))
        for (first, (c, d)), (second, (e, f)) in permutations(widths.items(), 2)
        for times in range(2, MOST_JOINED + 1)
        if d is not None and f is not None and c != d and e != f and (a, b) == (c + times * e, d + times * f)
    ]


def with_times(a: float, b: float, fields: Fields) -> list[Found]:
    """Return multiples of widths by what is no field, such as the features of all places after convolutions, and heads
    of a size that is no field.
    """
    known = {c for c, _ in fields.values()}
    return [
        Found(f"{a // c} * {name}", (name,))
        for name, (c, d) in fields.items()
        if d is not None and c != d and a % c == 0 and a * d == b * c and _is_multiple(name, a // c, known)
    ]


def _is_multiple(name: str, times: float, known: Collection[float]) -> bool:
    """Whether sizes may be so many times a field: a width, but for numbers that fields have, or heads of a usual size,
    whose queries, keys and values a projection may have.
    """
    if name.endswith((*WIDTHS, "width", "hidden")) or name == "d":
        return 1 < times <= MOST_MORE and times not in known
    return name.endswith(("heads", "n_head")) and LEAST_HEAD <= times <= 3 * LARGEST_HEAD


def with_squares(a: float, b: float, fields: Fields) -> list[Found]:
    """Return multiples of squares, or of products with squares, such as the numbers of pixels in a patch."""
    others = {"": (1, 1)} | {name: pair for name, pair in fields.items() if not is_count(name)}
    found: list[Found] = []
    for side, (c, d) in fields.items():
        if d is None or c == d or is_count(side):
            continue
        for name, (e, f) in others.items():
            times, rest = divmod(a, e * c * c)
            if name != side and f is not None and rest == 0 and times <= MOST_PARTS and b == times * f * d * d:
                parts = [f"{times}"] * (times > 1) + [name] * (name != "") + [f"{side} ** 2"]
                found.append(Found(" * ".join(parts), (*([name] if name else []), side)))
    return found


def parts_of_widths(a: float, b: float, fields: Fields) -> list[Found]:
    """Return the sizes of heads whose number is in a list, and roots of them."""
    found: list[Found] = []
    for name, (c, d) in fields.items():
        if name.endswith(WIDTHS) and d is not None:
            heads = [count for count in range(2, MOST_HEADS + 1) if c % count == d % count == 0]
            for count, power in product(heads, (1, 0.5, -0.5) if isinstance(a, float) else (1,)):
                sizes = (c // count) ** power, (d // count) ** power
                if math.isclose(sizes[0], a) and math.isclose(sizes[1], b):
                    text = f"{name} // {count}"
                    found.append(Found(text if power == 1 else f"({text}) ** {power}", (name,)))
    return found
