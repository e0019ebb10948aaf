"""The built-in functions that are no operations: `len`, `rearrange`, `repeat` and `collect`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.callees import has_piped
from archspec.compiler.resolve.nodes import Argument, Invalid
from archspec.compiler.resolve.scope import Scope
from archspec.core.diagnostics import suggest
from archspec.core.record import Record
from archspec.ir.ops.rearrange import ELLIPSIS, Pattern, PatternError, parse
from archspec.language.syntax import tree

REARRANGE_NAMES = ("rearrange", "repeat")

_EXAMPLE = {"rearrange": '"b s (h d) -> b h s d", h = 8', "repeat": '"b d -> b t d", t = 2'}


class RearrangeCall(Record):
    """A call: its pattern, the literal that has it, the given sizes, and the tensor (None for the piped value)."""

    pattern: Pattern
    literal: tree.Literal
    sizes: tuple[tree.Argument, ...]
    value: tree.Expr | None


def read_call(
    scope: Scope, word: str, expr: tree.Expr, lists: Sequence[tree.Arguments], piped: bool
) -> RearrangeCall | None:
    """Return the parts of a call of `rearrange` or `repeat`; None after reporting an error."""
    first = lists[0].items if lists else ()
    literal = first[0].value if first and not first[0].name else None
    inputs = lists[1].items if len(lists) > 1 else None
    tensor = None if piped and inputs is None else "x"
    usage = f"write `{word}({_EXAMPLE[word]}){f'({tensor})' if tensor else ''}`"
    if not isinstance(literal, tree.Literal) or not isinstance(literal.value, str):
        scope.fault("pattern", f"`{word}` expects a pattern in quotes first", first[0] if first else expr, help=usage)
        return None
    if inputs is None and not piped:
        scope.fault("missing-argument", f"missing input `x` in call to `{word}`", expr, help=usage)
        return None
    if inputs is not None and (len(inputs) != 1 or inputs[0].value is None or inputs[0].name not in ("", "x")):
        scope.fault("surplus-argument", f"`{word}` expects one input", lists[1], help=usage)
        return None
    for item in first[1:]:
        if item.value is None or not item.name:
            scope.fault("pattern", f"`{word}` expects sizes by name", item, help=usage)
            return None
    pattern = _pattern(scope, word, literal, first[1:])
    return RearrangeCall(pattern, literal, first[1:], inputs[0].value if inputs else None) if pattern else None


def span_in_literal(literal: tree.Literal, start: int, end: int) -> tree.Name:
    """Return the location of characters of the string in a literal."""
    text = literal.value
    is_plain = isinstance(text, str) and literal.end - literal.start == len(text) + 2
    return tree.Name(literal.start + 1 + start, literal.start + 1 + end, "") if is_plain and start < end else literal  # pyright: ignore


def _pattern(scope: Scope, word: str, literal: tree.Literal, sizes: Sequence[tree.Argument]) -> Pattern | None:
    """Return the pattern, with each size given at most once and as many as it needs; None after reporting an error."""
    given: dict[str, tree.Argument] = {}
    for item in sizes:
        if item.name in given:
            message = f"the size of `{item.name}` is specified more than once"
            scope.fault("repeated-argument", message, item, first=given[item.name])
            return None
        given[item.name] = item
    try:
        pattern = parse(str(literal.value), tuple(given) if word == "repeat" else None)
        names = [name for side in (pattern.left, pattern.right) for group in side for name in group.names]
        unknown = next((name for name in given if name not in names), None)
        if unknown is None:
            _check_determined(pattern, given)
            return pattern
    except PatternError as problem:
        scope.fault("pattern", problem.message, span_in_literal(literal, problem.start, problem.end), help=problem.help)
        return None
    near = suggest(unknown, [name for name in names if name != ELLIPSIS])
    scope.fault("unknown-argument", f"the pattern has no axis `{unknown}`", given[unknown], help=near)
    return None


def _check_determined(pattern: Pattern, given: dict[str, tree.Argument]) -> None:
    """Check that at most one size of each axis has to be inferred."""
    for group in pattern.left:
        unknown = [name for name in group.names if name not in given]
        if len(unknown) > 1:
            message = f"the sizes of {' and '.join(f'`{name}`' for name in unknown)} are not determined"
            raise PatternError(message, group.start, group.end, f"pass all but one: `{unknown[0]} = ...`")


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
        if callee.text in REARRANGE_NAMES:
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
        value = self._optional(parts.value) or nodes.PipedValue(tree.Name(callee.start, callee.end, "_"))
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
