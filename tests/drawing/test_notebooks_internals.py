"""Steps of the code that the tests of notebooks cannot reach through public names."""

import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from archspec.core.reports.html import render_html
from archspec.core.reports.page import Page
from archspec.core.reports.tables import Bar, Column, View, frame

HOSTILE = "<script>alert(1)</script>\"'&\x1b\u202e"


def test_text_in_html_is_inert() -> None:
    columns = [Column("name", HOSTILE, style="role"), Column("bar", "", fit="bar")]
    text = render_html(Page(HOSTILE, [View(columns, [{"name": HOSTILE, "bar": Bar(1, 2), "role": "norm"}]), HOSTILE]))
    root = ElementTree.fromstring(text)
    assert "script" not in {each.tag for each in root.iter()} and "\x1b" not in text and "\u202e" not in text
    assert "".join(root.itertext()).count("alert(1)") == 4


def test_columns_of_data_frames_have_the_type_of_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for pandas, which shows the types that its columns are given."""
    types = SimpleNamespace(Series=lambda cells, dtype: dtype, DataFrame=lambda columns: columns)
    monkeypatch.setitem(sys.modules, "pandas", types)
    columns = {
        "int64": [1, 2],
        "Int64": [1, None],
        "bool": [True, False],
        "boolean": [None, True],
        "float64": [0.5, None],
        object: [1, 0.5, "a"],
    }
    large, absent = [1, 2**63], [None, None]
    mixed = [(object, [True, "a"]), (object, [1, "a"]), (object, [0.5, "a"]), (object, []), ("int64", [1 - 2**63])]
    for expected, cells in [*columns.items(), (object, large), (object, absent), *mixed, ("int64", [2**63 - 1])]:
        rows = [{"cell": cell} for cell in cells]
        assert frame(View([Column("cell", "Cell")], rows)) == {"cell": expected}
