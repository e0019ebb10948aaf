"""Verdicts, sizes and values of comparisons with modules, one step at a time."""

from typing import Any

import numpy as np
import pytest
from paths import read_spec
from small import load

torch = pytest.importorskip("torch")


from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.deep_stack import run_with_deep_stack
from archspec.ir.ops import OPS
from archspec.pipeline.model import get_compilation
from archspec.pytorch.numeric.constants import are_same
from archspec.pytorch.numeric.evaluate import Evaluation, EvaluationError
from archspec.pytorch.prove import api, sides
from archspec.pytorch.prove.numeric import FLOAT32_TOLERANCE, RELATIVE_TOLERANCE, largest_error
from archspec.pytorch.values.arguments import UntranslatableError

DOUBLED = """
dim batch, seq
block Net()(x [batch, seq]) -> [batch, seq] {
  return x * 2.0
}
"""


class Doubled(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 2.0


@pytest.mark.parametrize(
    ("error", "verdict", "reason"),
    [
        (None, "not proven", "it draws; outputs of models with more than 20,000,000 parameters are not compared"),
        (RELATIVE_TOLERANCE, "outputs equal", "it draws"),
        (RELATIVE_TOLERANCE * 2, "not proven",
         f"it draws; the outputs differ by {RELATIVE_TOLERANCE * 2:.1g} in float64, "
         "which may be rounding to float32"),
        (FLOAT32_TOLERANCE, "not proven", f"it draws; the outputs differ by {FLOAT32_TOLERANCE:.1g} in float64, "
         "which may be rounding to float32"),
        (FLOAT32_TOLERANCE * 2, "different", "it draws"),
    ],
)  # fmt: skip
def test_verdicts_depend_on_the_difference(
    monkeypatch: pytest.MonkeyPatch, error: float | None, verdict: str, reason: str
) -> None:
    def refuse(*_: object) -> list[Array]:
        raise UntranslatableError("it draws")

    monkeypatch.setattr(api, "module_outputs", refuse)
    monkeypatch.setattr(api, "largest_error", lambda *_: error)
    found = api.equivalent(load(DOUBLED), Doubled())
    assert (found.verdict, found.reason, found.error) == (verdict, reason, error)


def test_what_cannot_be_run_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> float:
        raise EvaluationError("it needs too much memory")

    monkeypatch.setattr(api, "largest_error", refuse)
    found = api.equivalent(load(DOUBLED.replace("2.0", "3.0")), Doubled())
    reason = "the normal forms differ; the two cannot be run in float64 to compare"
    assert (found.verdict, found.reason, found.error) == ("not proven", reason, None)


def test_models_without_a_normal_form_are_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> list[Array]:
        raise OverflowError("more than 5 expressions")

    monkeypatch.setattr(api, "model_outputs", refuse)
    model = load(DOUBLED)
    for other in (Doubled(), model):
        found = api.equivalent(model, other)
        assert found.verdict == "not proven" and found.reason == "there is no normal form: more than 5 expressions"


@pytest.mark.parametrize(
    ("values", "constant", "expected"),
    [
        (torch.tensor([3, 5]), torch.tensor([3, 5], dtype=torch.int32), True),
        (torch.tensor([3, 261]), torch.tensor([3, 5], dtype=torch.int8), False),
        (torch.tensor([10**9]), torch.tensor([10**9 + 1]), False),
        (torch.tensor([True, False]), torch.tensor([True, False]), True),
        (torch.tensor([True, False]), torch.tensor([True, True]), False),
        (torch.tensor([1 / 3], dtype=torch.float64), torch.tensor([1 / 3], dtype=torch.bfloat16), True),
        (torch.tensor([1e-50, 1.0], dtype=torch.float64), torch.tensor([0.0, 1.0]), False),
        (torch.tensor([0.0, 1.0], dtype=torch.float64), torch.tensor([0.0, 1.0]), True),
        (torch.tensor([1e39], dtype=torch.float64), torch.tensor([torch.inf]), False),
        (torch.tensor([-torch.inf], dtype=torch.float64), torch.tensor([-torch.inf]), True),
        (torch.tensor([torch.nan], dtype=torch.float64), torch.tensor([torch.nan]), False),
        (torch.tensor([1e-6, 1e6], dtype=torch.float64), torch.tensor([1.00001e-6, 1e6]), False),
    ],
)
def test_constants_are_the_same_element_by_element(values: Any, constant: Any, expected: bool) -> None:
    assert are_same(values, constant) == expected


def test_example_sizes_are_large_enough_and_different() -> None:
    body = get_compilation(
        load("""
dim a, b, c
block Net()(x [a], y [b, c]) -> (p [a - 7], q [b - 6]) {
  return slice(axis = 0, start = 7)(x), slice(axis = 0, start = 6)(sum(axis = 1)(y))
}
""")
    ).body
    sizes = sides.example_sizes(body)
    assert sides.are_possible(sizes, body, 2) and len({*sizes.values()}) == 3
    assert sizes == {"a": 12, "b": 10, "c": 7}
    assert sides.example_sizes(body, 4) == {"a": 16, "b": 24, "c": 8}


def test_errors_of_deep_computations_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def depth(n: int) -> int:
        return 1 + depth(n - 1) if n else 0

    assert run_with_deep_stack(lambda: depth(20_000)) == 20_000
    with pytest.raises(ZeroDivisionError):
        run_with_deep_stack(lambda: 1 // 0)
    monkeypatch.setattr("sys.platform", "emscripten")
    monkeypatch.setattr("threading.Thread", None)
    assert run_with_deep_stack(lambda: 3) == 3


def test_loops_do_not_depend_on_their_own_iterations() -> None:
    arrays = Arrays()
    x = arrays.stored("input", "x", (2,), "real")
    before = arrays.stored("carried", (0, 0), (2,), "real")
    after = arrays.array((2,), arrays.elements.combination([(2.0, before.element)], 1.0))
    (last,) = arrays.loop((0, (), 0, 3), [x, after], [((2,), "real")])
    evaluation = Evaluation(arrays, {("input", "x"): torch.tensor([1.0, -2.0])}, {})
    assert evaluation.array(last).tolist() == [15.0, -9.0]
    assert evaluation.depths(after.element) == {0} and evaluation.depths(last.element) == frozenset()
    assert "unheard" not in OPS


NESTED = read_spec("compare_modules_nested")


def test_loops_in_loops_are_computed_in_each_iteration() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    arrays = Arrays()
    stored = {("input", "x"): torch.tensor(x)}
    evaluation = Evaluation(arrays, stored, {"batch": 2, "rows": 3, "columns": 4})
    ends, cells = [
        evaluation.array(array).numpy() for array in sides.model_outputs(arrays, get_compilation(load(NESTED)).body)
    ]
    totals = np.cumsum((x + x.sum(1, keepdims=True)).reshape(2, 12), 1)
    np.testing.assert_allclose(ends, totals[:, 3::4])
    np.testing.assert_allclose(cells, totals.reshape(2, 3, 4).transpose(1, 0, 2))


def test_outputs_are_compared_at_two_sizes() -> None:
    body = get_compilation(load("dim batch\nblock Net()(x [batch, 4]) -> [batch, 4] {\n  return exp(x)\n}\n")).body
    sizes: list[dict[str, int]] = []

    def error(a: list[complex], b: list[complex], **options: Any) -> float | None:
        def run(numbers: Any) -> Any:
            return lambda values, given: sizes.append({**given}) or [torch.tensor(numbers)]

        return largest_error(body, run(a), run(b), **options)

    nan, inf = float("nan"), float("inf")
    assert error([1.0, 2.0], [1.0, 2.5]) == pytest.approx(0.2)
    assert sizes == [{"batch": 3}, {"batch": 3}, {"batch": 4}, {"batch": 4}]
    sizes.clear()
    assert error([0.1, 0.2], [0.1, 0.1], fixed={"batch": 9}) == pytest.approx(0.1)
    assert sizes == [{"batch": 9}] * 2
    assert error([1.0, 2.0], [1.0, 2.0, 3.0]) == error([1.0], [1.0 + 0.0j]) == error([nan, 2.0], [1.0, 2.0]) == inf
    assert error([nan, 2.0], [nan, 2.0]) == error([nan, 2.0], [1.0, 2.0], all_numbers=False) == 0.0
    assert error([nan, 2.0], [nan, 4.0], all_numbers=False) == pytest.approx(0.5)


DRAWN = read_spec("compare_modules_drawn")


def test_outputs_without_a_number_are_not_compared() -> None:
    def run(values: Any, sizes: Any) -> list[Any]:
        return [torch.full((2,), float("nan"))]

    assert largest_error(get_compilation(load(DRAWN)).body, run, run) is None


def test_random_tensors_give_results_of_ordinary_size() -> None:
    drawn: list[Any] = []

    def run(values: Any, sizes: Any) -> list[Any]:
        drawn.append(values)
        return [torch.zeros(1)]

    assert largest_error(get_compilation(load(DRAWN)).body, run, run) == 0.0
    summands = {"matrix": 60, "window": 100, "image": 5 * 81, "experts": 20}
    for values, gain in ((drawn[0], 1.0), (drawn[2], 2.0)):
        for name, count in summands.items():
            assert float(values["tensor", name].std()) == pytest.approx(gain * count**-0.5, rel=0.08)
        assert float(values["tensor", "vector"].std()) == pytest.approx(0.5, rel=0.08)
        assert float(values["input", "x"].std()) == pytest.approx(1.0, rel=0.08)
        ids, is_hidden = values["input", "ids"], values["input", "is_hidden"]
        assert ids[:, 0].tolist() == [1] * len(ids) and {*ids.flatten().tolist()} == {0, 1}
        assert is_hidden.dtype == torch.bool and is_hidden[:, 0].all() and not is_hidden.all()
        assert values["input", "count"].dtype == torch.int64
