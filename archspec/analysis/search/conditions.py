"""Expressions over designs, in the syntax of the language, with numbers such as `30M`: parsed once, for all designs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from typing import Protocol

from archspec.analysis.search.columns import (
    InexactError,
    Value,
    binary,
    contained,
    exact,
    extreme,
    negative,
    opposite,
    where,
)
from archspec.analysis.search.quantities import FORMS, Quantity, check_argument
from archspec.core.diagnostics import ArchError, Diagnostic, Report, Source, Span, make_error, suggest
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse_expression

SUFFIXES = {"K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}

_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\w.])(\d+(?:\.\d+)?)([KMGB])(?!\w)')

_UNKNOWN_SUFFIX = re.compile(r"found `\d[\d.]*[A-Za-z]+`$")


class Expression:
    """An expression: its text, its tree, the varied hyperparameters that it uses, and its quantities by position."""

    def __init__(self, text: str, node: tree.Expr, source: Source, names: Sequence[str], at: dict[int, Quantity]):
        self.text = text
        self.node = node
        self.source = source
        self.names = names
        self.at = at

    def __str__(self) -> str:
        return self.text

    @property
    def quantities(self) -> list[Quantity]:
        return list(dict.fromkeys(self.at.values()))


class Designs(Protocol):
    """Designs at which an expression is evaluated."""

    def value(self, name: str) -> Value:
        """Return the values of a varied hyperparameter."""
        ...

    def quantity(self, quantity: Quantity) -> Value: ...


def parse_condition(text: str, label: str) -> tuple[tree.Expr, Source]:
    """Parse an expression; numbers with a suffix are replaced. Raises ArchError (`usage`)."""
    source = Source(label, _NUMBER.sub(_without_suffix, text.strip()))
    report = Report()
    node = parse_expression(source, report)
    if node is None:
        raise ArchError([_with_help(found._replace(code="usage")) for found in report.diagnostics])
    return node, source


def _with_help(found: Diagnostic) -> Diagnostic:
    """Add what helps where a condition is written as in other languages."""
    if found.help is None and found.message.endswith("found `=`"):
        return found._replace(help="use `==` for equality")
    if found.help is None and _UNKNOWN_SUFFIX.search(found.message):
        return found._replace(help="use K, M, G or B after a number, as in `30M`")
    return found


def _without_suffix(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    number = exact(Fraction(match[1]) * SUFFIXES[match[2]])
    return str(number) if isinstance(number, int) else str(float(number))


def expression(text: str, label: str, varied: Collection[str], others: Collection[str]) -> Expression:
    """Parse an expression over the hyperparameters that are varied, the `others` of the model, and quantities.

    Raises ArchError (`usage`).
    """
    node, source = parse_condition(text, label)
    reader = _Reader(source, varied, others)
    reader.read(node)
    return Expression(text.strip(), node, source, list(reader.names), reader.at)


class _Reader:
    """Checks the names and calls in an expression, and collects what it uses."""

    def __init__(self, source: Source, varied: Collection[str], others: Collection[str]) -> None:
        self.source = source
        self.varied = varied
        self.others = others
        self.at: dict[int, Quantity] = {}
        self.names: dict[str, None] = {}

    def read(self, node: tree.Expr) -> None:
        match node:
            case tree.Literal():
                pass
            case tree.Name():
                self._name(node)
            case tree.Call():
                self._call(node)
            case tree.Unary() | tree.Binary() | tree.ListLiteral() | tree.Conditional():
                for part in _parts(node):
                    self.read(part)
            case _:
                raise _wrong(self.source, node, "expected numbers, names, operators and quantities")

    def _name(self, node: tree.Name) -> None:
        if node.text in self.varied:
            self.names[node.text] = None
            return
        if node.text in self.others or node.text in FORMS:
            is_other = node.text in self.others
            self.at[node.start] = Quantity("hyperparameter", node.text) if is_other else self._quantity(node, node.text)
            return
        help = suggest(node.text, [*self.varied, *self.others, *FORMS])
        known = f"hyperparameters: {', '.join([*self.varied, *self.others])}; quantities: {', '.join(FORMS)}"
        raise _wrong(self.source, node, f"unknown name `{node.text}`", help or known)

    def _call(self, node: tree.Call) -> None:
        name = node.callee.text if isinstance(node.callee, tree.Name) else ""
        if name in ("min", "max"):
            items = [item for arguments in node.lists for item in arguments.items]
            if len(items) < 2 or any(item.name for item in items):
                raise _wrong(self.source, node, f"`{name}` expects two or more numbers")
            for item in items:
                assert item.value is not None
                self.read(item.value)
            return
        if name not in FORMS:
            help = suggest(name, [*FORMS, "min", "max"]) or f"quantities: {', '.join(FORMS)}"
            raise _wrong(self.source, node.callee, f"unknown quantity `{name}`", help)
        self.at[node.start] = self._quantity(node, name)

    def _quantity(self, node: tree.Name | tree.Call, kind: str) -> Quantity:
        """Return the quantity that a name or a call stands for."""
        lists = node.lists if isinstance(node, tree.Call) else ()
        form, subject, sizes = FORMS[kind], "", dict[str, int]()
        named = dict(form.named)
        for item in [item for arguments in lists for item in arguments.items]:
            assert item.value is not None
            value = item.value.value if isinstance(item.value, tree.Literal) else None
            if not item.name:
                if not form.subject or subject or not isinstance(value, str) or not value:
                    expected = f'one {form.subject} in quotes: `{kind}("...")`' if form.subject else "named arguments"
                    raise _wrong(self.source, item, f"`{kind}` expects {expected}")
                subject = value
            elif item.name in named:
                written = self.source.text[item.value.start : item.value.end]
                problem = check_argument(item.name, value, value if isinstance(value, str) else written)
                if problem is not None:
                    raise _wrong(self.source, item, problem)
                named[item.name] = value
            elif not form.has_sizes:
                raise _wrong(self.source, item, f"unknown argument `{item.name}` of `{kind}`")
            elif not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise _wrong(self.source, item, f"`{item.name}` expects a positive integer")
            else:
                sizes[item.name] = value
        if form.needs_subject and not subject:
            raise _wrong(self.source, node, f'`{kind}` expects one {form.subject} in quotes: `{kind}("...")`')
        if "past" in named and named["past"] is None:
            raise _wrong(self.source, node, f"`{kind}` expects a number of positions: `{kind}(past = 1024)`")
        return Quantity(kind, subject, tuple(sizes.items()), tuple(named.items()))


def _parts(node: tree.Expr) -> Iterator[tree.Expr]:
    match node:
        case tree.Unary():
            yield node.operand
        case tree.Binary():
            yield from (node.left, node.right)
        case tree.ListLiteral():
            yield from node.items
        case tree.Conditional():
            yield from (node.condition, node.value)
            if node.otherwise is not None:
                yield node.otherwise
        case _:
            return


# Evaluation -----------------------------------------------------------------------------------------------------------


def evaluated(expr: Expression, designs: Designs) -> Value:
    """Return the values of an expression for some designs. Raises ArchError (`usage`)."""
    return _Evaluation(expr, designs).value(expr.node)


class _Evaluation:
    def __init__(self, expr: Expression, designs: Designs) -> None:
        self.at = expr.at
        self.source = expr.source
        self.designs = designs

    def value(self, node: tree.Expr) -> Value:
        try:
            return self._value(node)
        except InexactError as problem:
            raise _wrong(self.source, node, str(problem)) from None
        except ZeroDivisionError:
            raise _wrong(self.source, node, "division by zero for a design") from None
        except (TypeError, ValueError) as problem:
            raise _wrong(self.source, node, f"the operands have wrong types: {problem}") from None

    def _value(self, node: tree.Expr) -> Value:
        match node:
            case tree.Literal():
                return exact(node.value) if isinstance(node.value, float) else node.value
            case tree.Name():
                known = self.at.get(node.start)
                return self.designs.value(node.text) if known is None else self.designs.quantity(known)
            case tree.Call():
                name = node.callee.text if isinstance(node.callee, tree.Name) else ""
                if name in ("min", "max"):
                    items = [item.value for arguments in node.lists for item in arguments.items]
                    return extreme(name, [self.value(item) for item in items if item is not None])
                return self.designs.quantity(self.at[node.start])
            case tree.Unary():
                operand = self.value(node.operand)
                return negative(operand) if node.operator == "-" else opposite(operand)
            case tree.Binary(operator="in" | "not in"):
                found = contained(self.value(node.left), self._items(node.right))
                return found if node.operator == "in" else opposite(found)
            case tree.Binary():
                return binary(node.operator, self.value(node.left), self.value(node.right))
            case tree.Conditional():
                if node.otherwise is None:
                    raise _wrong(self.source, node, "expected `else`")
                return where(self.value(node.condition), self.value(node.value), self.value(node.otherwise))
            case tree.ListLiteral():
                return [self.value(item) for item in node.items]
            case _:
                raise AssertionError(node)  # refused when the expression was read

    def _items(self, node: tree.Expr) -> Sequence[Value]:
        found = self.value(node)
        if not isinstance(found, list):
            raise TypeError("expected a list")
        return found


def _wrong(source: Source, at: tree.Located, message: str, help: str | None = None) -> ArchError:
    return make_error("usage", message, Span(source, at.start, at.end), help=help)
