"""The structure of a file: symbols, ranges to fold, and classes of names for colours."""

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

# Offsets in a text, and the positions of the language server protocol: lines and columns in code units from 0.


class Positions:
    """Converts between the offsets of a source and the positions of a client."""

    def __init__(self, source: Source, codec: PositionCodec) -> None:
        self._source = source
        self._codec = codec

    def position(self, offset: int) -> Position:
        """The position of an offset."""
        line, column = self._source.position(min(max(offset, 0), len(self._source.text)))
        before = self._source.line(line)[: column - 1]
        return Position(line - 1, self._codec.client_num_units(before))

    def range(self, start: int, end: int) -> Range:
        """The range of the characters `start` to `end`."""
        return Range(self.position(start), self.position(end))

    def of(self, span: Span) -> Range:
        """The range of a span of this source."""
        return self.range(span.start, span.end)

    def whole(self) -> Range:
        """The range of the text."""
        return self.range(0, len(self._source.text))

    def offset(self, position: Position) -> int:
        """The offset of a position; one beyond the end of a line or of the text is moved to that end."""
        starts = self._source.line_starts()
        if position.line >= len(starts):
            return len(self._source.text)
        line = self._source.line(position.line + 1)
        units, column = 0, 0
        while column < len(line) and units < position.character:
            units += self._codec.client_num_units(line[column])
            column += 1
        return starts[position.line] + column


TOKEN_TYPES = ("function", "class", "parameter", "variable", "property", "typeParameter", "enumMember")
"""The types of semantic tokens: functions and operations, layers and blocks, hyperparameters and inputs, values,
addresses, dimensions, models.
"""


class Entry(Record):
    """A definition, model or declared address: its range, the range of its name, and what is inside it."""

    kind: str
    name: str
    start: int
    end: int
    name_start: int
    name_end: int
    inside: tuple[Entry, ...]


def outline(file: tree.File) -> Iterator[Entry]:
    """The definitions and models of a file; inside a definition, the addresses that it declares."""
    for item in file.items:
        match item:
            case tree.Definition(name=name):
                inside = tuple(_declared(item))
                yield Entry(item.kind, name.text, item.start, item.end, name.start, name.end, inside)
            case tree.Model(name=name):
                yield Entry("model", str(name.value), item.start, item.end, name.start, name.end, ())
            case _:
                pass


def _declared(definition: tree.Definition) -> Iterator[Entry]:
    for node in iter_declarations(definition.body):
        at = node.address
        name = pattern_text(address_pattern(at))
        if name:
            yield Entry("address", name, node.start, node.end, at.start, at.end, ())


def folds(file: tree.File, source: Source) -> Iterator[tuple[int, int, bool]]:
    """Ranges of lines (from 1, both included) that can be folded, and whether they are comments."""
    for item in file.items:
        yield from _lines(source, item)
        if isinstance(item, tree.Definition):
            for statement in iter_statements(item.body):
                if isinstance(statement, tree.If | tree.For | tree.Assign | tree.Return):
                    yield from _lines(source, statement)
    numbers = [source.position(comment.start)[0] for comment in file.comments]
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        lines = [number for _, number in run]
        if len(lines) > 1:
            yield lines[0], lines[-1], True


def _lines(source: Source, node: tree.Located) -> Iterator[tuple[int, int, bool]]:
    first, last = source.position(node.start)[0], source.position(node.end)[0]
    if last > first:
        yield first, last, False


def tokens(analysis: Analysis) -> Iterator[tuple[int, int, int]]:
    """The start, length and type (an index into TOKEN_TYPES) of each name, in order and without overlaps."""
    end = 0
    for found in analysis.occurrences:
        if found.start >= end:
            end = found.end
            yield found.start, found.end - found.start, TOKEN_TYPES.index(_token_type(found))


def _token_type(found: Occurrence) -> str:
    target = found.target
    if isinstance(target, Op) or (isinstance(target, Definition) and target.kind == "fn"):
        return "function"
    if isinstance(target, Definition):
        return "class"
    kinds = {"hyperparameter": "parameter", "input": "parameter", "output": "variable", "value": "variable"}
    kinds |= {"address": "property", "dimension": "typeParameter", "model": "enumMember"}
    return kinds[found.symbol.kind]
