"""The commands `archspec` and `archspec-dsl`: run the package `archspec` after checking that it is ours and complete.

An unrelated project, the distribution `archspec`, installs a package and a command with the same names. pip lets each
overwrite files of the other. The name of this module is not shared, so that the check itself is never overwritten.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn

_HERE = os.path.dirname(os.path.abspath(__file__))
_METADATA = ".dist-info"


def conflict_text() -> str:
    """Return that the other project is installed in the same folder, and how to install archspec-dsl separately."""
    return _explain(_installed_versions(), "")


def run() -> NoReturn:
    """Run the command line and end the process, without freeing its memory: that takes longer than many a command."""
    gc.set_threshold(100_000, 20, 20)  # most objects live until the end, and searching them would take longest
    status = _check_and_run()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or without a reader
            stream.flush()
    os._exit(status)


def _check_and_run() -> int:
    versions = _installed_versions()
    defect = _find_foreign_package(versions)
    if not defect and "archspec" in versions:
        defect = _find_changed_file(versions)
    if not defect:
        try:
            from archspec.app.cli import main

            return main()
        except ImportError:
            defect = _find_changed_file(versions)
            if not defect:
                raise
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(f"{_explain(versions, defect)}\n")
    return 2


def _installed_versions() -> dict[str, str]:
    """Return the versions of `archspec_dsl` and `archspec` whose metadata is beside this file; a checkout has none."""
    names = (name.removesuffix(_METADATA) for name in os.listdir(_HERE) if name.endswith(_METADATA))
    versions = (name.partition("-") for name in names)
    return {name: version for name, _, version in versions if name in ("archspec", "archspec_dsl")}


def _find_foreign_package(versions: dict[str, str]) -> str:
    """Return why `import archspec` does not import the version of archspec-dsl that is installed; "" if it does."""
    path = os.path.join(_HERE, "archspec", "__init__.py")
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError:
        return "archspec/__init__.py is missing, as after the removal of the unrelated project archspec"
    if b'__distribution__ = "archspec-dsl"' not in text:
        return "archspec/__init__.py is not that of archspec-dsl"
    if "archspec_dsl" in versions and f'__version__ = "{versions["archspec_dsl"]}"'.encode() not in text:
        return "archspec/__init__.py has a different version"
    import archspec

    imported = archspec.__file__ or "another folder"
    return "" if os.path.exists(imported) and os.path.samefile(imported, path) else f"Python imports {imported} instead"


def _find_changed_file(versions: dict[str, str]) -> str:
    """Return which file of the package is missing or has a different size than when it was installed; "" if none."""
    record = os.path.join(_HERE, f"archspec_dsl-{versions.get('archspec_dsl')}{_METADATA}", "RECORD")
    try:
        with open(record, encoding="utf-8") as file:
            rows = [line.rsplit(",", 2) for line in file if line.startswith("archspec/") and ".pyc," not in line]
    except OSError:  # a checkout, or a package of an operating system
        return ""
    for path, _, size in rows:
        try:
            if os.path.getsize(os.path.join(_HERE, path)) != int(size):
                return f"{path} was changed"
        except OSError:
            return f"{path} is missing"
    return ""


def _explain(versions: dict[str, str], defect: str) -> str:
    """Return three lines: the fact, and two ways to install archspec-dsl separately."""
    own = " ".join(("archspec-dsl", *filter(None, [versions.get("archspec_dsl")])))
    if "archspec" in versions:
        fact = f"{own} and the unrelated archspec {versions['archspec']} overwrite each other's files in {_HERE}"
    else:
        fact = f"cannot run {own} in {_HERE}"
    return "\n".join(
        (
            f"archspec: {fact}{f': {defect}' if defect else ''}",
            "help: install archspec-dsl in an environment of its own: "
            "`python3 -m venv ENV && ENV/bin/pip install archspec-dsl`",
            "help: or install archspec-dsl as a separate tool: `uv tool install archspec-dsl` or "
            "`pipx install archspec-dsl`",
        )
    )


if __name__ == "__main__":
    run()
