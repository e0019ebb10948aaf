"""`--rename OLD=NEW`: what the patterns mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archspec import ArchError, Rename
from archspec.analysis.verify.naming import parse_rename


@pytest.mark.parametrize(
    ("old", "new", "name", "expected"),
    [
        ("a.b", "c", "a.b", "c"),
        ("a.b", "c", "a.b.c", None),
        ("model.*", "*", "model.x.y", "x.y"),
        ("*.gamma", "*.weight", "a.b.gamma", "a.b.weight"),
        ("h.*.attn.*", "layer.*.attention.*", "h.11.attn.q.w", "layer.11.attention.q.w"),
        ("*.a.*", "*-*", "x.a.y.a.z", "x-y.a.z"),
        ("*", "x.*", "a", "x.a"),
        ("*.*", "*/*", "a.b.c", "a/b.c"),
        ("ab*ba", "*", "aba", None),
        ("ab*ba", "*", "abba", ""),
        ("a*b*c", "*.*", "a1b2b3c", "1.2b3"),
        ("a*b*c", "*.*", "a1c", None),
    ],
)
def test_renaming(old: str, new: str, name: str, expected: str | None) -> None:
    assert Rename(old, new).apply(name) == expected


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("x", ""), ("a.*", "b"), ("a", "b.*"), ("*.*", "*")])
def test_what_is_no_renaming(old: str, new: str) -> None:
    with pytest.raises(ArchError, match=r"error\[usage\]"):
        parse_rename(old, new)


TEXT = st.text("ab.", max_size=6)


@given(st.lists(TEXT, min_size=1, max_size=4), st.lists(TEXT, min_size=4, max_size=4))
def test_a_name_made_of_a_pattern_is_matched(pieces: list[str], put: list[str]) -> None:
    name = "".join(part for pair in zip(pieces, [*put[: len(pieces) - 1], ""], strict=True) for part in pair)
    pattern = Rename("*".join(pieces), "*".join(pieces))
    assert pattern.apply(name) == name
    marked = Rename("*".join(pieces), "#".join(["*"] * (len(pieces) - 1) or ["x"])).apply(name)
    assert marked is not None
    assert marked == "x" or len(marked.replace("#", "")) == len(name) - sum(map(len, pieces))
