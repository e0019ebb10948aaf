"""Files of texts in sections, each under a heading `# NAME ---`: cases of tests, and what they are compared with."""

import re
from collections.abc import Sequence
from pathlib import Path

HEADING = re.compile(r"^# (\S.*?) -{3,}$", re.MULTILINE)
WIDTH = 120


def read_sections(path: Path) -> dict[str, str]:
    """Return the texts of a file by their headings."""
    if not path.exists():
        return {}
    _, *parts = HEADING.split(path.read_text(encoding="utf-8"))
    return {name: text.strip("\n") + "\n" for name, text in zip(parts[::2], parts[1::2], strict=True)}


def compare_section(path: Path, name: str, text: str, order: Sequence[str], update: bool) -> None:
    """Compare a text with a section of a file; to update it, write it there in the order of the names."""
    sections = read_sections(path)
    if update:
        sections[name] = text.strip("\n") + "\n"
        parts = [f"# {key} {'-' * max(3, WIDTH - 3 - len(key))}\n\n{sections[key]}" for key in order if key in sections]
        path.write_text("\n".join(parts), encoding="utf-8")
    assert text.strip("\n") + "\n" == sections[name]
