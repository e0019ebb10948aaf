"""Libraries that are optional: PyTorch, and what libraries report about their own code, which users cannot change."""

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
    """Let these loggers report nothing."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
