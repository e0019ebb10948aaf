"""Names for the sizes of a block, from where they occur; what repeats with others takes them as hyperparameters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from archspec.scaffolds.layers import Form
from archspec.scaffolds.structure import Block
from archspec.scaffolds.tensors import Tensor

Column = tuple[int, ...]
"""What one size of a block is in each of the block's distinct uses."""


class Place(NamedTuple):
    """Where a size of a block stands: at an address, as an argument of a layer ("" for the axis of a tensor)."""

    words: tuple[str, ...]
    argument: str
    role: str

    @property
    def kind(self) -> str:
        """ "in" and "out" of a linear map, the "width" of anything else, a "count" of rows, an "axis", or "other"."""
        if self.argument in _KINDS:
            return _KINDS[self.argument]
        return "width" if self.argument.startswith(("in_", "out_")) else "other"


_KINDS = {"": "axis", "in_features": "in", "out_features": "out", "features": "width", "count": "count"}


class Sizes(NamedTuple):
    """The sizes of a block: the text of each, and the hyperparameters in these texts with their columns."""

    texts: tuple[str, ...]
    parameters: dict[str, Column]


def places(block: Block, inner: Callable[[Block], Sequence[Place]]) -> Iterator[Place]:
    """Where each size of a block stands, those of the blocks in it included (`inner` knows them)."""
    for statement in block.statements:
        words = tuple(word for word in statement.address if isinstance(word, str))
        what = statement.what
        if isinstance(what, Form):
            yield from (Place(words, slot.name, what.role) for slot in what.slots)
        elif isinstance(what, Tensor):
            yield from [Place(words, "", "")] * what.axes
        else:
            yield from (place._replace(words=(*words, *place.words)) for place in inner(what))


def name_sizes(found: Sequence[Place], uses: Sequence[Column], shown: Sequence[bool]) -> Sizes:
    """Names sizes by where they stand; `uses` are the sizes in each use, and `shown` says which are written here.

    Sizes that are equal in every use are one. A size without a name that fits is a number if it is always the same.
    """
    columns = list(zip(*uses, strict=True)) if found else []
    named = _Namer(found, columns)
    texts = tuple(
        named.text(place, column) if show else "" for place, column, show in zip(found, columns, shown, strict=True)
    )
    order = {name: place for place, name in enumerate(_ORDER)}
    ordered = sorted(named.parameters, key=lambda name: order.get(name, len(order)))
    return Sizes(texts, {name: named.parameters[name] for name in ordered})


_ORDER = ("vocab", "hidden", "inner", "expert", "kv", "positions", "types")
"""Hyperparameters that come first, in this order."""


def _foremost(votes: Counter[Column]) -> Column | None:
    """The column with at least twice the votes of any other."""
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
"""What the rows of a table stand for, by parts of its name."""


class _Namer:
    def __init__(self, found: Sequence[Place], columns: Sequence[Column]) -> None:
        self.parameters: dict[str, Column] = {}
        self._widths: dict[Column, str] = {}
        self._rows: dict[Column, str] = {}
        self._others: dict[tuple[Column, str], str] = {}
        self._columns: dict[str, Column] = {}
        self._name(list(zip(found, columns, strict=True)))

    def text(self, place: Place, column: Column) -> str:
        """How a size is written."""
        kind = place.kind
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
        key = column, place.argument if kind == "other" else "width"
        if key not in self._others:
            self._others[key] = self._fresh(key[1])
            self.parameters[self._others[key]] = column
        return self._others[key]

    def _fresh(self, name: str) -> str:
        taken = {*self.parameters, *self._columns}
        return next(n for n in (name, *(f"{name}{k}" for k in range(2, len(taken) + 3))) if n not in taken)

    def _name(self, pairs: list[tuple[Place, Column]]) -> None:
        maps = [
            (one, other)
            for ((place, one), (partner, other)) in pairwise(pairs)
            if (place.kind, partner.kind) == ("in", "out") and min(one + other) > 1
        ]
        linear = Counter(column for pair in maps for column in pair)
        norms = Counter(column for place, column in pairs if place.role == "norm" and min(column) > 1)
        stream = _foremost(norms) or _foremost(linear)
        if stream is None and not norms and maps and linear[maps[0][0]] == max(linear.values()):
            stream = maps[0][0]
        if stream is not None:
            self._call("hidden", stream, self._widths)
        for place, column in pairs:
            if place.kind == "count" and min(column) > 1:
                last = place.words[-1].lower() if place.words else ""
                name = next((name for name, parts in _ROWS.items() if any(part in last for part in parts)), None)
                if name and column not in self._rows:
                    self._call(name, column, self._rows)
        for column in sorted(linear, key=lambda column: -linear[column]):
            if column not in self._widths and column not in self._rows:
                used = [place for place, other in pairs if other == column and place.kind in ("in", "out")]
                self._name_width(column, maps, used)

    def _name_width(self, column: Column, maps: Sequence[tuple[Column, Column]], used: Sequence[Place]) -> None:
        """A width besides the stream's: that of keys and values, that inside of a network, or a multiple of another."""
        for name, base in self._columns.items():
            factors = {size / part for size, part in zip(column, base, strict=True)}
            of = self._widths.get(base) == name and (base, column) in maps and (column, base) not in maps
            if of and len(factors) == 1 and factors < {2, 3, 4}:
                self._widths[column] = f"{int(factors.pop())} * {name}"
                return
        stream = self._columns.get("hidden")
        if stream is None:
            return
        if (column, stream) in maps:
            inside = "expert" if all("expert" in " ".join(place.words) for place in used) else "inner"
            self._call(inside, column, self._widths)
        elif (stream, column) in maps and all(place.words and _KEY_OR_VALUE.match(place.words[-1]) for place in used):
            self._call("kv", column, self._widths)

    def _call(self, name: str, column: Column, table: dict[Column, str]) -> None:
        """Names a column, unless another has the name."""
        if name not in self._columns:
            self._columns[name] = column
            table[column] = name
