"""The statements around what `__init__` makes: names that are bound to numbers, branches, loops, and requirements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from archspec.codegen.classes.containers import Containers
from archspec.codegen.expressions.number_functions import ordered, requirement
from archspec.codegen.expressions.static_code import StaticCode
from archspec.codegen.python.trees import bind, literal, name, names_in, negated, py, text
from archspec.codegen.scope.scope import Scope
from archspec.codegen.scope.values import STATIC, CodeValue
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.walk import Visitor
from archspec.ir.module import Body, Call
from archspec.ir.ops import OPS

# Initialization of stored tensors.


def initializer_statement(initial: str, code: ast.expr, arguments: Sequence[ast.expr]) -> ast.stmt:
    """The statement that fills a parameter as a spec says: `~ normal(0.02)`."""
    match initial, [text(a) for a in arguments]:
        case "constant", ["0.0" | "0"]:
            made = py("nn.init.zeros_(x)", x=code)
        case "constant", ["1.0" | "1"]:
            made = py("nn.init.ones_(x)", x=code)
        case "constant", _:
            made = py("nn.init.constant_(x, value)", x=code, value=arguments[0])
        case "normal", _:
            made = py("nn.init.normal_(x, std=s)", x=code, s=arguments[0])
        case "truncated_normal", _:
            made = py("nn.init.trunc_normal_(x, std=s, a=-2 * s, b=2 * s)", x=code, s=arguments[0])
        case "uniform", _:
            made = py("nn.init.uniform_(x, a, b)", x=code, a=arguments[0], b=arguments[1])
        case _:
            made = py("nn.init.xavier_uniform_(x)", x=code)
    return ast.Expr(made)


def fill_by_default(code: ast.expr, rank: int) -> ast.stmt:
    """The same where a spec says nothing: as the weights and biases of PyTorch's linear layers do."""
    matrix = "nn.init.kaiming_uniform_(x, a=math.sqrt(5))"
    vector = "nn.init.uniform_(x, -1 / math.sqrt(x.numel()), 1 / math.sqrt(x.numel()))"
    return ast.Expr(py(matrix if rank > 1 else vector, x=code))


def may_be_view(table: Body) -> bool:
    """Whether the result of a constant table may lack memory of its own, one element after the other.

    Operations on elements in another order leave them in that order.
    """
    return _turns(table) or _is_view(table)


def _turns(body: Body) -> bool:
    return any(_turns(call.body) if call.body is not None else _memory(call) == "turned" for call in body.calls)


def _is_view(body: Body) -> bool:
    """Whether a body returns one of its inputs, or a view of another value."""
    made_by = {slot: call for call in body.calls for slot in range(call.first, call.first + len(call.outputs))}
    result = body.outputs[0][1]
    while isinstance(result, int) and result in made_by:
        call = made_by[result]
        if call.body is not None and call.body.loop is not None:
            return True  # it may be, without iterations
        if call.body is not None:
            return _is_view(call.body)
        if _memory(call) != "whole":
            return _memory(call) != "new"
        result = call.inputs[0][1]
    return True


def _memory(call: Call) -> str:
    torch = OPS[call.type].torch
    return torch.memory if torch is not None else "new"


