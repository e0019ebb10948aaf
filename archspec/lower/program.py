"""What one compilation shares: findings, the places that led to where it is, budgets, and what was compiled before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from archspec.ir import Body, Module
from archspec.lower.units import Definition, Unit
from archspec.source import Note, Report, Source, Span
from archspec.syntax import tree

MOST_ITERATIONS = 100_000
MOST_INSTANCES = 10_000
MOST_WORK = 20_000_000
FIRST_TIME = 5  # how much longer text takes when it is worked through with new values than in a further round
MOST_IDLE = 10_000
MOST_TENSORS = 500_000
MOST_CHARACTERS = 50_000_000
MOST_OPERATIONS = 10_000_000
MOST_SYMBOLIC = 20_000
DEEPEST = 60
MOST_KEPT = 500_000


class Frame(NamedTuple):
    """A place where a definition is used: `node` in `unit`, with `arguments` for the inputs `names`."""

    definition: Definition
    unit: Unit
    node: Any
    arguments: tree.Arguments | None = None
    names: tuple[str, ...] = ()

    @property
    def span(self) -> Span:
        return self.unit.span(self.node)

    def argument(self, name: str) -> Span:
        """Where the input `name` is written."""
        item = argument_node(self.arguments, self.names, name)
        return self.unit.span(item) if item is not None else self.span


def argument_node(arguments: tree.Arguments | None, names: Sequence[str], name: str) -> tree.Argument | None:
    """Where the argument `name` is written in a list of arguments for `names`."""
    position = 0
    for item in arguments.items if arguments else ():
        if item.name == name:
            return item
        if not item.name:
            if position < len(names) and names[position] == name:
                return item
            position += 1
    return None


class Refused(Exception):
    """A `require` does not hold; it has been reported, and nothing else is said of the definition."""


class OverBudget(Exception):
    """A budget is used up; it has been reported, and compiling ends here."""


class Program:
    """Compiled modules and bodies, by definition, hyperparameters and input types, and the state of a compilation.

    `modules` and `bodies` stay valid as long as the files they came from do, and so does `checked`: the files and
    definitions in which what does not depend on hyperparameters was found to be right. Everything else is of one
    compilation. `opening` is there while hyperparameters are left open.
    """

    def __init__(self, opening: Any = None) -> None:
        self.opening = opening
        self.modules: dict[Any, Module] = {}
        self.definitions: dict[Module, Definition] = {}
        self.bodies: dict[Any, Body | None] = {}
        self.addresses: dict[int, Any] = {}  # by the tree's node, which is kept with them
        self.placeholders: dict[int, Any] = {}  # whether a list of arguments has a `_`, kept likewise
        self.checked: set[Any] = set()
        self.kept = 0  # members and applications in them
        self.owner: Any = opening.owner if opening is not None else None  # what works out ownership and bodies,
        self.flow: Any = opening.flow if opening is not None else None  # where that is not to be done as usual
        self.begin(Report(), None)

    def begin(self, report: Report, root: Source | None) -> None:
        """Starts a compilation whose findings are shown, where possible, in the file `root`."""
        if self.kept > MOST_KEPT:
            self.kept = 0
            self.modules.clear()
            self.definitions.clear()
            self.bodies.clear()
        self.report = report
        self.root = root
        self.frames: list[Frame] = []
        self.incomplete: set[Module] = set()  # something they own is in error
        self.refused: set[Module | None] = set()  # a `require` of theirs does not hold
        self.iterations = 0
        self.work = 0
        self.unknown: set[tuple[Definition | Unit | None, str]] = set()
        self.symbolic = 0
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
            what = "required by" if caller else "in"
            notes = (*notes, Note(f"{what} `{frame.definition.name}`, used above", span))
        self.report.error(code, message, place, notes=notes, help=help)
        if code == "budget":
            raise OverBudget

    def count_iterations(self, number: int, span: Span) -> None:
        """Counts rounds of loops over what is owned."""
        self.iterations += number
        if self.iterations > MOST_ITERATIONS:
            self._stop(f"too many loop iterations: the limit is {MOST_ITERATIONS:,}", span)

    def count_work(self, characters: int, span: Span) -> None:
        """Counts the text that is worked through, again for each round of a loop and each use with other values."""
        self.work += characters
        if self.work > MOST_WORK:
            self._stop(f"too much text to process: the limit is {MOST_WORK:,} characters, repetitions included", span)

    def count_symbolic(self, span: Span) -> None:
        self.symbolic += 1
        if self.symbolic > MOST_SYMBOLIC:
            self._stop(f"too many operations on symbolic sizes: the limit is {MOST_SYMBOLIC:,}", span)

    def _stop(self, message: str, span: Span) -> None:
        self.report.error("budget", message, span)
        raise OverBudget

    def count_instance(self, definition: Definition, span: Span) -> None:
        """Counts a definition with other hyperparameters, or with other types of input."""
        self.instances += 1
        if self.instances > 2 * MOST_INSTANCES:
            self._stop(f"too many distinct instances of definitions: the limit is {MOST_INSTANCES:,}", span)
        self.count_work(FIRST_TIME * (definition.node.end - definition.node.start), span)
        if len(self.frames) > DEEPEST:
            self._stop(f"definitions are nested too deeply: the limit is {DEEPEST} levels", span)

    def check_tensors(self, tensors: int, characters: int, span: Span) -> None:
        if tensors > MOST_TENSORS:
            self._stop(f"too many tensors: {tensors:,} exceeds the limit of {MOST_TENSORS:,}", span)
        if characters > MOST_CHARACTERS:
            message = (
                f"tensor names are too long in total: {characters:,} characters exceed the limit of {MOST_CHARACTERS:,}"
            )
            self._stop(message, span)

    def check_idle(self, tensors: int, span: Span) -> None:
        if tensors > MOST_IDLE:
            self._stop(f"too many unused tensors: {tensors:,} exceeds the limit of {MOST_IDLE:,}", span)

    def check_operations(self, operations: int, span: Span) -> None:
        if operations > MOST_OPERATIONS:
            self._stop(f"too many operations: {operations:,} exceeds the limit of {MOST_OPERATIONS:,}", span)
