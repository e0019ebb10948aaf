"""Resource limits of a compilation."""

from __future__ import annotations

from archspec.source import Enough, Report, Span

MOST_ITERATIONS = 100_000
MOST_INSTANCES = 10_000
MOST_TEXT = 20_000_000
FIRST_TIME = 5  # the cost of processing text with new values, relative to a further iteration
MOST_UNUSED = 10_000
MOST_TENSORS = 500_000
MOST_CHARACTERS = 50_000_000
MOST_OPERATIONS = 10_000_000
MOST_SYMBOLIC = 20_000
DEEPEST = 60


class Limits:
    """Counts the resources that a compilation uses. Every method raises Enough if its limit is exceeded."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.iterations = 0
        self.text = 0
        self.symbolic = 0
        self.instances = 0

    def count_iterations(self, number: int, span: Span) -> None:
        """Count iterations of loops that declare something."""
        self.iterations += number
        if self.iterations > MOST_ITERATIONS:
            self.stop(f"too many loop iterations: the limit is {MOST_ITERATIONS:,}", span)

    def count_text(self, characters: int, span: Span) -> None:
        """Count the processed text, once for each iteration of a loop and each use with other values."""
        self.text += characters
        if self.text > MOST_TEXT:
            self.stop(f"too much text to process: the limit is {MOST_TEXT:,} characters, repetitions included", span)

    def count_symbolic(self, span: Span) -> None:
        self.symbolic += 1
        if self.symbolic > MOST_SYMBOLIC:
            self.stop(f"too many operations on symbolic sizes: the limit is {MOST_SYMBOLIC:,}", span)

    def count_instance(self, characters: int, depth: int, span: Span) -> None:
        """Count a definition of so many characters that is compiled with new hyperparameters or input types."""
        self.instances += 1
        if self.instances > 2 * MOST_INSTANCES:
            self.stop(f"too many distinct instances of definitions: the limit is {MOST_INSTANCES:,}", span)
        self.count_text(FIRST_TIME * characters, span)
        self.check_depth(depth, span)

    def count_call(self, characters: int, depth: int, span: Span) -> None:
        """Count a call of a function of numbers of so many characters."""
        self.count_text(FIRST_TIME * characters, span)
        self.check_depth(depth, span)

    def check_depth(self, depth: int, span: Span) -> None:
        """Check the number of definitions that are inside each other."""
        if depth > DEEPEST:
            self.stop(f"definitions are nested too deeply: the limit is {DEEPEST} levels", span)

    def check_tensors(self, tensors: int, characters: int, span: Span) -> None:
        if tensors > MOST_TENSORS:
            self.stop(f"too many tensors: {tensors:,} exceeds the limit of {MOST_TENSORS:,}", span)
        if characters > MOST_CHARACTERS:
            excess = f"{characters:,} characters exceed the limit of {MOST_CHARACTERS:,}"
            self.stop(f"tensor names are too long in total: {excess}", span)

    def check_unused(self, tensors: int, span: Span) -> None:
        if tensors > MOST_UNUSED:
            self.stop(f"too many unused tensors: {tensors:,} exceeds the limit of {MOST_UNUSED:,}", span)

    def check_operations(self, operations: int, span: Span) -> None:
        if operations > MOST_OPERATIONS:
            self.stop(f"too many operations: {operations:,} exceeds the limit of {MOST_OPERATIONS:,}", span)

    def stop(self, message: str, span: Span) -> None:
        self.report.error("budget", message, span)
        raise Enough
