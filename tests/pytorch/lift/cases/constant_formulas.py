"""Constants of a module are written as formulas, if there are any for them."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

arange, ones = torch.arange, torch.ones


def grid(*sizes: int) -> Any:
    """The coordinates of the places in a grid, one row for each place."""
    return torch.stack(torch.meshgrid(*map(arange, sizes), indexing="ij"), -1).reshape(-1, len(sizes))


def distances(height: int, width: int, by_row: int, by_column: int = 1) -> Any:
    """Numbers of the distances between the places of a window."""
    places = grid(height, width)
    return ((places[:, None] - places[None]) * torch.tensor([by_row, by_column])).sum(-1)


def far(height: int, width: int, every: int = 1, number: int = 0) -> Any:
    """Numbers of the absolute distances from the places of a grid to those of a finer one."""
    own, others = grid(height, width) * every, grid(height * every, width * every)
    apart = (own[:, None] - others[None]).abs()
    return (number or width * every) * apart[..., 0] + apart[..., 1]


def between(distance: Any, least: int, end: int | None = None) -> Any:
    """Whether the column exceeds the row by something between bounds."""
    return (distance >= least) & (distance < (end if end is not None else 99))


def square(rows: int, columns: int = 0) -> Any:
    """By how much the column exceeds the row."""
    return arange(columns or rows) - arange(rows)[:, None]


def powers(count: int, theta: float, steps: int = 0) -> Any:
    """Frequencies of rotary positions."""
    return (theta ** (-arange(count).double() / (steps or count))).float()


def angles(rows: int, count: int, theta: float, steps: int = 0) -> Any:
    """Positions times frequencies."""
    return arange(rows).double()[:, None] * theta ** (-arange(count).double() / (steps or count))


def sines(angles: Any) -> list[Any]:
    """Sines and cosines as they are stored."""
    return [angles.sin().float(), angles.cos().float()]


def of_places(height: int, width: int, rows_first: bool = False) -> Any:
    """The sines and cosines of the columns and of the rows of places, side by side."""
    by_column = torch.cat(sines(angles(width, 4, 1e4)), 1).repeat(height, 1)
    by_row = torch.cat(sines(angles(height, 4, 1e4)), 1).repeat_interleave(width, 0)
    return torch.cat([by_row, by_column] if rows_first else [by_column, by_row], 1)


def with_zeros(table: Any, *rows: int) -> Any:
    """A table in which some rows are zero."""
    return table * torch.tensor([[float(row not in rows)] for row in range(len(table))])


def turned(values: Any, end: int) -> Any:
    """Values whose first ones are those with even numbers, and then those with odd numbers."""
    return torch.cat([values[0:end:2], values[1:end:2], values[end:]])


def nearly(values: Any) -> Any:
    """The same but for the last element."""
    changed = values.clone()
    changed[(-1,) * values.dim()] += 2e-3
    return changed


def regions(height: int, width: int, window: tuple[int, int], steps: Sequence[Sequence[int]], inside: float) -> Any:
    """A mask of attention in windows of an image, whose regions begin at some rows and columns."""
    rows, columns = [
        (arange(size)[:, None] >= torch.tensor([*places, size])).sum(1)
        for size, places in zip((height, width), steps, strict=True)
    ]
    image = 10 * rows[:, None] + columns
    parts = image.reshape(height // window[0], window[0], width // window[1], window[1])
    windows = parts.transpose(1, 2).reshape(-1, window[0] * window[1])
    return torch.where(windows[:, None] == windows[:, :, None], inside, 3.0)


def scattered(*shape: int) -> Any:
    """Integers without any rule."""
    return (arange(torch.Size(shape).numel()) ** 3 * 7 % 61).reshape(shape)


CONSTANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "one number": lambda: {
        "a number": torch.tensor(5.0),
        "an integer": torch.tensor(3),
        "integers": torch.full((2, 3), 4),
        "truths": torch.full((2,), True),
        "root": torch.full((3,), 2**0.5),
        "root of a large number": torch.full((3,), 123457**0.5),
        "reciprocal root": torch.full((3,), 3**-0.5),
        "reciprocal root of a large number": torch.full((3,), 123457**-0.5),
        "no root": torch.full((3,), 0.3),
        "no root of 1": torch.full((3,), 0.7),
        "large and no root": torch.full((3,), 100.3),
        "root that is too large": torch.full((3,), 2**12.5),
        "root that is too small": torch.full((3,), 2**-12.5),
        "negative": torch.full((3,), -(2**0.5)),
        "double": torch.full((3,), 2**0.5, dtype=torch.float64),
        "no numbers": torch.tensor([1.0, float("nan")]),
        "infinite": torch.where(scattered(9, 9) > 30, torch.inf, 0.0),
    },
    "counts": lambda: {
        "count": arange(5),
        "count of two": arange(2),
        "truths that are no count": torch.tensor([False, True]),
        "truths that are no count down": torch.tensor([True, False]),
        "column": arange(5)[:, None],
        "real": arange(5.0),
        "two axes": arange(6).reshape(2, 3),
        "from 3": arange(3, 8),
        "down": 7 - arange(5),
        "by 3": 3 * arange(70).reshape(1, 70),
        "by 2, but for one": torch.cat([2 * arange(69), torch.tensor([9])]),
        "three axes": 2 * arange(3)[:, None, None] - 5 * arange(4)[:, None] + arange(2) + 11,
        "one axis of two": (arange(40) * 2 + 1).expand(2, 40),
        "after the first": torch.cat([torch.tensor([0]), arange(5, 9)]),
        "after the first of 3": torch.tensor([9, 5, 6]),
        "after the first of 4": torch.tensor([9, 5, 6, 7]),
        "one number after the first": torch.tensor([9, 5, 5, 5]),
        "after the first row": torch.tensor([[9], [5], [6], [7]]),
        "without rule": scattered(64),
        "without rule, too many": scattered(65),
        "reals without rule": scattered(64) / 3,
        "reals without rule, too many": scattered(5, 13) / 3,
    },
    "bands": lambda: {
        "causal": ones(5, 5).tril(),
        "causal truths": ones(5, 5).tril().bool(),
        "not causal": ones(5, 5).triu(1).bool(),
        "bias": ones(4, 4).triu(1) * -1e4,
        "bias above": torch.where(ones(3, 3).tril() > 0, -1e4, 0.0),
        "integers": ones(3, 3).tril(1).long(),
        "later": between(square(3), 2),
        "wide": between(square(3, 5), 2),
        "tall": between(square(5, 3), -3),
        "tall bias": between(square(70, 3), -50) * 2.5,
        "window": between(square(5), -2, 2),
        "not in the window": ~between(square(5), -2, 2),
        "numbers of the window": between(square(4, 6), -1, 2).float(),
        "numbers outside": 3 - between(square(5), 1, 3).long(),
        "diagonal": torch.eye(3),
        "diagonal truths": torch.eye(9).bool(),
        "four axes": ones(1, 1, 4, 4).tril().bool(),
        "three numbers": square(3).sign(),
        "three numbers, large": square(9).sign(),
        "three changes": (square(4) == 0) | (square(4) >= 2),
        "of two rows": ones(2, 4).tril().bool(),
        "no band": torch.cat([ones(1, 4), ones(3, 4).tril()]),
        "large, but for one": (square(9) > 0) ^ (grid(9, 9) == torch.tensor([8, 2])).all(-1).reshape(9, 9),
    },
    "grids": lambda: {
        "2 by 4": grid(2, 4),
        "4 by 2": grid(4, 2),
        "columns first": grid(9, 8).flip(1),
        "3 axes": grid(2, 3, 12),
        "4 axes": grid(2, 2, 2, 9),
        "rows alone": grid(9, 8)[:, :1],
        "truths": grid(2, 33) == 1,
        "truths that are digits": torch.stack([arange(70) % 2, arange(70) // 35], 1).bool(),
        "times a half": grid(8, 9) * 0.5,
        "times a third": grid(8, 9) / 3,
        "times 3, negative": grid(8, 9) * -3.0,
        "times tiny steps": grid(8, 9) / 999,
        "times steps that are too tiny": grid(8, 9) / 2001,
        "times a half, but for one": grid(8, 9) * 0.5 + 0.1 * (arange(144).reshape(72, 2) == 140),
        "one axis, halves": arange(70) * 0.5,
        "one row": arange(70)[None] % 2,
        "from 1": grid(8, 9) + 1,
        "again and again": torch.stack([arange(70) % 7, arange(70) // 7 % 5], 1),
        "again, not to the end": torch.stack([arange(68) % 7, arange(68) // 7 % 5], 1),
        "no digits": torch.stack([arange(70) % 7, arange(70) ** 2 % 5], 1),
    },
    "distances": lambda: {
        "relative positions": distances(3, 3, 5) + 12,
        "relative positions, flat": (distances(2, 2, 3) + 4).reshape(-1),
        "from 0": distances(3, 3, 5),
        "2 by 4": distances(2, 4, 7) + 10,
        "4 by 2": distances(4, 2, 3) + 10,
        "4 by 2, flat": (distances(4, 2, 3) + 10).reshape(1, 64),
        "by 2": distances(3, 4, 20, 2) + 1,
        "to other windows": (9 * grid(3, 4)[:, :1] + grid(3, 4)[:, 1:] - 4 * (arange(10) // 5) - 2 * (arange(10) % 5)),
        "of a row": 3 * arange(9)[:, None] - (arange(8) % 4),
        "columns alone": (arange(12) % 4)[:, None] + (arange(12) % 3),
        "absolute": far(3, 3),
        "absolute, 2 by 5": far(2, 5),
        "absolute, 5 by 2": far(5, 2),
        "absolute, to a finer grid": far(2, 3, 2),
        "absolute, by another number": far(3, 3, number=7),
        "absolute, but for one": far(3, 3) + (arange(81).reshape(9, 9) == 77).long(),
        "relative, but for one": distances(3, 3, 5) + (arange(81).reshape(9, 9) == 77).long(),
        "truths": far(3, 3) > 1,
        "of one place": scattered(1, 70),
        "flat": (distances(4, 3, 5) + 13).reshape(-1),
        "three axes": (distances(4, 3, 5) + 13).reshape(3, 4, 12),
        "of one row": distances(1, 12, 9) + 11,
    },
    "parts": lambda: {
        "repeated rows": scattered(6).expand(13, 6),
        "repeated columns": scattered(13)[:, None].expand(13, 6),
        "repeated in the middle": (scattered(4, 6) / 7)[:, None].expand(4, 5, 6),
        "repeated twice": scattered(20)[:, None, None].expand(20, 2, 3),
        "four rows": scattered(4, 20),
        "five rows": scattered(5, 20),
        "four columns": scattered(20, 4),
        "five columns": scattered(20, 5),
        "two rows, one without rule": torch.stack([scattered(70), arange(70)]),
        "lookup": torch.nn.functional.one_hot(square(5, 5) + 4, 9),
        "lookup, real": torch.nn.functional.one_hot(arange(40) // 8, 5).float(),
        "lookup, truths": torch.nn.functional.one_hot(scattered(40) % 5, 5).bool(),
        "lookup of two": torch.nn.functional.one_hot(scattered(40) % 2, 2),
        "lookup without rule": torch.nn.functional.one_hot(scattered(65) % 5, 5),
        "lookup, twice": torch.eye(5)[scattered(40) % 5] + torch.eye(5)[scattered(40) % 5],
        "lookup, nothing for one": torch.eye(9)[:8].repeat(1, 1, 2)[0, :, 1:10],
    },
    "frequencies": lambda: {
        "of 8": powers(8, 1e4),
        "column": powers(8, 1e4)[:, None],
        "of two": powers(2, 100.0),
        "of one": ones(1) * 0.7,
        "some of them": torch.cat([powers(8, 1e4)[:5], torch.zeros(3)]),
        "one of them": torch.cat([ones(1), torch.zeros(3)]),
        "two of them": torch.cat([powers(8, 1e4)[:2], torch.zeros(6)]),
        "nearly, some of them": torch.cat([nearly(powers(8, 1e4)[:5]), torch.zeros(3)]),
        "base with five digits": powers(70, 12345.0),
        "base with six digits": powers(70, 123456.0),
        "not from 1": powers(70, 1e4) * 0.9,
        "nearly": nearly(powers(70, 1e4)),
        "nearly the second": powers(70, 1e4) + 1e-3 * (arange(70) == 1),
        "growing": powers(70, 1e-4),
        "in turns": turned(powers(70, 500.0), 30),
        "in turns, all": turned(powers(70, 500.0), 70),
        "in turns, two": turned(powers(70, 500.0), 4),
        "in turns, nearly": nearly(turned(powers(70, 500.0), 30)),
        "slopes": 2.0 ** -arange(1, 9),
        "slopes of 12 heads": torch.cat([2.0 ** -arange(1, 9), 2.0 ** -(arange(4) + 0.5)]).reshape(1, 12, 1, 1),
        "slopes of 3 heads": torch.tensor([2.0**-4, 2.0**-8, 2.0**-2]),
        "slopes of 2 heads": torch.tensor([2.0**-4, 2.0**-8]),
        "slopes, two axes": (2.0 ** -arange(1, 9)).reshape(2, 4),
        "slopes, nearly": nearly(2.0 ** -arange(1, 9)),
    },
    "sines": lambda: {
        "all sines, all cosines": torch.cat(sines(angles(9, 6, 1e4)), 1),
        "all cosines, all sines": torch.cat(sines(angles(9, 6, 1e4))[::-1], 1),
        "in turn": torch.stack(sines(angles(9, 6, 1e4)), 2).flatten(1),
        "in turn, one axis more": torch.stack(sines(angles(9, 6, 1e4)), 2).flatten(1)[None],
        "to the last": torch.cat(sines(angles(9, 6, 1e4, 5)), 1),
        "a zero row": with_zeros(torch.cat(sines(angles(9, 6, 1e4, 5)), 1), 3),
        "a zero row 1": with_zeros(torch.stack(sines(angles(9, 6, 1e4)), 2).flatten(1), 1),
        "a zero row 0": with_zeros(torch.cat(sines(angles(9, 6, 1e4))[::-1], 1), 0),
        "two zero rows": with_zeros(torch.cat(sines(angles(9, 6, 1e4)), 1), 3, 5),
        "nearly": nearly(torch.cat(sines(angles(9, 6, 1e4)), 1)),
        "sines": sines(angles(9, 7, 500.0))[0],
        "cosines": sines(angles(9, 8, 500.0))[1],
        "cosines to the last": sines(angles(9, 8, 500.0, 7))[1],
        "sines twice": sines(angles(9, 6, 500.0))[0].repeat(1, 2),
        "each cosine twice": sines(angles(9, 6, 500.0))[1].repeat_interleave(2, 1),
        "each cosine twice, but for one": nearly(sines(angles(9, 6, 500.0))[1].repeat_interleave(2, 1)),
        "each of an odd number twice": sines(angles(9, 5, 500.0))[0].repeat_interleave(2, 1),
        "three rows": torch.cat(sines(angles(3, 16, 1e4)), 1),
        "two rows": torch.cat(sines(angles(2, 17, 1e4)), 1),
        "of a grid": of_places(4, 3),
        "of a grid, rows first": of_places(3, 5, rows_first=True),
        "of a grid that is too narrow": of_places(9, 2),
        "of a grid that is too low": of_places(2, 9),
        "of a grid, nearly": nearly(of_places(4, 3)),
        "many positions": torch.cat(sines(angles(5000, 2, 1e4)), 1),
    },
    "regions": lambda: {
        "shifted windows": regions(8, 8, (4, 4), ((4, 6), (4, 6)), 0.0),
        "windows that are not square": regions(6, 8, (3, 2), ((4,), (7,)), -2.0),
        "along rows alone": regions(9, 6, (3, 3), ((6, 8), ()), 0.0),
        "along columns alone": regions(6, 9, (3, 3), ((), (6, 8)), 0.0),
        "three steps": regions(4, 12, (2, 6), ((2,), (3, 6, 9)), 0.0),
        "four steps": regions(4, 12, (2, 6), ((2,), (3, 6, 8, 10)), 0.0),
        "one axis more": regions(8, 8, (4, 4), ((4, 6), (4, 6)), 0.0)[:, None],
        "nearly": nearly(regions(8, 8, (4, 4), ((4, 6), (4, 6)), 0.0)),
        "one window": regions(9, 9, (9, 9), ((5,), (5,)), 0.0),
    },
}
"""Constants by groups and names."""


class Constants(nn.Module):
    """Constants times a number of the input."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__()
        self.names = [re.sub(r"\W+", "_", name) for name in values]
        for name, value in zip(self.names, values.values(), strict=True):
            self.register_buffer(f"the_{name}", value, persistent=False)

    def forward(self, x: Any) -> Any:
        return [x.sum() * self.get_buffer(f"the_{name}") for name in self.names]


