"""One definition while one of its functions is written: what its names and nodes stand for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, NoReturn, cast

from archspec.codegen.python.trees import literal, method, name
from archspec.codegen.scope.attribute_paths import AttributePaths
from archspec.codegen.scope.context import Context, distinct
from archspec.codegen.scope.statements import Statements
from archspec.codegen.scope.values import ABSENT_VALUE, BOOL, INT, KIND, REAL, STATIC, CodeValue, MultipleOutputs
from archspec.compiler.elaborate.trace import DefinitionUse, EvaluatedNode, RecordedValues
from archspec.compiler.evaluate.program import InputArgument
from archspec.compiler.evaluate.values import Value
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.unit import Definition
from archspec.core.diagnostics import ArchError, make_error
from archspec.ir.module import Body, Call, Constant, Type
from archspec.language.syntax.tree import Located

NO_VALUES = RecordedValues(None)

SourceNode = EvaluatedNode | nodes.Statement | nodes.Address | nodes.Loop | Located
"""What has a location in the spec."""


class Input(NamedTuple):
    """An input, its value, and the arguments passed in each use.

    `items` are its shape as the spec declares it, `shape` is it in Python.
    """

    entry: nodes.TypedEntry
    value: CodeValue
    given: tuple[InputArgument, ...]

    @property
    def types(self) -> list[Type]:
        """Those of the uses in which it is a tensor."""
        return [given for given in self.given if isinstance(given, Type)]

    @property
    def is_always_tensor(self) -> bool:
        return len(self.types) == len(self.given)

    @property
    def is_optional(self) -> bool:
        return self.entry.optional or not self.is_always_tensor

    @property
    def sizes(self) -> dict[int, int]:
        """The sizes that are the same in every use, by place."""
        places = enumerate(zip(*[type.shape for type in self.types], strict=True))
        return {i: sizes[0] for i, sizes in places if len(set(sizes)) == 1 and isinstance(sizes[0], int)}

    @property
    def items(self) -> tuple[nodes.Expr, ...]:
        return self.entry.shape.items if self.entry.shape is not None else ()

    @property
    def end(self) -> int:
        """The place of `...`, or the number of items."""
        return next(
            (i for i, item in enumerate(self.items) if isinstance(item, nodes.LeadingDimensions)), len(self.items)
        )

    @property
    def has_leading(self) -> bool:
        return self.end < len(self.items)

    @property
    def shape(self) -> ast.expr:
        return method(self.value.code, "shape")

    def part(self, place: int) -> ast.expr:
        """The size at a place; the sizes of `...`."""
        end, after = self.end, place - len(self.items)
        if place != end:
            return ast.Subscript(self.shape, literal(place if place < end else after), ast.Load())
        start, stop = literal(end) if end else None, literal(after + 1) if after < -1 else None
        return ast.Subscript(self.shape, ast.Slice(start, stop), ast.Load())


class Scope:
    """`env` has the values of the definition's names. `hyperparameter` is the code of one that is an argument.

    `steps` are the steps of chains by what they apply, whose values are recorded with the step.
    """

    def __init__(
        self,
        context: Context,
        definition: Definition,
        uses: Sequence[DefinitionUse],
        places: AttributePaths,
        hyperparameter: Callable[[str], ast.expr],
    ) -> None:
        self.context = context
        self.trace = context.trace
        self.definition = definition
        self.form = context.form(definition)
        self.unit = definition.unit
        self.uses = uses
        self.places = places
        self.is_function = definition.kind == "fn"
        self.statements = Statements(context.taken, context.parameters(definition))
        self.env: dict[str, CodeValue | MultipleOutputs] = {}
        self.steps: dict[int, nodes.Step] = {}
        for word in definition.hyperparameters:
            values = context.values(definition, word)
            code = hyperparameter(word)
            if context.is_settled(definition, word) and isinstance(values[0], bool | int | float | str | None):
                code = literal(values[0])
            self.env[word] = CodeValue(code, STATIC, 0, counts=counts_as(values))
            other = context.arguments.renamed(definition, word)
            if other is not None:
                self.env[word] = self.env[other]
        self._initial = dict(self.env)
        given = zip(*[use.arguments for use in uses], strict=True) if uses else [()] * len(self.form.inputs)
        self.inputs = [self._input(entry, each) for entry, each in zip(self.form.inputs, given, strict=True)]

    def _input(self, entry: nodes.TypedEntry, given: tuple[InputArgument, ...]) -> Input:
        """An input: absent in every use, a number in every use, or a tensor."""
        types = [g for g in given if isinstance(g, Type)]
        value = ABSENT_VALUE
        if types or any(isinstance(g, Constant) for g in given):
            variable = self.statements.variable(entry.name)
            ranks = {len(t.shape) for t in types}
            rank = ranks.pop() if len(ranks) == 1 else None
            element = KIND[types[0].dtype if types and entry.dtype == "any" else entry.dtype]
            value = CodeValue(name(variable), element if types else STATIC, rank, name=variable, counts=element)
        self.env[entry.name] = value
        return Input(entry, value, given)

    def refuse(self, message: str, node: SourceNode) -> NoReturn:
        """Raises ArchError; `node` is a resolved node, or one of the syntax tree."""
        raise untranslatable_error(message, self.definition, cast("Located", getattr(node, "at", node)))

    # Names

    def settled(self, word: str) -> list[Value]:
        """The one value of a hyperparameter that is no argument, in a list; none for any other name."""
        if word not in self._initial or self.env.get(word) is not self._initial[word]:
            return []
        if not self.context.is_settled(self.definition, word):
            return []
        return distinct(self.context.values(self.definition, word))[:1]

    def forget(self) -> None:
        """Forget the origin of values: in a loop they may come from another iteration."""
        for word, value in self.env.items():
            if isinstance(value, CodeValue) and (value.op or value.args or value.origin is not None):
                self.env[word] = value._replace(op="", args=(), origin=None)

    @contextmanager
    def restore_name_after(self, word: str) -> Generator[None]:
        """Restore the binding of a name on exit."""
        outer = self.env.get(word)
        yield
        if outer is not None:
            self.env[word] = outer
        else:
            self.env.pop(word, None)

    def fresh(self, *words: str) -> str:
        return self.statements.fresh(*words, avoid=(*self.env, *self.unit.dims))

    # What the trace says

    def seen(self, node: EvaluatedNode) -> RecordedValues:
        return self.trace.seen.get(id(self.steps.get(id(node), node)), NO_VALUES)

    def was_evaluated(self, node: EvaluatedNode) -> bool:
        """Whether a step or expression was ever evaluated."""
        return id(node) in self.trace.seen

    def truth(self, condition: nodes.Expr) -> bool | None:
        return self.trace.truth(condition)

    def is_static(self, expr: nodes.Expr) -> bool:
        """Whether an expression was a number or the like wherever it was evaluated, and never a tensor."""
        if isinstance(expr, nodes.Literal):
            return True
        seen = self.seen(expr)
        return not seen.types and bool(seen.statics)

    def absent(self, expr: nodes.Expr) -> bool:
        """Whether an expression was `none` wherever it was evaluated."""
        if isinstance(expr, nodes.Literal):
            return expr.value is None
        return self.is_static(expr) and set(self.seen(expr).statics) == {None}

    def types(self, node: EvaluatedNode) -> Sequence[Type]:
        """The types that an expression, or what is applied in a step, had."""
        return list(self.seen(node).types)

    def rank(self, node: EvaluatedNode) -> int | None:
        ranks = {len(t.shape) for t in self.types(node)}
        return ranks.pop() if len(ranks) == 1 else None

    def calls(self, node: EvaluatedNode) -> list[Call]:
        """The calls in bodies that an expression became."""
        return [call for _, call in self.located_calls(node)]

    def located_calls(self, node: EvaluatedNode) -> list[tuple[Body, Call]]:
        """The calls that an expression became, each with its body."""
        span = self.unit.span(node.at)
        bodies = [use.body for use in self.uses] + self.context.tables(self.definition)
        return [(inner, call) for body in bodies for inner, call in _calls(body) if call.span == span]

    def tensors(self) -> list[Input]:
        """The inputs that are tensors in some use."""
        return [input for input in self.inputs if input.value.is_tensor]

    def given_tensors(self) -> list[Input]:
        """The inputs that are tensors in every use."""
        return [input for input in self.tensors() if input.is_always_tensor]


def _calls(body: Body) -> Iterator[tuple[Body, Call]]:
    """The calls of a body, and those in its loops, each with the body that it is in."""
    for call in body.calls:
        yield body, call
        if call.body is not None and call.body.loop is not None:
            yield from _calls(call.body)


def counts_as(values: Sequence[Value]) -> str:
    """What static values count as beside tensors."""
    if any(isinstance(v, float) for v in values):
        return REAL
    return BOOL if any(isinstance(v, bool) for v in values) else INT


def untranslatable_error(message: str, definition: Definition, node: Located) -> ArchError:
    return make_error("untranslatable", message, definition.unit.span(node))
