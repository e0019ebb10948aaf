"""Formulas of fields that have given values: what people write in constructors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import NamedTuple, TypeAlias

SHARES = (8, 3), (4, 3), (2, 3), (16, 3), (3, 2), (3, 4), (1, 2), (1, 3), (1, 4), (1, 6), (1, 8), (1, 16), (1, 32)
"""Parts of sizes that people write, such as `int(8 * n / 3)`."""

FACTORS = 2, 3, 4, 5, 6, 8
"""Multiples of sizes before they are rounded."""

UNITS = 4, 8, 16, 32, 64, 128, 256
"""Numbers to multiples of which sizes are rounded up."""

MAX_FACTOR = 64
"""Sizes are no larger multiples of a formula."""

Column: TypeAlias = "tuple[int, ...]"


class Formula(NamedTuple):
    """The text of a formula, and its values; `is_factor` if it needs no parentheses in a product."""

    text: str
    values: Column
    is_factor: bool = False

    def inside(self) -> str:
        """Return the text as an operand of a product."""
        return self.text if self.is_factor else f"({self.text})"


def find_formula(fields: Sequence[Formula], target: Column) -> str | None:
    """Return the shortest text of a formula with the values of a target; None if there is none."""
    formulas: dict[Column, Formula] = {}
    for item in chain(fields, *[_unary(field) for field in fields]):
        formulas.setdefault(item.values, item)
    for item in [*_rounded([*formulas.values()], fields), *_binary([*formulas.values()], fields)]:
        formulas.setdefault(item.values, item)
    texts = [text for search in (_multiples, _limits, _products, _sums) for text in search(formulas, target)]
    return min(texts, key=len, default=None)


def _unary(field: Formula) -> Iterator[Formula]:
    """Yield what is computed of one field: multiples, parts, parts that are rounded up, powers."""
    text, values = field.text, field.values
    for times in FACTORS:
        yield Formula(f"{times} * {text}", tuple([times * value for value in values]), True)
    for times, parts in SHARES:
        of = text if times == 1 else f"{times} * {text}"
        yield Formula(f"{of} // {parts}", tuple([times * value // parts for value in values]))
        if times == 1:
            yield Formula(f"({text} + {parts - 1}) // {parts}", tuple([-(-value // parts) for value in values]))
    yield Formula(f"{text} ** 2", tuple([value**2 for value in values]), True)
    if max(values) < 32:
        yield Formula(f"2 ** {text}", tuple([2**value for value in values]), True)
        if min(values) > 0:
            yield Formula(f"2 ** ({text} - 1)", tuple([2 ** (value - 1) for value in values]), True)


def _rounded(formulas: Sequence[Formula], fields: Sequence[Formula]) -> Iterator[Formula]:
    """Yield formulas that are rounded up to a multiple of a field or a number."""
    units = [(field.inside(), f"{field.inside()} - 1", field.values) for field in fields if min(field.values) > 0]
    units += [(str(unit), str(unit - 1), (unit,) * len(formulas[0].values)) for unit in UNITS]
    for item in formulas:
        for text, less, values in units:
            if text != item.text:
                rounded = tuple([-(-value // unit) * unit for value, unit in zip(item.values, values, strict=True)])
                yield Formula(f"{text} * (({item.text} + {less}) // {text})", rounded, True)


def _binary(formulas: Sequence[Formula], fields: Sequence[Formula]) -> Iterator[Formula]:
    """Yield quotients by a field, also those that are rounded up, and the larger and the smaller one of two."""
    for item, field in product(formulas, fields):
        pairs = [*zip(item.values, field.values, strict=True)]
        if field.text in item.text:
            continue
        if min(field.values) > 0:
            yield Formula(f"{item.inside()} // {field.text}", tuple([a // b for a, b in pairs]))
            text = f"({item.text} + {field.text} - 1) // {field.text}"
            yield Formula(text, tuple([-(-a // b) for a, b in pairs]))
        yield Formula(f"max({item.text}, {field.text})", tuple([max(pair) for pair in pairs]), True)
        yield Formula(f"min({item.text}, {field.text})", tuple([min(pair) for pair in pairs]), True)


def _multiples(formulas: Mapping[Column, Formula], target: Column) -> Iterator[str]:
    """Yield formulas with the values of a target, or with values that differ from them by a factor or a summand."""
    for times in range(1, MAX_FACTOR + 1):
        if all(value % times == 0 for value in target):
            formula = formulas.get(tuple([value // times for value in target]))
            if formula is not None:
                yield formula.text if times == 1 else f"{times} * {formula.inside()}"
    for values, formula in formulas.items():
        more = target[0] - values[0]
        if more and all(a - b == more for a, b in zip(target, values, strict=True)):
            yield f"{formula.text} + {more}" if more > 0 else f"{formula.text} - {-more}"


def _limits(formulas: Mapping[Column, Formula], target: Column) -> Iterator[str]:
    """Yield formulas that are at least the least value of a target, or at most the largest one."""
    for values, formula in formulas.items():
        for name, choose in (("max", max), ("min", min)):
            limit = min(target) if choose is max else max(target)
            others = {value for value in target if value != limit}
            if len(others) > 1 and all(choose(a, limit) == b for a, b in zip(values, target, strict=True)):
                yield f"{name}({formula.text}, {limit})"


def _products(formulas: Mapping[Column, Formula], target: Column) -> Iterator[str]:
    for values, formula in formulas.items():
        if min(values) > 0 and all(a % b == 0 for a, b in zip(target, values, strict=True)):
            other = formulas.get(tuple([a // b for a, b in zip(target, values, strict=True)]))
            if other is not None:
                yield f"{formula.inside()} * {other.inside()}"


def _sums(formulas: Mapping[Column, Formula], target: Column) -> Iterator[str]:
    for values, formula in formulas.items():
        other = formulas.get(tuple([a - b for a, b in zip(target, values, strict=True)]))
        if other is not None:
            yield f"{formula.text} + {other.text}"
        other = formulas.get(tuple([b - a for a, b in zip(target, values, strict=True)]))
        if other is not None:
            yield f"{formula.text} - {other.inside()}"