class Rotary(Constants):
    """Frequencies of rotary positions, and the parameters in the configuration."""

    def __init__(self, value: Any, **parameters: Any) -> None:
        super().__init__({"frequencies": value})
        self.config = SimpleNamespace(rope_parameters=parameters)


def group(name: str) -> Any:
    return Constants({key: value for key, value in CONSTANTS[name]().items() if key not in REFUSED})


def single(name: str, key: str) -> Any:
    return Constants({key: CONSTANTS[name]()[key]})


def scaled() -> Any:
    smooth = ((64 * powers(8, 1e4) / (2 * torch.pi) - 1) / 3).clamp(0, 1)
    return powers(8, 1e4) * (smooth + (1 - smooth) / 4)


REFUSED_NAMES = (
    "no numbers; infinite; by 2, but for one; without rule, too many; reals without rule, too many; three "
    "numbers, large; large, but for one; 4 axes; truths; truths that are digits; times 3, negative; times "
    "steps that are too tiny; times a half, but for one; one axis, halves; one row; from 1; no digits; "
    "absolute, by another number; absolute, but for one; relative, but for one; of one place; five rows; five "
    "columns; two rows, one without rule; lookup without rule; lookup, twice; base with six digits; not from "
    "1; nearly; nearly the second; growing; in turns, nearly; two zero rows; each cosine twice, but for one; "
    "of a grid that is too narrow; of a grid that is too low; of a grid, nearly; four steps; one window"
)
REFUSED = REFUSED_NAMES.split("; ")

