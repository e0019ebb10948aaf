"""A pytest plugin that collects `.arch` files: a test per model, and a test "check" for everything else in the file.

Files are collected with `--archspec`, with `archspec = true` in the configuration of pytest, or if the command line
names them.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from archspec.core.diagnostics import ArchError, Diagnostic, Report, Source, Span, decode, read_bytes
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse
from archspec.pipeline.compile import check

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr, TracebackStyle


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("archspec").addoption("--archspec", action="store_true", help="collect .arch files")
    parser.addini("archspec", "collect .arch files", type="bool", default=False)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SpecFile | None:
    if file_path.suffix != ".arch":
        return None
    config = parent.config
    if config.getoption("--archspec") or config.getini("archspec") or parent.session.isinitpath(file_path):
        return SpecFile.from_parent(parent, path=file_path)
    return None


class SpecFile(pytest.File):
    """A spec file, which is checked once for all its tests. It can import files below the root directory of pytest."""

    def collect(self) -> Iterator[pytest.Item]:
        yield SpecItem.from_parent(self, name="check")
        for name in self.models:
            yield SpecItem.from_parent(self, name=name)

    @cached_property
    def models(self) -> dict[str, Span]:
        """The locations of the models in the file."""
        report = Report()
        data = read_bytes(str(self.path), str(self.path), report)
        text = decode(data, str(self.path), report) if data is not None else None
        source = Source(str(self.path), text or "")
        models = (item for item in parse(source, report).items if isinstance(item, tree.Model))
        return {str(model.name.value): Span(source, model.start, model.end) for model in models}

    @cached_property
    def errors(self) -> dict[str, list[Diagnostic]]:
        """The errors by model; errors outside of models belong to "check"."""
        result: dict[str, list[Diagnostic]] = {}
        for diagnostic in check(str(self.path), str(self.config.rootpath)).diagnostics:
            if diagnostic.severity == "error":
                result.setdefault(self._test_name(diagnostic.span), []).append(diagnostic)
        return result

    def _test_name(self, span: Span | None) -> str:
        """Return the name of the test that reports an error."""
        if span is not None and span.source.label == str(self.path):
            for name, model in self.models.items():
                if model.start <= span.start < model.end:
                    return name
        return "check"


class SpecItem(pytest.Item):
    """A test of a model with its `expect` lines, or of the file without its models ("check")."""

    @property
    def file(self) -> SpecFile:
        assert isinstance(self.parent, SpecFile)
        return self.parent

    def runtest(self) -> None:
        errors = self.file.errors
        if self.name in errors:
            raise ArchError(errors[self.name])
        if "check" in errors:
            pytest.skip("the file has errors outside of models")

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: TracebackStyle | None = None
    ) -> str | TerminalRepr:
        if isinstance(excinfo.value, ArchError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        span = self.file.models.get(self.name)
        line = span.source.position(span.start)[0] - 1 if span else None
        return self.path, line, self.name
