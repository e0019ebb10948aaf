"""Names for the sizes of a block, from where they occur: what repeats with other sizes takes them as hyperparameters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
        """ "in" and "out" of a linear map, the "width" of anything, a "count" of rows, an "axis", or "other"."""
        name = self.argument
        if not name:
            return "axis"
        if name == "count":
            return name
        if name.startswith(("in_", "out_")):
            return name.partition("_")[0]
        return "width" if name == "features" else "other"


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


def name_sizes(found: Sequence[Place], uses: Sequence[Column]) -> Sizes:
    """Names sizes by where they stand; `uses` are the sizes in each use.

    Sizes that are equal in every use are one. A size without a name that fits is a number if it is always the same.
    """
    columns = list(zip(*uses, strict=True)) if found else []
    named = _Namer(found, columns)
    return Sizes(tuple(map(named.text, found, columns)), named.parameters)


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
        key = column, "axis" if kind == "axis" else kind
        if key not in self._others:
            self._others[key] = self._fresh(place.argument or "size")
            self.parameters[self._others[key]] = column
        return self._others[key]

    def _fresh(self, name: str) -> str:
        taken = {*self.parameters, *self._columns}
        return next(n for n in (name, *(f"{name}{k}" for k in range(2, len(taken) + 3))) if n not in taken)

    def _name(self, pairs: list[tuple[Place, Column]]) -> None:
        self._columns: dict[str, Column] = {}
        linear = Counter(column for place, column in pairs if place.kind in ("in", "out") and min(column) > 1)
        norms = Counter(column for place, column in pairs if place.role == "norm" and min(column) > 1)
        stream = norms or linear
        if stream:
            self._call("hidden", max(stream, key=lambda column: (stream[column], linear[column])), self._widths)
        for place, column in pairs:
            if place.kind == "count" and column not in self._rows and min(column) > 1:
                last = place.words[-1].lower() if place.words else ""
                for name, parts in _ROWS.items():
                    if any(part in last for part in parts):
                        self._call(name, column, self._rows)
                        break
        for column in sorted(linear, key=lambda column: -linear[column]):
            self._name_width(column, [place for place, other in pairs if other == column])

    def _name_width(self, column: Column, used: list[Place]) -> None:
        """A width besides the stream's: that of keys and values, that inside of a network, or a multiple of another."""
        if column in self._widths or column in self._rows:
            return
        outs = [place for place in used if place.kind == "out"]
        ins = [place for place in used if place.kind == "in"]
        if outs and not ins:
            for base, name in list(self._widths.items()):
                for factor in (2, 3, 4):
                    if " " not in name and all(size == factor * part for size, part in zip(column, base, strict=True)):
                        self._widths[column] = f"{factor} * {name}"
                        return
            if all(place.words and _KEY_OR_VALUE.match(place.words[-1]) for place in outs):
                self._call("kv", column, self._widths)
        elif outs and ins:
            inside = "expert" if all("expert" in " ".join(place.words) for place in outs + ins) else "inner"
            self._call(inside, column, self._widths)

    def _call(self, name: str, column: Column, table: dict[Column, str]) -> None:
        """Names a column, unless another has the name."""
        if name not in self._columns:
            self._columns[name] = column
            table[column] = name
