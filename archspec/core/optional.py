"""Optional libraries: the import of PyTorch, and silencing of log messages about the code of libraries."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType

from archspec.core.diagnostics import missing_package_error


def import_torch() -> ModuleType:
    """Return the module `torch`. Raises ArchError (`missing-package`) if it is not installed."""
    try:
        import torch
    except ImportError:
        raise missing_package_error("PyTorch is required but not installed", "torch") from None
    return torch


@contextmanager
def silence_loggers(*names: str) -> Generator[None]:
    """Disable these loggers inside the `with` statement."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
