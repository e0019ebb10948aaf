"""Evaluation in float64: products are computed without large values in between, and what is forgotten is cheap."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from small import load
from torch.utils._python_dispatch import TorchDispatchMode

from archspec.ir.normal.arrays import Arrays
from archspec.pipeline.model import get_compilation
from archspec.pytorch.numeric import evaluate
from archspec.pytorch.numeric.contraction import contract
from archspec.pytorch.numeric.evaluate import EvaluationError, Values
from archspec.pytorch.prove.numeric import array_runner
from archspec.pytorch.prove.sides import model_outputs


class Largest(TorchDispatchMode):
    """Records the most elements of any value."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.elements = max(self.elements, found.numel())
        return found


def test_factors_with_the_same_indices_are_multiplied_before_a_small_weight() -> None:
    # as in `(silu(gate(x)) * up(x)) @ weight`, where the weight has the fewest elements
    gate, up, weight = (torch.randn(shape, dtype=torch.float64) for shape in [(50, 12), (50, 12), (10, 12)])
    with Largest() as largest:
        found = contract([(weight, [1, 2]), (gate, [0, 2]), (up, [0, 2])], [0, 1])
    assert torch.allclose(found, (gate * up) @ weight.T)
    assert largest.elements == 50 * 12


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_products_of_any_number_of_factors(count: int) -> None:
    sizes, all_indices = (3, 4, 5, 2), [[0, 2], [1, 2, 3], [0, 1], [3], [0, 2, 3]]
    operands = [(torch.randn([sizes[i] for i in own], dtype=torch.float64), own) for own in all_indices[:count]]
    kept = [i for i in (0, 1) if any(i in own for own in all_indices[:count])]
    letters = ["".join("abcd"[i] for i in own) for _, own in operands]
    expected = torch.einsum(f"{','.join(letters)}->{''.join('abcd'[i] for i in kept)}", *[a for a, _ in operands])
    assert torch.allclose(contract(operands, kept), expected)


def test_reductions_are_kept_longer_than_other_values_of_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "MAX_TOTAL_BYTES", 3_000)
    values = Values(None)
    for element in range(4):
        value = values.counted(torch.zeros(100, dtype=torch.float64))
        values.keep(element, value, is_reduction=element == 0)
    assert [element for element in range(4) if values.get(element) is not None] == [0, 3]


def test_the_largest_values_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "MAX_TOTAL_BYTES", 4_800)
    values = Values(None)
    for element, count in enumerate([200, 40, 60, 100, 200]):
        value = values.counted(torch.zeros(count, dtype=torch.float64))
        values.keep(element, value, is_reduction=element == 0)
    whole = values.get(0)
    assert whole is not None and all(values.get(element) is not None for element in range(5))
    values.keep(5, whole[:3])  # a part of a reduction
    values.keep(6, values.counted(torch.zeros(100, dtype=torch.float64)))
    assert [element for element in range(7) if values.get(element) is not None] == [0, 1, 2, 5, 6]


def test_evaluation_ends_after_so_many_bytes() -> None:
    values = Values(800)
    whole = values.counted(torch.zeros(100, dtype=torch.float64))
    values.counted(whole[:50])
    with pytest.raises(EvaluationError, match="take too long to compute"):
        values.counted(torch.zeros(1))


def test_vectors_are_summed_before_they_are_multiplied() -> None:
    operands = [(torch.ones(size, dtype=torch.float64), [place]) for place, size in enumerate((50, 60, 70))]
    with Largest() as largest:
        found = contract(operands, [])
    assert found.item() == 50 * 60 * 70 and largest.elements <= 70


@pytest.mark.parametrize(
    "value", ["relu(row * x)", "where(row > x, row, x)", "cumsum(axis = 0)(where(row > x, row, 0))", "real(row > x)"]
)
def test_values_that_need_too_much_memory_are_not_computed(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "import std { relu }\ndim seq\nblock Net()(x [seq]) -> [seq, seq] {\n  row = reshape([seq, 1])(x)"
    body = get_compilation(load(f"{head}\n  return {value}\n}}")).body
    arrays = Arrays()
    run = array_runner(arrays, model_outputs(arrays, body))
    values = {("input", "x"): torch.randn(20, dtype=torch.float64)}
    (expected,) = run(values, {"seq": 20})
    assert expected.shape == (20, 20)
    monkeypatch.setattr(evaluate, "MAX_BYTES", 20 * 20 - 1)
    with Largest() as largest, pytest.raises(EvaluationError, match="need too much memory"):
        run(values, {"seq": 20})
    assert largest.elements <= 20
