"""Resolution of the built-in functions that are not operations: `len`, `rearrange`, `repeat`, `einsum` and
`collect`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.callees import has_piped
from archspec.compiler.resolve.nodes import Argument, Invalid
from archspec.compiler.resolve.scope import Scope
from archspec.core.diagnostics import suggest
from archspec.core.record import Record
from archspec.ir.ops.einsum import parse_equation
from archspec.ir.ops.rearrange import ELLIPSIS, Pattern, PatternError, parse
from archspec.language.syntax import tree

REARRANGE_NAMES = ("rearrange", "repeat")

_EXAMPLES = {"rearrange": '"b s (h d) -> b h s d", h = 8', "repeat": '"b d -> b t d", t = 2'}


class RearrangeCall(Record):
    """A call: the pattern, its literal, the arguments for sizes, and the tensor (None for the piped value)."""

    pattern: Pattern
    literal: tree.Literal
    sizes: tuple[tree.Argument, ...]
    value: tree.Expr | None


def read_call(
    scope: Scope, word: str, expr: tree.Expr, lists: Sequence[tree.Arguments], piped: bool
) -> RearrangeCall | None:
    """Parse a call of `rearrange` or `repeat`; None after reporting an error."""
    first = lists[0].items if lists else ()
    literal = first[0].value if first and not first[0].name else None
    inputs = lists[1].items if len(lists) > 1 else None
    tensor = None if piped and inputs is None else "x"
    usage = f"write `{word}({_EXAMPLES[word]}){f'({tensor})' if tensor else ''}`"
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
    pattern = _parse_pattern(scope, word, literal, first[1:])
    return RearrangeCall(pattern, literal, first[1:], inputs[0].value if inputs else None) if pattern else None


def span_in_literal(literal: tree.Literal, start: int, end: int) -> tree.Name:
    """Return the location of characters `start` to `end` of the string in a literal."""
    text = literal.value
    is_plain = isinstance(text, str) and literal.end - literal.start == len(text) + 2
    return tree.Name(literal.start + 1 + start, literal.start + 1 + end, "") if is_plain and start < end else literal  # pyright: ignore


def _parse_pattern(scope: Scope, word: str, literal: tree.Literal, sizes: Sequence[tree.Argument]) -> Pattern | None:
    """Parse the pattern and check that `sizes` determine its axes; None after reporting an error."""
    sizes_by_name: dict[str, tree.Argument] = {}
    for item in sizes:
        if item.name in sizes_by_name:
            message = f"the size of `{item.name}` is specified more than once"
            scope.fault("repeated-argument", message, item, first=sizes_by_name[item.name])
            return None
        sizes_by_name[item.name] = item
    try:
        pattern = parse(str(literal.value), tuple(sizes_by_name) if word == "repeat" else None)
        names = [name for side in (pattern.left, pattern.right) for group in side for name in group.names]
        unknown = next((name for name in sizes_by_name if name not in names), None)
        if unknown is None:
            _check_determined(pattern, sizes_by_name)
            return pattern
    except PatternError as error:
        scope.fault("pattern", error.message, span_in_literal(literal, error.start, error.end), help=error.help)
        return None
    near = suggest(unknown, [name for name in names if name != ELLIPSIS])
    scope.fault("unknown-argument", f"the pattern has no axis `{unknown}`", sizes_by_name[unknown], help=near)
    return None


def _check_determined(pattern: Pattern, sizes: dict[str, tree.Argument]) -> None:
    """Check that at most one size in each group of axes must be inferred. Raises PatternError."""
    for group in pattern.left:
        unknown = [name for name in group.names if name not in sizes]
        if len(unknown) > 1:
            message = f"the sizes of {' and '.join(f'`{name}`' for name in unknown)} are not determined"
            raise PatternError(message, group.start, group.end, f"pass all but one: `{unknown[0]} = ...`")


class BuiltIns:
    """Resolves calls of built-in functions, using `resolve` for their arguments. Definitions shadow built-in names."""

    def __init__(self, scope: Scope, resolve: Callable[[tree.Expr], nodes.Expr]) -> None:
        self.scope = scope
        self.resolve = resolve

    def call(
        self, expr: tree.Expr, callee: tree.Expr, lists: tuple[tree.Arguments, ...], piped: bool
    ) -> nodes.Expr | None:
        """Resolve a call; None if its callee is not a built-in function."""
        if not isinstance(callee, tree.Name) or not self._is_built_in(callee.text):
            return None
        if callee.text == "len":
            return self._resolve_length(expr, lists)
        if callee.text in REARRANGE_NAMES:
            return self._resolve_rearrange(expr, callee, lists, piped)
        if callee.text == "einsum":
            return self._resolve_einsum(expr, callee, lists, piped)
        return self._report_misplaced_collect(expr) if callee.text == "collect" else None

    def _optional(self, expr: tree.Expr | None) -> nodes.Expr | None:
        return None if expr is None else self.resolve(expr)

    def _is_built_in(self, name: str) -> bool:
        return name not in self.scope.locals and name not in self.scope.unit.names

    def _resolve_length(self, expr: tree.Expr, lists: tuple[tree.Arguments, ...]) -> nodes.Expr:
        items = lists[0].items if lists else ()
        if len(lists) != 1 or len(items) != 1 or items[0].value is None or items[0].name:
            self.scope.fault("missing-argument", "`len` expects one list", expr)
            return Invalid(expr)
        return nodes.Length(expr, self.resolve(items[0].value))

    def _resolve_rearrange(
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

    def _resolve_einsum(
        self, expr: tree.Expr, callee: tree.Name, lists: tuple[tree.Arguments, ...], piped: bool
    ) -> nodes.Expr:
        first, second = [*lists, None, None][:2]
        inputs = second.items if second is not None else ()
        values = [self._optional(item.value) for item in inputs]
        settings = first.items if first is not None else ()
        literal = settings[0].value if len(settings) == 1 and not settings[0].name else None
        fault, usage = self.scope.fault, 'write `einsum("b q d, b k d -> b q k")(q, k)`'
        if not isinstance(literal, tree.Literal) or not isinstance(literal.value, str):
            fault("pattern", "`einsum` expects an equation in quotes in its first list", expr, help=usage)
            return Invalid(expr)
        if piped and second is None:
            values = [nodes.PipedValue(tree.Name(callee.start, callee.end, "_"))]
        elif piped and second is not None and not has_piped(second):
            message = "the piped value is not passed to `einsum`"
            fault("stream", message, second, help="mark its position with `_`")
        try:
            equation = parse_equation(literal.value)
        except PatternError as error:
            fault("pattern", error.message, span_in_literal(literal, error.start, error.end), help=error.help)
            return Invalid(expr)
        tensors = [value for value in values if value is not None]
        if len(tensors) < len(values) or any(item.name for item in inputs):
            fault("unknown-argument", "`einsum` expects its tensors by position", expr, help=usage)
            return Invalid(expr)
        if len(tensors) != len(equation.terms):
            code = "missing-argument" if len(tensors) < len(equation.terms) else "surplus-argument"
            message = f"`einsum` expects {len(equation.terms)} inputs, as in its equation, found {len(tensors)}"
            fault(code, message, second or expr, help=usage)
            return Invalid(expr)
        return nodes.Einsum(expr, literal, equation, tuple(tensors))

    def is_collect(self, callee: tree.Expr) -> bool:
        """Whether a callee is the built-in `collect`."""
        return isinstance(callee, tree.Name) and callee.text == "collect" and self._is_built_in("collect")

    def collect(self, expr: tree.Call) -> nodes.Expr:
        """Resolve `collect(axis = 1)(value)`, the complete value of an assignment."""
        if not self.scope.loops:
            return self._report_misplaced_collect(expr)
        items = [item for arguments in expr.lists for item in arguments.items]
        if len(expr.lists) == 2 and len(items) == 2 and len(expr.lists[0].items) == 1:
            axis, value = items
            if axis.value is not None and value.value is not None and axis.name in ("", "axis") and not value.name:
                return nodes.Collect(expr, self.resolve(value.value), self.resolve(axis.value))
        help = "write `name = collect(axis = 1)(value)`"
        self.scope.fault("missing-argument", "`collect` expects an axis and a value, each in a list", expr, help=help)
        return Invalid(expr)

    def _report_misplaced_collect(self, expr: tree.Expr) -> Invalid:
        message = "`collect` is only allowed as the whole value of an assignment to one name in a loop"
        self.scope.fault("wrong-kind", message, expr, help="write `name = collect(axis = 1)(value)` in `for ... { }`")
        return Invalid(expr)
