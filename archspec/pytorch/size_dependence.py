"""How numbers in definitions depend on the sizes that are hyperparameters of the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from archspec.algebra import Polynomial, bounds, symbol, symbols
from archspec.elaborate.trace import Application, Trace
from archspec.elaborate.values import StaticError, arithmetic
from archspec.resolve import nodes, walk
from archspec.resolve.definition import Resolved, resolved
from archspec.resolve.unit import Definition
from archspec.source import Report


@dataclass(frozen=True)
class Unknown:
    """A number that depends on these sizes, in a way that is not followed."""

    sizes: frozenset[str]


_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def form_of(definition: Definition) -> Resolved:
    """The resolved form of a definition that compiles."""
    return resolved(definition, Report())


def default_of(definition: Definition, word: str) -> nodes.Expr | None:
    """The default of a hyperparameter in resolved form."""
    parameter = definition.hyperparameters[word]
    return None if parameter.default is None else form_of(parameter.origin).defaults[word]


def given_to(site: Application, word: str) -> nodes.Expr | None:
    """What an application passes for a hyperparameter; None where it has its default."""
    argument = site.bound.hyperparameters.get(word)
    if argument is not None:
        return argument.value
    if site.node.arguments.forward is not None and word in site.caller.hyperparameters:
        return nodes.Local(cast("Any", site.node.at), word)
    return None


class SizeDependence:
    """Follows sizes from the model's own definition, whose sizes are symbols, into all others."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._known: dict[tuple[Definition, str], Any] = {}
        self._binds: dict[Definition, dict[str, list[tuple[nodes.Expr, bool]]]] = {}
        self._steps: dict[Definition, dict[int, tuple[nodes.Chain, int]]] = {}

    def of(self, definition: Definition, expr: nodes.Expr) -> frozenset[str]:
        """The sizes that the value of an expression depends on, unless it is the same for all."""
        return _sizes(self._value(definition, expr))

    # Expressions

    def _value(self, definition: Definition, expr: nodes.Expr) -> Any:
        """A constant, a polynomial of sizes, or Unknown."""
        match expr:
            case nodes.Literal():
                return expr.value
            case nodes.Local() | nodes.Dimension():
                return self._named(definition, expr.name)
            case nodes.Global():
                return expr.target
            case nodes.Listing():
                return tuple([self._value(definition, item) for item in expr.items])
            case nodes.Binary():
                return self._binary(definition, expr)
            case nodes.Unary(operator="not"):
                value = self._value(definition, expr.operand)
                return not value if isinstance(value, bool) else _unknown([value])
            case nodes.Conditional():
                return self._conditional(definition, expr)
            case nodes.Length():
                value = self._value(definition, expr.value)
                return len(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else _unknown([value])
            case nodes.Subscript():
                value, index = self._value(definition, expr.value), self._value(definition, expr.position)
                if isinstance(value, tuple) and isinstance(index, int):
                    return cast("tuple[Any, ...]", value)[index]
                return _unknown([value, index])
            case _:
                return _unknown([self._value(definition, part) for part in walk.children(expr)])

    def _binary(self, definition: Definition, expr: nodes.Binary) -> Any:
        if any(isinstance(side, nodes.Literal) and side.value is None for side in (expr.left, expr.right)):
            return Unknown(frozenset())  # whether something is given does not depend on sizes
        left, right = self._value(definition, expr.left), self._value(definition, expr.right)
        if expr.operator in ("and", "or"):
            for value, other in ((left, right), (right, left)):
                if isinstance(value, bool):
                    return value if value == (expr.operator == "or") else other
            return _unknown([left, right])
        if not all(isinstance(value, int | float | str | Polynomial) for value in (left, right)):
            return _unknown([left, right])
        try:
            if expr.operator in _COMPARISONS and (isinstance(left, Polynomial) or isinstance(right, Polynomial)):
                return _compared(expr.operator, left - right) if _are_sizes(left, right) else _unknown([left, right])
            return arithmetic(expr.operator, left, right)
        except (StaticError, TypeError, OverflowError):
            return _unknown([left, right])

    def _conditional(self, definition: Definition, expr: nodes.Conditional) -> Any:
        condition = self._value(definition, expr.condition)
        chosen = condition if isinstance(condition, bool) else self.trace.truth(expr.condition)
        sides = [self._value(definition, e) if e is not None else None for e in (expr.value, expr.otherwise)]
        if chosen is None:
            return _unknown([condition, *sides])
        value = sides[0] if chosen else sides[1]
        return value if isinstance(condition, bool) or not _sizes(condition) else _unknown([condition, value])

    # Names

    def _named(self, definition: Definition, word: str) -> Any:
        key = definition, word
        if key not in self._known:
            self._known[key] = Unknown(frozenset())  # while it is being worked out
            self._known[key] = self._resolved(definition, word)
        return self._known[key]

    def _resolved(self, definition: Definition, word: str) -> Any:
        if definition not in self._binds:
            self._binds[definition] = {}
            for name, value, is_plain in _bound(form_of(definition).body):
                self._binds[definition].setdefault(name, []).append((value, is_plain))
        bound = self._binds[definition].get(word, [])
        known = self._from_uses(definition, word)
        if not bound:
            return known
        values = [self._value(definition, value) for value, _ in bound]
        return values[0] if len(bound) == 1 and bound[0][1] and known is None else _unknown([known, *values])

    def _from_uses(self, definition: Definition, word: str) -> Any:
        """What a hyperparameter, an input, a dimension or the index of a loop is in all uses; None for other names."""
        sites = self.trace.sites(definition)
        if word in definition.hyperparameters:
            if definition is self.trace.root:
                return self._own(word)
            return _same([self._given(definition, site, word) for site in sites])
        for i, entry in enumerate(form_of(definition).inputs):
            if entry.name == word:
                return _unknown([self._value(site.caller, a.value) for site in sites if (a := site.bound.inputs[i])])
            axis = _axis(entry, word)
            if axis is not None:
                return _same([self._size(site.caller, a.value, axis) for site in sites if (a := site.bound.inputs[i])])
        bounds = [
            b for loop in loops(form_of(definition).body) if loop.variable == word for b in (loop.first, loop.last)
        ]
        return _unknown([self._value(definition, bound) for bound in bounds]) if bounds else None

    def _own(self, word: str) -> Any:
        """A hyperparameter of the model's own definition."""
        root = self.trace.root
        value = self.trace.uses[root][0].values[word]
        if is_size(value):
            return symbol(word) if isinstance(value, int) and value > 0 else Unknown(frozenset([word]))
        default = None if word in self.trace.given else default_of(root, word)
        return value if default is None else self._value(root, default)

    def _given(self, definition: Definition, site: Application, word: str) -> Any:
        given, default = given_to(site, word), default_of(definition, word)
        if given is not None:
            return self._value(site.caller, given)
        return self._value(definition, default) if default is not None else None

    # Sizes of tensors

    def _size(self, definition: Definition, expr: nodes.Expr, axis: int) -> Any:
        """The size of a tensor along an axis (negative: counted from the last one)."""
        found = self._declared_size(definition, expr, axis)
        return found if found is not None else _unknown([self._value(definition, expr)])

    def _declared_size(self, definition: Definition, expr: nodes.Expr, axis: int) -> Any:
        """The same, from the shapes that inputs and outputs are declared to have; None where these do not say."""
        match expr:
            case nodes.Local():
                bound = [(value, plain) for name, value, plain in _bound(form_of(definition).body) if name == expr.name]
                entry = next((e for e in form_of(definition).inputs if e.name == expr.name), None)
                if entry is not None and not bound and (item := _item(entry, axis)) is not None:
                    return self._value(definition, item)
                if len(bound) == 1 and bound[0][1]:
                    return self._declared_size(definition, bound[0][0], axis)
            case nodes.Apply() | nodes.Own():
                callees = [c for c in self.trace.callees(expr) if isinstance(c, Definition)]
                sizes = [self._output_size(definition, expr, callee, axis) for callee in callees]
                if sizes and None not in sizes:
                    return _same(sizes)
            case nodes.Chain():
                return self._step_size(definition, expr, len(expr.steps), axis)
            case nodes.Piped():
                chain, step = self._piped(definition)[id(expr)]
                return self._step_size(definition, chain, step, axis)
            case _:
                pass
        return None

    def _step_size(self, definition: Definition, chain: nodes.Chain, after: int, axis: int) -> Any:
        """The size of the piped value after so many steps of a chain."""
        if not after:
            return self._declared_size(definition, chain.head, axis)
        step = chain.steps[after - 1]
        chosen = True if step.condition is None else self.trace.truth(step.condition)
        if chosen is False and step.otherwise is None:
            return self._step_size(definition, chain, after - 1, axis)
        if step.operator or not chosen:
            return None
        return self._declared_size(definition, step.value, axis)

    def _output_size(self, definition: Definition, node: nodes.Apply | nodes.Own, callee: Definition, axis: int) -> Any:
        """The size of the only output of an application; leading dimensions are those of the input that has them."""
        form = form_of(callee)
        if len(form.outputs) != 1:
            return None
        item = _item(form.outputs[0], axis)
        if item is not None:
            return self._value(callee, item)
        bound = self.trace.bound(node, callee)
        for entry, argument in zip(form.inputs, bound.inputs, strict=False):
            is_leading = entry.shape is not None and any(isinstance(i, nodes.Leading) for i in entry.shape.items)
            if is_leading and argument is not None and _places(entry) == _places(form.outputs[0]):
                return self._declared_size(definition, argument.value, axis)
        return None

    def _piped(self, definition: Definition) -> dict[int, tuple[nodes.Chain, int]]:
        """The step of a chain that each piped value is given to."""
        if definition not in self._steps:
            found = self._steps[definition] = dict[int, tuple[nodes.Chain, int]]()
            for statement in walk.every_statement(form_of(definition).body):
                for expr in (e for whole in walk.expressions(statement) for e in walk.every_expression(whole)):
                    for i, step in enumerate(expr.steps if isinstance(expr, nodes.Chain) else ()):
                        assert isinstance(expr, nodes.Chain)  # inner chains come later, and have the last word
                        for part in (step.value, step.otherwise):
                            inside = walk.every_expression(part) if part is not None else ()
                            found.update({id(e): (expr, i) for e in inside if isinstance(e, nodes.Piped)})
        return self._steps[definition]


def is_size(value: Any) -> bool:
    """Whether a value is an integer, or a list of integers."""
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return bool(items) and all(map(is_size, items))
    return value.__class__ is int


def _are_sizes(*values: Any) -> bool:
    return all(isinstance(value, int | Polynomial) for value in values)


def _compared(operator: str, difference: Any) -> Any:
    """Whether `difference operator 0` for all positive sizes; Unknown where that depends on them."""
    low, high = bounds(difference)
    if low is not None and low == high:
        return arithmetic(operator, low, 0)
    above, below = low is not None and low > 0, high is not None and high < 0
    truths = {"==": False, "!=": True, "<": below, "<=": below, ">": above, ">=": above}
    if above or below:
        return truths[operator]
    if low == 0 and operator in (">=", "<"):
        return operator == ">="
    return _unknown([difference])


def _sizes(value: Any) -> frozenset[str]:
    if isinstance(value, Unknown):
        return value.sizes
    if isinstance(value, tuple):
        return frozenset[str]().union(*map(_sizes, cast("tuple[Any, ...]", value)))
    return symbols(value) if isinstance(value, Polynomial) else frozenset()


def _unknown(values: Iterable[Any]) -> Unknown:
    return Unknown(frozenset[str]().union(*map(_sizes, values)))


def _same(values: Sequence[Any]) -> Any:
    """The one value that there is, or something that depends on all of them."""
    same = all(value.__class__ is values[0].__class__ and value == values[0] for value in values)
    return values[0] if values and same else _unknown(values)


def _axis(entry: nodes.Entry, word: str) -> int | None:
    """The axis of an input that has the size `word`; negative behind leading dimensions."""
    items = entry.shape.items if entry.shape is not None else ()
    split = next((i for i, item in enumerate(items) if isinstance(item, nodes.Leading)), len(items))
    for i, item in enumerate(items):
        if isinstance(item, nodes.Dimension | nodes.Local) and item.name == word:
            return i if i < split else i - len(items)
    return None


def _places(entry: nodes.Entry) -> tuple[int, int]:
    """How many axes come before and after the leading dimensions of an input or output."""
    items = entry.shape.items if entry.shape is not None else ()
    split = next((i for i, item in enumerate(items) if isinstance(item, nodes.Leading)), len(items))
    return split, len(items) - split


def _item(entry: nodes.Entry, axis: int) -> nodes.Expr | None:
    """The size of an input or output along an axis; None where that is not written."""
    items = entry.shape.items if entry.shape is not None else ()
    split = next((i for i, item in enumerate(items) if isinstance(item, nodes.Leading)), None)
    if split is not None and not (0 <= axis < split or -(len(items) - split) < axis < 0):
        return None
    return items[axis] if -len(items) <= axis < len(items) else None


def _bound(
    statements: Sequence[nodes.Statement], around: tuple[nodes.Expr, ...] = ()
) -> Iterator[tuple[str, nodes.Expr, bool]]:
    """The names that statements bind, with what decides their values; whether that is all, and the value itself."""
    for statement in statements:
        match statement:
            case nodes.Bind():
                for word in statement.targets:
                    yield word, statement.value, not around and len(statement.targets) == 1
                    yield from ((word, expr, False) for expr in around)
            case nodes.If():
                yield from _bound((*statement.body, *statement.otherwise), (*around, statement.condition))
            case nodes.For():
                yield from _bound(statement.body, (*around, statement.loop.first, statement.loop.last))
            case _:
                pass


def loops(statements: tuple[nodes.Statement, ...]) -> Iterator[nodes.Loop]:
    """All loops in statements."""
    for statement in walk.every_statement(statements):
        match statement:
            case nodes.For():
                yield statement.loop
            case nodes.Declare():
                yield from {id(d.loop): d.loop for d in statement.declares if d.loop is not None}.values()
            case nodes.Tie(loop=nodes.Loop() as loop):
                yield loop
            case _:
                pass
        for expr in walk.expressions(statement):
            for part in walk.every_expression(expr):
                if isinstance(part, nodes.Chain):
                    yield from (step.loop for step in part.steps if step.loop is not None)
