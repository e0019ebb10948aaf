"""Commands with their output: the files under `tests/golden/commands`.

A file has cases: a title, and lines that begin with `$`, each followed by what the command prints, and its exit status
if that is not 0. `pytest --update-golden` writes the outputs anew.
"""

import re
import shlex
from collections.abc import Callable

import pytest
from paths import GOLDEN

from archspec import testing

FOLDER = GOLDEN / "commands"


@pytest.mark.parametrize("name", [path.stem for path in sorted(FOLDER.glob("*.txt"))])
def test_commands(name: str, golden: Callable[[str, str], None]) -> None:
    shown: list[str] = []
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("=== "):
            shown.append(f"{line}\n")
        elif re.match(r"\$ archspec( |$)", line):
            result = testing.run(*shlex.split(line)[2:])
            status = f"[status {result.status}]\n" * bool(result.status)
            shown.append(f"{line}\n{result.output}{result.errors}{status}\n")
    golden(f"commands/{name}.txt", "".join(shown))
