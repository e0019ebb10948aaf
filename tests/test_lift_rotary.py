"""Lifting: rotary positions of adjacent components, of some of the components of a head, and of its parts."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec  # noqa: E402
from archspec.equivalence.api import equivalent  # noqa: E402

nn = torch.nn
HIDDEN, HEADS, ROTATED = 24, 3, 4


class Rotated(nn.Module):
    """Scores of queries and keys, the first components of whose heads are rotated: all if `rotated` is their number."""

    def __init__(self, rotated: int, adjacent: bool, heads_first: bool, sign: int = -1) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.rotated, self.adjacent, self.heads_first, self.sign = rotated, adjacent, heads_first, sign

    def forward(self, x: Any) -> Any:
        angles = torch.arange(x.shape[1])[:, None] * 10000.0 ** (-torch.arange(0, self.rotated, 2) / self.rotated)
        angles = angles.repeat_interleave(2, -1) if self.adjacent else torch.cat((angles, angles), -1)
        angles = angles if self.heads_first else angles[:, None]
        q, k = [self.turned(part(x).unflatten(-1, (HEADS, -1)), angles) for part in (self.q, self.k)]
        return (q @ k.transpose(-1, -2)).softmax(-1)

    def turned(self, x: Any, angles: Any) -> Any:
        x = x.transpose(1, 2) if self.heads_first else x
        first, rest = x[..., : self.rotated], x[..., self.rotated :]
        if self.adjacent:
            other = torch.stack(
                (first[..., 1::2].neg() if self.sign < 0 else first[..., 1::2], first[..., ::2]), -1
            ).flatten(-2)
        else:
            half = self.rotated // 2
            other = torch.cat((-first[..., half:], first[..., :half]), -1)
        found = first * angles.cos() + other * angles.sin()
        found = torch.cat((found, rest), -1) if self.rotated < x.shape[-1] else found
        return found if self.heads_first else found.transpose(1, 2)


def lifted(module: nn.Module) -> str:
    text = archspec.lift(module.eval(), (torch.zeros(2, 7, HIDDEN),))
    assert equivalent(archspec.loads(text), module).verdict == "equal"
    return text


@pytest.mark.parametrize(
    ("rotated", "adjacent", "heads_first", "settings"),
    [
        pytest.param(8, True, True, "(adjacent = true)", marks=pytest.mark.slow),
        pytest.param(8, True, False, "(adjacent = true)", marks=pytest.mark.slow),
        pytest.param(4, True, True, "(adjacent = true, partial = true)", marks=pytest.mark.slow),
        (4, True, False, "(adjacent = true, partial = true)"),
        pytest.param(8, False, True, "", marks=pytest.mark.slow),
        pytest.param(4, False, True, "(partial = true)", marks=pytest.mark.slow),
    ],
)
def test_rotations_are_those_of_the_library(rotated: int, adjacent: bool, heads_first: bool, settings: str) -> None:
    text = lifted(Rotated(rotated, adjacent, heads_first))
    assert text.count(f"rotate{settings}(_, ") == 2
    assert text.count("split_heads(3)") == 2


def test_what_is_nearly_a_rotation_is_written_as_it_is() -> None:
    text = lifted(Rotated(8, True, True, sign=1))
    assert "rotate" not in text.replace("rotated", "")
    assert "stack" in text


class OfParts(Rotated):
    """Rotations whose halves are computed one by one: of halves, or of pairs, which are not put side by side again."""

    def turned(self, x: Any, angles: Any) -> Any:
        x, half = x.transpose(1, 2), self.rotated // 2
        a, b = (x[..., ::2], x[..., 1::2]) if self.adjacent else x.chunk(2, -1)
        cosines, sines = angles[:, :half].cos(), angles.sin()[:, :half]
        return torch.cat((a * cosines - b * sines, b * cosines + self.sign * -a * sines), -1)


@pytest.mark.parametrize(
    ("adjacent", "steps"),
    [
        pytest.param(False, "split_heads(3)\n    |> rotate(_, cosines, sines)", marks=pytest.mark.slow),
        (True, 'rearrange("b s (h d w) -> b h s (w d)", h = 3, d = 4)\n    |> rotate(_, cosines, sines)'),
    ],
)
def test_rotations_of_parts(adjacent: bool, steps: str) -> None:
    text = lifted(OfParts(8, adjacent, True))
    assert text.count(steps) == 2


@pytest.mark.slow
def test_parts_that_are_no_rotation_are_written_as_they_are() -> None:
    text = lifted(OfParts(8, False, True, sign=1))
    assert "rotate(" not in text
