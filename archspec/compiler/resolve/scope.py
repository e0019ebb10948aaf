"""The names in scope while a definition is resolved, and their uses."""

from __future__ import annotations

from typing import Literal

from archspec.compiler.resolve.nodes import Expr, GuardedDeclaration, Loop
from archspec.compiler.resolve.unit import Definition, Pattern, Unit
from archspec.core.diagnostics import Note, Report, Span
from archspec.core.record import Record
from archspec.language.syntax import tree
from archspec.language.syntax.tree import Located, names_in


class LocalName(Record):
    """A name of a definition: `what` is "hyperparameter", "input", "value" or "index".

    `depth` is the number of loops that enclose its binding, and `branch` the enclosing branches, two numbers each.
    """

    what: str
    span: Span
    depth: int
    branch: tuple[int, ...]


class DeclaredAddress(Record):
    """An address at which a definition declares something; `applied` if it is applied there."""

    pattern: Pattern
    node: tree.ModuleDeclaration | tree.TensorDeclaration
    applied: bool


class Scope:
    """The state of the resolution of one definition of `unit`, or of the arguments of a model.

    `used` are the local names and `file_names` the names of the file that it reads; `computed` are the names of results
    of operations; `forwards` are the callees of `..`. `referred` are the addresses that it reads, and `suggested` the
    suggestions for misspelt addresses. `unread` are values of an iteration that the iteration does not read. `past` are
    the names of finished loops. The enclosing loops collect values in the names `collecting`.
    """

    def __init__(self, unit: Unit, definition: Definition | None, report: Report) -> None:
        self.unit = unit
        self.definition = definition
        self.report = report
        self.locals: dict[str, LocalName] = {}
        self.past: dict[str, LocalName] = {}
        self.used: set[str] = set()
        self.forwards: list[Definition] = []
        self.computed: set[str] = set()
        self.file_names: set[str] = set()
        self.unread: list[tuple[str, LocalName]] = []
        self.declared: list[DeclaredAddress] = []
        self.referred: list[Pattern] = []
        self.suggested: list[Pattern] = []
        self.in_signature: Literal["input", "output"] | None = None
        self.chains = 0
        self.loops = 0
        self.collecting: frozenset[str] = frozenset()
        self.branch: tuple[int, ...] = ()
        node = definition.node if definition is not None else None
        self.broken = node is not None and any(node.start <= b.start < node.end for b in unit.tree.broken)
        # The context of declarations in the current statement, and its declarations up to here.
        self.guards: tuple[tuple[Expr, bool], ...] = ()
        self.loop: Loop | None = None
        self.changing: frozenset[str] = frozenset()
        self.declares: list[GuardedDeclaration | None] = []

    def fault(
        self, code: str, message: str, node: Located, *, help: str | None = None, first: Located | None = None
    ) -> None:
        """Report an error at `node`; `first` locates the first specification of the same thing."""
        notes = (Note("first specified here", self.unit.span(first)),) if first is not None else ()
        self.report.error(code, message, self.unit.span(node), notes=notes, help=help)

    def should_report(self, name: str, per_file: bool = False) -> bool:
        """Whether to report an unknown name: once per definition, and not if a broken statement may have defined it.

        With `per_file`, it is reported once per file, as for a dimension.
        """
        unit, definition = self.unit, self.definition
        if name in unit.broken or (definition is not None and definition.open):
            return False
        is_reported = name in unit.unknown or (definition is not None and name in definition.unknown)
        if definition is not None:
            (unit if per_file else definition).unknown.add(name)
        return not is_reported

    def bind(self, name: str, what: str, span: Span) -> bool:
        """Bring a name into scope, where it shadows a dimension; False after reporting that the file defines it."""
        if name == "_":
            return True
        first = self.locals.get(name)
        if first is not None:
            carried = first.depth < self.loops and first.what != "index"
            other_branch = what == "value" and are_exclusive(first.branch, self.branch)
            if not carried and not other_branch:
                help = "use a new name: only a loop can assign to a name again" if what == "value" else None
                self.report_redefinition(name, span, first.span, help)
                return first.what != "hyperparameter"  # else shapes would have another size
            return True
        binding = self.unit.names.get(name)
        if binding is not None:
            self.report_redefinition(name, span, binding.span)
            self.file_names.add(name)
        self.locals[name] = LocalName(what, span, self.loops, self.branch)
        return binding is None

    def ignore(self, expr: tree.Expr, *names: str) -> None:
        """Suppress further errors about an invalid part of the definition, which may have defined `names`."""
        self.broken = True
        self.file_names.update(names_in(expr))
        if self.definition is not None:
            self.definition.unknown.update(names)

    def hyperparameter(self, span: Span) -> LocalName:
        """Return the local name of a hyperparameter."""
        return LocalName("hyperparameter", span, 0, ())

    def report_redefinition(self, name: str, span: Span, first: Span, help: str | None = None) -> None:
        """Report a name that is already defined."""
        note = Note("first defined here", first)
        self.report.error("duplicate-name", f"`{name}` is already defined", span, notes=(note,), help=help)

    def end_loop(self, variable: str) -> None:
        """Remove the names of a finished loop from the scope."""
        ended = [
            name
            for name, local in self.locals.items()
            if local.depth > self.loops or (name == variable and local.what == "index")
        ]
        for name in ended:
            local = self.past[name] = self.locals.pop(name)
            if local.what == "value" and name not in self.used:
                self.unread.append((name, local))


def are_exclusive(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Whether two branches are different branches of the same `if`."""
    for (start_a, side_a), (start_b, side_b) in zip(_pairs(left), _pairs(right), strict=False):
        if start_a != start_b:
            return False
        if side_a != side_b:
            return True
    return False


def _pairs(branch: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(branch[i], branch[i + 1]) for i in range(0, len(branch), 2)]
