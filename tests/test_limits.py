"""The numbers with names: limits, widths, times. A change of one is seen in `tests/golden/limits.txt`."""

import re
from collections.abc import Callable
from pathlib import Path

import archspec

PACKAGE = Path(archspec.__file__).parent
NUMBER = re.compile(
    r"^([A-Z_][A-Z0-9_, ]*)(?:: [^=\n]+)? = (?=[^#\n]*\d)([-+*/\d(][-+*/\d_.,e() ]*?)(?: *#.*)?$", re.MULTILINE
)
"""An assignment of numbers, or of arithmetic with numbers, at the beginning of a line."""


def test_limits_stay_as_they_are(golden: Callable[[str, str], None]) -> None:
    lines: list[str] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        found = [f"  {names} = {value}" for names, value in NUMBER.findall(path.read_text("utf-8"))]
        if found:
            lines += [path.relative_to(PACKAGE).as_posix(), *found]
    golden("limits.txt", "\n".join(lines) + "\n")
