"""Lifting: sums whose type is not that of what is summed, and sums of products."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec


class Sums(torch.nn.Module):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (lambda x: x.sum(-1, dtype=torch.int64), "int(x) |> sum(axis = -1)"),
        (lambda x: x.cumsum(-1, dtype=torch.int64), "int(x) |> cumsum(axis = -1)"),
        (lambda x: x.long().cumsum(1, dtype=torch.float32), "|> int\n    |> cumsum(axis = 1)\n    |> real"),
    ],
)
def test_what_is_summed_is_converted_before_if_it_is_rounded(function: Any, line: str) -> None:
    text = archspec.lift(Sums(function).eval(), (torch.randn(3, 4),))
    assert line in text


class Expected(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bins = torch.nn.Parameter(torch.randn(5))

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.linear(x.softmax(-1), self.bins)


def test_a_product_with_one_row_has_no_axis_for_it() -> None:
    text = archspec.lift(Expected().eval(), (torch.randn(3, 7, 5),))
    assert "(x [batch, seq, 5]) -> [batch, seq]" in text
