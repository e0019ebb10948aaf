"""The built-in functions that are no operations: `len`, `rearrange`, `repeat` and `collect`."""

from __future__ import annotations

from collections.abc import Callable

from archspec.resolve import nodes
from archspec.resolve.arguments import has_piped
from archspec.resolve.nodes import Argument, Invalid
from archspec.resolve.rearranging import WORDS, read_call
from archspec.resolve.scope import Scope
from archspec.syntax import tree


class BuiltIns:
    """Resolves their calls; `resolve` resolves the expressions in them. Any other meaning of their names hides them."""

    def __init__(self, scope: Scope, resolve: Callable[[tree.Expr], nodes.Expr]) -> None:
        self.scope = scope
        self.resolve = resolve

    def call(
        self, expr: tree.Expr, callee: tree.Expr, lists: tuple[tree.Arguments, ...], piped: bool
    ) -> nodes.Expr | None:
        """Resolve a call; None if its callee is another."""
        if not isinstance(callee, tree.Name) or not self._is(callee.text):
            return None
        if callee.text == "len":
            return self._length(expr, lists)
        if callee.text in WORDS:
            return self._rearranged(expr, callee, lists, piped)
        return self._misplaced_collect(expr) if callee.text == "collect" else None

    def _optional(self, expr: tree.Expr | None) -> nodes.Expr | None:
        return None if expr is None else self.resolve(expr)

    def _is(self, name: str) -> bool:
        return name not in self.scope.locals and name not in self.scope.unit.names

    def _length(self, expr: tree.Expr, lists: tuple[tree.Arguments, ...]) -> nodes.Expr:
        items = lists[0].items if lists else ()
        if len(lists) != 1 or len(items) != 1 or items[0].value is None or items[0].name:
            self.scope.fault("missing-argument", "`len` expects one list", expr)
            return Invalid(expr)
        return nodes.Length(expr, self.resolve(items[0].value))

    def _rearranged(
        self, expr: tree.Expr, callee: tree.Name, lists: tuple[tree.Arguments, ...], piped: bool
    ) -> nodes.Expr:
        parts = read_call(self.scope, callee.text, expr, lists, piped)
        if parts is None:
            for item in (item for arguments in lists for item in arguments.items):
                self._optional(item.value)
            return Invalid(expr)
        if piped and len(lists) > 1 and not has_piped(lists[1]):
            message = f"the piped value is not passed to `{callee.text}`"
            self.scope.fault("stream", message, lists[1], help="mark its position with `_`")
        sizes = tuple([Argument(item, item.name, self.resolve(item.value)) for item in parts.sizes if item.value])
        value = self._optional(parts.value) or nodes.Piped(tree.Name(callee.start, callee.end, "_"))
        return nodes.Rearrange(expr, callee.text, parts.literal, parts.pattern, sizes, value)

    def is_collect(self, callee: tree.Expr) -> bool:
        """Whether a callee is the built-in `collect`."""
        return isinstance(callee, tree.Name) and callee.text == "collect" and self._is("collect")

    def collect(self, expr: tree.Call) -> nodes.Expr:
        """Resolve `collect(axis = 1)(value)`, the whole value of an assignment."""
        if not self.scope.loops:
            return self._misplaced_collect(expr)
        items = [item for arguments in expr.lists for item in arguments.items]
        if len(expr.lists) == 2 and len(items) == 2 and len(expr.lists[0].items) == 1:
            axis, value = items
            if axis.value is not None and value.value is not None and axis.name in ("", "axis") and not value.name:
                return nodes.Collect(expr, self.resolve(value.value), self.resolve(axis.value))
        help = "write `name = collect(axis = 1)(value)`"
        self.scope.fault("missing-argument", "`collect` expects an axis and a value, each in a list", expr, help=help)
        return Invalid(expr)

    def _misplaced_collect(self, expr: tree.Expr) -> Invalid:
        message = "`collect` is only allowed as the whole value of an assignment to one name in a loop"
        self.scope.fault("wrong-kind", message, expr, help="write `name = collect(axis = 1)(value)` in `for ... { }`")
        return Invalid(expr)
