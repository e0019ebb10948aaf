"""Paths of the data files of the package.

The folders `grammars`, `specs` and `docs` are inside the package in a wheel, and next to it in a clone.
"""

from __future__ import annotations

import os

KINDS = ("text", "seq2seq", "vision", "audio", "multimodal")
"""The folders of bundled families, by what their models read."""

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
    return sorted(file[:-5] for folder in _folders(specs) for file in os.listdir(folder) if file.endswith(".arch"))


def bundled_path(specs: str, name: str) -> str:
    """Return the path of a bundled file in the directory of the specs, as in `text/bert.arch`.

    A name that no file has is one in the directory itself.
    """
    for kind in KINDS:
        if os.path.isfile(os.path.join(specs, kind, f"{name}.arch")):
            return f"{kind}/{name}.arch"
    return f"{name}.arch"


def bundled_name(label: str) -> str | None:
    """Return the name of the bundled file that is shown as `label`, by which it is imported; None for other files.

    The files of the standard library are those of `std`.
    """
    folder, _, file = label.replace(os.sep, "/").removesuffix(".arch").partition("/")
    if folder != "specs":
        return None
    kind, _, name = file.partition("/")
    return name if kind in KINDS else kind


def bundled_kind(specs: str, name: str) -> str:
    """Return the kind of the models in a bundled file, an element of KINDS; "" if it has none."""
    return os.path.dirname(bundled_path(specs, name))


def _folders(specs: str) -> list[str]:
    folders = [specs, *(os.path.join(specs, kind) for kind in KINDS)]
    return [folder for folder in folders if os.path.isdir(folder)]
