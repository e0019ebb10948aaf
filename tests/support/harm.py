"""What tests of hostile input share: bounds on time and memory, and what must hold of whatever is said."""

import contextlib
import io
import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import archspec
from archspec import ArchError, Diagnostic, Span
from archspec.testing import check, main

SECONDS = 30  # a guard against what never ends; the budgets end things far sooner
MEMORY = 1 << 30  # more than at the start, in bytes
MOST_TEXT = 100_000  # characters of all findings together


class TooLong(BaseException):
    """Nothing catches it on its way."""


@contextlib.contextmanager
def bounded(seconds: int = SECONDS) -> Iterator[None]:
    """Ends what takes too long or too much memory, where the system can."""

    def stop(*_: object) -> None:
        raise TooLong(f"more than {seconds} seconds")

    if not hasattr(signal, "SIGPROF"):
        yield
        return
    with contextlib.ExitStack() as after:
        after.callback(signal.signal, signal.SIGPROF, signal.signal(signal.SIGPROF, stop))
        after.callback(_limit_memory())
        after.callback(signal.setitimer, signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_PROF, seconds)  # the processor's time: whatever else runs does not count
        yield


def _limit_memory() -> Callable[[], None]:
    """Sets a limit, where the system can, and gives what takes it off again."""
    if not sys.platform.startswith("linux"):
        return lambda: None
    import resource

    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, limits[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_AS, limits)


def save(folder: Path, data: str | bytes) -> str:
    """The path of the data as a spec."""
    path = folder / "spec.arch"
    path.write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    return str(path)


def try_out(folder: Path, data: str | bytes) -> list[Diagnostic]:
    """Checks and counts a spec, and asserts that what is said of it is sound."""
    path = save(folder, data)
    with bounded():
        diagnostics = check(path)
        is_wrong = any(diagnostic.severity == "error" for diagnostic in diagnostics)
        assert sum(len(sound(diagnostic)) for diagnostic in diagnostics) < MOST_TEXT
        for spec in [path] if is_wrong else models(path):
            printed, said = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
                status = main(["count", spec, "--format", "json"])
            if status == 0:
                assert "error[" not in said.getvalue()
                consistent(spec, printed.getvalue())
            else:
                assert printed.getvalue() == ""
                assert said.getvalue().startswith(("error[", "warning["))
                assert is_wrong, "check finds nothing, and count does"
    return diagnostics


def models(path: str) -> list[str]:
    """A SPEC for each model of a file that is right (the first few)."""
    try:
        archspec.load(path)
    except ArchError as error:
        first = error.diagnostics[0]
        if first.code == "which-model":
            return re.findall(r"\S+\.arch:[^,]+", first.help or "")[:2]
        if first.code == "no-model":
            return []
    return [path]


def consistent(spec: str, printed: str) -> None:
    """Totals agree: of the table, of the tensors in it, of the graph's nodes."""
    contents = json.loads(printed)
    total = contents["params"]["total"]
    assert total == sum(tensor["params"] for tensor in contents["tensors"])
    if len(contents["tensors"]) < 500:
        model = archspec.load(spec)
        for level in ("layer", "block", "op"):
            assert total == sum(params for _, params in model.graph(level).nodes(data="params"))


def sound(diagnostic: Diagnostic) -> str:
    """The diagnostic as text, after a look at it: printable, carets under something."""
    text = diagnostic.render()
    lines = text.split("\n")
    assert re.fullmatch(r"(error|warning)\[[a-z]+(-[a-z]+)*\]: .+", lines[0])
    assert diagnostic.code != "internal"
    assert all(line.isprintable() for line in lines)
    for span in (diagnostic.span, *(note.span for note in diagnostic.notes)):
        if span is not None:
            _lies_within(span)
    for above, line in pairwise(lines):
        if re.fullmatch(r" *\| *(\^+|-+)", line):
            assert len(line) <= max(len(above), line.index("|") + 2) + 1, "the caret is outside the line"
    return text


def _lies_within(span: Span) -> None:
    assert 0 <= span.start <= span.end <= len(span.source.text)
    line, column = span.source.position(span.start)
    assert 1 <= column <= len(span.source.line(line)) + 1
