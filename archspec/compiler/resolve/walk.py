"""Traversal of the resolved form: the visitor of statements, and iterators over statements and expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from archspec.compiler.resolve.nodes import (
    AddressReference,
    Apply,
    Assign,
    Binary,
    Chain,
    Collect,
    Conditional,
    Declare,
    Dimension,
    Einsum,
    Expr,
    For,
    GuardedDeclaration,
    If,
    Label,
    Length,
    ListLiteral,
    Local,
    Loop,
    ModuleDeclaration,
    Partial,
    Rearrange,
    Require,
    Return,
    Role,
    Statement,
    Subscript,
    Tie,
    Unary,
)
from archspec.core.record import Record


class Visitor:
    """Visitor of statements in program order; a subclass overrides the methods of the statement types that it handles.

    Branches and loops are visited once; both branches of an `if` are visited. A method that returns True ends the
    visit, as `return` ends a body.
    """

    def visit(self, statements: Sequence[Statement]) -> bool:
        """Visit statements; return whether one of them ended the visit."""
        for statement in statements:
            match statement:
                case Assign():
                    ends = self.visit_assign(statement)
                case Declare():
                    ends = self.visit_declare(statement)
                case Return():
                    ends = self.visit_return(statement)
                case For():
                    ends = self.visit_for(statement)
                case If():
                    ends = self.visit_if(statement)
                case Tie():
                    ends = self.visit_tie(statement)
                case Require():
                    ends = self.visit_require(statement)
                case Role():
                    ends = self.visit_role(statement)
                case Label():
                    ends = self.visit_label(statement)
            if ends:
                return True
        return False

    def visit_assign(self, statement: Assign) -> bool | None:
        """Visit `targets = value`."""

    def visit_declare(self, statement: Declare) -> bool | None:
        """Visit a statement that declares a module or tensor."""

    def visit_return(self, statement: Return) -> bool | None:
        """Visit a `return`."""

    def visit_for(self, statement: For) -> bool | None:
        """Visit a loop."""
        self.visit(statement.body)

    def visit_if(self, statement: If) -> bool | None:
        """Visit a branch."""
        self.visit(statement.body)
        self.visit(statement.otherwise)

    def visit_tie(self, statement: Tie) -> bool | None:
        """Visit a `tie`."""

    def visit_require(self, statement: Require) -> bool | None:
        """Visit a `require`."""

    def visit_role(self, statement: Role) -> bool | None:
        """Visit a `role`."""

    def visit_label(self, statement: Label) -> bool | None:
        """Visit a `label`."""


def children(expr: Expr) -> Iterator[Expr]:
    """Yield the direct subexpressions of an expression, including those in addresses."""
    match expr:
        case ListLiteral():
            yield from expr.items
        case Unary():
            yield expr.operand
        case Binary():
            yield expr.left
            yield expr.right
        case Conditional():
            yield expr.condition
            yield expr.value
            if expr.otherwise is not None:
                yield expr.otherwise
        case Subscript():
            yield expr.value
            yield expr.position
        case Length():
            yield expr.value
        case Collect():
            yield expr.value
            yield expr.axis
        case AddressReference():
            yield from expr.address.indices()
        case Apply():
            yield expr.callee
            yield from (argument.value for argument in expr.arguments.every())
        case Rearrange():
            yield expr.value
            yield from (argument.value for argument in expr.sizes)
        case Einsum():
            yield from expr.values
        case Partial():
            yield expr.callee
            yield from (argument.value for argument in expr.arguments)
        case ModuleDeclaration():
            yield from expr.address.indices()
            yield expr.callee
            yield from (argument.value for argument in expr.arguments.every())
        case Chain():
            yield expr.head
            for step in expr.steps:
                yield from (e for e in (step.value, step.condition, step.otherwise) if e is not None)
                if step.loop is not None:
                    yield step.loop.first
                    yield step.loop.last
        case _:
            pass


def local_names(expr: Expr) -> Iterator[str]:
    """Yield the local names and the keys of dimensions that an expression reads, once per occurrence."""
    if isinstance(expr, Local):
        yield expr.name
    elif isinstance(expr, Dimension):
        yield expr.key
    for part in children(expr):
        yield from local_names(part)


def multiple_of(size: Expr) -> tuple[Expr, Dimension] | None:
    """Return the factor and the dimension of a size such as `80 * seq`; None for any other size."""
    if isinstance(size, Binary) and size.operator == "*":
        for dimension, factor in ((size.left, size.right), (size.right, size.left)):
            if isinstance(dimension, Dimension):
                is_fixed = not any(isinstance(part, Dimension) for part in iter_expressions(factor))
                return (factor, dimension) if is_fixed else None
    return None


def iter_expressions(expr: Expr) -> Iterator[Expr]:
    """Yield an expression and all nested expressions."""
    yield expr
    for part in children(expr):
        yield from iter_expressions(part)


def iter_statements(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Yield statements, including those in their branches and loops."""
    for statement in statements:
        yield statement
        if isinstance(statement, If):
            yield from iter_statements((*statement.body, *statement.otherwise))
        elif isinstance(statement, For):
            yield from iter_statements(statement.body)


