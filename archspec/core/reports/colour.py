"""Detection of terminals with colors, which every command needs for its diagnostics, even without tables."""

from __future__ import annotations

import os


def supports_color(stream: object) -> bool:
    """Whether a stream is a terminal whose user has not disabled colors."""
    return (
        not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and bool(getattr(stream, "isatty", bool)())
    )
