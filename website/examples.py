"""The examples of the pages: README.md and docs/ without errors.md. Blocks are run in order, in a folder of their own.

- ```arch begins a file, named in its first line (`# small.arch`) or `example.arch`; ```arch more goes on with it.
- ```yaml begins an audit that is named in its first line (`# small.yaml`), ```python a program (`# small.py`), and
  ```json a configuration (`# small.json`, which is not part of it).
- ```console holds commands behind `$` and what they print. A line `...` stands for any lines.
- ```pycon is a doctest. Names are kept for the next one.

The tests of the documentation use this module, the build of the site, and the site itself, in the browser.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from archspec.app.cli import main
from archspec.pipeline.compile import check

FENCE = re.compile(r"^```(?P<kind>\w*)(?: (?P<mark>[^\n]*))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

NEEDED = {"torch": "torch", "onnx": "onnxruntime"}
"""The packages that marked blocks need."""

TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1"}
"""The environment variables with which commands print what is shown."""


class Block(NamedTuple):
    """A fenced block: its text lies at `start` to `end` of the page, `line` is where it begins."""

    kind: str
    mark: str
    text: str
    start: int = 0
    end: int = 0
    line: int = 1


class Step(NamedTuple):
    """A command or statement of a block, what it prints, and how that differs from what the page shows."""

    entered: str
    printed: str
    fault: str


def blocks(page: str) -> list[Block]:
    return [
        Block(m["kind"], m["mark"] or "", m["text"], *m.span("text"), page.count("\n", 0, m.start()) + 1)
        for m in FENCE.finditer(page)
    ]


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output shown."""
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
    assert parts[0] == "", "a console block begins with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def agrees(shown: str, real: str) -> bool:
    """Whether an output is as shown; a line `...` stands for any lines, and blank lines at the end do not count."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in shown.rstrip().split("\n"))
    return re.fullmatch(pattern, real.rstrip() + "\n") is not None


class Session:
    """Goes through the blocks of a page in order, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "example.arch"
        self.names: dict[str, Any] = {}

    def play(self, block: Block) -> list[Step]:
        """Save the file that a block holds, or run what it shows."""
        match block.kind:
            case "arch":
                self.write(block)
            case "yaml" | "json" | "python":
                self.save(block)
            case "console":
                return [*self._commands(block)]
            case "pycon":
                return self._statements(block)
            case _:
                pass
        return []

    def write(self, block: Block) -> None:
        """Save the file that an arch block begins or goes on with."""
        named = re.match(r"# (\w+\.arch)\b", block.text)
        if block.mark == "more":
            block = block._replace(text=self.file.read_text() + "\n" + block.text)
        else:
            self.file = self.folder / (named[1] if named else "example.arch")
        self.file.write_text(block.text)

    def save(self, block: Block) -> None:
        """Save a YAML, JSON or Python block that is named in its first line (`# small.yaml`)."""
        named = re.match(r"# (\w+\.(yaml|json|py))\b.*\n", block.text)
        if named:
            (self.folder / named[1]).write_text(block.text[named.end() if block.kind == "json" else 0 :])

    def findings(self) -> str:
        with contextlib.chdir(self.folder):
            return "\n\n".join(d.render() for d in check(self.file.name).diagnostics)

    def output(self, command: str) -> str:
        """What a command prints, on both streams."""
        words = shlex.split(command)
        assert words[0] == "archspec", f"only archspec is run here, not {words[0]}"
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main(words[1:])
        return printed.getvalue()

    def _commands(self, block: Block) -> Iterator[Step]:
        for command, shown in commands(block):
            real = self.output(command)
            yield Step(f"$ {command}\n", real, "" if agrees(shown, real) else f"$ {command}\n{real}")

    def _statements(self, block: Block) -> list[Step]:
        test = doctest.DocTestParser().get_doctest(block.text, self.names, "example", None, block.line)
        runner = _Runner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        with contextlib.chdir(self.folder):
            runner.run(test, clear_globs=False)
        self.names.update(test.globs)
        return runner.steps


_Out = Callable[[str], object]
_Exception = tuple[type[BaseException], BaseException, TracebackType]


class _Runner(doctest.DocTestRunner):
    """Keeps what the statements print."""

    def __init__(self, optionflags: int) -> None:
        super().__init__(verbose=False, optionflags=optionflags)
        self.steps: list[Step] = []

    def report_success(self, out: _Out, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self._keep(example, got)

    def report_failure(self, out: _Out, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        fault: list[str] = []
        super().report_failure(fault.append, test, example, got)
        self._keep(example, got, fault)

    def report_unexpected_exception(
        self, out: _Out, test: doctest.DocTest, example: doctest.Example, exc_info: _Exception
    ) -> None:
        fault: list[str] = []
        super().report_unexpected_exception(fault.append, test, example, exc_info)
        self._keep(example, f"{exc_info[0].__name__}: {exc_info[1]}\n", fault)

    def _keep(self, example: doctest.Example, printed: str, fault: list[str] | None = None) -> None:
        lines = example.source.rstrip("\n").split("\n")
        entered = "".join(f"{'...' if i else '>>>'} {line}\n" for i, line in enumerate(lines))
        self.steps.append(Step(entered, printed, "".join(fault or ())))
