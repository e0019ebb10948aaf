"""Lifting: what calls of a module show, and what later ones may not change."""

import math
import random
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor

import archspec
from archspec.pytorch.lift.signatures import Argument, record_signatures
from archspec.pytorch.lift.values.source_names import _statements
from archspec.pytorch.prove.state import check_repeatable
from archspec.pytorch.run import calling
from archspec.pytorch.run.calling import call_module
from archspec.pytorch.values.arguments import UntranslatableError

nn = torch.nn


class Calling(nn.Module):
    """A function of one tensor, and a parameter."""

    def __init__(self, function: Callable[[Any, Any], Any], size: int = 4) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


# Calls without values -------------------------------------------------------------------------------------------------


def shaped(module: nn.Module, x: Any) -> bool:
    """Whether the outputs of a call have shapes alone."""
    found = call_module(module, {"x": x})
    assert isinstance(found, torch.Tensor) and found.shape == x.shape
    return isinstance(found, FakeTensor)


def test_large_modules_and_inputs_are_called_for_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "MAX_ELEMENTS", 4)
    monkeypatch.setattr(calling, "MAX_INPUTS", 12)
    plain, large = (Calling(lambda self, x: x * self.weight.sum(), size) for size in (4, 5))
    assert not shaped(plain, torch.ones(3, 4)) and shaped(plain, torch.ones(13)) and shaped(large, torch.ones(3, 4))


def test_large_modules_that_read_values_are_run_unless_they_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    def reads(self: Any, x: Any) -> Any:
        return x * 2 if float(x.sum()) > 0 else x

    def skips(self: Any, x: Any) -> Any:
        return x if isinstance(x, FakeTensor) else reads(self, x * self.weight.sum())

    monkeypatch.setattr(calling, "MAX_ELEMENTS", 4)
    monkeypatch.setattr(calling, "MAX_FILLED", 8)
    x = torch.ones(3)
    assert not shaped(Calling(reads, 8), x) and shaped(Calling(skips, 9), x)
    with pytest.raises(DataDependentOutputException):
        call_module(Calling(reads, 9), {"x": x})
    assert not shaped(Calling(reads, 4), x)


# Calls one after the other --------------------------------------------------------------------------------------------


class Slotted:
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def counting(number: int) -> Callable[[], int]:
    def found() -> int:
        return number

    return found


VALUES: list[tuple[Any, Any, bool]] = [
    (1, 1, True),
    (1, 2, False),
    (math.nan, math.nan, True),
    ([1, {"a": 2}], [1, {"a": 2}], True),
    ([1, {"a": 2}], [1, {"a": 3}], False),
    ([1], [1, 1], False),
    ({"a": 1}, {"b": 1}, False),
    (torch.ones(2), torch.ones(2), True),
    (torch.ones(2), torch.ones(2) * 2, False),
    (torch.ones(2), torch.ones(3), False),
    (torch.ones(2), torch.ones(2, dtype=torch.float64), False),
    (torch.ones(2), None, False),
    (torch.ones(2, device="meta"), torch.ones(2, device="meta"), True),
    (torch.tensor([math.nan]), torch.tensor([math.nan]), True),
    (torch.arange(2), torch.arange(2) + 1, False),
    (torch.empty(0), torch.empty(0), True),
    (SimpleNamespace(a=1), SimpleNamespace(a=1), True),
    (SimpleNamespace(a=1), SimpleNamespace(a=2), False),
    ({1, 2}, {2, 1}, True),
    ({1, 2}, {1, 3}, False),
    (deque([1, 2]), deque([1, 3]), False),
    (iter([1, 2]), iter([1, 2]), True),
    (count(1), count(2), False),
    (random.Random(1), random.Random(2), False),
    ((1, [2]), (1, [3]), False),
    (Slotted(1), Slotted(1), True),
    (Slotted(1), Slotted(2), False),
    (counting(1), counting(2), False),
    (partial(max, 1), partial(max, 2), False),
]


CALLS = [0]
"""How often modules were called: a global variable is not seen."""


@pytest.mark.parametrize("turn", range(len(VALUES)))
def test_what_a_module_keeps_is_the_same_after_each_call(turn: int) -> None:
    first, _, is_same = VALUES[turn]
    CALLS[0] = 0

    def keeps(self: Any, x: Any) -> Any:
        CALLS[0] += 1
        if CALLS[0] > 3:  # after one call with each size
            self.kept = VALUES[turn][1]
        return x

    module = Calling(keeps).eval()
    module.kept = first
    if is_same:
        check_repeatable(module, {"x": torch.ones(3)}, {"x": torch.ones(4)})
    else:
        with pytest.raises(UntranslatableError, match=r"^a call changes its attribute `kept`$"):
            check_repeatable(module, {"x": torch.ones(3)}, {"x": torch.ones(4)})
    assert CALLS[0] == 7


@pytest.mark.parametrize("changed", range(1, 8))
def test_outputs_are_the_same_for_each_call(changed: int) -> None:
    CALLS[0] = 0

    def counts(self: Any, x: Any) -> Any:
        CALLS[0] += 1
        return x + 1 if CALLS[0] == changed else x

    module = Calling(counts).eval()
    if changed == 2:  # the first call, whose outputs are compared with those of no copy
        check_repeatable(module, {"x": torch.ones(3)}, {"x": torch.ones(4)})
    else:
        with pytest.raises(UntranslatableError, match=r"^it is (stateful|random): "):
            check_repeatable(module, {"x": torch.ones(3)}, {"x": torch.ones(4)})


# Arguments and names --------------------------------------------------------------------------------------------------


class Inner(nn.Module):
    def forward(self, parts: Any, scale: Any = 2, mask: Any = None) -> Any:
        return parts[0] * scale + parts[1][0]


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: Any) -> Any:
        return self.inner([x, (x[0],)], mask=x > 0)


def test_arguments_in_lists_are_one_by_one() -> None:
    found = record_signatures(Outer().eval(), {"x": torch.ones(3, 5)}).arguments
    assert found["inner"] == [
        Argument("parts", (3, 5), "real"),
        Argument("parts", (5,), "real"),
        Argument("mask", (3, 5), "bool"),
    ]
    assert found[""] == [Argument("x", (3, 5), "real")]


def test_a_module_that_cannot_be_called_is_refused() -> None:
    module = Outer().eval()
    with pytest.raises(UntranslatableError, match=r"^calling it fails: "):
        record_signatures(module, {"x": torch.ones(())})
    assert not module._forward_pre_hooks and not module.inner._forward_pre_hooks


class Cast(nn.Module):
    """A function with a type of its own, for which PyTorch generates code."""

    @torch.autocast("cuda", enabled=False)
    def halves(self, x: Any) -> Any:
        low, high = x[..., :4], x[..., 4:]
        return low.tanh() * high + low

    def forward(self, x: Any) -> Any:
        return self.halves(x)


def test_names_in_code_that_pytorch_generates_are_no_names() -> None:
    assert "slice_" not in archspec.lift(Cast().eval(), {"x": torch.ones(2, 8)})


def test_lines_that_are_no_python_give_no_names(tmp_path: Any) -> None:
    path = tmp_path / "it.py"
    path.write_text("a = 1\nb, c = 2, 3\nd = 4; e = 5\nf.x = 6\n")
    assert _statements(str(path)) == {1: ["a"], 2: ["b", "c"], 3: [], 4: []}
    path = tmp_path / "other.py"
    path.write_text("a = 1\nif\n")
    assert _statements(str(path)) == {}