class InitStatements(Visitor):
    """Translates the names that are bound to numbers, branches and loops; a subclass adds what it is about."""

    def __init__(self, scope: Scope, static: StaticCode, containers: Containers) -> None:
        self.scope = scope
        self.static = static
        self.containers = containers

    def enter(self, statements: Sequence[nodes.Statement], variables: set[str]) -> None:
        """Prepare for statements in a branch, or in a loop with the indices `variables`."""

    # Names

    def is_known(self, expr: nodes.Expr) -> bool:
        """Whether an expression is static, and made of nothing but hyperparameters and what they decide."""
        return self.scope.is_static(expr) and set(walk.local_names(expr)) <= set(self.scope.env)

    def visit_assign(self, statement: nodes.Assign) -> None:
        """A name for a number or the like; declarations are about no others."""
        scope = self.scope
        for word in statement.targets:
            if len(statement.targets) == 1 and self.is_known(statement.value):
                self._assign(word, self.static.number(statement.value))
            else:
                scope.env.pop(word, None)

    def _assign(self, word: str, value: CodeValue) -> None:
        scope, statements = self.scope, self.scope.statements
        variable = statements.variable(word)
        if word in scope.env:
            scope.forget()
        statements.bind(variable, value.code)
        origin = None if value.is_none else value.code
        code = value.code if value.is_none else name(variable)
        scope.env[word] = value._replace(code=code, name=variable, origin=origin, made=statements.clock)

    # Branches and loops

    def visit_if(self, statement: nodes.If) -> None:
        scope, statements, condition = self.scope, self.scope.statements, statement.condition
        chosen = scope.truth(condition)
        if chosen is not None:
            self.visit(statement.body if chosen else statement.otherwise)
            for word in statement.binds:
                scope.env.setdefault(word, CodeValue(literal(None), STATIC, 0))
            return
        if not self.is_known(condition):
            return  # about inputs, which declares nothing; or never evaluated
        self.enter((*statement.body, *statement.otherwise), set())
        test = self.static.code(condition)
        restore, before = self.containers.branching(), scope.env
        sides: list[tuple[list[ast.stmt], dict[str, object]]] = []
        for side in (statement.body, statement.otherwise):
            scope.env = dict(before)
            body, _ = statements.capture_statements(lambda s=side: self.visit(s))
            sides.append((body, dict(scope.env)))
            restore()
        scope.env = before
        (then, first), (otherwise, second) = sides
        for word in statement.binds:
            known = [v for v in (first.get(word), second.get(word)) if isinstance(v, CodeValue)]
            if not known:
                continue
            variable = statements.variable(word)
            for values, body in ((first, then), (second, otherwise)):
                value = values.get(word)
                if not isinstance(value, CodeValue) or value.is_none:
                    body.append(bind(variable, literal(None)))
            best = next((v for v in known if not v.is_none), known[0])
            scope.env[word] = best if best.is_none else best._replace(code=name(variable), args=(), origin=None)
        if then or otherwise:
            statements.body.append(ast.If(test, then, otherwise) if then else ast.If(negated(test), otherwise, []))

    def visit_for(self, statement: nodes.For) -> None:
        scope, statements = self.scope, self.scope.statements
        self.enter(statement.body, {statement.loop.variable})
        restore, before = self.containers.branching(), dict(scope.env)
        for word in statement.binds:  # what is carried is in its variable
            known = before.get(word)
            if isinstance(known, CodeValue):
                variable = statements.variable(word)
                statements.bind(variable, self.static.named(word, statement))
                before[word] = known._replace(code=name(variable), name=variable, op="", args=(), origin=None)
        scope.env = dict(before)
        self.repeat(statement.loop, lambda: self.visit(statement.body))
        scope.env = before
        restore()

    def repeat(self, loop: nodes.Loop, work: Callable[[], object], as_list: bool = False) -> None:
        """A loop around some work, unless its bounds were never evaluated."""
        scope, statements = self.scope, self.scope.statements
        if not (self.is_known(loop.first) and self.is_known(loop.last)):
            return
        bounds = self.static.iterations(loop)
        with scope.restore_name_after(loop.variable):
            scope.env[loop.variable] = CodeValue(bounds[0], STATIC, 0)
            inner, _ = statements.capture_statements(work)
        if inner and not (as_list and _as_list(statements.body, inner, bounds)):
            statements.body.append(ast.For(*bounds, inner, []))


class Requirements(InitStatements):
    """Translates what is required of hyperparameters, also by the bounds of loops, before anything is declared."""

    def is_known(self, expr: nodes.Expr) -> bool:
        reads = any(isinstance(node, nodes.AddressReference) for node in walk.iter_expressions(expr))
        return not reads and super().is_known(expr)

    def visit_assign(self, statement: nodes.Assign) -> None:
        self._loops(statement)
        super().visit_assign(statement)

    def visit_declare(self, statement: nodes.Declare) -> None:
        self._loops(statement)

    def visit_return(self, statement: nodes.Return) -> None:
        self._loops(statement)

    def visit_for(self, statement: nodes.For) -> None:
        self._loops(statement)
        super().visit_for(statement)

    def _loops(self, statement: nodes.Statement) -> None:
        for loop in walk.statement_loops(statement):
            if self.is_known(loop.first) and self.is_known(loop.last):
                self.scope.statements.body += ordered(self.static.verbatim, self.scope.unit.source.text, loop)

    def visit_require(self, statement: nodes.Require) -> None:
        if self.is_known(statement.condition):
            self.scope.statements.body += requirement(self.static.verbatim, self.scope.unit.source.text, statement)


def _as_list(body: list[ast.stmt], inner: list[ast.stmt], bounds: tuple[ast.expr, ast.expr]) -> bool:
    """Makes one expression of `x = nn.ModuleList()` and a loop that only appends to x."""
    match inner, body[-1:]:
        case (
            [ast.Expr(ast.Call(ast.Attribute(container, "append"), [made], []))],
            [ast.Assign([target], ast.Call(ast.Attribute(_, "ModuleList"), [], []))],
        ) if text(container) == text(target):
            index = bounds[0] if names_in([bounds[0]]) & names_in([made]) else name("_")
            iterated = ast.GeneratorExp(made, [ast.comprehension(index, bounds[1], [], 0)])
            body[-1] = bind(target, py("nn.ModuleList(items)", items=iterated))
            return True
        case _:
            return False
