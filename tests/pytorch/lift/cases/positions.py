"""Positions, views of heads and rows, and rotations: without superfluous steps, and as they are."""

from collections.abc import Callable
from typing import Any

import torch

X, HEADS, IDS = torch.randn(2, 5, 8), torch.randn(2, 3, 5, 8), torch.randint(0, 4, (2, 5))


def of_positions(function: Callable[[Any, Any, Any], Any]) -> Any:
    """A function of rows, columns and integers at these, which is added to scores."""

    def added(x: Any, ids: Any) -> Any:
        places = torch.arange(x.shape[1])
        return x @ x.mT + function(places[:, None], places, ids)

    return added, X, IDS


def angles(x: Any, half: int = 4) -> Any:
    return torch.arange(x.shape[-2])[:, None] * 100.0 ** (-torch.arange(half) / half)


def rotated(other: Callable[[Any], Any], twice: Any = None, size: int = 8) -> Any:
    """The sum of components times cosines, and of others times sines."""

    def function(x: Any) -> Any:
        a = angles(x)
        a = torch.cat([a, a], -1) if twice is None else twice(a)
        first = x[..., :8]
        rest = [x[..., 8:]] if size > 8 else []
        return torch.cat([first * a.cos() + other(first) * a.sin(), *rest], -1)

    return function, torch.randn(2, 3, 5, size)


def one_by_one(join: Callable[[Any, Any, Any, Any], Any], axis: int = -1) -> Any:
    """The rotation of two parts, joined."""

    def function(x: Any) -> Any:
        a, b = x.chunk(2, -1)
        return join(a, b, angles(x).cos(), angles(x).sin())

    return function, HEADS


def halves(x: Any) -> Any:
    return torch.cat([-x[..., 4:], x[..., :4]], -1)


def pairs(x: Any) -> Any:
    return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)


def heads(x: Any) -> Any:
    return x.unflatten(-1, (2, 4)).transpose(1, 2)


ROTATE = rotated(halves)[0]

