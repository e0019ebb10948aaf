"""Optional libraries, their log messages, and what modules of users print."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
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


@contextmanager
def print_to_stderr() -> Generator[None]:
    """Write what code of users prints to standard error, as standard output is for results."""
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)  # also for what does not print through `sys.stdout`
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        for stream in filter(None, (sys.__stdout__, sys.stderr)):
            stream.flush()
        os.dup2(output, 1)
        os.close(output)
