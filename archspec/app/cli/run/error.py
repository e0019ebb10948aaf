"""`archspec error [CODE]`."""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace

from archspec.core.diagnostics import escape_for_terminal, make_error, suggest
from archspec.core.resources import folder_path
from archspec.core.wrapping import line_width, wrap


def run(options: Namespace) -> int:
    """Write the section of a diagnostic code in `docs/errors.md`, or a list of all codes."""
    entries = read_entries()
    if options.code is None:
        print("\n".join(entries))
        return 0
    code = options.code.strip().removeprefix("error").removeprefix("warning").strip("[]")
    if code not in entries:
        help = suggest(code, [*entries]) or "run `archspec error` to list all codes"
        raise make_error("usage", f"unknown diagnostic code `{escape_for_terminal(code)}`", help=help)
    width = line_width(1)
    sys.stdout.write(entries[code] if width is None else _wrap_paragraphs(entries[code], width))
    return 0


def _wrap_paragraphs(text: str, width: int) -> str:
    """Break the paragraphs of a section at spaces, but not its examples."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    for i, part in enumerate(parts):
        if not part.startswith("```"):
            lines = re.sub(r"(?<=\S)\n(?=[^\s|*-])", " ", part).split("\n")
            parts[i] = "\n".join("\n".join(wrap(line, width)) for line in lines)
    return "".join(parts)


def read_entries() -> dict[str, str]:
    """Return the section of each code with its heading. Raises ArchError if the page is not installed."""
    try:
        with open(os.path.join(folder_path("docs"), "errors.md"), encoding="utf-8") as file:
            return split_sections(file.read())
    except FileNotFoundError:
        raise make_error("unreadable", "docs/errors.md is not part of this installation") from None


def split_sections(text: str) -> dict[str, str]:
    """Split a page into the sections under its `## code` headings; headings inside fenced examples do not count."""
    sections: dict[str, list[str]] = {}
    code: str | None = None
    fence = ""
    for line in text.splitlines():
        marker = line.strip()[: len(line.strip()) - len(line.strip().lstrip("`"))]
        if len(marker) >= 3 and (not fence or marker == fence):
            fence = "" if fence else marker
        if not fence and line.startswith("## "):
            code = line[3:].strip().strip("`")
            sections[code] = []
        if not fence and line.startswith("# "):
            code = None
        if code is not None:
            sections[code].append(line)
    return {code: "\n".join(lines).strip() + "\n" for code, lines in sections.items()}
