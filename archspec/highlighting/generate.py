"""Writes the TextMate grammar of the VS Code extension. Run `python -m archspec.highlighting.generate` after a change
of the language; a test checks that it is current.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from archspec.highlighting.tokens import styles

PATH = Path(__file__).parent.parent.parent / "editors" / "vscode" / "syntaxes" / "arch.tmLanguage.json"


def textmate() -> dict[str, Any]:
    """The grammar as TextMate, VS Code and GitHub read it."""
    return {
        "name": "archspec",
        "scopeName": "source.arch",
        "fileTypes": ["arch"],
        "patterns": [{"name": style.scope, "match": style.pattern} for style in styles()],
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(textmate(), indent=2) + "\n")
