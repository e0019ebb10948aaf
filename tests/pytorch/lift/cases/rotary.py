"""Rotary positions of adjacent components, of some of the components of a head, and of its parts."""

from types import SimpleNamespace
from typing import Any

import torch

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


class OfParts(Rotated):
    """Rotations whose halves are computed one by one: of halves, or of pairs, which are not put side by side again."""

    def turned(self, x: Any, angles: Any) -> Any:
        x, half = x.transpose(1, 2), self.rotated // 2
        a, b = (x[..., ::2], x[..., 1::2]) if self.adjacent else x.chunk(2, -1)
        cosines, sines = angles[:, :half].cos(), angles.sin()[:, :half]
        return torch.cat((a * cosines - b * sines, b * cosines + self.sign * -a * sines), -1)


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
        self.frequencies = torch.tensor([1.0, 0.05625, 0.00125, 0.000125])


X = (torch.randn(2, 7, HIDDEN),)

CASES = {
    "pairs": (lambda: Rotated(8, True, True), X),
    "pairs, tokens first": (lambda: Rotated(8, True, False), X),
    "some pairs": (lambda: Rotated(4, True, True), X),
    "some pairs, tokens first": (lambda: Rotated(4, True, False), X),
    "halves": (lambda: Rotated(8, False, True), X),
    "some halves": (lambda: Rotated(4, False, True), X),
    "pairs of another sign": (lambda: Rotated(8, True, True, sign=1), X),
    "halves one by one": (lambda: OfParts(8, False, True), X),
    "pairs one by one": (lambda: OfParts(8, True, True), X),
    "halves of another sign": (lambda: OfParts(8, False, True, sign=1), X),
    "frequencies of YaRN with a strength": (lambda: Yarn(1.5), X),
    "frequencies of Llama 3": (lambda: Scaled(1.0), X),
    "frequencies of Llama 3 with a strength": (lambda: Scaled(1.5), X),
}

SLOW = "pairs$|pairs,|some pairs$|halves|some halves|frequencies of Llama 3 with"
