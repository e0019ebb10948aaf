"""Compilation of designs one by one, in this process or in several."""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

from archspec.analysis.search.quantities import Quantity, measured
from archspec.core.diagnostics import ArchError, Diagnostic, Report
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import compile_location
from archspec.pipeline.files import read_once
from archspec.pipeline.model import Model

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    from archspec.pipeline.locate import Location

AT_ONCE = 16
"""The designs that a process is given at a time."""

_USAGE = frozenset(
    {"usage", "unknown-argument", "unused-hyperparameter", "bad-override", "missing-package", "internal"}
)
"""Errors that do not belong to single designs."""


class Compiler:
    """Compiles designs of a spec. `overrides` are the same for all of them."""

    def __init__(self, location: Location, overrides: Mapping[str, PlainValue]) -> None:
        self.location = read_once(location, Report()) if location.kind == "stream" else location
        self.overrides = dict(overrides)

    def compiled(self, values: Mapping[str, PlainValue]) -> Model:
        """Compile a design. Raises ArchError if the spec refuses it."""
        return compile_location(self.location, {**self.overrides, **values})[0]

    def measured(self, values: Mapping[str, PlainValue], quantities: Sequence[Quantity]) -> list[PlainValue] | None:
        """Return the quantities of a design; None if the spec refuses it. Raises ArchError for all other errors."""
        try:
            model = self.compiled(values)
            return [measured(model, quantity) for quantity in quantities]
        except ArchError as problem:
            if is_refusal(problem):
                return None
            raise


def is_refusal(problem: ArchError) -> bool:
    """Whether an error is about the values of a design, rather than about the names or types of hyperparameters."""
    errors = [found for found in problem.diagnostics if found.severity == "error"]
    return all(found.code not in _USAGE for found in errors) and any(
        found.span is not None or found.code == "bad-size" for found in errors
    )


class Pool:
    """Measures designs in `jobs` processes, or in the current one if `jobs` is 1.

    Processes are started when they are needed.
    """

    def __init__(self, compiler: Compiler, jobs: int) -> None:
        self.compiler = compiler
        self.jobs = jobs
        self._executor: ProcessPoolExecutor | None = None

    def measured(
        self, designs: Sequence[Mapping[str, PlainValue]], quantities: Sequence[Quantity]
    ) -> Iterator[list[PlainValue] | None]:
        """Yield the quantities of designs in their order; None for one that the spec refuses."""
        if self.jobs == 1 or len(designs) <= AT_ONCE:
            for values in designs:
                yield self.compiler.measured(values, quantities)
            return
        if self._executor is None:
            self._executor = _executor(self.jobs)
        parts = [designs[start : start + AT_ONCE] for start in range(0, len(designs), AT_ONCE)]
        with _interrupts_ignored():  # by the processes, too, which submitting starts
            tasks = [self._executor.submit(_measure, self.compiler, part, quantities) for part in parts]
        for task in tasks:
            found: list[list[PlainValue] | None] | list[Diagnostic] = task.result()
            if found and isinstance(found[0], Diagnostic):
                raise ArchError([each for each in found if isinstance(each, Diagnostic)])
            yield from (each for each in found if not isinstance(each, Diagnostic))

    def close(self) -> None:
        """Stop the processes, which would otherwise outlive a program that ends without waiting for them."""
        if self._executor is not None:
            executor: Any = self._executor  # its processes are not public
            processes = [*executor._processes.values()]
            self._executor.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()


@contextmanager
def pool(compiler: Compiler, jobs: int) -> Generator[Pool]:
    """Return a pool whose processes stop at the end."""
    found = Pool(compiler, jobs)
    try:
        yield found
    finally:
        found.close()


def _executor(jobs: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_ignore_interrupts)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that shows the results."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _interrupts_ignored() -> Generator[None]:
    """Ignore Ctrl-C, as processes do that are started meanwhile."""
    if current_thread() is not main_thread():  # others do not receive signals
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _measure(
    compiler: Compiler, designs: Sequence[Mapping[str, PlainValue]], quantities: Sequence[Quantity]
) -> list[list[PlainValue] | None] | list[Diagnostic]:
    """Measure designs in another process, from which an error comes back as its diagnostics."""
    try:
        return [compiler.measured(values, quantities) for values in designs]
    except ArchError as problem:
        return problem.diagnostics
