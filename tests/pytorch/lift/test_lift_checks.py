"""Lifting: a spec is refused unless it is compared with its module and computes the same."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec.pipeline.model import get_compilation
from archspec.pytorch.lift import check
from archspec.pytorch.lift.check import (
    FLOAT32_TOLERANCE,
    ITERATIONS,
    ComparisonError,
    TooLargeToRunError,
    UndecidedError,
)
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.numeric.evaluate import EvaluationError
from archspec.pytorch.prove.numeric import RELATIVE_TOLERANCE
from archspec.pytorch.values.arguments import UntranslatableError

nn = torch.nn

SPEC = """
dim batch, seq
layer Net(width)(x [batch, seq, width]) -> [batch, seq, width] {
  weight: param [width]
  return x * .weight
}
model "net" = Net(8)
"""


class Net(nn.Module):
    def __init__(self, width: int = 8, function: Callable[[Any], Any] = lambda x: x) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x * self.weight)


def subject(module: Any, **others: Any) -> Subject:
    width = len(module.weight)
    return Subject(module.eval(), {"x": torch.ones(3, 5, width)}, {"x": torch.ones(2, 7, width)}, **others)


def test_modules_that_are_too_large_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "MAX_ELEMENTS", 8)
    check.check_size(Net(8))
    with pytest.raises(TooLargeToRunError, match=r"^it is too large to compare outputs$"):
        check.check_size(Net(9))


def test_a_spec_has_the_tensors_of_its_module() -> None:
    check.check_again(SPEC, {"width": 9}, subject(Net(9)))
    with pytest.raises(UntranslatableError, match=r"^its spec declares different tensors: .*weight"):
        check.check_again(SPEC, {}, subject(Net(9)))
    with pytest.raises(UntranslatableError, match=r"^its spec does not compile: "):
        check.check_again(SPEC, {"width": 0}, subject(Net(9)))


def test_outputs_of_another_module_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    check.check_outputs(SPEC, {"width": 9}, subject(Net(9)))
    check.check_outputs(SPEC, {}, subject(Net(8, lambda x: x * (1 + RELATIVE_TOLERANCE / 2))))
    with pytest.raises(UntranslatableError, match=r"^its spec declares different tensors: .*weight"):
        check.check_outputs(SPEC, {}, subject(Net(9)))
    other = subject(Net(8, lambda x: x + x.argmax()))
    with pytest.raises(UntranslatableError, match=r"^the outputs of its spec differ from its own by \d"):
        check.check_outputs(SPEC, {}, other)
    monkeypatch.setattr(check, "MAX_ELEMENTS", 7)
    for error in (None, IndexError("a place beyond a table")):
        monkeypatch.setattr(check, "largest_error", raising(error))
        check.check_outputs(SPEC, {}, other)


def raising(error: Exception | None) -> Callable[..., None]:
    def raise_error(*_: Any) -> None:
        if error is not None:
            raise error

    return raise_error


def test_a_module_without_a_normal_form_is_not_compared() -> None:
    check.check_unrounded(SPEC, {}, subject(Net()))
    with pytest.raises(ComparisonError, match=r"the operation `aten.argmax` has no normal form"):
        check.check_unrounded(SPEC, {}, subject(Net(8, lambda x: x + x.argmax())))


# Comparisons, whose results are given ---------------------------------------------------------------------------------


class Rounding(nn.Module):
    """A module that keeps a number that is rounded to float32."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(2), persistent=False)


Result = float | None | Exception


class Pair(SimpleNamespace):
    """Errors of a spec and its module by the sizes that they are run with, and those without rounding."""

    def error(self, fixed: Any = (), most: int = 0) -> float | None:
        return self._given("errors", dict(fixed))

    def unrounded_error(self, fixed: Any = ()) -> float | None:
        return self._given("unrounded", dict(fixed))

    def _given(self, name: str, sizes: dict[str, int]) -> float | None:
        self.sizes = [*vars(self).get("sizes", []), sizes]
        found = vars(self)[name]
        result = found(sizes) if callable(found) else found
        if isinstance(result, Exception):
            raise result
        return result


NOTHING = EvaluationError("it has no value")
BETWEEN = (RELATIVE_TOLERANCE + FLOAT32_TOLERANCE) / 2


