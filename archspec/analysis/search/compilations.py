"""Compilation of designs one by one, in this process or in several."""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, TypeAlias

from archspec.analysis.search.quantities import Quantity, measure
from archspec.core.diagnostics import ArchError, Diagnostic, Report, Span
from archspec.core.record import Record
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import compile_location
from archspec.pipeline.files import read_once
from archspec.pipeline.model import Model

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    from archspec.pipeline.locate import Location

Measurement: TypeAlias = "list[PlainValue] | Refusal"
"""The quantities of a design, or why the spec refuses it."""

MAX_TASK_DESIGNS = 16
"""Maximum number of designs in one task of a process."""

_USAGE = frozenset(
    {"usage", "unknown-argument", "unused-hyperparameter", "bad-override", "missing-package", "internal"}
)
"""Codes of errors that are not caused by the values of one design."""


class Refusal(Record):
    """The reason why the spec refuses a design, and the `place` that it has in common with other refusals."""

    place: str
    text: str


class Compiler:
    """Compiler of the designs of a spec, all with the same `overrides`.

    `helpers` are varied names that only occur in the values of hyperparameters.
    """

    def __init__(self, location: Location, overrides: Mapping[str, PlainValue]) -> None:
        self.location = read_once(location, Report()) if location.kind == "stream" else location
        self.overrides = dict(overrides)
        self.helpers: frozenset[str] = frozenset()

    def compile(self, values: Mapping[str, PlainValue]) -> Model:
        """Compile a design. Raises ArchError if the spec refuses it."""
        settings = {name: value for name, value in values.items() if name not in self.helpers}
        return compile_location(self.location, {**self.overrides, **settings})[0]

    def measure(self, values: Mapping[str, PlainValue], quantities: Sequence[Quantity]) -> Measurement:
        """Return the quantities of a design, or why the spec refuses it. Raises ArchError for all other errors."""
        try:
            model = self.compile(values)
            return [measure(model, quantity) for quantity in quantities]
        except ArchError as error:
            if is_refusal(error):
                return _refusal(error)
            raise


def is_refusal(error: ArchError) -> bool:
    """Whether an error is about the values of a design, rather than about the names or types of hyperparameters."""
    errors = [diagnostic for diagnostic in error.diagnostics if diagnostic.severity == "error"]
    return all(diagnostic.code not in _USAGE for diagnostic in errors) and any(
        diagnostic.span is not None or diagnostic.code == "bad-size" for diagnostic in errors
    )


def _refusal(error: ArchError) -> Refusal:
    """Return the reason of an error: the condition of a `require`, or else the message."""
    diagnostic = next(diagnostic for diagnostic in error.diagnostics if diagnostic.severity == "error")
    condition = next((note.span for note in diagnostic.notes if note.span), None) or diagnostic.span
    if diagnostic.code == "require" and condition is not None:
        text = describe_condition(condition)
        return Refusal(text, text)
    where = f" ({diagnostic.span.location})" if diagnostic.span is not None else ""
    return Refusal(f"{diagnostic.code}{where}", f"{diagnostic.message}{where}")


def describe_condition(span: Span) -> str:
    """Return the source of a condition that some designs do not meet, and where it is."""
    return f"`{' '.join(span.source.text[span.start : span.end].split())}` ({span.location})"


class Pool:
    """A pool of `jobs` processes that measure designs; the current process if `jobs` is 1.

    Processes are started on demand.
    """

    def __init__(self, compiler: Compiler, jobs: int) -> None:
        self.compiler = compiler
        self.jobs = jobs
        self._executor: ProcessPoolExecutor | None = None

    def measure(
        self, designs: Sequence[Mapping[str, PlainValue]], quantities: Sequence[Quantity]
    ) -> Iterator[Measurement]:
        """Yield the quantities of designs in their order, or why the spec refuses one."""
        if self.jobs == 1 or len(designs) <= MAX_TASK_DESIGNS:
            for values in designs:
                yield self.compiler.measure(values, quantities)
            return
        if self._executor is None:
            self._executor = _create_executor(self.jobs)
        parts = [designs[start : start + MAX_TASK_DESIGNS] for start in range(0, len(designs), MAX_TASK_DESIGNS)]
        with _interrupts_ignored():  # `submit` starts processes, which inherit the handler
            tasks = [self._executor.submit(_measure_designs, self.compiler, part, quantities) for part in parts]
        for task in tasks:
            outcome: list[Measurement] | list[Diagnostic] = task.result()
            if outcome and isinstance(outcome[0], Diagnostic):
                raise ArchError([item for item in outcome if isinstance(item, Diagnostic)])
            yield from (item for item in outcome if not isinstance(item, Diagnostic))

    def close(self) -> None:
        """Stop the processes. Otherwise they outlive a program that ends without waiting for them."""
        if self._executor is not None:
            executor: Any = self._executor  # its processes are not public
            processes = [*executor._processes.values()]
            self._executor.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()


@contextmanager
def open_pool(compiler: Compiler, jobs: int) -> Generator[Pool]:
    """Yield a pool, and stop its processes at the end."""
    pool = Pool(compiler, jobs)
    try:
        yield pool
    finally:
        pool.close()


def _create_executor(jobs: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_ignore_interrupts)


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C. The process that shows the results handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _interrupts_ignored() -> Generator[None]:
    """Ignore Ctrl-C, also in processes that are started meanwhile."""
    if current_thread() is not main_thread():  # only the main thread receives signals
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _measure_designs(
    compiler: Compiler, designs: Sequence[Mapping[str, PlainValue]], quantities: Sequence[Quantity]
) -> list[Measurement] | list[Diagnostic]:
    """Measure designs in a process of the pool. Returns the diagnostics of an error, because they can be pickled."""
    try:
        return [compiler.measure(values, quantities) for values in designs]
    except ArchError as error:
        return error.diagnostics
