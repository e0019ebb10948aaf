"""Folders that tests read: the repository, its specs, and the data of tests."""

from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
SPECS = ROOT / "specs"
DATA = TESTS / "data"
GOLDEN = TESTS / "golden"
ORACLE = TESTS / "oracle"