@pytest.mark.parametrize(
    ("error", "unrounded", "expected", "reason"),
    [
        (0.0, 1.0, None, ""),
        (RELATIVE_TOLERANCE, 1.0, None, ""),
        (BETWEEN, RELATIVE_TOLERANCE, None, ""),
        (BETWEEN, None, None, ""),
        (BETWEEN, BETWEEN, UntranslatableError, "the outputs of its spec differ from its own by "),
        (2 * FLOAT32_TOLERANCE, RELATIVE_TOLERANCE, None, ""),
        (2 * FLOAT32_TOLERANCE, None, UntranslatableError, "the outputs of its spec differ from its own by 4e-06"),
        (2 * FLOAT32_TOLERANCE, BETWEEN, UntranslatableError, "the outputs of its spec differ from its own by 4e-06"),
        (2e-4, 0.0, UntranslatableError, "the outputs of its spec differ from its own by 0.0002"),
        (None, 0.0, UndecidedError, "its spec cannot be proven equal to it, and it is too large to compare outputs"),
        (NOTHING, 0.0, ComparisonError, "its spec cannot be compared with it: it has no value"),
    ],
)
def test_outputs_differ_by_rounding_at_most(error: Result, unrounded: Result, expected: Any, reason: str) -> None:
    pair: Any = Pair(module=nn.Identity(), errors=error, unrounded=unrounded)
    if expected is None:
        check._check_error(pair, FLOAT32_TOLERANCE)
        return
    with pytest.raises(UntranslatableError) as caught:
        check._check_error(pair, FLOAT32_TOLERANCE)
    assert type(caught.value) is expected and str(caught.value).startswith(reason)


def test_numbers_that_a_module_keeps_are_rounded() -> None:
    given: Any = {"errors": BETWEEN, "unrounded": BETWEEN}
    check._check_error(Pair(module=Rounding(), **given), FLOAT32_TOLERANCE)  # type: ignore[arg-type]
    with pytest.raises(UntranslatableError):
        check._check_error(Pair(module=nn.Identity(), **given), FLOAT32_TOLERANCE)  # type: ignore[arg-type]


def body(text: str) -> Any:
    return get_compilation(archspec.loads(text)).body


LOOP = """
dim batch, seq
layer Net(x [batch, seq, 8]) -> [batch, 8] {
  state = pick(axis = 1, index = 0)(x) * 0.0
  for t in 0..seq {
    state = state + pick(axis = 1, index = t)(x)
  }
  return state
}
model "net" = Net()
"""


def test_loops_over_a_length_are_run_several_times() -> None:
    loop = body(LOOP)

    def pair(**errors: Result) -> Any:
        return Pair(body=loop, errors=lambda sizes: errors.get(f"of_{sizes['seq']}", 0.0))

    assert [*ITERATIONS] == [1, 2, 4, 9]
    for given in (pair(), pair(of_1=NOTHING), pair(of_4=FLOAT32_TOLERANCE)):
        check._check_lengths(given)
        assert given.sizes == [{"seq": length} for length in ITERATIONS]
    for wrong in (pair(of_4=2 * FLOAT32_TOLERANCE), pair(of_4=None)):
        with pytest.raises(UntranslatableError, match=r"^its computation differs where `seq` is 4$"):
            check._check_lengths(wrong)
    with pytest.raises(UntranslatableError, match=r"^its spec cannot be compared with it: it has no value$"):
        check._check_lengths(pair(of_2=NOTHING))
    check._check_lengths(Pair(body=body(SPEC), errors=1.0))  # type: ignore[arg-type]


def test_multiples_of_a_number_are_also_compared_for_one() -> None:
    chunks = body(
        SPEC.replace("x [batch, seq, width]", "x [batch, 4 * seq, width]").replace(
            "-> [batch, seq", "-> [batch, 4 * seq"
        )
    )

    def pair(error: Result, of: Any = chunks) -> Any:
        return Pair(body=of, errors=error)

    for error in (0.0, FLOAT32_TOLERANCE, None, NOTHING):
        given = pair(error)
        check._check_single(given)
        assert given.sizes == [{"seq": 1}]
    with pytest.raises(UntranslatableError, match=r"^its computation differs where `seq` is 1$"):
        check._check_single(pair(2 * FLOAT32_TOLERANCE))
    check._check_single(pair(1.0, body(SPEC)))


