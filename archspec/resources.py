"""Where the grammar and the bundled specs lie: inside the package in a wheel, beside it in a clone."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def _find(name: str) -> str:
    inside = os.path.join(_PACKAGE, name)
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(_PACKAGE), name)


def grammar_path() -> str:
    """Where the grammar lies."""
    return os.path.join(_find("grammars"), "arch.lark")


def grammar_text() -> str:
    """The text of `arch.lark`. Raises OSError where the installation is damaged."""
    with open(grammar_path(), encoding="utf-8") as file:
        return file.read()


def specs_root() -> str:
    """The folder of the bundled specs."""
    return _find("specs")


def bundled_files(specs: str) -> list[str]:
    """Names of the files in the folder of the specs: those that an import can name without a path."""
    return sorted(f[:-5] for f in os.listdir(specs) if f.endswith(".arch"))
