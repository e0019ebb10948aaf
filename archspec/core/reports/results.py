"""Base classes of all results. The modules that display results are imported only when they are needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from archspec.core.record import Node

if TYPE_CHECKING:
    from archspec.core.reports.documents import Document
    from archspec.core.reports.page import Page
    from archspec.core.reports.tables import View


class Displayable:
    """An object that is shown as a report: the module `report` of its package has `page`, `rows` and `contents` for it.

    Many programs compute results without displaying them, so the module is imported on first use.
    """

    __slots__ = ()

    _contents_in = "report"
    """The module of `contents`."""

    def __str__(self) -> str:
        """Return the table that the command prints."""
        from archspec.core.reports.page import render_plain

        return render_plain(page_of(self))

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        from archspec.core.reports.html import render_html

        return render_html(page_of(self, "html"))

    def to_dict(self) -> Document:
        """Return the data that the command writes with `--format json`."""
        from archspec.core.reports.documents import plain

        return plain(contents_of(self))

    def to_frame(self) -> Any:
        """Return the rows that the command writes with `--format csv`, as a `pandas.DataFrame`.

        Raises ArchError if pandas is not installed.
        """
        from archspec.core.reports.tables import frame

        return frame(rows_of(self))

    def _module(self, name: str) -> ModuleType:
        return import_module(f"{type(self).__module__.rpartition('.')[0]}.{name}")


class Result(Node, Displayable):
    """The result of an analysis. Subclasses add fields, and a `__repr__` of one line."""


def page_of(result: Displayable, format: str = "table") -> Page:
    """Return the report; `format` is "table", "markdown" or "html"."""
    return result._module("report").page(result, format)  # pyright: ignore[reportPrivateUsage]


def rows_of(result: Displayable) -> View:
    """Return the rows of the csv output."""
    return result._module("report").rows(result)  # pyright: ignore[reportPrivateUsage]


def contents_of(result: Displayable) -> Document:
    """Return the document of the JSON and YAML output."""
    return result._module(result._contents_in).contents(result)  # pyright: ignore[reportPrivateUsage]
