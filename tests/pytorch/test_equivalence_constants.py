"""Comparisons of specs with modules that have, or compute, constants for which the spec has a formula."""

from typing import Any

import pytest
from small import load

torch = pytest.importorskip("torch")

from archspec import equivalent
from archspec.pytorch.prove import api

WINDOW = """
dim batch
block Net()(x [batch, 4, 4], ids int [batch, 16]) -> ([batch, 4, 4], int [batch, 16], [batch, 4, 4]) {
  i = arange(4)
  rows = reshape([4, 1])(i)
  return exp(x + where(rows // 2 == i // 2, 0.0, -7.5)), ids + reshape([16])((rows - i) * 2 + 6), x * sqrt(i + 2)
}
"""


class Window(torch.nn.Module):
    """A mask that is computed in the call, integers that are a buffer, and a constant rounded to float32."""

    def __init__(self, score: float, least: int, scale: float) -> None:
        super().__init__()
        self.score = score
        places = torch.arange(4)
        self.places = torch.nn.Buffer((places[:, None] - places) * 2 + least, persistent=False)
        self.scale = torch.nn.Buffer((torch.arange(4) + scale).sqrt(), persistent=False)

    def forward(self, x: Any, ids: Any) -> Any:
        region = torch.zeros(4)
        region[2:] += 1
        mask = (region[:, None] - region).masked_fill(region[:, None] != region, self.score)
        return (x + mask).exp(), ids + self.places.view(-1), x * self.scale


@pytest.fixture(autouse=True)
def nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "largest_error", lambda *_, **__: None)


def test_constants_of_modules_have_the_formulas_of_the_spec() -> None:
    assert equivalent(load(WINDOW), Window(-7.5, 6, 2.0)).verdict == "equal"


@pytest.mark.parametrize("numbers", [(-7.25, 6, 2.0), (-7.5, 7, 2.0), (-7.5, 6, 2.001)])
def test_constants_with_other_values_do_not(numbers: tuple[float, int, float]) -> None:
    assert equivalent(load(WINDOW), Window(*numbers)).verdict == "not proven"
