"""Definitions rule by rule: the specs under `tests/golden/specs` with their models or errors."""

from collections.abc import Callable

import cases
import pytest
from paths import GOLDEN


@pytest.mark.parametrize("name", [path.stem for path in sorted((GOLDEN / "specs").glob("*.txt"))])
def test_specs(name: str, golden: Callable[[str, str], None]) -> None:
    text = (GOLDEN / "specs" / f"{name}.txt").read_text(encoding="utf-8")
    golden(f"specs/{name}.txt", "".join(map(cases.show_case, cases.read(text))))
