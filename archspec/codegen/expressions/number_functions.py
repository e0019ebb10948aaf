"""Functions of numbers as functions of Python, with both sides of every condition: they hold for all arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import NoReturn

from archspec.codegen.python.layout import bracketed, unparse_line
from archspec.codegen.python.trees import apply, bind, literal, name, names_in, negated, py, raised_if, sequence
from archspec.codegen.scope.constructor_arguments import hyperparameter_default, passed_argument
from archspec.codegen.scope.context import Context
from archspec.codegen.scope.scope import untranslatable_error
from archspec.codegen.scope.statements import Statements
from archspec.compiler.elaborate.trace import Application
from archspec.compiler.evaluate.values import Value
from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.unit import Definition
from archspec.compiler.resolve.walk import Visitor
from archspec.ir.ops import OPERATORS, OPS, Op
from archspec.language.syntax.tree import Located

# Expressions of numbers from the code of their parts.


def compose(expr: nodes.Expr, code: Callable[[nodes.Expr], ast.expr]) -> ast.expr | None:
    """An expression made of the code of its parts; None for names, calls and what is no number."""
    match expr:
        case nodes.Literal():
            return literal(expr.value)
        case nodes.ListLiteral():
            return sequence([code(item) for item in expr.items])
        case nodes.Unary():
            return py("not x" if expr.operator == "not" else "-x", x=code(expr.operand))
        case nodes.Binary():
            return _binary(expr.operator, code(expr.left), code(expr.right))
        case nodes.Conditional():
            otherwise = code(expr.otherwise) if expr.otherwise is not None else literal(None)
            return ast.IfExp(code(expr.condition), code(expr.value), otherwise)
        case nodes.Subscript():
            items = code(expr.value)
            if isinstance(items, ast.Tuple) and len(items.elts) == 1 and not isinstance(items.elts[0], ast.Starred):
                # whatever the index, it is the only item
                return items.elts[0]
            return ast.Subscript(items, code(expr.position), ast.Load())
        case nodes.Length():
            return apply(name("len"), [code(expr.value)])
        case _:
            return None


def _binary(operator: str, left: ast.expr, right: ast.expr) -> ast.expr:
    if operator in ("in", "not in"):
        return py(f"a {operator} b", a=left, b=right)
    if operator in ("==", "!="):
        word = "is" if operator == "==" else "is not"
        for side, other in ((left, right), (right, left)):
            if isinstance(other, ast.Constant) and other.value is None:
                return py(f"a {word} None", a=side)
    return py(OPS[OPERATORS[operator]].python, a=left, b=right)


def operation(op: Op, expr: nodes.Apply, code: Callable[[nodes.Expr], ast.expr]) -> ast.expr:
    """An operation of Python on numbers, such as `min(a, b)`."""
    names = iter([i.name for i in op.inputs])  # of the operands without one
    return py(op.python, **{a.name or next(names): code(a.value) for a in expr.arguments.inputs or ()})


def range_of(first: ast.expr, last: ast.expr) -> ast.expr:
    """What a loop iterates over."""
    starts_at_0 = isinstance(first, ast.Constant) and first.value == 0
    return apply(name("range"), [last] if starts_at_0 else [first, last])


# Requirements of a spec as checks of arguments. `code` translates an expression; `source` is the text of the spec.

Code = Callable[[nodes.Expr], ast.expr]


def requirement(code: Code, source: str, statement: nodes.Require) -> list[ast.stmt]:
    """The check of a requirement, unless it is about no argument."""
    condition = code(statement.condition)
    if not names_in([condition]):
        return []
    message = statement.message or f"required: {_text(source, statement.condition)}"
    return [raised_if(negated(condition), literal(message))]


def ordered(code: Code, source: str, loop: nodes.Loop) -> list[ast.stmt]:
    """The check that a loop ends at its start or later, unless it starts at 0 and nothing is subtracted in its end."""
    first, last = code(loop.first), code(loop.last)
    is_count = isinstance(first, ast.Constant) and first.value == 0
    if not names_in([first, last]) or (is_count and not _subtracts(last)):
        return []
    message = f"required: {_text(source, loop.first)} <= {_text(source, loop.last)}"
    return [raised_if(py("last < first", first=first, last=last), literal(message))]


def _subtracts(code: ast.expr) -> bool:
    return any(isinstance(part, ast.Sub | ast.USub) for part in ast.walk(code))


def _text(source: str, expr: nodes.Expr) -> str:
    return " ".join(source[expr.at.start : expr.at.end].split())


class NumberFunction(Visitor):
    """Translates one function of numbers."""

    def __init__(self, context: Context, definition: Definition) -> None:
        self.context = context
        self.definition = definition
        self.form = context.form(definition)
        self.parameters = context.parameters(definition)
        self.statements = Statements(context.taken, self.parameters)
        self.bound = set(definition.hyperparameters)
        self.made: list[ast.stmt] = []

    def body(self) -> list[ast.stmt]:
        """The statements of the function."""
        for word, parameter in self.parameters.items():
            default = hyperparameter_default(self.definition, word)
            if default is not None and not isinstance(default, nodes.Literal):
                if any(None in self._given(site, word) for site in self.context.trace.sites(self.definition)):
                    self.refuse(f"the default of `{word}` has no form in PyTorch", self.definition.node.name)
                self.made.append(ast.If(py("x is None", x=name(parameter)), [bind(parameter, self.code(default))], []))
        self.visit(self.form.body)
        return self.made

    def head(self) -> list[str]:
        """The line, or lines, before the body."""
        found: list[str] = []
        for word, parameter in self.parameters.items():
            default = hyperparameter_default(self.definition, word)
            if default is None:
                found.append(f"{parameter}: Any")
            else:
                usual = default.value if isinstance(default, nodes.Literal) else None
                found.append(f"{parameter}: Any = {unparse_line(literal(usual))}")
        return bracketed(f"def {self.context.names[self.definition]}(", found, ") -> Any:", 0)

    def refuse(self, message: str, at: Located) -> NoReturn:
        raise untranslatable_error(message, self.definition, at)

    def _given(self, site: Application, word: str) -> Sequence[Value]:
        """The values that a call passes for a hyperparameter."""
        argument = passed_argument(site, word)
        return list(self.context.trace.static_values(argument).values()) if argument is not None else []

    # Statements

    def visit_assign(self, statement: nodes.Assign) -> None:
        (word,) = statement.targets
        value = self.code(statement.value)
        self.bound.add(word)
        self.made.append(bind(self.statements.variable(word), value))

    def visit_return(self, statement: nodes.Return) -> None:
        self.made.append(ast.Return(self.code(statement.values[0])))

    def visit_require(self, statement: nodes.Require) -> None:
        self.made += requirement(self.code, self.definition.unit.source.text, statement)

    def visit_if(self, statement: nodes.If) -> None:
        new = [word for word in statement.binds if word not in self.bound | _always_bound((statement,))]
        self.made += [bind(self.statements.variable(word), literal(None)) for word in new]
        test = self.code(statement.condition)
        sides = [self._side(body) for body in (statement.body, statement.otherwise)]
        self.bound |= set(statement.binds)
        self.made.append(ast.If(test, sides[0] or [ast.Pass()], sides[1]))

    def visit_for(self, statement: nodes.For) -> None:
        loop = statement.loop
        first, last = self.code(loop.first), self.code(loop.last)
        self.made += ordered(self.code, self.definition.unit.source.text, loop)
        index = self.statements.variable(loop.variable)
        body = self._side(statement.body)
        target = name(index if index in names_in(body) else "_")
        self.made.append(ast.For(target, range_of(first, last), body, []))

    def _side(self, body: Sequence[nodes.Statement]) -> list[ast.stmt]:
        """The code of statements that may not be executed."""
        made, self.made = self.made, list[ast.stmt]()
        bound = set(self.bound)
        self.visit(body)
        found, self.made, self.bound = self.made, made, bound
        return found

    # Expressions

    def code(self, expr: nodes.Expr) -> ast.expr:
        """The code of an expression."""
        match expr:
            case nodes.Local():
                return name(self.statements.variable(expr.name))
            case nodes.Global():
                return self._known(expr)
            case nodes.Apply():
                return self._apply(expr)
            case _:
                made = compose(expr, self.code)
                return made if made is not None else self.refuse("this has no form in PyTorch as a number", expr.at)

    def _known(self, expr: nodes.Global) -> ast.expr:
        target = expr.target
        known = not isinstance(target, Op) and target in self.context.names
        made = self.context.code_of(target) if known else None
        if made is None:
            self.refuse(f"`{expr.name}` cannot be passed as a value in PyTorch here", expr.at)
        return made

    def _apply(self, expr: nodes.Apply) -> ast.expr:
        callee, arguments = expr.callee, expr.arguments
        if isinstance(callee, nodes.Global) and isinstance(callee.target, Op):
            if not callee.target.python:
                self.refuse("this has no form in PyTorch as a number", expr.at)
            return operation(callee.target, expr, self.code)
        bound = arguments.bound
        if isinstance(callee, nodes.Global) and isinstance(callee.target, Definition) and bound is not None:
            own = self.definition.hyperparameters if arguments.forward is not None else {}
            given = {word: self.code(argument.value) for word, argument in bound.hyperparameters.items()}
            given |= {word: name(self.parameters[word]) for word in own if word not in given}
            return call(self.context, callee.target, given)
        listed = [*arguments.hyperparameters, *(arguments.inputs or ())]
        if arguments.forward is not None or any(argument.name for argument in listed):
            self.refuse("this call has no form in PyTorch", expr.at)
        return apply(self.code(callee), [self.code(argument.value) for argument in listed])


def _always_bound(statements: Sequence[nodes.Statement]) -> set[str]:
    """The names that statements bind, whatever their conditions are."""
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, nodes.Assign):
            found |= set(statement.targets)
        elif isinstance(statement, nodes.If):
            found |= _always_bound(statement.body) & _always_bound(statement.otherwise)
    return found


def call(context: Context, callee: Definition, given: dict[str, ast.expr]) -> ast.expr:
    """A call of a function of numbers with values for its hyperparameters: by position up to the first left out."""
    parameters = context.parameters(callee)
    positional: list[ast.expr] = []
    named: dict[str, ast.expr] = {}
    for position, word in enumerate(callee.hyperparameters):
        if word in given and len(positional) == position:
            positional.append(given[word])
        elif word in given:
            named[parameters[word]] = given[word]
    return apply(name(context.emitted(callee).name), positional, named)
