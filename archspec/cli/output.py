"""Output of reports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from archspec.reporting import documents

T = TypeVar("T")


def show(found: T, format: str, contents: Callable[[T], documents.Document], page: Callable[[T, str], str]) -> None:
    """Write a result: its `contents` as JSON or YAML, or its `page` in another format."""
    is_document = format in documents.FORMATS
    sys.stdout.write(documents.write(contents(found), format) if is_document else page(found, format))
