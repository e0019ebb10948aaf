"""Edits that import a name from a bundled file, as completions and quick fixes of editors do."""

import pytest

from archspec import Source
from archspec.app.lsp.edits import apply_edits, import_edit
from archspec.core.diagnostics import Report
from archspec.language.syntax.parse import parse

BLOCK = "block A()(x []) -> [] { return x }\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "import std { Linear }\n\n"),
        (BLOCK, f"import std {{ Linear }}\n\n{BLOCK}"),
        (f"## About it.\n{BLOCK}", f"import std {{ Linear }}\n\n## About it.\n{BLOCK}"),
        (f"import std {{ relu }}\n{BLOCK}", f"import std {{ relu, Linear }}\n{BLOCK}"),
        ("import other { B }\n", "import other { B }\nimport std { Linear }\n"),
    ],
)
def test_a_name_is_imported_where_imports_are(text: str, expected: str) -> None:
    file = parse(Source("it.arch", text), Report())
    assert apply_edits(text, [import_edit(file, text, "Linear")]) == expected
