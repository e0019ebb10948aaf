"""The names in scope while a definition is resolved, and their uses."""

from __future__ import annotations

from archspec.compiler.resolve.nodes import Expr, GuardedDeclaration, Loop
from archspec.compiler.resolve.unit import Definition, Pattern, Unit
from archspec.core.diagnostics import Note, Report, Span
from archspec.core.record import Record
from archspec.language.syntax import tree
from archspec.language.syntax.tree import Located, names_in


class LocalName(Record):
    """A name of a definition: `what` is "hyperparameter", "input", "value" or "index"; `depth` counts the loops around
    its binding, and `branch` has the branches of `if` that it is in, two numbers each.
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

    `used` are the local names that it reads, `computed` those of the results of operations, `file_names` those of its
    file; `forwards` are the callees of `..`. `referred` are the addresses that it reads, and `meant` the likely
    intended ones of misspelt addresses. `unread` are values of an iteration that are not read in it. `collecting` are
    the names to which the loops around collect values.
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
        self.meant: list[Pattern] = []
        self.in_header = False
        self.chains = 0
        self.loops = 0
        self.collecting: frozenset[str] = frozenset()
        self.branch: tuple[int, ...] = ()
        node = definition.node if definition is not None else None
        self.broken = node is not None and any(node.start <= b.start < node.end for b in unit.tree.broken)
        # The context of declarations in the current statement, and the declarations so far.
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

    def should_report(self, name: str, everywhere: bool = False) -> bool:
        """Whether to report an unknown name: once per definition, and not if a broken statement may have defined it.

        `everywhere`: once per file, as for a dimension.
        """
        unit, definition = self.unit, self.definition
        if name in unit.broken or (definition is not None and definition.open):
            return False
        known = name in unit.unknown or (definition is not None and name in definition.unknown)
        if definition is not None:
            (unit if everywhere else definition).unknown.add(name)
        return not known

    def bind(self, name: str, what: str, span: Span) -> bool:
        """Bring a name into scope, where it hides a dimension; False after reporting that the file defines it."""
        if name == "_":
            return True
        first = self.locals.get(name)
        if first is not None:
            carried = first.depth < self.loops and first.what != "index"
            other_branch = what == "value" and are_exclusive(first.branch, self.branch)
            if not carried and not other_branch:
                help = "use a new name: only a loop can assign to a name again" if what == "value" else None
                self.report_redefinition(name, span, first.span, help)
            return True
        known = self.unit.names.get(name)
        if known is not None:
            self.report_redefinition(name, span, known.span)
            self.file_names.add(name)
        self.locals[name] = LocalName(what, span, self.loops, self.branch)
        return known is None

    def ignore(self, expr: tree.Expr, *names: str) -> None:
        """Report nothing further about a part of the definition with an error, which may have defined `names`."""
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


def are_exclusive(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two branches are different sides of one `if`."""
    for (start_a, side_a), (start_b, side_b) in zip(_pairs(a), _pairs(b), strict=False):
        if start_a != start_b:
            return False
        if side_a != side_b:
            return True
    return False


def _pairs(branch: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(branch[i], branch[i + 1]) for i in range(0, len(branch), 2)]
