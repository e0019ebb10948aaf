"""`archspec lsp`."""

from __future__ import annotations

from argparse import Namespace

from archspec.core.diagnostics import missing_package_error

try:
    from archspec.app.lsp.server import serve
except ModuleNotFoundError as missing:
    if (missing.name or "").split(".")[0] not in ("pygls", "lsprotocol"):
        raise
    serve = None


def run(options: Namespace) -> int:
    """Serve an editor on standard input and output until it closes them."""
    if serve is None:
        raise missing_package_error("pygls is required but not installed", "lsp")
    serve()
    return 0
