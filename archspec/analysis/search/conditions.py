"""Expressions over designs, in the syntax of the language with numbers such as `30M`; parsed once for all designs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from typing import Protocol

from archspec.analysis.search.columns import (
    InexactError,
    Value,
    apply_operator,
    as_exact,
    choose_extreme,
    isin,
    logical_not,
    negate,
    where,
)
from archspec.analysis.search.quantities import REQUIRED, SIGNATURES, Quantity, find_argument_error
from archspec.core.diagnostics import ArchError, Diagnostic, Report, Source, Span, make_error, suggest
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse_expression

SUFFIXES = {"K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9, "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
"""Factors of suffixes of numbers; times are in nanoseconds."""

_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\w.])(\d+(?:\.\d+)?)([KMGB]|[num]?s)(?!\w)')

_UNKNOWN_SUFFIX = re.compile(r"found `\d[\d.]*[A-Za-z]+`$")


class Expression:
    """An expression: its text, its tree, the varied hyperparameters that it uses, and its quantities by offset."""

    def __init__(
        self, text: str, node: tree.Expr, source: Source, names: Sequence[str], quantity_by_offset: dict[int, Quantity]
    ):
        self.text = text
        self.node = node
        self.source = source
        self.names = names
        self.quantity_by_offset = quantity_by_offset

    def __str__(self) -> str:
        return self.text

    @property
    def quantities(self) -> list[Quantity]:
        return list(dict.fromkeys(self.quantity_by_offset.values()))


class DesignValues(Protocol):
    """Designs at which an expression is evaluated."""

    def value(self, name: str) -> Value:
        """Return the values of a varied hyperparameter."""
        ...

    def quantity(self, quantity: Quantity) -> Value: ...


def parse_condition(text: str, label: str) -> tuple[tree.Expr, Source]:
    """Parse an expression; numbers with a suffix are expanded. Raises ArchError (`usage`)."""
    source = Source(label, _NUMBER.sub(_expand_suffix, text.strip()))
    report = Report()
    node = parse_expression(source, report)
    if node is None:
        raise ArchError([_add_help(diagnostic._replace(code="usage")) for diagnostic in report.diagnostics])
    return node, source


def _add_help(diagnostic: Diagnostic) -> Diagnostic:
    """Add help to an error for syntax that other languages use."""
    if diagnostic.help is None and diagnostic.message.endswith("found `=`"):
        return diagnostic._replace(help="use `==` for equality")
    if diagnostic.help is None and _UNKNOWN_SUFFIX.search(diagnostic.message):
        return diagnostic._replace(help="use K, M, G or B after a number, as in `30M`, or ns, us, ms or s")
    return diagnostic


def _expand_suffix(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    number = as_exact(Fraction(match[1]) * SUFFIXES[match[2]])
    return str(number) if isinstance(number, int) else str(float(number))


def read_expression(text: str, label: str, varied: Collection[str], others: Collection[str]) -> Expression:
    """Parse an expression over quantities, `varied` hyperparameters, and the `others` of the model.

    Raises ArchError (`usage`).
    """
    node, source = parse_condition(text, label)
    reader = _Reader(source, varied, others)
    reader.read(node)
    return Expression(text.strip(), node, source, list(reader.names), reader.quantity_by_offset)


class _Reader:
    """Checker of the names and calls in an expression; collects the used names and quantities."""

    def __init__(self, source: Source, varied: Collection[str], others: Collection[str]) -> None:
        self.source = source
        self.varied = varied
        self.others = others
        self.quantity_by_offset: dict[int, Quantity] = {}
        self.names: dict[str, None] = {}

    def read(self, node: tree.Expr) -> None:
        match node:
            case tree.Literal():
                pass
            case tree.Name():
                self._read_name(node)
            case tree.Call():
                self._read_call(node)
            case tree.Unary() | tree.Binary() | tree.ListLiteral() | tree.Conditional():
                for part in _children(node):
                    self.read(part)
            case _:
                raise _usage_error(self.source, node, "expected numbers, names, operators and quantities")

    def _read_name(self, node: tree.Name) -> None:
        if node.text in self.varied:
            self.names[node.text] = None
            return
        if node.text in self.others or node.text in SIGNATURES:
            is_other = node.text in self.others
            self.quantity_by_offset[node.start] = (
                Quantity("hyperparameter", node.text) if is_other else self._read_quantity(node, node.text)
            )
            return
        help = suggest(node.text, [*self.varied, *self.others, *SIGNATURES])
        choices = f"hyperparameters: {', '.join([*self.varied, *self.others])}; quantities: {', '.join(SIGNATURES)}"
        raise _usage_error(self.source, node, f"unknown name `{node.text}`", help or choices)

    def _read_call(self, node: tree.Call) -> None:
        name = node.callee.text if isinstance(node.callee, tree.Name) else ""
        if name in ("min", "max"):
            operands = [item for arguments in node.lists for item in arguments.items]
            if len(operands) < 2 or any(item.name for item in operands):
                raise _usage_error(self.source, node, f"`{name}` expects two or more numbers")
            for item in operands:
                assert item.value is not None
                self.read(item.value)
            return
        if name not in SIGNATURES:
            help = suggest(name, [*SIGNATURES, "min", "max"]) or f"quantities: {', '.join(SIGNATURES)}"
            raise _usage_error(self.source, node.callee, f"unknown quantity `{name}`", help)
        self.quantity_by_offset[node.start] = self._read_quantity(node, name)

    def _read_quantity(self, node: tree.Name | tree.Call, kind: str) -> Quantity:
        """Return the quantity that a name or a call denotes."""
        lists = node.lists if isinstance(node, tree.Call) else ()
        form, subject, sizes = SIGNATURES[kind], "", dict[str, int]()
        options = dict(form.named)
        for item in [item for arguments in lists for item in arguments.items]:
            assert item.value is not None
            value = item.value.value if isinstance(item.value, tree.Literal) else None
            if not item.name:
                if not form.subject or subject or not isinstance(value, str) or not value:
                    expected = f'one {form.subject} in quotes: `{kind}("...")`' if form.subject else "named arguments"
                    raise _usage_error(self.source, item, f"`{kind}` expects {expected}")
                subject = value
            elif item.name in options:
                source = self.source.text[item.value.start : item.value.end]
                error = find_argument_error(item.name, value, value if isinstance(value, str) else source)
                if error is not None:
                    raise _usage_error(self.source, item, error)
                options[item.name] = value
            elif not form.has_sizes:
                raise _usage_error(self.source, item, f"unknown argument `{item.name}` of `{kind}`")
            elif not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise _usage_error(self.source, item, f"`{item.name}` expects a positive integer")
            else:
                sizes[item.name] = value
        if form.needs_subject and not subject:
            raise _usage_error(self.source, node, f'`{kind}` expects one {form.subject} in quotes: `{kind}("...")`')
        for name in form.required:
            if options[name] is None:
                expected, example = REQUIRED[name]
                raise _usage_error(self.source, node, f"`{kind}` expects {expected}: `{kind}({example})`")
        return Quantity(kind, subject, tuple(sizes.items()), tuple(options.items()))


def _children(node: tree.Expr) -> Iterator[tree.Expr]:
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


def evaluate_expression(expr: Expression, designs: DesignValues) -> Value:
    """Evaluate an expression for some designs. Raises ArchError (`usage`)."""
    return _Evaluation(expr, designs).value(expr.node)


class _Evaluation:
    def __init__(self, expr: Expression, designs: DesignValues) -> None:
        self.quantity_by_offset = expr.quantity_by_offset
        self.source = expr.source
        self.designs = designs

    def value(self, node: tree.Expr) -> Value:
        try:
            return self._value(node)
        except InexactError as error:
            raise _usage_error(self.source, node, str(error)) from None
        except ZeroDivisionError:
            raise _usage_error(self.source, node, "division by zero for a design") from None
        except (TypeError, ValueError) as error:
            raise _usage_error(self.source, node, f"the operands have wrong types: {error}") from None

    def _value(self, node: tree.Expr) -> Value:
        match node:
            case tree.Literal():
                return as_exact(node.value) if isinstance(node.value, float) else node.value
            case tree.Name():
                quantity = self.quantity_by_offset.get(node.start)
                return self.designs.value(node.text) if quantity is None else self.designs.quantity(quantity)
            case tree.Call():
                name = node.callee.text if isinstance(node.callee, tree.Name) else ""
                if name in ("min", "max"):
                    items = [item.value for arguments in node.lists for item in arguments.items]
                    return choose_extreme(name, [self.value(item) for item in items if item is not None])
                return self.designs.quantity(self.quantity_by_offset[node.start])
            case tree.Unary():
                operand = self.value(node.operand)
                return negate(operand) if node.operator == "-" else logical_not(operand)
            case tree.Binary(operator="in" | "not in"):
                contained = isin(self.value(node.left), self._items(node.right))
                return contained if node.operator == "in" else logical_not(contained)
            case tree.Binary():
                return apply_operator(node.operator, self.value(node.left), self.value(node.right))
            case tree.Conditional():
                if node.otherwise is None:
                    raise _usage_error(self.source, node, "expected `else`")
                return where(self.value(node.condition), self.value(node.value), self.value(node.otherwise))
            case tree.ListLiteral():
                return [self.value(item) for item in node.items]
            case _:
                raise AssertionError(node)  # `_Reader` refuses it

    def _items(self, node: tree.Expr) -> Sequence[Value]:
        items = self.value(node)
        if not isinstance(items, list):
            raise TypeError("expected a list")
        return items


def _usage_error(source: Source, node: tree.Located, message: str, help: str | None = None) -> ArchError:
    return make_error("usage", message, Span(source, node.start, node.end), help=help)
