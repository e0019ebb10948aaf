"""Names for the sizes of a block, derived from their occurrences; repeated blocks take them as hyperparameters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from archspec.analysis.scaffold.layers import LayerCall
from archspec.analysis.scaffold.structure import Block
from archspec.analysis.scaffold.tensors import TensorSketch

SizeColumn = tuple[int, ...]
"""The values of one size of a block in each of its distinct uses."""


class Occurrence(NamedTuple):
    """An occurrence of a size in a block: at an address, as an argument of a layer ("" for the axis of a tensor)."""

    words: tuple[str, ...]
    argument: str
    role: str

    @property
    def kind(self) -> str:
        """One of "in" and "out" (of a linear map), "width", "count" (of rows), "axis" and "other"."""
        if self.argument in _KINDS:
            return _KINDS[self.argument]
        return "width" if self.argument.startswith(("in_", "out_")) else "other"


_KINDS = {"": "axis", "in_features": "in", "out_features": "out", "features": "width", "count": "count"}


class Sizes(NamedTuple):
    """The sizes of a block: the expression for each, and the columns of the hyperparameters in them."""

    texts: tuple[str, ...]
    parameters: dict[str, SizeColumn]


def iter_occurrences(block: Block, inner: Callable[[Block], Sequence[Occurrence]]) -> Iterator[Occurrence]:
    """Yield the occurrences of all sizes of a block; `inner` returns the occurrences in a nested block."""
    for statement in block.statements:
        words = tuple(word for word in statement.address if isinstance(word, str))
        content = statement.content
        if isinstance(content, LayerCall):
            yield from (Occurrence(words, slot.name, content.role) for slot in content.slots)
        elif isinstance(content, TensorSketch):
            yield from [Occurrence(words, "", "")] * content.axes
        else:
            yield from (nested._replace(words=(*words, *nested.words)) for nested in inner(content))


def name_sizes(occurrences: Sequence[Occurrence], uses: Sequence[SizeColumn], is_shown: Sequence[bool]) -> Sizes:
    """Name sizes by their occurrences. `uses` has the sizes in each use; `is_shown`: whether a size is in the block.

    Sizes that are equal in every use share a name. A constant size without a suitable name is written as a number.
    """
    columns = list(zip(*uses, strict=True)) if occurrences else []
    namer = _Namer(occurrences, columns)
    texts = tuple(
        namer.text(occurrence, column) if show else ""
        for occurrence, column, show in zip(occurrences, columns, is_shown, strict=True)
    )
    order = {name: position for position, name in enumerate(_ORDER)}
    ordered = sorted(namer.parameters, key=lambda name: order.get(name, len(order)))
    return Sizes(texts, {name: namer.parameters[name] for name in ordered})


_ORDER = ("vocab", "hidden", "inner", "expert", "kv", "positions", "types")
"""Hyperparameters listed first, in this order."""


def _clear_winner(votes: Counter[SizeColumn]) -> SizeColumn | None:
    """Return the column with at least twice the votes of any other, or None."""
    ranked = votes.most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] < 2 * ranked[1][1]):
        return None
    return ranked[0][0]


_KEY_OR_VALUE = re.compile(r"(?:k|v|kv|key|value|keys|values)(?:_|$)")
_ROWS = {
    "types": ("type", "segment"),
    "positions": ("pos", "wpe"),
    "vocab": ("word", "tok", "wte", "vocab", "shared"),
}
"""The meaning of the rows of an embedding table, by parts of its name."""


class _Namer:
    def __init__(self, occurrences: Sequence[Occurrence], columns: Sequence[SizeColumn]) -> None:
        self.parameters: dict[str, SizeColumn] = {}
        self._widths: dict[SizeColumn, str] = {}
        self._rows: dict[SizeColumn, str] = {}
        self._others: dict[tuple[SizeColumn, str], str] = {}
        self._columns: dict[str, SizeColumn] = {}
        self._name_columns(list(zip(occurrences, columns, strict=True)))

    def text(self, occurrence: Occurrence, column: SizeColumn) -> str:
        """Return the expression for a size."""
        kind = occurrence.kind
        tables = {"count": [self._rows], "other": []}.get(kind, [self._widths])
        tables += [self._rows] if kind in ("out", "axis") else []
        for table in tables:
            if column in table:
                text = table[column]
                word = text.split(" ")[-1]
                self.parameters.setdefault(word, self._columns[word])
                return text
        if len(set(column)) == 1:
            return str(column[0])
        key = column, occurrence.argument if kind == "other" else "width"
        if key not in self._others:
            self._others[key] = self._unused_name(key[1])
            self.parameters[self._others[key]] = column
        return self._others[key]

    def _unused_name(self, name: str) -> str:
        reserved = {*self.parameters, *self._columns}
        return next(n for n in (name, *(f"{name}{k}" for k in range(2, len(reserved) + 3))) if n not in reserved)

    def _name_columns(self, pairs: list[tuple[Occurrence, SizeColumn]]) -> None:
        maps = [
            (first, second)
            for ((occurrence, first), (partner, second)) in pairwise(pairs)
            if (occurrence.kind, partner.kind) == ("in", "out") and min(first + second) > 1
        ]
        linear = Counter(column for pair in maps for column in pair)
        norms = Counter(column for occurrence, column in pairs if occurrence.role == "norm" and min(column) > 1)
        hidden = _clear_winner(norms) or _clear_winner(linear)
        if hidden is None and not norms and maps and linear[maps[0][0]] == max(linear.values()):
            hidden = maps[0][0]
        if hidden is not None:
            self._assign_name("hidden", hidden, self._widths)
        for occurrence, column in pairs:
            if occurrence.kind == "count" and min(column) > 1:
                last = occurrence.words[-1].lower() if occurrence.words else ""
                name = next((name for name, parts in _ROWS.items() if any(part in last for part in parts)), None)
                if name and column not in self._rows:
                    self._assign_name(name, column, self._rows)
        for column in sorted(linear, key=lambda column: -linear[column]):
            if column not in self._widths and column not in self._rows:
                used = [use for use, second in pairs if second == column and use.kind in ("in", "out")]
                self._name_width(column, maps, used)

    def _name_width(
        self, column: SizeColumn, maps: Sequence[tuple[SizeColumn, SizeColumn]], used: Sequence[Occurrence]
    ) -> None:
        """Name a width other than the hidden size: of keys and values, of a feed-forward network, or a multiple."""
        for name, base in self._columns.items():
            is_base = self._widths.get(base) == name and (base, column) in maps and (column, base) not in maps
            for factor in (2, 3, 4) if is_base else ():
                if column == tuple([factor * part for part in base]):
                    self._widths[column] = f"{factor} * {name}"
                    return
        hidden = self._columns.get("hidden")
        if hidden is None:
            return
        if (column, hidden) in maps:
            inner_name = "expert" if all("expert" in " ".join(use.words) for use in used) else "inner"
            self._assign_name(inner_name, column, self._widths)
        elif (hidden, column) in maps and all(use.words and _KEY_OR_VALUE.match(use.words[-1]) for use in used):
            self._assign_name("kv", column, self._widths)

    def _assign_name(self, name: str, column: SizeColumn, table: dict[SizeColumn, str]) -> None:
        """Name a column, unless the name is in use."""
        if name not in self._columns:
            self._columns[name] = column
            table[column] = name
