"""Declared shapes against actual ones: binds dimensions and `...`, and says where a size was first bound."""

from __future__ import annotations

from typing import Any

from archspec.dims import Dim, Symbolic
from archspec.ir import Type
from archspec.lower.evaluate import Evaluator
from archspec.lower.values import DYNAMIC, POISON, describe
from archspec.source import Note, Span
from archspec.syntax import tree

Entry = tree.Parameter | tree.Output


class Header:
    """The dimensions that one application of a definition has bound so far."""

    def __init__(self, evaluator: Evaluator, name: str) -> None:
        self.evaluator = evaluator
        self.name = name
        self.leading: tuple[Dim, ...] | None = None
        self._bound: dict[str, tuple[str, Entry]] = {}

    def match(self, entry: Entry, actual: Type, result: tree.Expr | None = None) -> bool:
        """Checks `actual` against what `entry` declares, binding what is still open.

        A mismatch is reported at `result`, the expression of an output, or where an input is given.
        """
        declared = entry.type or "real"
        if actual.dtype != declared:
            verb = "expects" if result is None else "is declared with"
            message = f"{self._what(entry)} {verb} {declared} elements, found {actual.dtype}"
            self._report("wrong-kind", message, entry, result)
            return False
        if entry.shape is None:
            return True
        items = entry.shape.items
        split = next((i for i, item in enumerate(items) if isinstance(item, tree.Ellipsis_)), None)
        fixed = len(items) - (split is not None)
        sizes = actual.shape
        if len(sizes) < fixed or (split is None and len(sizes) != fixed):
            self._mismatch(entry, actual, result, ())
            return False
        if split is None:
            fits = [self._match_size(entry, i, s, actual, result) for i, s in zip(items, sizes, strict=True)]
            return all(fits)
        after = len(items) - split - 1
        leading = sizes[split : len(sizes) - after]
        if self.leading is None:
            self.leading = leading
            self._bound["..."] = (shape_text(leading), entry)
        elif self.leading != leading:
            self._mismatch(entry, actual, result, (self._first("..."),))
            return False
        pairs = [
            *zip(items[:split], sizes[:split], strict=True),
            *zip(items[split + 1 :], sizes[len(sizes) - after :], strict=True),
        ]
        fits = [self._match_size(entry, i, s, actual, result) for i, s in pairs]
        return all(fits)

    def _match_size(
        self,
        entry: Entry,
        item: tree.Expr,
        size: Dim,
        actual: Type,
        result: tree.Expr | None,
    ) -> bool:
        evaluator = self.evaluator
        is_open = isinstance(item, tree.Name) and item.text in evaluator.unit.dims and item.text not in evaluator.env
        if isinstance(item, tree.Name) and is_open and isinstance(entry, tree.Parameter):
            evaluator.env[item.text] = size
            self._bound[item.text] = (str(size), entry)
            return True
        expected = evaluator.value(item)
        if expected is POISON or expected is DYNAMIC:
            return False
        if not isinstance(expected, int | Symbolic) or isinstance(expected, bool):
            message = f"expected an integer size, found {describe(expected)}"
            evaluator.fault(
                "wrong-kind",
                message,
                item,
                help="use `//` for integer division" if isinstance(expected, float) else None,
            )
            return False
        if expected == size:
            return True
        first: tuple[Note, ...] = ()
        if isinstance(item, tree.Name) and item.text in self._bound:
            first = (self._first(item.text),)
        elif not isinstance(item, tree.Literal):
            text = evaluator.unit.source.text[item.start : item.end]
            first = (Note(f"`{text}` is {expected} here", evaluator.unit.span(item)),)
        self._mismatch(entry, actual, result, first)
        return False

    def _mismatch(self, entry: Entry, actual: Type, result: tree.Expr | None, notes: tuple[Note, ...]) -> None:
        assert entry.shape is not None
        verb = "expects" if result is None else "is declared with"
        message = f"{self._what(entry)} {verb} shape {self._declared(entry.shape)}, found {shape_text(actual.shape)}"
        self._report("dimension", message, entry, result, notes)

    def _report(
        self, code: str, message: str, entry: Entry, result: tree.Expr | None, notes: tuple[Note, ...] = ()
    ) -> None:
        at = self._place(entry) if result is None else self.evaluator.unit.span(result)
        declared = self.evaluator.unit.span(entry)
        if not notes and declared != at:
            notes = (Note("declared here", declared),)
        self.evaluator.program.error(code, message, at, notes=notes)

    def _first(self, name: str) -> Note:
        """Where a dimension was first bound."""
        size, entry = self._bound[name]
        return Note(f"`{name}` was bound to {size} by {self._what(entry)}", self._place(entry))

    def _place(self, entry: Entry) -> Span:
        """Where an input is given; where it is declared, if nothing applies the definition."""
        frames = self.evaluator.program.frames
        return frames[-1].argument(entry.name) if frames else self.evaluator.unit.span(entry)

    def _what(self, entry: Entry) -> str:
        kind = "input" if isinstance(entry, tree.Parameter) else "output"
        return f"{kind}{f' `{entry.name}`' if entry.name else ''} of `{self.name}`"

    def _declared(self, shape: tree.Listing) -> str:
        """A declared shape with the sizes known so far."""
        evaluator = self.evaluator
        words: list[str] = []
        for item in shape.items:
            text = evaluator.unit.source.text[item.start : item.end]
            known: Any = None
            if isinstance(item, tree.Ellipsis_):
                known = None if self.leading is None else ", ".join(map(str, self.leading))
            elif isinstance(item, tree.Name):
                known = evaluator.env.get(item.text)
            elif not isinstance(item, tree.Literal):
                known = evaluator.value(item)
            words.append(text if known is None or known is POISON or known is DYNAMIC else str(known))
        return f"[{', '.join(w for w in words if w)}]"


def shape_text(shape: tuple[Dim, ...]) -> str:
    """A shape as the language writes it."""
    return f"[{', '.join(map(str, shape))}]"
