"""What one compilation shares: findings, the places that led to where it is, budgets, and what was compiled before."""

from __future__ import annotations

from typing import Any, NamedTuple

from archspec.ir import Body, Module
from archspec.lower.units import Definition
from archspec.source import Note, Report, Source, Span

MOST_ITERATIONS = 100_000
MOST_INSTANCES = 10_000
MOST_TENSORS = 2_000_000
MOST_OPERATIONS = 10_000_000
DEEPEST = 60
MOST_KEPT = 20_000


class Frame(NamedTuple):
    """A place where a definition is used; `arguments` are the spans of its inputs by name."""

    definition: Definition
    span: Span
    arguments: dict[str, Span]


class OverBudget(Exception):
    """A budget is used up; it has been reported, and compiling ends here."""


class Program:
    """Compiled modules and bodies, by definition, hyperparameters and input types, and the state of a compilation.

    `modules` and `bodies` stay valid as long as the files they came from do; everything else is of one compilation.
    """

    def __init__(self) -> None:
        self.modules: dict[Any, Module] = {}
        self.definitions: dict[Module, Definition] = {}
        self.bodies: dict[Any, Body | None] = {}
        self.begin(Report(), None)

    def begin(self, report: Report, root: Source | None) -> None:
        """Starts a compilation whose findings are shown, where possible, in the file `root`."""
        if len(self.bodies) + len(self.modules) > MOST_KEPT:
            self.modules.clear()
            self.definitions.clear()
            self.bodies.clear()
        self.report = report
        self.root = root
        self.frames: list[Frame] = []
        self.incomplete: set[Module] = set()  # something they own is in error
        self.iterations = 0
        self.instances = 0

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        notes: tuple[Note, ...] = (),
        help: str | None = None,
        caller: bool = False,
    ) -> None:
        """Reports an error at `span`, or at the use that led there if `span` is not in the file being compiled.

        `caller` says that the use is at fault, wherever the definition stands.
        """
        place = span
        if self.frames and (caller or span.source is not self.root):
            frame = self.frames[-1]
            if not caller or frame.span.source is not self.root:
                frame = next((f for f in reversed(self.frames) if f.span.source is self.root), frame)
            place = frame.span
            notes = (*notes, Note(f"it is in `{frame.definition.name}`, used above", span))
        self.report.error(code, message, place, notes=notes, help=help)

    def count_iterations(self, number: int, span: Span) -> None:
        self.iterations += number
        if self.iterations > MOST_ITERATIONS:
            self.report.error("budget", f"loops of this model run more than {MOST_ITERATIONS:,} times", span)
            raise OverBudget

    def count_instance(self, span: Span) -> None:
        self.instances += 1
        if self.instances > MOST_INSTANCES:
            message = f"this model needs more than {MOST_INSTANCES:,} distinct instances of definitions"
            self.report.error("budget", message, span)
            raise OverBudget
        if len(self.frames) > DEEPEST:
            self.report.error("budget", f"definitions are nested more than {DEEPEST} deep", span)
            raise OverBudget

    def check_size(self, tensors: int, operations: int, span: Span) -> None:
        if tensors > MOST_TENSORS:
            self.report.error("budget", f"this has {tensors:,} tensors; the limit is {MOST_TENSORS:,}", span)
            raise OverBudget
        if operations > MOST_OPERATIONS:
            message = f"this has {operations:,} operations; the limit is {MOST_OPERATIONS:,}"
            self.report.error("budget", message, span)
            raise OverBudget
