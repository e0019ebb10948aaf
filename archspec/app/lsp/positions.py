"""Offsets in a text, and the positions of the language server protocol: lines and columns in code units from 0."""

from __future__ import annotations

from lsprotocol.types import Position, Range
from pygls.workspace import PositionCodec

from archspec.core.diagnostics import Source, Span


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
