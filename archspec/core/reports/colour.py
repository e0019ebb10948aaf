"""Detection of coloured output."""

from __future__ import annotations

import os


def coloured(stream: object) -> bool:
    """Whether a stream is a terminal whose user has not disabled colours."""
    return (
        not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and bool(getattr(stream, "isatty", bool)())
    )