FUNCTIONS = {
    "sums": of_positions(lambda row, column, ids: column * 1 + 3),
    "differences": of_positions(lambda row, column, ids: (3 - column) % 7),
    "integers": of_positions(lambda row, column, ids: ((ids + column) // 3)[:, None]),
    "products": of_positions(lambda row, column, ids: (column < 2 * row).float()),
    "numbers": of_positions(lambda row, column, ids: torch.where(row >= column, 3.0, 0.5)),
    "several conditions": of_positions(lambda row, column, ids: ((row >= column) & (column >= 2)).long()),
    "one of several conditions": of_positions(lambda row, column, ids: ((row >= column) & (column >= 2)) | (row == 4)),
    "inequality": of_positions(lambda row, column, ids: (row != column).float()),
    "an opposite": of_positions(lambda row, column, ids: ~(ids > 1)[:, None]),
    "integers of other signs": of_positions(lambda row, column, ids: -2 * column - 3 * row),
    "powers": of_positions(lambda row, column, ids: column * column * column),
    "a quotient": of_positions(lambda row, column, ids: (row + column) // 4 + 1),
    "more than another position": of_positions(lambda row, column, ids: column - row > 2),
    "more than a number": of_positions(lambda row, column, ids: row + column > 4),
    "a sum that is a number": of_positions(lambda row, column, ids: column == 3 - row),
    "booleans that are counted": of_positions(lambda row, column, ids: (column + (ids > 1).long() >= 3)[:, None]),
    "the largest of three": of_positions(
        lambda row, column, ids: torch.maximum(torch.maximum(row, column), 5 - column)
    ),
    "repeated heads": (lambda x: heads(x).repeat_interleave(2, 1), X),
    "repeated and turned": (lambda x: x.repeat_interleave(2, 1).mT, HEADS),
    "merged": (lambda x: x.transpose(1, 2).flatten(2), HEADS),
    "repeated and merged": (lambda x: heads(x).repeat_interleave(2, 1).transpose(1, 2).flatten(2), X),
    "there and back": (lambda x: heads(x).transpose(1, 2).flatten(2), X),
    "columns of a matrix": (lambda x: x.reshape(2, 3, -1).exp(), HEADS),
    "rows at numbers and at ids": (
        lambda x, ids, table: (x[torch.arange(1, 4)], table[ids]),
        X[0],
        IDS,
        torch.randn(9),
    ),
    "functions of rows": (lambda x, y: (x.flatten(0, 1).exp() + y).view_as(x), X, torch.randn(8)),
    "softmax of rows": (lambda x: x.flatten(0, 1).softmax(1).view_as(x), X),
    "joined rows": (lambda x: torch.cat([x.flatten(0, 1), x.flatten(0, 1).sin()], 1).unflatten(0, (2, -1)), X),
    "parts of rows": (lambda x: x.flatten(0, 1).split((3, 5), 1)[1].unflatten(0, (2, -1)), X),
    "an axis of rows": (lambda x: x.flatten(0, 1).exp().view(-1, 2, 4).sum(1).unflatten(0, (2, -1)), X),
    "heads of rows": (lambda x: x.flatten(0, 1).repeat_interleave(2, 0) * 0.5, HEADS),
    "not along rows": (lambda x: x.flatten(0, 1).sum(0), X),
    "not turned rows": (lambda x: x.flatten(0, 1).t().exp(), X),
    "not along all rows": (lambda x: x.flatten(0, 1).softmax(0), X),
    "not with rows of other texts": (lambda x, y: x.flatten(0, 1) + y.flatten(0, 1), X, torch.randn(5, 2, 8)),
    "rotated halves": rotated(halves),
    "rotated halves, tokens first": (lambda x: ROTATE(x.transpose(1, 2)).transpose(1, 2), HEADS.transpose(1, 2)),
    "rotated pairs": rotated(pairs, lambda a: a.repeat_interleave(2, -1)),
    "some rotated halves": rotated(halves, size=12),
    "some rotated pairs": rotated(pairs, lambda a: a.repeat_interleave(2, -1), size=12),
    "rotated parts": one_by_one(lambda a, b, c, s: torch.cat([a * c - b * s, b * c + a * s], -1)),
    "not halves of another sign": rotated(lambda x: torch.cat([x[..., 4:].abs(), x[..., :4]], -1)),
    "not parts that are no halves": rotated(lambda x: torch.cat([-x[..., 3:], x[..., :3]], -1)),
    "not angles that differ": rotated(halves, lambda a: torch.cat([a, -a], -1)),
    "not pairs of another sign": rotated(
        lambda x: torch.stack([x[..., 1::2].abs(), x[..., ::2]], -1).flatten(-2), lambda a: a.repeat_interleave(2, -1)
    ),
    "not parts of another sign": one_by_one(lambda a, b, c, s: torch.cat([a * c + b * s, b * c + a * s], -1)),
    "not parts the other way round": one_by_one(lambda a, b, c, s: torch.cat([b * c + a * s, a * c - b * s], -1)),
    "not parts along another axis": one_by_one(lambda a, b, c, s: torch.cat([a * c - b * s, b * c + a * s], 2)),
    "not parts that are negated": one_by_one(lambda a, b, c, s: torch.cat([-a, a], -1)),
    "not sums of the same": one_by_one(lambda a, b, c, s: torch.cat([a - a, a], -1)),
    "not three parts": one_by_one(lambda a, b, c, s: torch.cat([a * c - b * s, b * c + a * s, a], -1)),
    "not tables of each item": (
        lambda x, t: torch.cat(
            [x[..., :4] * t.cos() - x[..., 4:] * t.sin(), x[..., 4:] * t.cos() + x[..., :4] * t.sin()], -1
        ),
        HEADS,
        torch.randn(2, 1, 5, 4),
    ),
    "not another rest": (lambda x: torch.cat([ROTATE(x[..., :8]), x[..., 9:]], -1), torch.randn(2, 3, 5, 12)),
}
