"""Declared shapes against actual ones: binds dimensions and `...`, and says where a size was first bound."""

from __future__ import annotations

from typing import Any

from archspec.dims import Dim, Symbolic
from archspec.ir import Type
from archspec.lower.evaluate import Evaluator
from archspec.lower.values import DYNAMIC, POISON, describe
from archspec.source import Note, Span
from archspec.syntax import tree


class Header:
    """The dimensions that one application of a definition has bound so far."""

    def __init__(self, evaluator: Evaluator, name: str) -> None:
        self.evaluator = evaluator
        self.name = name
        self.leading: tuple[Dim, ...] | None = None
        self._bound: dict[str, Note] = {}

    def match(self, entry: tree.Parameter | tree.Output, actual: Type, what: str, at: Span) -> bool:
        """Checks `actual` against what `entry` declares, binding what is still open; reports a mismatch at `at`."""
        declared = entry.type or "real"
        if actual.dtype != declared:
            self._report("wrong-kind", f"{what} is {declared}; this is {actual.dtype}", entry, at)
            return False
        if entry.shape is None:
            return True
        items = entry.shape.items
        split = next((i for i, item in enumerate(items) if isinstance(item, tree.Ellipsis_)), None)
        fixed = len(items) - (split is not None)
        sizes = actual.shape
        if len(sizes) < fixed or (split is None and len(sizes) != fixed):
            self._mismatch(entry, actual, what, at, ())
            return False
        if split is None:
            fits = [self._match_size(entry, i, s, actual, what, at) for i, s in zip(items, sizes, strict=True)]
            return all(fits)
        after = len(items) - split - 1
        leading = sizes[split : len(sizes) - after]
        if self.leading is None:
            self.leading = leading
            self._bound["..."] = Note(f"`...` was bound to {shape_text(leading)} by {what}", at)
        elif self.leading != leading:
            self._mismatch(entry, actual, what, at, (self._bound["..."],))
            return False
        pairs = [
            *zip(items[:split], sizes[:split], strict=True),
            *zip(items[split + 1 :], sizes[len(sizes) - after :], strict=True),
        ]
        fits = [self._match_size(entry, i, s, actual, what, at) for i, s in pairs]
        return all(fits)

    def _match_size(
        self,
        entry: tree.Parameter | tree.Output,
        item: tree.Expr,
        size: Dim,
        actual: Type,
        what: str,
        at: Span,
    ) -> bool:
        evaluator = self.evaluator
        if isinstance(item, tree.Name) and item.text in evaluator.unit.dims and item.text not in evaluator.env:
            evaluator.env[item.text] = size
            self._bound[item.text] = Note(f"`{item.text}` was bound to {size} by {what}", at)
            return True
        expected = evaluator.value(item)
        if expected is POISON or expected is DYNAMIC:
            return False
        if not isinstance(expected, int | Symbolic) or isinstance(expected, bool):
            message = f"a size is an integer, not {describe(expected)}"
            evaluator.fault(
                "wrong-kind", message, item, help="`//` divides integers" if isinstance(expected, float) else None
            )
            return False
        if expected == size:
            return True
        first: tuple[Note, ...] = ()
        if isinstance(item, tree.Name) and item.text in self._bound:
            first = (self._bound[item.text],)
        elif not isinstance(item, tree.Literal):
            text = evaluator.unit.source.text[item.start : item.end]
            first = (Note(f"`{text}` is {expected} here", evaluator.unit.span(item)),)
        self._mismatch(entry, actual, what, at, first)
        return False

    def _mismatch(
        self, entry: tree.Parameter | tree.Output, actual: Type, what: str, at: Span, notes: tuple[Note, ...]
    ) -> None:
        assert entry.shape is not None
        message = f"{what} is {self._declared(entry.shape)}; this is {shape_text(actual.shape)}"
        self._report("dimension", message, entry, at, notes)

    def _report(
        self, code: str, message: str, entry: tree.Parameter | tree.Output, at: Span, notes: tuple[Note, ...] = ()
    ) -> None:
        if not notes:
            declared = self.evaluator.unit.span(entry)
            notes = () if declared == at else (Note("it is declared here", declared),)
        self.evaluator.program.error(code, message, at, notes=notes)

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
