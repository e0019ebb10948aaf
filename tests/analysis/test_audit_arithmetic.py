"""Arithmetic in audits: its values, and where it stops."""

from fractions import Fraction

import pytest

from archspec import ArchError, Source, Span
from archspec.analysis.audit.arithmetic import read_arithmetic
from archspec.analysis.audit.nodes import Text
from archspec.core.diagnostics import Report


def value(text: str) -> Fraction:
    quoted = f"'{text}'"
    found = read_arithmetic(Text(Span(Source("a", quoted), 0, len(quoted)), text), Report())
    assert found is not None
    return found.evaluate(lambda name: Fraction({"h": 768, "k": 3}[name.text]), lambda line: Fraction(len(line)))


@pytest.mark.parametrize(
    ("text", "marked", "message"),
    [
        ("1 + 2 ** 256", "2 ** 256", "this number is too large to compute"),
        ("1 + 1 ** 257", "1 ** 257", "this number is too large to compute"),
        ("1 / 2 ** 255 / 2", "1 / 2 ** 255 / 2", "this number is too large to compute"),
        ("k + 2 ** -1", "2 ** -1", "expected a non-negative integer exponent of `**`"),
        ("k + 2 ** 0.5", "2 ** 0.5", "expected a non-negative integer exponent of `**`"),
        ("k / (h - h)", "k / (h - h)", "division by zero"),
        ("k // (h - h)", "k // (h - h)", "division by zero"),
    ],
)
def test_what_has_no_value_is_refused_where_it_stands(text: str, marked: str, message: str) -> None:
    with pytest.raises(ArchError) as caught:
        value(text)
    (found,) = caught.value.diagnostics
    assert found.message == message and found.span is not None
    assert found.span.source.text[found.span.start : found.span.end] == marked
