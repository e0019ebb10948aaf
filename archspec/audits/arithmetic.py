"""The arithmetic of a published calculation, evaluated exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from archspec.audits.nodes import Text
from archspec.source import Report, Source, Span
from archspec.syntax import tree
from archspec.syntax.parse import parse_expression

LARGEST_BITS = 256


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


class EvaluationError(Exception):
    """An expression without a value: a code, a message, and the subexpression that is wrong."""

    def __init__(self, code: str, message: str, node: tree.Expr, help: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.node = node
        self.help = help


def read_arithmetic(written: Text, report: Report) -> Arithmetic | None:
    """Parse an expression; None after reporting a diagnostic."""
    found = Report()
    expr = parse_expression(Source("expression", written.text), found)
    for problem in found.diagnostics:
        at = written.part(problem.span.start, problem.span.end) if problem.span is not None else written.span
        report.error(problem.code, problem.message, at, help=problem.help)
    if expr is None:
        return None
    for node in _nodes(expr):
        is_number = isinstance(node, tree.Literal) and not isinstance(node.value, bool) and node.value is not None
        if not (is_number or isinstance(node, tree.Name) or _is_operation(node)):
            at = written.part(node.start, node.end)
            message = "expected arithmetic: numbers, names, lines in quotes, and + - * / // **"
            report.error("wrong-kind", message, at)
            return None
    return Arithmetic(written, expr)


def evaluate(expr: tree.Expr, name: Callable[[tree.Name], Fraction], line: Callable[[str], Fraction]) -> Fraction:
    """Evaluate an expression with the values of its names and lines. Raises EvaluationError."""
    match expr:
        case tree.Name():
            value = name(expr)
        case tree.Literal(value=str() as text):
            value = line(text)
        case tree.Literal(value=int() | float() as number) if abs(number) != float("inf"):
            value = Fraction(str(number))
        case tree.Unary():
            value = -evaluate(expr.operand, name, line)
        case tree.Binary():
            value = _combined(expr, evaluate(expr.left, name, line), evaluate(expr.right, name, line))
        case _:
            raise _too_large(expr)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > LARGEST_BITS:
        raise _too_large(expr)
    return value


def _combined(expr: tree.Binary, left: Fraction, right: Fraction) -> Fraction:
    match expr.operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "**":
            return _power(expr, left, right)
        case _:
            if right == 0:
                raise EvaluationError("arithmetic", "division by zero", expr)
            return left / right if expr.operator == "/" else Fraction(left // right)


def _power(expr: tree.Binary, base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or exponent < 0:
        raise EvaluationError("arithmetic", "expected a non-negative integer exponent of `**`", expr)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if exponent > LARGEST_BITS or bits * exponent > 2 * LARGEST_BITS:
        raise _too_large(expr)
    return base ** int(exponent)


def _too_large(expr: tree.Expr) -> EvaluationError:
    return EvaluationError("budget", "this number is too large to compute", expr)


def _is_operation(node: tree.Expr) -> bool:
    if isinstance(node, tree.Unary):
        return node.operator == "-"
    return isinstance(node, tree.Binary) and node.operator in ("+", "-", "*", "/", "//", "**")


def _nodes(expr: tree.Expr) -> Iterator[tree.Expr]:
    """Yield an expression and all its subexpressions."""
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, tree.Unary):
            waiting.append(node.operand)
        elif isinstance(node, tree.Binary):
            waiting += [node.right, node.left]
