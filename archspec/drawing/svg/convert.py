"""Conversion of SVG to PNG and PDF, by a program or a package that is installed."""

from __future__ import annotations

import shutil
import subprocess
from importlib import import_module

from archspec.core.diagnostics import make_error

SCALE = 2
"""Pixels of a PNG per pixel of the picture."""


def convert(svg: str, format: str) -> bytes:
    """Return a picture as PNG or PDF. Raises ArchError if neither `rsvg-convert` nor `cairosvg` is installed."""
    program = shutil.which("rsvg-convert")
    if program is not None:
        zoom = ["--zoom", str(SCALE)] if format == "png" else []
        done = subprocess.run([program, "--format", format, *zoom], input=svg.encode(), capture_output=True)
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}"
            raise make_error("usage", f"`rsvg-convert` could not convert the picture: {reason}")
        return done.stdout
    try:
        cairosvg = import_module("cairosvg")
    except (ImportError, OSError):  # the library that it needs may be missing
        message = f"{format.upper()} requires `rsvg-convert` or the Python package `cairosvg`"
        raise make_error("usage", message, help="install one of them, or write SVG with `-o FILE.svg`") from None
    if format == "png":
        return cairosvg.svg2png(bytestring=svg.encode(), scale=SCALE)
    return cairosvg.svg2pdf(bytestring=svg.encode())
