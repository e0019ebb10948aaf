"""The visitor of statements: the one place that distinguishes their kinds."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.resolve.nodes import Bind, Declare, For, If, Require, Return, Role, Statement, Tie


class Visitor:
    """Visits statements in program order; a subclass gives the kinds that concern it a meaning.

    Branches and loops are visited once, each side of a branch after the other. A method that returns True ends the
    visit, as `return` ends a body.
    """

    def visit(self, statements: Sequence[Statement]) -> bool:
        """Visit statements; return whether one of them ended the visit."""
        for statement in statements:
            match statement:
                case Bind():
                    ends = self.visit_bind(statement)
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
            if ends:
                return True
        return False

    def visit_bind(self, statement: Bind) -> bool | None:
        """Visit `targets = value`."""

    def visit_declare(self, statement: Declare) -> bool | None:
        """Visit a declaration on a line of its own."""

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
