"""Lifting: rotary positions of adjacent components, of some of the components of a head, and of its parts."""

from types import SimpleNamespace
from typing import Any

import pytest
from builders import builder

torch = pytest.importorskip("torch")

import archspec
from archspec import equivalent
from archspec.pytorch.numeric.evaluate import Evaluation

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


class Scaled(OfParts):
    """Rotations by frequencies for a longer context, whose tables are multiplied by `strength`."""

    def __init__(self, strength: float) -> None:
        super().__init__(8, False, True)
        own = {"rope_theta": 10000.0, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}
        own |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 64}
        self.config, self.strength = SimpleNamespace(rope_parameters=own), strength
        found = 10000.0 ** (-torch.arange(4) / 4)
        kept = ((64 * found / (2 * torch.pi) - 1) / 3).clamp(0, 1)
        self.register_buffer("frequencies", found * (kept + (1 - kept) / 8), persistent=False)

    def turned(self, x: Any, angles: Any) -> Any:
        (a, b), angles = x.transpose(1, 2).chunk(2, -1), torch.arange(x.shape[1])[:, None] * self.frequencies
        cosines, sines = angles.cos() * self.strength, angles.sin() * self.strength
        return torch.cat((a * cosines - b * sines, b * cosines + a * sines), -1)


class Yarn(Scaled):
    """The same with the frequencies of YaRN."""

    def __init__(self, strength: float) -> None:
        super().__init__(strength)
        own = {"rope_theta": 10000.0, "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64}
        self.config = SimpleNamespace(rope_parameters=own)
        b = builder()
        found = b.function("yarn_frequencies", [], (4,), size=8, theta=10000.0, factor=8.0, context=64)
        assert found is not None
        self.frequencies = Evaluation(b.arrays, {}, {}).array(found.array).float()


def test_tables_with_a_strength() -> None:
    text = " ".join(archspec.lift(Yarn(1.5).eval(), (torch.zeros(2, 7, HIDDEN),)).split())
    settings = "size = 8, theta = 10000.0, factor = 8.0, context = 64, strength = 1.5"
    assert f"cosines, sines = yarn_scaling({settings})(arange(seq))" in text.replace(") (", ")("), text


def test_tables_of_scaled_positions() -> None:
    settings = "size = 8, theta = 10000.0, factor = 8.0, low = 1.0, high = 4.0, context = 64"
    text = " ".join(archspec.lift(Scaled(1.0).eval(), (torch.zeros(2, 7, HIDDEN),)).split())
    assert f"cosines, sines = llama3_scaling({settings}) (arange(seq))" in text


@pytest.mark.slow
def test_tables_of_another_strength_than_that_of_the_library() -> None:
    text = archspec.lift(Scaled(1.5).eval(), (torch.zeros(2, 7, HIDDEN),))
    assert "cosines = cos(h) * 1.5" in " ".join(text.split()) and "llama3_frequencies(" in text


@pytest.mark.slow
def test_parts_that_are_no_rotation_are_written_as_they_are() -> None:
    text = lifted(OfParts(8, False, True, sign=1))
    assert "rotate(" not in text
