"""Chains: in one expression where they are short, else one line for each step."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Protocol

from archspec.codegen.expressions.static_code import StaticCode
from archspec.codegen.expressions.tensor_code import TensorCode
from archspec.codegen.python.layout import WIDTH, unparse_line
from archspec.codegen.python.trees import name, names_in, py
from archspec.codegen.scope.attribute_paths import pattern_of
from archspec.codegen.scope.contiguous import texts
from archspec.codegen.scope.scope import Scope, SourceNode
from archspec.codegen.scope.values import FREE, REAL, STATIC, CodeValue, MultipleOutputs
from archspec.compiler.resolve import nodes, walk
from archspec.ir.ops import OPERATORS

MAX_NESTED = 3
"""Steps of a chain that may stand in one expression; longer chains are a line each."""


class Expressions(Protocol):
    """What translates the expressions in a chain."""

    scope: Scope
    static: StaticCode
    tensors: TensorCode
    elements: dict[int, ast.Name]

    def expr(self, expr: nodes.Expr) -> CodeValue | MultipleOutputs: ...

    def one(self, expr: nodes.Expr) -> CodeValue: ...

    def applied(self, node: nodes.Expr) -> CodeValue | MultipleOutputs: ...

    def single(self, value: CodeValue | MultipleOutputs, node: SourceNode) -> CodeValue: ...

    def unify_values(self, first: CodeValue, second: CodeValue, node: SourceNode) -> tuple[CodeValue, CodeValue]: ...


def _is_stored(code: ast.expr) -> bool:
    """Whether an expression reads a variable or an attribute of one, which computes nothing."""
    while isinstance(code, ast.Attribute):
        code = code.value
    return isinstance(code, ast.Name)


class Chains:
    """Translates chains and the loops in them."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.scope = expressions.scope
        self.static = expressions.static
        self.tensors = expressions.tensors

    def chain(self, expr: nodes.Chain, target: str | None = None, reuse: bool = False) -> CodeValue | MultipleOutputs:
        """A chain: in one expression if it is short, else one line for each step, into `target` or a new variable.

        With `reuse` the variable that the piped value begins in may be bound again, as nothing comes after.
        """
        steps = [step for step in expr.steps if not self._is_skipped(step)]
        plain = all(s.loop is None and not self._varies(s) for s in steps)
        is_part = target is None and not reuse
        with self.scope.restore_name_after("_"):
            if plain and (is_part or len(steps) <= MAX_NESTED):
                restore = self.scope.statements.saved()
                value = self._nested(expr.head, steps)
                fits = (
                    isinstance(value, MultipleOutputs)
                    or len(unparse_line(value.code)) + len(target or "return") + 11 <= WIDTH
                )
                if fits or is_part:
                    return value
                restore()
            return self._lines(expr.head, steps, target, reuse)

    def _varies(self, step: nodes.Step) -> bool:
        """Whether a step has a condition whose value differs between uses."""
        return step.condition is not None and self.scope.truth(step.condition) is None

    def _is_skipped(self, step: nodes.Step) -> bool:
        """Whether a step does nothing in any use."""
        if step.loop is not None and not self.scope.was_evaluated(step):
            return True
        return step.condition is not None and self.scope.truth(step.condition) is False and step.otherwise is None

    def _nested(self, head: nodes.Expr, steps: Sequence[nodes.Step]) -> CodeValue | MultipleOutputs:
        value = self.expressions.expr(head)
        for i, step in enumerate(steps):
            piped = self._once(self.expressions.single(value, steps[i - 1]), step)
            value = self._stepped(step, self._chosen(step), piped)
        return value

    def _once(self, piped: CodeValue, step: nodes.Step) -> CodeValue:
        """Store a piped value in a variable if the step reads it more than once."""
        if _piped_in(self._chosen(step)) < 2 or _is_stored(piped.code):
            return piped
        variable = self.scope.fresh("stream", "part")
        return self._bind_variable(variable, piped)._replace(name=variable)

    def _chosen(self, step: nodes.Step) -> nodes.Expr:
        if step.condition is not None and self.scope.truth(step.condition) is False and step.otherwise is not None:
            return step.otherwise
        return step.value

    def _stepped(self, step: nodes.Step, value: nodes.Expr, piped: CodeValue) -> CodeValue | MultipleOutputs:
        self.scope.env["_"] = piped
        if step.operator:
            return self.tensors.operate(OPERATORS[step.operator], [piped, self.expressions.one(value)], {}, step)
        self.scope.steps[id(value)] = step
        return self.expressions.applied(value)

    def _lines(
        self, head: nodes.Expr, steps: Sequence[nodes.Step], target: str | None, reuse: bool
    ) -> CodeValue | MultipleOutputs:
        last: CodeValue | MultipleOutputs = self.expressions.one(head)
        parts = [e for s in steps for e in (s.value, s.condition, s.otherwise) if e is not None]
        later = {word for e in parts for word in walk.local_names(e)}
        variable = self._variable(head, last, later, target, reuse)
        for i, step in enumerate(steps):
            value = self.expressions.single(last, steps[i - 1])
            if step.loop is not None:
                last = self._looped(step, step.loop, value, variable)
            elif self._varies(step):
                last = self._optional(step, value, variable)
            else:
                if not _is_stored(value.code):
                    value = self._bind_variable(variable, value)
                last = self._stepped(step, self._chosen(step), value)
                if isinstance(last, MultipleOutputs):
                    continue
                last = self._bind_variable(variable, last)
        return last

    def _variable(self, head: nodes.Expr, value: CodeValue, later: set[str], target: str | None, reuse: bool) -> str:
        if target is not None and target not in later:
            return self.scope.statements.variable(target)
        if reuse and isinstance(head, nodes.Local) and isinstance(value.code, ast.Name) and value.kind == REAL:
            variable = value.code.id
            owner = next((w for w, v in self.scope.statements.local.items() if v == variable), None)
            if owner is not None and not any(w == owner or self._is_in(w, variable) for w in later):
                return variable
        return self.scope.fresh("x", "h", "y", "out", "stream")

    def _is_in(self, word: str, variable: str) -> bool:
        """Whether a name stands for what is in a variable, perhaps one that another name is bound to, too."""
        value = self.scope.env.get(word)
        return isinstance(value, CodeValue) and isinstance(value.code, ast.Name) and value.code.id == variable

    def _bind_variable(self, variable: str, value: CodeValue) -> CodeValue:
        """Binds a variable to a value."""
        self.scope.statements.bind_value(variable, value)
        return value._replace(code=name(variable), name=None, made=self.scope.statements.clock)

    def _optional(self, step: nodes.Step, piped: CodeValue, variable: str) -> CodeValue:
        """A step under a condition that is not the same everywhere."""
        assert step.condition is not None
        statements, single = self.scope.statements, self.expressions.single
        test = self.static.code(step.condition)
        if not _is_stored(piped.code):
            piped = self._bind_variable(variable, piped)
        one, other = step.value, step.otherwise
        first, then = statements.capture_statements(lambda: single(self._stepped(step, one, piped), step))
        second, otherwise = statements.capture_statements(
            lambda: single(self._stepped(step, other, piped), step) if other is not None else piped
        )
        then, otherwise = self.expressions.unify_values(then, otherwise, step)
        if other is None:
            self._bind_variable(variable, otherwise)
        else:
            second += statements.capture_statements(lambda: statements.bind_value(variable, otherwise))[0]
        first += statements.capture_statements(lambda: statements.bind_value(variable, then))[0]
        statements.body.append(ast.If(test, first, second))
        options = (then, otherwise)
        return CodeValue(name(variable), then.kind, then.rank, "option", options, made=statements.clock, test=test)

    # Loops

    def _looped(self, step: nodes.Step, loop: nodes.Loop, piped: CodeValue, variable: str) -> CodeValue:
        scope, statements = self.scope, self.scope.statements
        self._bind_variable(variable, piped)
        scope.forget()
        index = statements.variable(loop.variable)
        value = piped._replace(code=name(variable), op="", args=(), name=None, made=statements.clock)

        def iteration() -> CodeValue:
            if self._varies(step):
                return self._optional(step, value, variable)
            once = self._once(value, step)
            result = self.expressions.single(self._stepped(step, self._chosen(step), once), step)
            return self._bind_variable(variable, self.tensors.in_model_type(result) if value.kind == REAL else result)

        with scope.restore_name_after(loop.variable):
            scope.env[loop.variable] = CodeValue(name(index), STATIC, 0)
            element = self._element(step, loop)
            inner, last = statements.capture_statements(iteration)
            if (value.kind, last.kind) == (FREE, REAL):
                statements.bind(variable, self.tensors.in_model_type(value).code)
                value = value._replace(kind=REAL)
                inner, last = statements.capture_statements(iteration)
        if last.kind != value.kind:
            scope.refuse("the piped value changes its type from one iteration to the next", step)
        target, iterated = self._iterations(loop, element, index in names_in(inner))
        statements.body.append(ast.For(target, iterated, inner, []))
        return value._replace(rank=last.rank if last.rank == value.rank else None, made=statements.clock)

    def _iterations(
        self, loop: nodes.Loop, element: tuple[str, ast.expr] | None, counted: bool
    ) -> tuple[ast.expr, ast.expr]:
        """The variable of a `for`, and what it iterates over: numbers, or the layers of a list."""
        index, numbers = self.static.iterations(loop)
        if element is None:
            return index, numbers
        word, container = element
        if not counted:
            return name(word), container
        return ast.Tuple([index, name(word)], ast.Load()), py("enumerate(x)", x=container)

    def _element(self, step: nodes.Step, loop: nodes.Loop) -> tuple[str, ast.expr] | None:
        """The variable for the layer of an iteration, where a loop applies what is in a list one after the other; and
        the list.
        """
        own = self._chosen(step)
        if not isinstance(own, nodes.ModuleDeclaration) or self.static.start(loop) != 0 or self._varies(step):
            return None
        places, parts = self.scope.places, self.static.parts(own.address)
        pattern = pattern_of(parts[:-1])
        last = parts[-1]
        is_index = isinstance(last, ast.Name) and last.id == self.scope.statements.variable(loop.variable)
        if not is_index or pattern not in places.lists or places.is_open(pattern):
            return None
        patterns = [
            pattern_of(texts(declaration.what.address)) for declaration in walk.declarations(self.scope.form.body)
        ]
        fills = [p[: len(pattern)] for p in patterns].count(pattern) == 1  # nothing else is in the list
        if any(names_in([p]) for p in parts[:-1] if isinstance(p, ast.expr)) or not fills:
            return None
        container = places.place(parts).container
        if container is None:
            return None
        word = next((p for p in reversed(parts[:-1]) if isinstance(p, str) and p.isidentifier()), "layer")
        element = self.scope.fresh(_singular(word), "layer", "part")
        self.expressions.elements[id(own)] = name(element)
        return element, container


def _piped_in(expr: nodes.Expr) -> int:
    """How often an expression reads the piped value."""
    return isinstance(expr, nodes.PipedValue) + sum(map(_piped_in, walk.children(expr)))


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 2 else word