def declarations(statements: Sequence[Statement]) -> Iterator[GuardedDeclaration]:
    """Yield the declarations of statements, including nested ones."""
    return (site.declaration for site in iter_declaration_sites(statements))


def assigned_names(statements: Sequence[Statement]) -> Iterator[str]:
    """Yield the names that statements assign, including nested statements, once per assignment."""
    for statement in iter_statements(statements):
        if isinstance(statement, Assign):
            yield from statement.targets


def statement_expressions(statement: Statement) -> Iterator[Expr]:
    """Yield the direct expressions of a statement, unordered: values, shapes, conditions, bounds and indices."""
    match statement:
        case Assign():
            yield statement.value
        case Return():
            yield from statement.values
        case Declare():
            for declaration in statement.declares:
                yield from _declaration_expressions(declaration)
        case Tie():
            yield from statement.alias.indices()
            yield from statement.counted.indices()
            yield from (statement.condition,) if statement.condition is not None else ()
            yield from _bounds(statement.loop)
        case Require() | If():
            yield statement.condition
        case For():
            yield from _bounds(statement.loop)
        case Role() | Label():
            for address in statement.addresses:
                yield from address.indices()


def _declaration_expressions(declaration: GuardedDeclaration) -> Iterator[Expr]:
    """Yield the expressions of a declaration statement."""
    what = declaration.what
    if isinstance(what, ModuleDeclaration):
        yield what
    else:
        yield from what.address.indices()
        yield what.shape
        yield from (what.value,) if what.value is not None else ()
        yield from what.initial.arguments if what.initial is not None else ()
    yield from (condition for condition, _ in declaration.guards)
    yield from _bounds(declaration.loop)


def _bounds(loop: Loop | None) -> tuple[Expr, ...]:
    return (loop.first, loop.last) if loop is not None else ()


def statement_loops(statement: Statement) -> Iterator[Loop]:
    """Yield the loop of a statement, and the loops of its declarations and chain steps, without nested statements."""
    if isinstance(statement, For | Tie) and statement.loop is not None:
        yield statement.loop
    loops = {id(d.loop): d.loop for d in statement.declares} if isinstance(statement, Declare) else {}
    for root in statement_expressions(statement):
        for expr in iter_expressions(root):
            if isinstance(expr, Chain):
                loops |= {id(step.loop): step.loop for step in expr.steps}
    yield from (loop for loop in loops.values() if loop is not None)


# Declaration sites ----------------------------------------------------------------------------------------------------

Guard = tuple[Expr, bool]
"""A condition, and whether it must hold or not."""


class EnclosingLoop(Record):
    """A loop that encloses a declaration, and the number of guards that enclose the loop.

    `node` is the loop statement, or the declaration for a loop of a single declaration (`is_own`).
    """

    node: For | GuardedDeclaration
    loop: Loop
    guards: int

    @property
    def is_own(self) -> bool:
        """Whether the loop belongs to a single declaration."""
        return isinstance(self.node, GuardedDeclaration)


class DeclarationSite(Record):
    """A declaration with its enclosing conditions and loops, outermost first."""

    declaration: GuardedDeclaration
    guards: tuple[Guard, ...]
    loops: tuple[EnclosingLoop, ...]


def iter_declaration_sites(
    statements: Sequence[Statement], guards: tuple[Guard, ...] = (), loops: tuple[EnclosingLoop, ...] = ()
) -> Iterator[DeclarationSite]:
    """Yield the declarations of statements, including nested ones, each with its enclosing conditions and loops."""
    for statement in statements:
        match statement:
            case Assign() | Declare() | Return():
                for declaration in statement.declares:
                    own_loops = (
                        (EnclosingLoop(declaration, declaration.loop, len(guards)),)
                        if declaration.loop is not None
                        else ()
                    )
                    yield DeclarationSite(declaration, (*guards, *declaration.guards), (*loops, *own_loops))
            case If():
                yield from iter_declaration_sites(statement.body, (*guards, (statement.condition, True)), loops)
                yield from iter_declaration_sites(statement.otherwise, (*guards, (statement.condition, False)), loops)
            case For():
                yield from iter_declaration_sites(
                    statement.body, guards, (*loops, EnclosingLoop(statement, statement.loop, len(guards)))
                )
            case _:
                pass
