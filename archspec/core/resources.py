"""Paths of the data files of the package.

The folders `grammars`, `specs` and `docs` are inside the package in a wheel, and next to it in a clone.
"""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def package_path(*names: str) -> str:
    """Return the path of a file or folder of the package."""
    return os.path.join(_PACKAGE, *names)


def folder_path(name: str) -> str:
    """Return the path of a folder that is inside the package in a wheel, and next to it in a clone."""
    packaged = package_path(name)
    return packaged if os.path.isdir(packaged) else os.path.join(os.path.dirname(_PACKAGE), name)


def grammar_path() -> str:
    """Return the path of the grammar."""
    return os.path.join(folder_path("grammars"), "arch.lark")


def grammar_text() -> str:
    """Return the contents of `arch.lark`. Raises OSError if the installation is incomplete."""
    with open(grammar_path(), encoding="utf-8") as file:
        return file.read()


def specs_root() -> str:
    """Return the directory of the bundled specs."""
    return folder_path("specs")


def bundled_files(specs: str) -> list[str]:
    """Return the sorted names of the bundled files, which an import can use without a path."""
    return sorted(f[:-5] for f in os.listdir(specs) if f.endswith(".arch"))
