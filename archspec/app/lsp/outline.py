"""The structure of a file: outline, folding ranges, and types of names for colours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from lsprotocol.types import Position, Range
from pygls.workspace import PositionCodec

from archspec.app.lsp.occurrences import Occurrence
from archspec.app.lsp.workspace import Analysis
from archspec.compiler.resolve.unit import Definition, address_pattern, pattern_text
from archspec.core.diagnostics import Source, Span
from archspec.core.record import Record
from archspec.ir.ops import Op
from archspec.language.syntax import tree
from archspec.language.syntax.tree import iter_declarations, iter_statements

# Positions: the protocol counts lines from 0, and columns in code units of an encoding that the client chooses.


class Positions:
    """A converter between the offsets of a source and the positions of a client."""

    def __init__(self, source: Source, codec: PositionCodec) -> None:
        self._source = source
        self._codec = codec

    def position(self, offset: int) -> Position:
        """Return the position of an offset."""
        line, column = self._source.position(min(max(offset, 0), len(self._source.text)))
        prefix = self._source.line(line)[: column - 1]
        return Position(line - 1, self._codec.client_num_units(prefix))

    def range(self, start: int, end: int) -> Range:
        """Return the range of the characters `start` to `end`."""
        return Range(self.position(start), self.position(end))

    def span_range(self, span: Span) -> Range:
        """Return the range of a span of this source."""
        return self.range(span.start, span.end)

    def offset(self, position: Position) -> int:
        """Return the offset of a position; a position past the end of its line or of the text becomes that end."""
        starts = self._source.line_starts()
        if position.line >= len(starts):
            return len(self._source.text)
        line = self._source.line(position.line + 1)
        units, column = 0, 0
        while column < len(line) and units < position.character:
            units += self._codec.client_num_units(line[column])
            column += 1
        return starts[position.line] + column


# Outline -------------------------------------------------------------------------------------------------------------

TOKEN_TYPES = ("function", "class", "parameter", "variable", "property", "typeParameter", "enumMember")
"""The types of semantic tokens: functions and operations, layers and blocks, hyperparameters and inputs, values,
addresses, dimensions, models.
"""


class Entry(Record):
    """A definition, model or declared address: its range, the range of its name, and its children."""

    kind: str
    name: str
    start: int
    end: int
    name_start: int
    name_end: int
    children: tuple[Entry, ...]


def iter_entries(file: tree.File) -> Iterator[Entry]:
    """Yield the definitions and models of a file; the children of a definition are its declared addresses."""
    for item in file.items:
        match item:
            case tree.Definition(name=name):
                children = tuple(_declared_addresses(item))
                yield Entry(item.kind, name.text, item.start, item.end, name.start, name.end, children)
            case tree.Model(name=name):
                yield Entry("model", str(name.value), item.start, item.end, name.start, name.end, ())
            case _:
                pass


def _declared_addresses(definition: tree.Definition) -> Iterator[Entry]:
    for node in iter_declarations(definition.body):
        address = node.address
        name = pattern_text(address_pattern(address))
        if name:
            yield Entry("address", name, node.start, node.end, address.start, address.end, ())


def iter_folds(file: tree.File, source: Source) -> Iterator[tuple[int, int, bool]]:
    """Yield the first and last line of ranges that can be folded (from 1), and whether a range is a comment."""
    for item in file.items:
        yield from _line_range(source, item)
        if isinstance(item, tree.Definition):
            for statement in iter_statements(item.body):
                if isinstance(statement, tree.If | tree.For | tree.Assign | tree.Return):
                    yield from _line_range(source, statement)
    numbers = [source.position(comment.start)[0] for comment in file.comments]
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        lines = [number for _, number in run]
        if len(lines) > 1:
            yield lines[0], lines[-1], True


def _line_range(source: Source, node: tree.Located) -> Iterator[tuple[int, int, bool]]:
    first, last = source.position(node.start)[0], source.position(node.end)[0]
    if last > first:
        yield first, last, False


def iter_tokens(analysis: Analysis) -> Iterator[tuple[int, int, int]]:
    """Yield the start, length and type (an index into TOKEN_TYPES) of each name, in order and without overlaps."""
    end = 0
    for occurrence in analysis.occurrences:
        if occurrence.start >= end:
            end = occurrence.end
            yield occurrence.start, end - occurrence.start, TOKEN_TYPES.index(_token_type(occurrence))


def _token_type(occurrence: Occurrence) -> str:
    target = occurrence.target
    if isinstance(target, Op) or (isinstance(target, Definition) and target.kind == "fn"):
        return "function"
    if isinstance(target, Definition):
        return "class"
    kinds = {"hyperparameter": "parameter", "input": "parameter", "output": "variable", "value": "variable"}
    kinds |= {"address": "property", "dimension": "typeParameter", "model": "enumMember"}
    return kinds[occurrence.symbol.kind]
