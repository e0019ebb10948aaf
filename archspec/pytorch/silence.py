"""What libraries report about their own code, which users cannot change."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def silent(*names: str) -> Generator[None]:
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
