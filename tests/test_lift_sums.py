"""Lifting: sums whose type is not that of what is summed."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec  # noqa: E402


class Sums(torch.nn.Module):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


@pytest.mark.slow
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
