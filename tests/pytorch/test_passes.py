"""Passes over exported programs that are written by hand: what they rewrite, and what they leave or refuse."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphs import Program, run, targets_of, traced

from archspec.pytorch.passes.folding import fold_constants
from archspec.pytorch.passes.matches import are_different, rewrite_condition_indices
from archspec.pytorch.passes.selection import rewrite_row_selection, rewrite_scatter
from archspec.pytorch.passes.substitution import rewrite_triangular_solves
from archspec.pytorch.values.arguments import UntranslatableError

ATEN = torch.ops.aten


def places_of(program: Program, condition: Any) -> list[Any]:
    """The places where a condition is true, along each axis."""
    node = program.graph.call_function(ATEN.nonzero_numpy.default, (condition,))
    count = program.environment.create_unbacked_symint()
    with program.mode:
        node.meta["val"] = [torch.empty(count, dtype=torch.long) for _ in condition.meta["val"].shape]
    parts = [program.graph.call_function(operator.getitem, (node, axis)) for axis in range(len(node.meta["val"]))]
    for part, value in zip(parts, node.meta["val"], strict=True):
        part.meta["val"] = value
    return parts


def chosen(program: Program, number: int) -> Any:
    """Whether the two largest scores of each token are at an index."""
    scores = program.input("scores", torch.empty(4, 3))
    best = program.call(ATEN.topk.default, scores, 2)
    return program.call(ATEN.eq.Scalar, program.call(operator.getitem, best, 1), number)


def selected(program: Program, x: Any, places: list[Any]) -> Any:
    node = program.graph.call_function(ATEN.index.Tensor, (x, places))
    with program.mode:
        node.meta["val"] = torch.empty((places[0].meta["val"].shape[0], *x.meta["val"].shape[len(places) :]))
    return node


@pytest.mark.parametrize("turned", [False, True])
def test_places_where_one_choice_is_an_expert_select_by_a_mask(turned: bool) -> None:
    program = Program()
    condition = chosen(program, 2)
    shares = program.input("shares", torch.empty(4, 2, 5))
    x = program.input("x", torch.empty(4, 6))
    if turned:
        places = places_of(program, program.call(ATEN.t.default, condition))[::-1]
    else:
        places = places_of(program, condition)
    program.output(selected(program, shares, places), selected(program, x, places[:1]))
    rewrite_condition_indices(program)  # type: ignore[arg-type]
    assert "aten.nonzero_numpy.default" not in targets_of(program)
    given = torch.tensor([[1.0, 0.5, 2.0], [3.0, 2.0, 1.0], [0.0, 2.0, 1.0], [5.0, 4.0, 6.0]])
    values = torch.arange(40.0).reshape(4, 2, 5), torch.arange(24.0).reshape(4, 6)
    token, choice = (given.topk(2)[1] == 2).nonzero(as_tuple=True)
    found = run(program, given, *values)
    assert found[0].equal(values[0][token, choice]) and found[1].equal(values[1][token])


def test_places_where_a_condition_is_true_once_select_by_a_mask() -> None:
    x = torch.tensor([[1.0], [-2.0], [3.0]])
    for shape, axes in (((3, 1), 2), ((3, 1), 1), ((3,), 1)):
        program = Program()
        node = program.input("x", torch.empty(shape))
        places = places_of(program, program.call(ATEN.gt.Scalar, node, 0.0))
        program.output(selected(program, node, places[:axes]))
        rewrite_condition_indices(program)  # type: ignore[arg-type]
        given = x.reshape(shape)
        assert run(program, given)[0].tolist() == given[(given > 0.0).nonzero(as_tuple=True)[:axes]].tolist()


def changed(program: Program, target: Any, x: Any, *args: Any, **named: Any) -> Any:
    """A change of `x`, of the same shape."""
    node = program.graph.call_function(target, (x, *args), named)
    node.meta["val"] = x.meta["val"]
    return node


PUT, ADD = ATEN.index_put.default, ATEN.index_add.default
Change = Callable[[Program, Any, list[Any], Any], Any]


@pytest.mark.parametrize(
    ("change", "is_sum"),
    [
        (lambda p, x, at, rows: changed(p, PUT, x, at[:1], rows), False),
        (lambda p, x, at, rows: changed(p, PUT, x, at[:1], rows, False), False),
        (lambda p, x, at, rows: changed(p, PUT, x, at[:1], rows, True), True),
        (lambda p, x, at, rows: changed(p, PUT, x, at[:1], rows, accumulate=True), True),
        (lambda p, x, at, rows: changed(p, ADD, x, 0, at[0], rows), True),
    ],
)
def test_rows_are_put_where_a_mask_is_true(change: Change, is_sum: bool) -> None:
    program = Program()
    condition = chosen(program, 2)
    x, y = (program.input(name, torch.empty(4, 6)) for name in "xy")
    places = places_of(program, condition)
    program.output(change(program, x, places, selected(program, y, places[:1])))
    rewrite_condition_indices(program)  # type: ignore[arg-type]
    assert "aten.nonzero_numpy.default" not in targets_of(program)
    given = torch.tensor([[1.0, 0.5, 2.0], [3.0, 2.0, 1.0], [0.0, 2.0, 1.0], [5.0, 4.0, 6.0]])
    before, rows = torch.arange(24.0).reshape(4, 6), torch.full((4, 6), 0.5)
    is_chosen = torch.tensor([[True], [False], [True], [True]])
    expected = torch.where(is_chosen, before + rows if is_sum else rows, before)
    assert run(program, given, before, rows)[0].equal(expected)


def counted(program: Program, x: Any, places: list[Any]) -> Any:
    """A sum of what is selected, times the number of places."""
    count = program.graph.call_function(ATEN.sym_size.int, (places[0], 0))
    count.meta["val"] = places[0].meta["val"].shape[0]
    return program.graph.call_function(operator.mul, (count, 2))


@pytest.mark.parametrize(
    "use",
    [
        lambda p, x, at, rows: changed(p, ADD, x, 1, at[0], rows),
        lambda p, x, at, rows: changed(p, ADD, x, 0, at[1], rows),
        lambda p, x, at, rows: changed(p, ADD, x, 0, at[0], rows, alpha=2),
        lambda p, x, at, rows: changed(p, PUT, x, at, rows),
        lambda p, x, at, rows: changed(p, PUT, x, at[1:], rows),
        lambda p, x, at, rows: changed(p, PUT, p.input("table", torch.empty(5, 6)), at[:1], rows),
        lambda p, x, at, rows: changed(p, ATEN.add.Scalar, at[0], 1),
        lambda p, x, at, rows: selected(p, p.input("table", torch.empty(5, 6)), at[:1]),
        lambda p, x, at, rows: selected(p, x, at[1:]),
        lambda p, x, at, rows: counted(p, x, at),
        lambda p, x, at, rows: p.graph.call_function(ATEN.stack.default, (at[0].args[0],)),
    ],
)
def test_other_uses_of_places_are_refused(use: Change) -> None:
    program = Program()
    condition = chosen(program, 2)
    x = program.input("x", torch.empty(4, 6))
    places = places_of(program, condition)
    use(program, x, places, selected(program, x, places[:1]))
    with pytest.raises(UntranslatableError, match=r"^it computes with the indices at which a condition is true$"):
        rewrite_condition_indices(program)  # type: ignore[arg-type]


def test_places_in_a_vector_are_those_of_a_mask() -> None:
    program = Program()
    mask = program.input("mask", torch.empty(4, dtype=torch.bool))
    x = program.input("x", torch.empty(4, 6))
    places = places_of(program, mask)
    program.output(selected(program, x, places))
    rewrite_condition_indices(program)  # type: ignore[arg-type]
    given, values = torch.tensor([True, False, False, True]), torch.arange(24.0).reshape(4, 6)
    assert run(program, given, values)[0].equal(values[given])


def test_places_in_a_vector_of_different_numbers_are_those_of_a_mask() -> None:
    program = Program()
    best = program.call(ATEN.topk.default, program.input("scores", torch.empty(4)), 3)
    x = program.input("x", torch.empty(3, 6))
    condition = program.call(ATEN.eq.Scalar, program.call(operator.getitem, best, 1), 2)
    program.output(selected(program, x, places_of(program, condition)))
    rewrite_condition_indices(program)  # type: ignore[arg-type]
    scores, values = torch.tensor([1.0, 0.5, 3.0, 2.0]), torch.arange(18.0).reshape(3, 6)
    assert run(program, scores, values)[0].equal(values[:1])


def test_several_matches_for_a_row_are_refused() -> None:
    for target, other in ((ATEN.gt.Scalar, 0.0), (ATEN.eq.Scalar, 1)):
        program = Program()
        places_of(program, program.call(target, program.input("x", torch.empty(3, 2)), other))
        with pytest.raises(UntranslatableError, match="can be several times for one row"):
            rewrite_condition_indices(program)  # type: ignore[arg-type]


def test_places_of_the_largest_are_different() -> None:
    program = Program()
    x = program.input("x", torch.empty(4, 3))

    def part(node: Any, turn: int) -> Any:
        return program.call(operator.getitem, node, turn)

    best = program.call(ATEN.topk.default, x, 2)
    ordered = program.call(ATEN.sort.default, part(best, 1))
    columns = program.call(ATEN.sort.default, x, 0)
    split = program.call(ATEN.split.Tensor, x, 2)
    assert are_different(part(best, 1)) and not are_different(part(best, 0)) and not are_different(x)
    assert are_different(part(best, 1), 1) and not are_different(part(best, 1), 0)
    assert are_different(part(ordered, 0)) and are_different(part(ordered, 1))
    assert are_different(part(columns, 1), 0) and not are_different(part(columns, 1))
    assert not are_different(part(split, 1))
    assert are_different(program.call(ATEN.clone.default, part(best, 1)))
    assert not are_different(program.call(ATEN._to_copy.default, part(best, 1), dtype=torch.int8))
    named = part(program.call(ATEN.topk.default, x, 2, dim=0), 1)
    assert are_different(named, 0) and not are_different(named, 1) and not are_different(named, -1)
    of_columns = part(program.call(ATEN.topk.default, x, 2, 0), 1)
    assert are_different(of_columns, 0) and not are_different(of_columns, 1)


def test_views_of_different_places_are_different_along_the_same_axis() -> None:
    program = Program()
    best = program.call(ATEN.topk.default, program.input("x", torch.empty(4, 3)), 2)
    places = program.call(operator.getitem, best, 1)

    def axes(target: Any, *args: Any) -> list[int]:
        view = program.call(target, places, *args)
        return [axis for axis in range(view.meta["val"].dim()) if are_different(view, axis)]

    assert axes(ATEN.unsqueeze.default, 0) == [2]
    assert axes(ATEN.unsqueeze.default, 1) == [2]
    assert axes(ATEN.unsqueeze.default, -1) == axes(ATEN.unsqueeze.default, 2) == [1]
    assert axes(ATEN.view.default, [1, 4, 2]) == [2] and axes(ATEN.view.default, [2, 2, 2]) == [2]
    assert axes(ATEN.view.default, [8]) == axes(ATEN.view.default, [2, 4]) == []
    assert axes(ATEN.expand.default, [2, 4, 2]) == [2]
    assert axes(ATEN.mul.Scalar, 0) == []
    places = program.call(ATEN.unsqueeze.default, places, -1)
    assert axes(ATEN.expand.default, [4, 2, 3]) == [1] and axes(ATEN.expand.default, [4, 2, 1]) == [1]
    places = program.call(ATEN.select.int, places, 1, 0)
    assert axes(ATEN.expand.default, [4, 3]) == []
    columns = program.call(ATEN.sort.default, program.input("y", torch.empty(4, 3)), 0)
    places = program.call(operator.getitem, columns, 1)
    assert axes(ATEN.expand.default, [2, 4, 3]) == [1] and axes(ATEN.expand.default, [4, 3]) == [0]
    stacked = program.call(ATEN.topk.default, program.input("z", torch.empty(2, 4, 3)), 2)
    places = program.call(operator.getitem, stacked, 1)
    assert axes(ATEN.view.default, [8, 2]) == [1] and axes(ATEN.reshape.default, [1, 2, 4, 2]) == [3]


@pytest.mark.parametrize(
    ("function", "shapes", "is_rewritten"),
    [
        (lambda x, i, y: x.index_add(1, i, y), ((2, 5, 3), (4,), (2, 4, 3)), True),
        (lambda x, i, y: x.index_add(1, i, y, alpha=2), ((2, 5, 3), (4,), (2, 4, 3)), False),
        (lambda x, i, y: x.scatter_add(1, i, y), ((2, 5), (2, 4), (2, 4)), True),
        (lambda x, i, y: x.scatter_add(1, i, y), ((2, 5), (1, 4), (1, 4)), False),
        (lambda x, i, y: x.scatter_add(0, i, y), ((), (), ()), False),
        (lambda x, i, y: x.scatter(1, i, y), ((2, 5), (2, 4), (2, 4)), False),
        (lambda x, i, y: x.scatter(1, i, 2.0), ((2, 5), (2, 4), ()), False),
        (lambda x, i, y: x.scatter(-1, y.sort()[1], y), ((2, 5), (), (2, 4)), True),
    ],
)
def test_numbers_at_indices_are_sums(function: Callable[..., Any], shapes: Any, is_rewritten: bool) -> None:
    size = shapes[0][1] if shapes[0] else 1
    generator = torch.Generator().manual_seed(0)
    x, y = [torch.randn(shape, generator=generator) for shape in (shapes[0], shapes[2])]
    index = torch.randint(0, size, shapes[1], generator=generator)
    program = traced(function, x, index, y)
    before = targets_of(program)
    rewrite_scatter(program)
    assert (targets_of(program) != before) == is_rewritten
    torch.testing.assert_close(run(program, x, index, y)[0], function(x, index, y))


def test_reals_that_are_computed_of_constants_alone_are_known() -> None:
    program = Program()
    x, scale = program.input("x", torch.empty(3)), program.input("scale", torch.ones(3))
    program.graph_signature.inputs_to_lifted_tensor_constants["scale"] = "_scale"
    program.constants["_scale"] = numbers = torch.tensor([1.0, 2.0, 3.0])
    twice = program.call(ATEN.mul.Tensor, scale, 2.0)
    more = program.call(ATEN.add.Tensor, twice, program.call(ATEN.exp.default, scale))
    zeros = program.call(ATEN.zeros_like.default, x)
    whole = program.call(ATEN._to_copy.default, scale, dtype=torch.int64)
    drawn = program.call(ATEN.bernoulli.default, program.call(ATEN.div.Tensor, scale, 4.0))
    program.output(*[program.call(ATEN.mul.Tensor, x, part) for part in (twice, more, zeros, whole, drawn)])
    found = fold_constants(program)  # type: ignore[arg-type]
    expected = {twice: numbers * 2, more: numbers * 2 + numbers.exp(), zeros: torch.zeros(3)}
    assert [*found] == [twice, more, zeros, *[node for node in found if node.target is ATEN.div.Tensor]]
    assert all(found[node].equal(value) for node, value in expected.items())


def solved(
    a: Any, begin: Any, identity: bool = False, step: Any = None, size: int = 4, end: Any = lambda a: a * 2.0
) -> Any:
    """The inverse of 1 - begin(a), less 1, row by row."""

    def usual(a: Any, i: int) -> Any:
        row = a[..., i, :i].clone()
        return row + (row.unsqueeze(-1) * a[..., :i, :i].clone()).sum(-2)

    a = begin(a)
    for i in range(1, size):
        a[..., i, :i] = (step or usual)(a, i)
    return a + torch.eye(size) if identity else end(a)


def lower(a: Any) -> Any:
    return a.tril(-1)


def subtracted(a: Any, i: int) -> Any:
    row = a[..., i, :i].clone()
    return row - (row.unsqueeze(-1) * a[..., :i, :i].clone()).sum(-2)


def of_another(a: Any, i: int) -> Any:
    row = a[..., i, :i].clone()
    return row + (row.unsqueeze(-1) * a.exp()[..., :i, :i].clone()).sum(-2)


def without_rows(a: Any, i: int) -> Any:
    return a[..., i, :i].clone() * 2


def with_early_rows(a: Any, i: int) -> Any:
    """Row 2 adds what is above it before row 1 is changed."""
    if i == 1:
        EARLY[:] = [a[..., :2, :2].clone()]
    row = a[..., i, :i].clone()
    return row + (row.unsqueeze(-1) * (EARLY[0] if i == 2 else a[..., :i, :i].clone())).sum(-2)


EARLY: list[Any] = []


def of_the_last(a: Any, i: int) -> Any:
    return a[..., i, :i].clone() * 2.0 if i == 3 else copied(a, i)


def masked(diagonal: int, fill: Any = torch.ones) -> Any:
    return lambda a: (-a).masked_fill(torch.triu(fill(4, 4, dtype=torch.bool), diagonal), 0)


@pytest.mark.parametrize(
    ("begin", "options", "is_solved"),
    [
        (lower, {}, True),
        (lower, {"identity": True}, True),
        (lambda a: -lower(a), {"identity": True}, True),
        (masked(0), {}, True),
        (masked(1), {}, False),
        (masked(0, torch.zeros), {}, False),
        (lambda a: a.tril(), {}, False),
        (lambda a: a.clone(), {}, False),
        (lambda a: lower(a).detach(), {}, False),
        (lambda a: lower(a)[:, :, :3], {"size": 3}, False),
        (lower, {"end": lambda a: a + torch.ones(4)}, True),
        (lower, {"end": lambda a: a - torch.eye(4)}, True),
        (lower, {"end": lambda a: torch.add(a, torch.eye(4), alpha=3)}, True),
        (lambda a: a[:, :3, :3].tril(-1), {"size": 3}, True),
        (lambda a: a[:, :2, :2].tril(-1), {"size": 2}, False),
        (lower, {"step": subtracted}, False),
        (lower, {"step": with_early_rows}, False),
        (lower, {"step": of_the_last}, False),
        (lower, {"step": of_another}, False),
        (lower, {"step": without_rows}, False),
        (lower, {"size": 3}, False),
    ],
)
def test_systems_are_solved_at_once(begin: Any, options: dict[str, Any], is_solved: bool) -> None:
    a = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0))
    program = traced(lambda a: solved(a, begin, **options), a)
    rewrite_triangular_solves(program)
    assert ("aten.linalg_solve_triangular.default" in targets_of(program)) == is_solved
    torch.testing.assert_close(run(program, a)[0], solved(a, begin, **options))


def begun(change: Any, reads: Any) -> Callable[[Any], Any]:
    """Solves a system row by row; `change` is called after the first row, `reads` after all, with what `change` is."""

    def function(a: Any) -> Any:
        a = lower(a)
        early = change(a, 0)
        for i in range(1, 4):
            row = a[..., i, :i].clone()
            a[..., i, :i] = row + (row.unsqueeze(-1) * a[..., :i, :i].clone()).sum(-2)
            early = change(a, i) if i == 1 and early is None else early
        return a * 2.0, reads(a, early)

    return function


@pytest.mark.parametrize(
    ("change", "reads", "is_solved"),
    [
        (lambda a, i: a.exp() if i == 0 else None, lambda a, early: early, True),
        (lambda a, i: a.exp() if i == 1 else None, lambda a, early: early, False),
        (lambda a, i: a[..., 2, :].exp() if i == 1 else None, lambda a, early: early, False),
        (lambda a, i: a[..., 2, :] if i == 0 else None, lambda a, early: early.exp(), False),
        (lambda a, i: a[..., 2, :] if i == 1 else None, lambda a, early: early.exp(), False),
        (lambda a, i: None, lambda a, early: a[..., 2, :].exp(), True),
        (lambda a, i: None, lambda a, early: a.transpose(-1, -2).exp(), False),
        (lambda a, i: None, lambda a, early: a.exp(), True),
    ],
)
def test_systems_are_left_if_their_rows_are_read_meanwhile(change: Any, reads: Any, is_solved: bool) -> None:
    a = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0))
    function = begun(change, reads)
    program = traced(function, a)
    rewrite_triangular_solves(program)
    assert ("aten.linalg_solve_triangular.default" in targets_of(program)) == is_solved
    for found, expected in zip(run(program, a), function(a), strict=True):
        torch.testing.assert_close(found, expected)


def copied(a: Any, i: int) -> Any:
    row = a[..., i, :i].contiguous()
    return row + (row.unsqueeze(-1) * a[..., :i, :i].contiguous().clone()).sum(-2)


def test_rows_of_systems_may_be_contiguous() -> None:
    a = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0))
    program = traced(lambda a: solved(a, lower, step=copied), a, composite=True)
    assert "aten.contiguous.default" in targets_of(program)
    rewrite_triangular_solves(program)
    assert "aten.linalg_solve_triangular.default" in targets_of(program)
    torch.testing.assert_close(run(program, a)[0], solved(a, lower, step=copied))


def in_column(x: Any, mask: Any, rows: Any) -> Any:
    return ATEN.index_put.default(x, [mask, rows.long()], rows)


def put_back(x: Any, mask: Any, rows: Any) -> Any:
    return ATEN.index_put.default(x, [mask], rows)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, mask, row: put_back(x, mask, ATEN.index.Tensor(x, [mask.clone()]).relu()),
        lambda x, mask, row: put_back(x, ~mask, ATEN.index.Tensor(x, [~mask]) * 2.0),
        lambda x, mask, row: put_back(x.exp(), mask, ATEN.index.Tensor(x, [mask]) + row),
        lambda x, mask, row: ATEN.masked_scatter.default(x, mask.unsqueeze(1), ATEN.index.Tensor(x, [mask]).sin()),
    ],
)
def test_rows_that_a_mask_selects_are_put_back(function: Callable[..., Any]) -> None:
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    mask, row = torch.tensor([True, False, False, True, True]), torch.tensor([1.0, 2.0, 3.0])
    program = traced(function, x, mask, row, symbolic=True)
    (reads,) = [node for node in program.graph.nodes if str(node.target) == "aten.index.Tensor"]
    count, selecting = str(reads.meta["val"].shape[0]), reads.args[1][0]
    assert rewrite_row_selection(program) == {count: selecting}
    assert not any("index" in name or "masked_scatter" in name for name in targets_of(program))
    torch.testing.assert_close(run(program, x, mask, row)[0], function(x, mask, row))


def test_rows_at_indices_stay() -> None:
    x, places = torch.arange(12.0).reshape(4, 3), torch.tensor([1, 3, 0, 1])
    program = traced(lambda x, places: x[places] * 2.0, x, places, symbolic=True)
    assert rewrite_row_selection(program) == {}
    assert run(program, x, places)[0].equal(x[places] * 2.0)


def of_those(rows: Any) -> Any:
    """Changes some of the rows that are selected."""
    own = rows[:, 0] > 0
    return put_back(rows, own, ATEN.index.Tensor(rows, [own]).relu())


def also_returned(x: Any, mask: Any, row: Any) -> Any:
    rows = ATEN.index.Tensor(x, [mask])
    return put_back(x, mask, rows.relu()), rows


@pytest.mark.parametrize(
    "function",
    [
        also_returned,
        lambda x, mask, row: put_back(x, ~mask, ATEN.index.Tensor(x, [mask]).repeat(1, 1)),
        lambda x, mask, row: put_back(x, mask, ATEN.index.Tensor(x, [mask]) * ATEN.index.Tensor(x, [mask]).shape[0]),
        lambda x, mask, row: put_back(x, mask.logical_and(mask.flip(0)), ATEN.index.Tensor(x, [mask])),
        lambda x, mask, row: put_back(x, mask, of_those(ATEN.index.Tensor(x, [mask]))),
        lambda x, mask, row: put_back(x, mask.to(torch.int64) > 0, ATEN.index.Tensor(x, [mask])),
        lambda x, mask, row: ATEN.index_put.default(x, [mask], ATEN.index.Tensor(x, [mask]), True),
        lambda x, mask, row: ATEN.masked_scatter.default(x.T, mask, ATEN.index.Tensor(x, [mask])),
        lambda x, mask, row: put_back(x, mask, ATEN.index.Tensor(x, [mask])[:, :1].clone()),
        lambda x, mask, row: in_column(x, mask, ATEN.index.Tensor(x, [mask])[:, 0].clone()),
    ],
)
def test_other_uses_of_rows_are_refused(function: Callable[..., Any]) -> None:
    program = traced(function, torch.randn(5, 3), torch.arange(5) % 2 == 0, torch.randn(3), symbolic=True)
    with pytest.raises(
        UntranslatableError, match=r"^it selects rows by a mask, and computes something of several rows$"
    ):
        rewrite_row_selection(program)
