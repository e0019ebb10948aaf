"""Folders that tests read: the repository, its specs, and the data of tests."""

from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
SPECS = ROOT / "specs"
DATA = TESTS / "data"
GOLDEN = TESTS / "golden"
ORACLE = TESTS / "oracle"
FAMILIES = sorted((path for path in SPECS.glob("*/*.arch") if path.parent.name != "std"), key=lambda path: path.stem)


def read_spec(name: str) -> str:
    """The text of a spec under `tests/data/specs`."""
    return (DATA / "specs" / f"{name}.arch").read_text(encoding="utf-8")
