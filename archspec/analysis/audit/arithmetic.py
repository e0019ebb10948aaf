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


class Arithmetic(NamedTuple):
    """An expression: numbers, names (hyperparameters, facts of a model), other lines in quotes, and operators."""

    written: Text
    expr: tree.Expr

    @property
    def text(self) -> str:
        return " ".join(self.written.text.split())

    def span(self, node: tree.Expr) -> Span:
        """Return the location of a subexpression in the file."""
        return self.written.part(node.start, node.end)

    def lines(self) -> Iterator[tuple[str, tree.Expr]]:
        """Return the lines that the expression uses."""
        for node in _nodes(self.expr):
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
                value = self._combined(expr, left, right)
        if _bits(value) > MAX_BITS:
            raise self._too_large(expr)
        return value

    def _combined(self, expr: tree.Binary, left: Fraction, right: Fraction) -> Fraction:
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
                    raise self._too_large(expr)
                return left ** int(right)
            case _:
                if right == 0:
                    raise make_error("arithmetic", "division by zero", self.span(expr))
                return left / right if expr.operator == "/" else Fraction(left // right)

    def _too_large(self, expr: tree.Expr) -> ArchError:
        return make_error("budget", "this number is too large to compute", self.span(expr))


def read_arithmetic(written: Text, report: Report) -> Arithmetic | None:
    """Parse an expression; None after reporting a diagnostic."""
    found = Report()
    expr = parse_expression(Source("expression", written.text), found)
    for problem in found.diagnostics:
        at = written.part(problem.span.start, problem.span.end) if problem.span is not None else written.span
        report.error(problem.code, problem.message, at, help=problem.help)
    if expr is None:
        return None
    arithmetic = Arithmetic(written, expr)
    for node in _nodes(expr):
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


def _nodes(expr: tree.Expr) -> Iterator[tree.Expr]:
    """Yield an expression and all its subexpressions, in order."""
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case tree.Unary():
                waiting.append(node.operand)
            case tree.Binary():
                waiting += [node.right, node.left]
            case _:
                pass


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())