X = (torch.randn(3, 5),)

LLAMA = {"rope_theta": 1e4, "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}

CONTEXT = {"original_max_position_embeddings": 64}

SIX_DIGITS = {"rope_theta": 123456.0, "rope_type": "default"}

CASES = {
    **{name: (partial(group, name), X) for name in CONSTANTS},
    **{
        f"{name}: {key}": (partial(single, name, key), X)
        for name, values in CONSTANTS.items()
        for key in values()
        if key in REFUSED
    },
    "scaled": (lambda: Rotary(scaled(), **LLAMA, **CONTEXT), X),
    "scaled, factor not given": (lambda: Rotary(scaled(), **{**LLAMA, **CONTEXT, "factor": None}), X),
    "scaled, context not given": (lambda: Rotary(scaled(), **LLAMA), X),
    "scaled, nearly": (lambda: Rotary(nearly(scaled()), **LLAMA, **CONTEXT), X),
    "scaled, of another kind": (lambda: Rotary(scaled(), **{**LLAMA, **CONTEXT, "rope_type": "linear"}), X),
    "without scales": (lambda: Rotary(powers(8, 123456.0), **SIX_DIGITS), X),
    "without scales, some of them": (
        lambda: Rotary(torch.cat([powers(8, 123456.0)[:5], torch.zeros(3)]), **SIX_DIGITS),
        X,
    ),
}
