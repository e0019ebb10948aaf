"""Checks of actual shapes against declared ones, which bind dimensions and `...`."""

from __future__ import annotations

from archspec.algebra import Dim, Polynomial
from archspec.elaborate.interpreter import Interpreter
from archspec.elaborate.values import DYNAMIC, POISON, Value, describe
from archspec.ir import Type
from archspec.resolve import nodes
from archspec.resolve.nodes import Entry
from archspec.source import Note, Span
from archspec.syntax import tree
from archspec.syntax.tree import Located


class Header:
    """The dimensions bound by one application of a definition."""

    def __init__(self, interpreter: Interpreter, name: str) -> None:
        self.interpreter = interpreter
        self.name = name
        self.leading: tuple[Dim, ...] | None = None
        self._bound: dict[str, tuple[str, Entry]] = {}

    def match(self, entry: Entry, actual: Type, result: Located | None = None) -> bool:
        """Check `actual` against the declaration `entry`, and bind its unbound dimensions.

        A mismatch is reported at `result`, the expression of an output, or at the argument of an input.
        """
        declared = entry.dtype
        if actual.dtype != declared:
            verb = "expects" if result is None else "is declared with"
            message = f"{self._what(entry)} {verb} {declared} elements, found {actual.dtype}"
            self._report("wrong-kind", message, entry, result)
            return False
        if entry.shape is None:
            return True
        items = entry.shape.items
        split = next((i for i, item in enumerate(items) if isinstance(item, nodes.Leading)), None)
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
        item: nodes.Expr,
        size: Dim,
        actual: Type,
        result: Located | None,
    ) -> bool:
        interpreter = self.interpreter
        if isinstance(item, nodes.Dimension) and item.name not in interpreter.env and _is_input(entry):
            interpreter.env[item.name] = size
            self._bound[item.name] = (str(size), entry)
            return True
        expected = interpreter.value(item)
        if expected is POISON or expected is DYNAMIC:
            return False
        if not isinstance(expected, int | Polynomial) or isinstance(expected, bool):
            message = f"expected an integer size, found {describe(expected)}"
            interpreter.fault(
                "wrong-kind",
                message,
                item.at,
                help="use `//` for integer division" if isinstance(expected, float) else None,
            )
            return False
        if expected == size:
            return True
        first: tuple[Note, ...] = ()
        if isinstance(item, nodes.Dimension) and item.name in self._bound:
            first = (self._first(item.name),)
        elif not isinstance(item, nodes.Literal):
            first = (Note(f"`{self._text(item)}` is {expected} here", interpreter.unit.span(item.at)),)
        self._mismatch(entry, actual, result, first)
        return False

    def _mismatch(self, entry: Entry, actual: Type, result: Located | None, notes: tuple[Note, ...]) -> None:
        assert entry.shape is not None
        verb = "expects" if result is None else "is declared with"
        message = f"{self._what(entry)} {verb} shape {self._declared(entry.shape)}, found {shape_text(actual.shape)}"
        self._report("dimension", message, entry, result, notes)

    def _report(
        self, code: str, message: str, entry: Entry, result: Located | None, notes: tuple[Note, ...] = ()
    ) -> None:
        at = self._place(entry) if result is None else self.interpreter.unit.span(result)
        declared = self.interpreter.unit.span(entry.at)
        if not notes and declared != at:
            notes = (Note("declared here", declared),)
        self.interpreter.program.error(code, message, at, notes=notes)

    def _first(self, name: str) -> Note:
        """Return a note that locates the first binding of a dimension."""
        size, entry = self._bound[name]
        return Note(f"`{name}` was bound to {size} by {self._what(entry)}", self._place(entry))

    def _place(self, entry: Entry) -> Span:
        """Return the location of the argument of an input, or of its declaration in the outermost definition."""
        frames = self.interpreter.program.frames
        return frames[-1].argument(entry.name) if frames else self.interpreter.unit.span(entry.at)

    def _what(self, entry: Entry) -> str:
        kind = "input" if _is_input(entry) else "output"
        return f"{kind}{f' `{entry.name}`' if entry.name else ''} of `{self.name}`"

    def _declared(self, shape: nodes.Listing) -> str:
        """Format a declared shape with the known sizes."""
        interpreter = self.interpreter
        words: list[str] = []
        for item in shape.items:
            known: Value = None
            if isinstance(item, nodes.Leading):
                known = None if self.leading is None else ", ".join(map(str, self.leading))
            elif isinstance(item, nodes.Local | nodes.Dimension):
                known = interpreter.env.get(item.name)
            elif not isinstance(item, nodes.Literal):
                known = interpreter.value(item)
            words.append(self._text(item) if known is None or known is POISON or known is DYNAMIC else str(known))
        return f"[{', '.join(w for w in words if w)}]"

    def _text(self, item: nodes.Expr) -> str:
        return self.interpreter.unit.source.text[item.at.start : item.at.end]


def _is_input(entry: Entry) -> bool:
    return isinstance(entry.at, tree.Parameter)


def shape_text(shape: tuple[Dim, ...]) -> str:
    """Format a shape in the syntax of the language."""
    return f"[{', '.join(map(str, shape))}]"