def test_single_sizes_that_a_program_is_not_for_are_compared() -> None:
    def checked(error: Result, size: int = 4) -> list[dict[str, int]]:
        pair: Any = Pair(body=body(SPEC), errors=error)
        check._check_excluded(pair, {("seq", size)})
        return vars(pair).get("sizes", [])

    for error in (0.0, FLOAT32_TOLERANCE):
        assert checked(error) == [{"seq": 4}] and checked(error, check.MAX_TRIED_LENGTH) == [
            {"seq": check.MAX_TRIED_LENGTH}
        ]
    compared = "it has a branch for `seq == 4`, where its outputs cannot be compared: "
    differs = "it can only be exported where `seq != 4`$"
    for error, reason in ((2 * FLOAT32_TOLERANCE, differs), (None, differs), (NOTHING, compared)):
        with pytest.raises(UntranslatableError, match=f"^{reason}"):
            checked(error)
    with pytest.raises(
        UntranslatableError, match=f"^it can only be exported where `seq != {check.MAX_TRIED_LENGTH + 1}`$"
    ):
        checked(0.0, check.MAX_TRIED_LENGTH + 1)


def test_modules_are_also_run_where_each_size_is_1(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, int]] = []

    def run(errors: list[Result], **least: int) -> None:
        def found(of: Any, ours: Any, theirs: Any, sizes: dict[str, int], all_numbers: bool) -> float | None:
            seen.append(sizes)
            result = errors[len(seen) - 1]
            if isinstance(result, Exception):
                raise result
            return result

        seen.clear()
        monkeypatch.setattr(check, "largest_error", found)
        pair: Any = Pair(body=body(SPEC), runs=lambda: (None, None))
        captured: Any = SimpleNamespace(recording=SimpleNamespace(least=least))
        check._check_values(pair, captured)

    run([0.0, None, 0.0], seq=40, batch=1)
    assert seen[0]["seq"] == 40 and seen[0]["batch"] > 1
    assert seen[1:] == [{**seen[0], "batch": 1}, {**seen[0], "seq": 1}]
    with pytest.raises(UntranslatableError, match=r"^its computation differs from its program by 0\.5$"):
        run([0.5])
    with pytest.raises(UntranslatableError, match=r"^its computation differs where `seq` is 1$"):
        run([NOTHING, NOTHING, 0.5])


def test_longer_inputs_than_a_module_was_exported_for_are_compared() -> None:
    net = Net().eval()

    def checked(error: Result, unrounded: Result = 1.0, most: int = 40) -> list[dict[str, int]]:
        pair: Any = Pair(body=body(SPEC), module=net, unused={}, errors=error, unrounded=unrounded)
        captured: Any = SimpleNamespace(recording=SimpleNamespace(most={"seq": most}))
        check._check_longer(pair, captured)
        return vars(pair).get("sizes", [])

    for error in (0.0, FLOAT32_TOLERANCE, *[kind("nothing") for kind in (EvaluationError, IndexError, RuntimeError)]):
        assert checked(error) == [{"seq": 41}]
    assert checked(2 * FLOAT32_TOLERANCE, FLOAT32_TOLERANCE) == [{"seq": 41}, {"seq": 41}]
    for error, unrounded in (
        (2 * FLOAT32_TOLERANCE, 2 * FLOAT32_TOLERANCE),
        (2 * FLOAT32_TOLERANCE, None),
        (None, 0.0),
    ):
        with pytest.raises(UntranslatableError, match=r"^it can only be exported where `seq` is at most 40$"):
            checked(error, unrounded)
    assert checked(1.0, most=check.MAX_TRIED_LENGTH + 1) == []
    with pytest.raises(UntranslatableError, match=f"is at most {check.MAX_TRIED_LENGTH}$"):
        checked(1.0, most=check.MAX_TRIED_LENGTH)


# Optional masks -------------------------------------------------------------------------------------------------------


# Evidence -------------------------------------------------------------------------------------------------------------
