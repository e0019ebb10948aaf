"""Lifting: a wrong row in the table of PyTorch's calls makes a refusal, and no wrong spec."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec.pytorch.calls.registry import CALLS


class Net(torch.nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        return x.relu() + y


def failing(*_: object) -> None:
    raise ZeroDivisionError


DIFFERENT = "its computation differs from its program by"
ROWS: dict[str, tuple[Callable[..., Any], str]] = {
    "another function": (lambda b, types, x: b.op("neg", x), DIFFERENT),
    "another type": (lambda b, types, x: b.op("gt", x, 0.0), DIFFERENT),
    "another shape": (lambda b, types, x: b.reshape(x, (-1,)), "as it is used here|with these arguments"),
    "an error": (failing, r"`aten.relu` has no normal form with these arguments, in .*test_wrong_rows.py:\d+"),
}


@pytest.mark.parametrize("name", ROWS)
def test_no_row_is_trusted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row, reason = ROWS[name]
    monkeypatch.setitem(CALLS, "relu", row)
    with pytest.raises(archspec.ArchError, match=reason):
        archspec.lift(Net().eval(), (torch.randn(2, 5, 8), torch.randn(2, 5, 8)))
