"""The arithmetic of a published calculation, evaluated exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from archspec.analysis.audit.nodes import Text
from archspec.core.diagnostics import ArchError, Report, Source, Span, make_error
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse_expression

MAX_BITS = 256
"""Maximum size of a numerator or denominator, and maximum exponent."""


class Arithmetic(NamedTuple):
    """An expression of numbers, names (hyperparameters and counts of a model), other lines in quotes, and operators."""

    source: Text
    expr: tree.Expr

    @property
    def text(self) -> str:
        return " ".join(self.source.text.split())

    def span(self, node: tree.Expr) -> Span:
        """Return the location of a subexpression in the file."""
        return self.source.part(node.start, node.end)

    def iter_lines(self) -> Iterator[tuple[str, tree.Expr]]:
        """Yield the names of the lines that the expression uses, with their nodes."""
        for node in _iter_nodes(self.expr):
            if isinstance(node, tree.Literal) and isinstance(node.value, str):
                yield node.value, node

    def evaluate(self, name: Callable[[tree.Name], Fraction], line: Callable[[str], Fraction]) -> Fraction:
        """Evaluate the expression with the values of its names and lines. Raises ArchError."""
        return self._value(self.expr, name, line)

    def _value(
        self, expr: tree.Expr, name: Callable[[tree.Name], Fraction], line: Callable[[str], Fraction]
    ) -> Fraction:
        match expr:
            case tree.Name():
                value = name(expr)
            case tree.Literal(value=str() as text):
                value = line(text)
            case tree.Literal(value=int() | float() as number):
                value = Fraction(str(number))
            case tree.Unary():
                value = -self._value(expr.operand, name, line)
            case _:
                assert isinstance(expr, tree.Binary)
                left, right = self._value(expr.left, name, line), self._value(expr.right, name, line)
                value = self._apply_operator(expr, left, right)
        if _bit_count(value) > MAX_BITS:
            raise self._too_large_error(expr)
        return value

    def _apply_operator(self, expr: tree.Binary, left: Fraction, right: Fraction) -> Fraction:
        match expr.operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "**":
                if right.denominator != 1 or right < 0:
                    raise make_error("arithmetic", "expected a non-negative integer exponent of `**`", self.span(expr))
                if right > MAX_BITS:
                    raise self._too_large_error(expr)
                return left ** int(right)
            case _:
                if right == 0:
                    raise make_error("arithmetic", "division by zero", self.span(expr))
                return left / right if expr.operator == "/" else Fraction(left // right)

    def _too_large_error(self, expr: tree.Expr) -> ArchError:
        return make_error("budget", "this number is too large to compute", self.span(expr))


def read_arithmetic(source: Text, report: Report) -> Arithmetic | None:
    """Parse an expression; returns None after reporting a diagnostic."""
    parse_report = Report()
    expr = parse_expression(Source("expression", source.text), parse_report)
    for diagnostic in parse_report.diagnostics:
        span = source.part(diagnostic.span.start, diagnostic.span.end) if diagnostic.span is not None else source.span
        report.error(diagnostic.code, diagnostic.message, span, help=diagnostic.help)
    if expr is None:
        return None
    arithmetic = Arithmetic(source, expr)
    for node in _iter_nodes(expr):
        if not _is_arithmetic(node):
            message = "expected arithmetic: numbers, names, lines in quotes, and + - * / // **"
            report.error("wrong-kind", message, arithmetic.span(node))
            return None
    return arithmetic


def _is_arithmetic(node: tree.Expr) -> bool:
    match node:
        case tree.Literal():
            return not isinstance(node.value, bool) and node.value is not None
        case tree.Unary():
            return node.operator == "-"
        case tree.Binary():
            return node.operator in ("+", "-", "*", "/", "//", "**")
        case _:
            return isinstance(node, tree.Name)


def _iter_nodes(expr: tree.Expr) -> Iterator[tree.Expr]:
    """Yield an expression and all its subexpressions, in order."""
    pending = [expr]
    while pending:
        node = pending.pop()
        yield node
        match node:
            case tree.Unary():
                pending.append(node.operand)
            case tree.Binary():
                pending += [node.right, node.left]
            case _:
                pass


def _bit_count(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())
