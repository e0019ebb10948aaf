"""Writes the TextMate grammar of the VS Code extension and the grammar for tree-sitter.

Run `python -m archspec.language.highlight.generate` after a change of the language, then
`tree-sitter generate --abi 14` in `editors/tree-sitter/`; tests check that they are current.
"""

from __future__ import annotations

import json
from pathlib import Path

from archspec.core.resources import folder_path
from archspec.language.highlight import tree_sitter
from archspec.language.highlight.tokens import styles

EDITORS = Path(folder_path("editors"))


def textmate() -> dict[str, object]:
    """The grammar as TextMate, VS Code and GitHub read it."""
    return {
        "name": "archspec",
        "scopeName": "source.arch",
        "fileTypes": ["arch"],
        "patterns": [{"name": style.scope, "match": style.pattern} for style in styles()],
    }


def files() -> dict[Path, str]:
    """The generated files with their contents."""
    return {
        EDITORS / "vscode" / "syntaxes" / "arch.tmLanguage.json": json.dumps(textmate(), indent=2) + "\n",
        EDITORS / "tree-sitter" / "grammar.js": tree_sitter.grammar(),
        EDITORS / "tree-sitter" / "queries" / "highlights.scm": tree_sitter.highlights(),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
