"""Triangular systems that modules solve at once, or row by row in place."""

from collections.abc import Callable
from typing import Any

import pytest

import archspec

torch = pytest.importorskip("torch")

from torch import nn

CHUNK = 4


def lower(a: Any) -> Any:
    return -a.tril(-1)


def masked(a: Any) -> Any:
    return (-a).masked_fill(torch.triu(torch.ones(CHUNK, CHUNK, dtype=torch.bool)), 0)


def whole(a: Any) -> Any:
    return a / 16


def rows_above(a: Any, i: int) -> Any:
    row = a[..., i, :i].clone()
    return row + (row.unsqueeze(-1) * a[..., :i, :i].clone()).sum(-2)


def rows_below(a: Any, i: int) -> Any:
    row = a[..., i, :i].clone()
    return row - (row.unsqueeze(-1) * a[..., :i, :i].clone()).sum(-2)


def shifted_rows(a: Any, i: int) -> Any:
    row = a[..., i, :i].clone()
    return row + (row.unsqueeze(-1) * a[..., 1 : i + 1, :i].clone()).sum(-2)


class Delta(nn.Module):
    """Chunks of a delta rule, without a state that they carry."""

    def __init__(self, begin: Callable[[Any], Any], step: Callable[[Any, int], Any], identity: float = 1.0) -> None:
        super().__init__()
        self.k = nn.Linear(6, 6)
        self.v = nn.Linear(6, 6)
        self.begin, self.step, self.identity = begin, step, identity

    def forward(self, x: Any) -> Any:
        batch, _, width = x.shape
        k, v = self.k(x).view(batch, -1, CHUNK, width), self.v(x).view(batch, -1, CHUNK, width)
        a = self.begin(k @ k.transpose(-1, -2))
        for i in range(1, CHUNK):
            a[..., i, :i] = self.step(a, i)
        a = a + self.identity * torch.eye(CHUNK) if self.identity != 1.0 else a + torch.eye(CHUNK)
        return (a @ v).reshape(batch, -1, width)


@pytest.mark.parametrize("begin", [lower, pytest.param(masked, marks=pytest.mark.slow)])
def test_rows_that_are_solved_one_by_one_are_solved_at_once(begin: Callable[[Any], Any]) -> None:
    module = Delta(begin, rows_above).eval()
    text = archspec.lift(module, (torch.zeros(2, 2 * CHUNK, 6),))
    assert text.count("forward_substitution(") == 1
    assert archspec.equivalent(archspec.loads(text), module).verdict == "equal"


@pytest.mark.slow
def test_the_inverse_of_a_system_is_what_the_identity_is_added_to() -> None:
    text = archspec.lift(Delta(lower, rows_above).eval(), (torch.zeros(2, 2 * CHUNK, 6),))
    (solved,) = [line for line in text.splitlines() if "forward_substitution(" in line]
    assert " - " not in solved and " + " not in solved
    text = archspec.lift(Delta(lower, rows_above, 0.5).eval(), (torch.zeros(2, 2 * CHUNK, 6),))
    assert "0.5" in text


@pytest.mark.slow
@pytest.mark.parametrize(("begin", "step"), [(lower, shifted_rows), (lower, rows_below), (whole, rows_above)])
def test_other_changes_of_rows_are_not_taken_for_a_system(begin: Any, step: Callable[[Any, int], Any]) -> None:
    module = Delta(begin, step).eval()
    try:
        text = archspec.lift(module, (torch.zeros(2, 2 * CHUNK, 6),))
    except archspec.ArchError:
        return
    assert "forward_substitution" not in text
    assert archspec.equivalent(archspec.loads(text), module).verdict in ("equal", "outputs equal")


class Solved(nn.Module):
    def __init__(self, **settings: bool) -> None:
        super().__init__()
        self.k = nn.Linear(6, 6)
        self.settings = settings

    def forward(self, x: Any) -> Any:
        k = self.k(x)
        return torch.linalg.solve_triangular(k @ k.transpose(-1, -2), x, **self.settings)


def test_a_lower_system_with_ones_is_lifted() -> None:
    module = Solved(upper=False, unitriangular=True).eval()
    text = archspec.lift(module, (torch.zeros(2, 5, 6),))
    assert "forward_substitution(matmul(k, transpose(k)), x)" in text
    assert archspec.equivalent(archspec.loads(text), module).verdict == "equal"


@pytest.mark.parametrize("settings", [{"upper": True, "unitriangular": True}, {"upper": False}])
def test_other_systems_are_refused(settings: dict[str, bool]) -> None:
    with pytest.raises(archspec.ArchError, match="a triangular system other than a unit lower-triangular one"):
        archspec.lift(Solved(**settings).eval(), (torch.zeros(2, 5, 6),))


class Either(Delta):
    """Chunks whose systems are solved row by row only when the module is exported."""

    def forward(self, x: Any) -> Any:
        if torch.compiler.is_exporting():
            return super().forward(x)
        batch, _, width = x.shape
        k, v = self.k(x).view(batch, -1, CHUNK, width), self.v(x).view(batch, -1, CHUNK, width)
        system = k @ k.transpose(-1, -2)
        return torch.linalg.solve_triangular(system, v, upper=False, unitriangular=True).reshape(batch, -1, width)


def test_systems_are_solved_as_in_a_call() -> None:
    text = archspec.lift(Either(lower, rows_above).eval(), (torch.zeros(2, 2 * CHUNK, 6),))
    assert "forward_substitution(" in text and "arange" not in text
    assert not torch.compiler.is_exporting()


class Chunks(nn.Module):
    """Chunks that read the state of those before, and of which the last one leaves a state that nothing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.k = nn.Linear(6, 6)
        self.v = nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        batch, seq, width = x.shape
        x = nn.functional.pad(x, (0, 0, 0, (CHUNK - seq % CHUNK) % CHUNK))
        count = x.shape[1] // CHUNK
        k, v = (part.reshape(batch, count, CHUNK, width) for part in (self.k(x), self.v(x)))
        v = torch.linalg.solve_triangular(k @ k.transpose(-1, -2), v, upper=False, unitriangular=True)
        state, out = v.new_zeros(batch, width, width), torch.zeros_like(v)
        for i in range(count):
            out[:, i] = v[:, i] + k[:, i] @ state
            state = state + k[:, i].transpose(-1, -2) @ v[:, i]
        return out.reshape(batch, -1, width)[:, :seq]


@pytest.mark.slow
def test_the_last_state_of_a_loop_may_be_unused() -> None:
    module = Chunks().eval()
    text = archspec.lift(module, (torch.zeros(2, 3 * CHUNK, 6),))
    assert "x [batch, 4 * seq, 6]" in text and "in 0..seq {" in text
    assert archspec.equivalent(archspec.loads(text), module).verdict in ("equal", "outputs equal")
