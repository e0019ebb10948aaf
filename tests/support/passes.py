"""Functions whose programs special-case passes rewrite, leave or refuse, by pass and name."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from graphs import Module, traced

ATEN = torch.ops.aten
F = torch.nn.functional
GENERATOR = torch.Generator().manual_seed(0)


def drawn(*shape: int) -> Any:
    return torch.randn(shape, generator=GENERATOR)


INPUTS = {
    "x": drawn(4, 6),
    "y": drawn(4, 6),
    "scores": torch.tensor([[1.0, 0.5, 2.0], [3.0, 2.0, 1.0], [0.0, 2.0, 1.0], [5.0, 4.0, 6.0]]),
    "shares": drawn(4, 2, 6),
    "table": drawn(5, 6),
    "mask": torch.tensor([True, False, False, True]),
    "weight": drawn(6, 6),
    "row": drawn(6),
    "index": torch.tensor([[2, 0, 5], [1, 1, 3], [4, 4, 4], [0, 3, 5]]),
    "places": torch.tensor([3, 1, 3]),
    "part": drawn(4, 3),
    "rows": drawn(3, 6),
    "a": drawn(2, 4, 4),
    "b": drawn(2, 4, 4),
    "tokens": drawn(2, 5, 4),
}
"""The inputs of functions, by the names of their parameters."""

Function = Callable[..., Any]


def inputs_of(function: Function) -> list[Any]:
    return [INPUTS[name] for name in inspect.signature(function).parameters]


def composite(function: Function) -> Any:
    return traced(function, *inputs_of(function), symbolic=True, composite=True)


def fixed(function: Function) -> Any:
    return traced(function, *inputs_of(function), composite=True)


def exported(function: Function) -> Any:
    with torch.no_grad():
        return torch.export.export(Module(function), (INPUTS["x"],), strict=False)


# Numbers that are put at indices, or added there.


def largest(x: Any, count: int = 2, axis: int = 1) -> Any:
    """The indices of the largest numbers along an axis, which are different."""
    return x.topk(count, axis)[1]


SCATTERS: dict[str, Function] = {
    "the largest numbers are put back": lambda x, y: x.scatter(-1, y.sort()[1], y),
    "the largest numbers are put in zeros": lambda x, y: torch.zeros_like(x).scatter(1, largest(y), y[:, :2]),
    "numbers are added at any indices": lambda x, index, part: x.scatter_add(1, index, part),
    "rows are added at any indices": lambda x, places, rows: x.index_add(0, places, rows),
    "rows are added several times": lambda x, places, rows: x.index_add(0, places, rows, alpha=2),
    "numbers are put at indices that may be the same": lambda x, index, part: x.scatter(1, index, part),
    "one number is put": lambda x, index: x.scatter(1, index, 2.0),
    "numbers are put in some of the rows": lambda x, index, part: x.scatter_add(1, index[:2], part[:2]),
    "a number is added to a number": lambda x: x[0, 0].scatter_add(0, x[0, 1].long() * 0, x[1, 0]),
}


DISTINCT: dict[Function, list[int]] = {
    (lambda x: x.long()): [],
    (lambda x: largest(x)): [1],
    (lambda x: largest(x, 2, 0)): [0],
    (lambda x: x.topk(2, dim=0)[1]): [0],
    (lambda x: x.sort(0)[1]): [0],
    (lambda x: largest(x).sort()[0]): [1],
    (lambda x: largest(x).sort()[1]): [1],
    (lambda x: largest(x, 4).split(2, 1)[1]): [],
    (lambda x: largest(x).clone()): [1],
    (lambda x: largest(x).to(torch.int8).to(torch.int64)): [],
    (lambda x: largest(x).unsqueeze(0)): [2],
    (lambda x: largest(x).unsqueeze(1)): [2],
    (lambda x: largest(x).unsqueeze(-1)): [1],
    (lambda x: largest(x).unsqueeze(2)): [1],
    (lambda x: largest(x).view(1, 4, 2)): [2],
    (lambda x: largest(x).view(2, 2, 2)): [2],
    (lambda x: largest(x).view(8)): [],
    (lambda x: largest(x).view(2, 4)): [],
    (lambda x: largest(x.view(2, 2, 6), 2, 2).view(4, 2)): [1],
    (lambda x: largest(x.view(2, 2, 6), 2, 2).reshape(1, 2, 2, 2)): [3],
    (lambda x: largest(x).expand(2, 4, 2)): [2],
    (lambda x: largest(x).unsqueeze(-1).expand(4, 2, 3)): [1],
    (lambda x: largest(x).unsqueeze(-1).select(1, 0).expand(4, 3)): [],
    (lambda x: x.sort(0)[1].expand(2, 4, 6)): [1],
    (lambda x: largest(x) * 1): [],
}
"""Indices, and the axes along which they are known to be different."""


# Indices at which a condition is true: the tokens that chose an expert.


def chosen(scores: Any, expert: int = 2) -> Any:
    return torch.where(largest(scores) == expert)


def put(x: Any, places: Any, rows: Any, is_sum: bool = False) -> Any:
    return ATEN.index_put.default(x, places, rows, is_sum)


def of_both(scores: Any, shares: Any, x: Any) -> Any:
    token, choice = chosen(scores)
    return shares[token, choice], x[token]


def of_turned(scores: Any, shares: Any, x: Any) -> Any:
    """The rows are in another order, in which they are also put back."""
    choice, token = torch.where((largest(scores) == 2).t())
    return x.index_add(0, token, shares[token, choice])


def of_first_axis(scores: Any, shares: Any, x: Any) -> Any:
    choice, token = torch.where((largest(scores) == 2).t())
    return x.index_add(0, token, shares.transpose(0, 1)[choice, token])


CONDITIONS: dict[str, Function] = {
    "rows of the tokens that chose an expert": of_both,
    "tokens and choices in turn": of_turned,
    "choices before tokens": of_first_axis,
    "rows where a vector is true": lambda mask, x: x[torch.where(mask)],
    "rows where one number is positive": lambda x: x[torch.where(x[:, :1] > 0)[0]],
    "numbers that are positive": lambda x: x[:, :1][torch.where(x[:, :1] > 0)],
    "one of different numbers": lambda scores, rows: rows[torch.where(scores[0].topk(3)[1] == 2)],
    "rows are put": lambda scores, x, y: put(x, (at := chosen(scores))[:1], y[at[0]]),
    "rows are added": lambda scores, x, y: x.index_add(0, (at := chosen(scores))[0], y[at[0]]),
    "rows are put or added": lambda scores, x, y: put(x, (at := chosen(scores))[:1], y[at[0]], True),
    "any number is positive": lambda x: x[torch.where(x > 0)[0]],
    "any choice is an expert": lambda index, x: x[torch.where(index == 2)[0]],
    "along another axis": lambda scores, x, y: x.index_add(1, (at := chosen(scores))[0], y[at[0]]),
    "at choices": lambda scores, x, y: x.index_add(0, (at := chosen(scores))[1], y[at[0]]),
    "added twice": lambda scores, x, y: x.index_add(0, (at := chosen(scores))[0], y[at[0]], alpha=2),
    "at tokens and choices": lambda scores, shares: put(shares, at := chosen(scores), shares[at]),
    "put at choices": lambda scores, x, y: put(x, (at := chosen(scores))[1:], y[at[0]]),
    "put in a table": lambda scores, table, x: put(table, (at := chosen(scores))[:1], x[at[0]]),
    "indices as numbers": lambda scores: chosen(scores)[0] + 1,
    "rows of a table": lambda scores, table: table[chosen(scores)[0]],
    "rows of choices": lambda scores, x: x[chosen(scores)[1]],
    "how many there are": lambda scores, x: x * chosen(scores)[0].shape[0],
    "all indices at once": lambda scores: torch.stack(chosen(scores)),
}


# Rows that a mask selects, and that are put back.


def put_back(x: Any, mask: Any, rows: Any) -> Any:
    return x.masked_scatter(mask.unsqueeze(-1), rows)


def of_some(rows: Any) -> Any:
    """Changes some of the rows that are selected."""
    own = rows[:, 0] > 0
    return put(rows, [own], rows[own].relu())


SELECTIONS: dict[str, Function] = {
    "a layer": lambda x, mask, weight, row: put_back(x, mask, F.linear(x[mask], weight, row).relu() * 2),
    "softmax along the row": lambda x, mask: put_back(x, mask, x[mask].softmax(-1)),
    "put by an index": lambda x, mask, weight: put(x, [mask], F.linear(x[mask], weight)),
    "parts of the row": lambda x, mask: put_back(x, mask, torch.cat(x[mask].split(3, dim=1)[::-1], dim=1)),
    "a power": lambda x, mask: put_back(x, mask, 2.0 ** x[mask]),
    "a copy of the mask": lambda x, mask: put(x, [mask], x[mask.clone()].relu()),
    "all others": lambda x, mask: put(x, [~mask], x[~mask] * 2.0),
    "put in other rows": lambda x, mask, row: put(x.exp(), [mask], x[mask] + row),
    "rows at indices": lambda x, places: x[places] * 2.0,
    "returned": lambda x, mask: x[mask],
    "also returned": lambda x, mask: (put(x, [mask], (rows := x[mask]).relu()), rows),
    "the mean of rows": lambda x, mask: put_back(x, mask, x[mask] - x[mask].mean(0)),
    "softmax along rows": lambda x, mask: put_back(x, mask, x[mask].softmax(0)),
    "the sum of rows": lambda x, mask: put_back(x, mask, x[mask].unsqueeze(-3).sum(1).expand(x[mask].shape[0], 6)),
    "all rows added": lambda x, mask: x + x[mask].sum(),
    "in another order": lambda x, mask: put_back(x, mask, x[mask].flip(0)),
    "a running sum": lambda x, mask: put_back(x, mask, x[mask].cumsum(0)),
    "the index of a row": lambda x, mask: put_back(x, mask, x[mask] + torch.arange(x[mask].shape[0]).unsqueeze(-1)),
    "how many there are": lambda x, mask: x * x[mask].shape[0],
    "multiplied by how many": lambda x, mask: put(x, [mask], x[mask] * x[mask].shape[0]),
    "an equation": lambda x, mask, y: put_back(x, mask, torch.einsum("ij,kj->ik", x[mask], y.repeat(2, 1)[:6])),
    "put in the others": lambda x, mask: put(x, [~mask], x[mask].repeat(1, 1)),
    "another mask": lambda x, mask: put(x, [mask.logical_and(mask.flip(0))], x[mask]),
    "a mask of numbers": lambda x, mask: put(x, [mask.to(torch.int64) > 0], x[mask]),
    "some of the rows": lambda x, mask: put(x, [mask], of_some(x[mask])),
    "added to rows": lambda x, mask: put(x, [mask], x[mask], True),
    "a mask of columns": lambda x, mask: ATEN.masked_scatter.default(x[:, :4].T, mask, x[:, :4][mask]),
    "one column for all": lambda x, mask: put(x, [mask], x[mask][:, :1].clone()),
    "in a column": lambda x, mask: put(x, [mask, x[mask][:, 0].long() * 0], x[mask][:, 0].clone()),
}


# Triangular systems that are solved in place, row by row.


def product(row: Any, rows: Any) -> Any:
    return (row.unsqueeze(-1) * rows).sum(-2)


def usual(a: Any, b: Any, i: int) -> Any:
    return (copy := row(a, i).clone()) + product(copy, above(a, i).clone())


def contiguous(a: Any, b: Any, i: int) -> Any:
    return (copy := row(a, i).contiguous()) + product(copy, above(a, i).contiguous().clone())


def from_the_front(a: Any, b: Any, i: int) -> Any:
    return (above(a, i).clone() * (copy := row(a, i).clone()).unsqueeze(2)).sum(1) + copy


def solved(a: Any, step: Function = usual, size: int = 4, b: Any = None, early: Any = None, at: int = 0) -> Any:
    """The inverse of 1 - a, less 1, row by row; also of what is read `early`, before the row after `at`."""
    seen = early(a) if early and at == 0 else None
    for i in range(1, size):
        a[..., i, :i] = step(a, b, i)
        seen = early(a) if early and at == i else seen
    return a if seen is None else (a * 2.0, seen.exp())


def lower(a: Any) -> Any:
    return a.tril(-1)


def masked(a: Any, diagonal: int = 0, fill: Any = torch.ones) -> Any:
    return (-a).masked_fill(torch.triu(fill(4, 4, dtype=torch.bool), diagonal), 0)


def second_row(a: Any) -> Any:
    return a[..., 2, :]


def once_early(a: Any, b: Any, i: int) -> Any:
    """The second row is of the rows above that were read before the first one was changed."""
    if i == 1:
        EARLY[:] = [above(a, 2).clone()]
    return (copy := row(a, i).clone()) + product(copy, EARLY[-1] if i == 2 else above(a, i).clone())


EARLY: list[Any] = []


def without_the_last(a: Any, b: Any, i: int) -> Any:
    return row(a, i) * 2.0 if i == 3 else contiguous(a, b, i)


def row(a: Any, i: int) -> Any:
    return a[..., i, :i]


def above(a: Any, i: int) -> Any:
    return a[..., :i, :i]


STEPS: dict[str, Function] = {
    "without copies": lambda a, b, i: row(a, i) + product(row(a, i), above(a, i)),
    "differences": lambda a, b, i: row(a, i) - product(row(a, i), above(a, i)),
    "without rows above": lambda a, b, i: row(a, i).clone() * 2,
    "rows of another function": lambda a, b, i: row(a, i) + product(row(a, i), above(a.exp(), i)),
    "rows of another matrix": lambda a, b, i: row(a, i) + product(row(a, i), above(b, i)),
    "a row of another matrix": lambda a, b, i: row(a, i) + product(row(b, i), above(a, i)),
    "added to another row": lambda a, b, i: row(b, i) + product(row(a, i), above(a, i)),
    "rows further down": lambda a, b, i: row(a, i) + product(row(a, i), a[..., 1 : i + 1, :i]),
    "sums along rows": lambda a, b, i: row(a, i) + (row(a, i).unsqueeze(-1) * above(a, i)).sum(-1),
    "products with columns": lambda a, b, i: row(a, i) + (row(a, i).unsqueeze(-2) * above(a, i)).sum(-2),
    "twice the sum": lambda a, b, i: torch.add(row(a, i), product(row(a, i), above(a, i)), alpha=2),
}
"""What row i becomes, in the other cases of a system, given the matrix and another one."""

SYSTEMS: dict[str, Function] = {
    "three rows": lambda a: solved(lower(a[:, :3, :3]), size=3) * 2.0,
    "the identity is added": lambda a: solved(-lower(a)) + torch.eye(4),
    "a mask": lambda a: solved(masked(a)) * 2.0,
    "axes from the front": lambda a: solved(lower(a), from_the_front) * 2.0,
    "contiguous rows": lambda a: solved(lower(a), contiguous) * 2.0,
    "ones are added": lambda a: solved(lower(a)) + torch.ones(4),
    "the identity is subtracted": lambda a: solved(lower(a)) - torch.eye(4),
    "the identity is added several times": lambda a: torch.add(solved(lower(a)), torch.eye(4), alpha=3),
    "read before": lambda a: solved(lower(a), early=torch.exp),
    "read after": lambda a: ((s := solved(lower(a))) * 2.0, s.exp(), second_row(s).exp()),
    "read meanwhile": lambda a: solved(lower(a), early=torch.exp, at=1),
    "a row is read meanwhile": lambda a: solved(lower(a), early=lambda a: second_row(a).exp(), at=1),
    "a row from before": lambda a: solved(lower(a), early=second_row),
    "a row from meanwhile": lambda a: solved(lower(a), early=second_row, at=1),
    "turned after": lambda a: ((s := solved(lower(a))) * 2.0, s.transpose(-1, -2).exp()),
    "a mask above the diagonal": lambda a: solved(masked(a, 1)) * 2.0,
    "a mask of nothing": lambda a: solved(masked(a, 0, torch.zeros)) * 2.0,
    "with a diagonal": lambda a: solved(a.tril()) * 2.0,
    "not triangular": lambda a: solved(a.clone()) * 2.0,
    "a view": lambda a: solved(lower(a).detach()) * 2.0,
    "not square": lambda a: solved(lower(a)[:, :, :3], size=3) * 2.0,
    "two rows": lambda a: solved(lower(a[:, :2, :2]), size=2) * 2.0,
    "the last row is not solved": lambda a: solved(lower(a), size=3) * 2.0,
    "the last row without rows above": lambda a: solved(lower(a), without_the_last),
    "rows above from before": lambda a: solved(lower(a), once_early),
    **{name: partial(lambda step, a, b: solved(lower(a), step, b=b), step) for name, step in STEPS.items()},
}


# Values that are changed in place.


def slices(x: Any) -> Any:
    y = torch.empty_like(x)
    first = y[..., :3]
    y[..., :3] = x[..., 1:4]
    y[..., 3:] = first.sum(-1, keepdim=True)
    return y, first * 2


def views_of_views(x: Any) -> Any:
    y = x.clone()
    row, column = y[1], y[:, 2]
    part = row[2:]
    part.mul_(3.0)
    y.transpose(0, 1)[0].add_(column[0])
    row[0] = 7.0
    return y + row, column, part


def pieces(x: Any) -> Any:
    y = x * 2
    a, b = y.split(3, dim=1)
    y.sub_(1.0)
    return a * b, y


def results(x: Any) -> Any:
    y = x.exp()
    z = y.div_(2.0)
    z.unsqueeze(1)[:, 0, 1] = 0.0
    y += z
    return z.clamp_(max=3.0), y


def masks(x: Any) -> Any:
    mask = torch.zeros_like(x, dtype=torch.bool)
    chosen = x.topk(2, dim=-1)[1]
    mask.scatter_(1, chosen, True)
    y = torch.full_like(x, float("-inf")).masked_fill_(mask, 1.0)
    y[chosen[:, 0] > 1] = 5.0
    return y.softmax(-1)


def a_view_of_an_input(x: Any) -> Any:
    x.view(-1)[2] = 1.0
    return x * 2


def a_flat_view(x: Any) -> Any:
    y = x.clone()
    y.view(-1)[2:9] = 1.0
    return y


def an_output_that_is_given(x: Any) -> Any:
    y = x.clone()
    torch.sin(x, out=y)
    return y


def a_view_of_a_size(x: Any) -> Any:
    """The size is that of a view of the same tensor."""
    y = x.clone()
    whole = y[:1].expand_as(y)
    y.mul_(2.0)
    return whole + 1.0


def several_at_once(x: Any) -> Any:
    y, z = x.exp(), x.sin()
    torch._foreach_add_([y, z], 1.0)
    return y * z


def a_graph_of_its_own(x: Any) -> Any:
    with torch.enable_grad():
        y = x.exp()
    y = y * 2
    y[0] = 1.0
    return y


def mask_of_items(x: Any) -> Any:
    """A mask as transformers makes it."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    batch, length = x.shape
    kept = x > 0

    def is_visible(item: Any, query: Any, key: Any) -> Any:
        return (query >= key) & (query - key < 4) & kept[item, key]

    over_keys = torch.vmap(is_visible, (None, None, 0))
    over_all = torch.vmap(torch.vmap(over_keys, (None, 0, None)), (0, None, None))
    with TransformGetItemToIndex():
        return over_all(torch.arange(batch), torch.arange(length), torch.arange(length)), x.exp()


CHANGES: dict[str, Function] = {
    **{function.__name__: function for function in (slices, views_of_views, pieces, results, masks)},
    "an input": lambda x: x.add_(1.0),
    "another type": lambda x: x.half().exp().mul_(x),
    "a comparison": lambda x: x.clone().gt_(0.0),
    "turned axes": lambda x: x.exp().transpose_(0, 1),
    **{
        function.__name__: function
        for function in (
            a_view_of_an_input, a_flat_view, an_output_that_is_given, a_view_of_a_size, several_at_once,
            mask_of_items,
            a_graph_of_its_own,
        )
    },
}  # fmt: skip
