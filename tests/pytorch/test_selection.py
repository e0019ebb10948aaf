"""Rows that a mask selects and that are put back: the program takes all rows, unless one depends on others."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphs import traced

from archspec.pytorch.passes.selection import rewrite_row_selection
from archspec.pytorch.values.arguments import UntranslatableError


def program_of(function: Callable[..., Any]) -> Any:
    x, mask, weight, bias = torch.randn(2, 5, 4), torch.rand(2, 5) > 0.5, torch.randn(4, 4), torch.randn(4)

    def called(x: Any, mask: Any, weight: Any, bias: Any) -> Any:
        return function(lambda rows: torch.nn.functional.linear(rows, weight, bias), x, mask)

    return traced(called, x, mask, weight, bias, symbolic=True, composite=True)


def put(x: Any, mask: Any, rows: Any) -> Any:
    return x.masked_scatter(mask.unsqueeze(-1), rows)


@pytest.mark.parametrize(
    "function",
    [
        lambda layer, x, mask: put(x, mask, layer(x[mask]).relu() * 2),
        lambda layer, x, mask: put(x, mask, layer(x[mask]).softmax(-1)),
        lambda layer, x, mask: torch.index_put(x, (mask,), layer(x[mask])),
        lambda layer, x, mask: put(x, mask, torch.cat(x[mask].split(2, dim=1)[::-1], dim=1)),
        lambda layer, x, mask: put(x, mask, 2.0 ** x[mask]),
    ],
)
def test_what_is_computed_of_each_row_is_computed_of_all(function: Callable[..., Any]) -> None:
    program = program_of(function)
    assert len(rewrite_row_selection(program)) == 1
    assert "where" in str(program.graph)
    assert "masked_scatter" not in str(program.graph)


@pytest.mark.parametrize(
    "function",
    [
        lambda layer, x, mask: put(x, mask, x[mask] - x[mask].mean(0)),
        lambda layer, x, mask: put(x, mask, x[mask].softmax(0)),
        lambda layer, x, mask: put(x, mask, x[mask].unsqueeze(-3).sum(1).expand(x[mask].shape[0], 4)),
        lambda layer, x, mask: put(x, mask, x[mask].flip(0)),
        lambda layer, x, mask: put(x, mask, x[mask].cumsum(0)),
        lambda layer, x, mask: put(x, mask, x[mask] + torch.arange(x[mask].shape[0]).unsqueeze(-1)),
        lambda layer, x, mask: x * x[mask].shape[0],
        lambda layer, x, mask: x[mask],
        lambda layer, x, mask: x + x[mask].sum(),
    ],
)
def test_what_depends_on_other_rows_is_refused(function: Callable[..., Any]) -> None:
    program = program_of(function)
    with pytest.raises(UntranslatableError, match="several rows"):
        rewrite_row_selection(program)


def test_equations_of_rows_are_refused() -> None:
    program = program_of(lambda layer, x, mask: put(x, mask, torch.einsum("ij,kj->ik", x[mask], layer(x[0]))))
    with pytest.raises(UntranslatableError, match="several rows"):
        rewrite_row_selection(program)
