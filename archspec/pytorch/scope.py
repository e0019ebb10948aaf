"""One definition while one of its functions is written: what its names and nodes stand for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, cast

from archspec.elaborate.trace import Evaluated, Seen, Use
from archspec.elaborate.values import Value
from archspec.ir import Body, Call, Constant, Type
from archspec.pytorch.attribute_paths import Places
from archspec.pytorch.context import Context, distinct
from archspec.pytorch.pyast import literal, name
from archspec.pytorch.statements import Statements
from archspec.pytorch.values import BOOL, INT, KIND, NONE, REAL, STATIC, Several, Val
from archspec.resolve import nodes
from archspec.resolve.unit import Definition
from archspec.source import ArchError, fail
from archspec.syntax.tree import Located

NOTHING = Seen(None)

Written = Evaluated | nodes.Statement | nodes.Address | nodes.Loop | Located
"""What has a location in the spec."""


class Scope:
    """`env` has the values of the definition's names. `hyperparameter` is the code of one that is an argument.

    `steps` are the steps of chains by what they apply, whose values are recorded with the step.
    """

    def __init__(
        self,
        context: Context,
        definition: Definition,
        uses: Sequence[Use],
        places: Places,
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
        self.env: dict[str, Val | Several] = {}
        self.steps: dict[int, nodes.Step] = {}
        for word in definition.hyperparameters:
            values = context.values(definition, word)
            code = hyperparameter(word)
            if context.is_settled(definition, word) and isinstance(values[0], bool | int | float | str | None):
                code = literal(values[0])
            self.env[word] = Val(code, STATIC, 0, counts=counts_as(values))
            other = context.arguments.renamed(definition, word)
            if other is not None:
                self.env[word] = self.env[other]
        self._initial = dict(self.env)
        self.inputs = [self._input(i, entry) for i, entry in enumerate(self.form.inputs)]

    def _input(self, index: int, entry: nodes.Entry) -> Val:
        """An input: absent in every use, a number in every use, or a tensor."""
        given = [use.given[index] for use in self.uses]
        types = [g for g in given if isinstance(g, Type)]
        value = NONE
        if types or any(isinstance(g, Constant) for g in given):
            variable = self.statements.variable(entry.name)
            ranks = {len(t.shape) for t in types}
            rank = ranks.pop() if len(ranks) == 1 else None
            kind = KIND[entry.dtype] if types else STATIC
            value = Val(name(variable), kind, rank, name=variable, counts=KIND[entry.dtype])
        self.env[entry.name] = value
        return value

    def refuse(self, message: str, node: Written) -> NoReturn:
        """Raises ArchError; `node` is a resolved node, or one of the syntax tree."""
        raise untranslatable(message, self.definition, cast("Located", getattr(node, "at", node)))

    # Names

    def settled(self, word: str) -> list[Value]:
        """The one value of a hyperparameter that is no argument, in a list; none for any other name."""
        if word not in self._initial or self.env.get(word) is not self._initial[word]:
            return []
        if not self.context.is_settled(self.definition, word):
            return []
        return distinct(self.context.values(self.definition, word))[:1]

    def forget(self) -> None:
        """Values are no longer known by what they were made of: in a loop it may be another iteration's."""
        for word, value in self.env.items():
            if isinstance(value, Val) and (value.op or value.args or value.origin is not None):
                self.env[word] = value._replace(op="", args=(), origin=None)

    @contextmanager
    def piping(self) -> Generator[None]:
        """Restores the piped value afterwards."""
        outer = self.env.get("_")
        yield
        if outer is not None:
            self.env["_"] = outer
        else:
            self.env.pop("_", None)

    def fresh(self, *words: str) -> str:
        return self.statements.fresh(*words, avoid=(*self.env, *self.unit.dims))

    # What the trace says

    def seen(self, node: Evaluated) -> Seen:
        return self.trace.seen.get(id(self.steps.get(id(node), node)), NOTHING)

    def was_seen(self, node: Evaluated) -> bool:
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

    def types(self, node: Evaluated) -> Sequence[Type]:
        """The types that an expression, or what is applied in a step, had."""
        return list(self.seen(node).types)

    def rank(self, node: Evaluated) -> int | None:
        ranks = {len(t.shape) for t in self.types(node)}
        return ranks.pop() if len(ranks) == 1 else None

    def calls(self, node: Evaluated) -> list[Call]:
        """The calls in bodies that an expression became."""
        span = self.unit.span(node.at)
        bodies = [use.body for use in self.uses] + self.context.tables(self.definition)
        return [call for body in bodies for call in _calls(body) if call.span == span]

    def given_entries(self) -> list[tuple[nodes.Entry, Val]]:
        """The inputs that are always given."""
        pairs = zip(self.form.inputs, self.inputs, strict=True)
        return [
            (entry, value)
            for i, (entry, value) in enumerate(pairs)
            if value.is_tensor and all(isinstance(use.given[i], Type) for use in self.uses)
        ]


def _calls(body: Body) -> Iterator[Call]:
    """The calls of a body, and those in its loops."""
    for call in body.calls:
        yield call
        if call.body is not None and call.body.loop is not None:
            yield from _calls(call.body)


def counts_as(values: Sequence[Value]) -> str:
    """What static values count as beside tensors."""
    if any(isinstance(v, float) for v in values):
        return REAL
    return BOOL if any(isinstance(v, bool) for v in values) else INT


def untranslatable(message: str, definition: Definition, node: Located) -> ArchError:
    return fail("untranslatable", message, definition.unit.span(node))
