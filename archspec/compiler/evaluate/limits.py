"""Resource limits of a compilation."""

from __future__ import annotations

from archspec.core.diagnostics import Report, Span, StopCompilation

MAX_ITERATIONS = 100_000
MAX_INSTANCES = 10_000
MAX_PROCESSED_CHARACTERS = 20_000_000
NEW_INSTANCE_FACTOR = 5  # cost of processing text with new values, relative to another loop iteration
MAX_UNUSED = 10_000
MAX_TENSORS = 500_000
MAX_CHARACTERS = 50_000_000
MAX_OPERATIONS = 10_000_000
MAX_SYMBOLIC_OPERATIONS = 20_000
MAX_NESTED_DEFINITIONS = 60


class Limits:
    """Counters of the resources that a compilation uses. A method raises StopCompilation if its limit is exceeded."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.iterations = 0
        self.text = 0
        self.symbolic = 0
        self.instances = 0

    def count_iterations(self, number: int, span: Span) -> None:
        """Count iterations of loops that declare something."""
        self.iterations += number
        if self.iterations > MAX_ITERATIONS:
            self.stop(f"too many loop iterations: the limit is {MAX_ITERATIONS:,}", span)

    def count_text(self, characters: int, span: Span) -> None:
        """Count the processed text, once for each loop iteration and each use with different values."""
        self.text += characters
        if self.text > MAX_PROCESSED_CHARACTERS:
            self.stop(
                f"too much text to process: the limit is {MAX_PROCESSED_CHARACTERS:,} characters, repetitions included",
                span,
            )

    def count_symbolic(self, span: Span) -> None:
        self.symbolic += 1
        if self.symbolic > MAX_SYMBOLIC_OPERATIONS:
            self.stop(f"too many operations on symbolic sizes: the limit is {MAX_SYMBOLIC_OPERATIONS:,}", span)

    def count_instance(self, characters: int, depth: int, span: Span) -> None:
        """Count the compilation of a definition (`characters` long) with new hyperparameters or input types."""
        self.instances += 1
        if self.instances > 2 * MAX_INSTANCES:
            self.stop(f"too many distinct instances of definitions: the limit is {MAX_INSTANCES:,}", span)
        self.count_text(NEW_INSTANCE_FACTOR * characters, span)
        self.check_depth(depth, span)

    def count_call(self, characters: int, depth: int, span: Span) -> None:
        """Count a call of a function of numbers (`characters` long)."""
        self.count_text(NEW_INSTANCE_FACTOR * characters, span)
        self.check_depth(depth, span)

    def check_depth(self, depth: int, span: Span) -> None:
        """Check the nesting depth of definitions."""
        if depth > MAX_NESTED_DEFINITIONS:
            self.stop(f"definitions are nested too deeply: the limit is {MAX_NESTED_DEFINITIONS} levels", span)

    def check_tensors(self, tensors: int, characters: int, span: Span) -> None:
        if tensors > MAX_TENSORS:
            self.stop(f"too many tensors: {tensors:,} exceeds the limit of {MAX_TENSORS:,}", span)
        if characters > MAX_CHARACTERS:
            excess = f"{characters:,} characters exceed the limit of {MAX_CHARACTERS:,}"
            self.stop(f"tensor names are too long in total: {excess}", span)

    def check_unused(self, tensors: int, span: Span) -> None:
        if tensors > MAX_UNUSED:
            self.stop(f"too many unused tensors: {tensors:,} exceeds the limit of {MAX_UNUSED:,}", span)

    def check_operations(self, operations: int, span: Span) -> None:
        if operations > MAX_OPERATIONS:
            self.stop(f"too many operations: {operations:,} exceeds the limit of {MAX_OPERATIONS:,}", span)

    def stop(self, message: str, span: Span) -> None:
        self.report.error("budget", message, span)
        raise StopCompilation
