"""Answers of the language server: the files under `tests/golden/language_server/cases` with requests and answers."""

from collections.abc import Callable
from pathlib import Path

import cases
import editor
import pytest
from paths import GOLDEN

FOLDER = "language_server/cases"


@pytest.mark.parametrize("name", [path.stem for path in sorted((GOLDEN / FOLDER).glob("*.txt"))])
def test_answers(name: str, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    client = editor.Editor()
    client.start(tmp_path)
    text = (GOLDEN / FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    shown = ""
    for number, case in enumerate(cases.read(text)):
        folder = tmp_path / str(number)
        folder.mkdir()
        shown += editor.show_case(client, folder, case)
    client.stop()
    golden(f"{FOLDER}/{name}.txt", shown)
