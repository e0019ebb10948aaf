"""Loops of generated code as calls of functions, which compute what the loops did."""

import ast
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from archspec.pytorch.onnx import loops
from archspec.pytorch.values.arguments import UntranslatableError

HELD = """
def __init__(self, count):
    for i in range(count):
        self.add(i)
"""
NUMBERS = """
def forward(self, x):
    for i in range(3):
        x = x + i
    for i in range(self.count):
        x = x * i
    for y in x.unbind(0):
        x = x + y
    return x
"""


@pytest.mark.parametrize("code", [HELD, NUMBERS])
def test_loops_over_numbers_stay(code: str) -> None:
    tree = loops.with_loops(code)
    assert ast.unparse(tree) == code.strip() and not loops.has_loops(tree)


CHANGED: dict[str, tuple[str, str]] = {
    "carried and collected": (
        """
def forward(self, x, *, h):
    y = []
    for t in range(1, x.shape[1]):
        before = h
        h, _ = before * x[:, t], t
        y.append(h)
    return torch.stack(y, -1)
""",
        """
def forward(self, x, *, h):
    y = []

    def <iteration>(t, h):
        before = h
        h, _ = (before * <pick>(x, 1, t), t)
        y = h
        return ((h,), (y,))
    (h,), (y,) = <loop>(<iteration>, (1, x.shape[1]), (h,), (y,))
    return <stack>(y, -1)
""",
    ),
    "places of an index": (
        """
def forward(self, x, n, g):
    for t in range(n):
        g = g + x[..., t + 1, :] * x[t] - x[..., t] + x[t, 0] + x[:, t:] + x[0, :]
        h = g
    return g
""",
        """
def forward(self, x, n, g):

    def <iteration>(t, g):
        g = g + <pick>(x, -2, t + 1) * <pick>(x, 0, t) - <pick>(x, -1, t) + x[t, 0] + x[:, t:] + x[0, :]
        h = g
        return ((g,), ())
    (g,), () = <loop>(<iteration>, (n,), (g,), ())
    return g
""",
    ),
    "loops over numbers inside": (
        """
def forward(self, x, n, h):
    for t in range(n):
        z = []
        for i in range(3):
            z.append(h * i)
        torch.check(z)
        h = torch.stack(z, 1)
    if n:
        for s in range(n):
            h = h + s
    else:
        h = torch.stack([h], 0)
    return h
""",
        """
def forward(self, x, n, h):

    def <iteration>(t, h):
        z = []
        for i in range(3):
            z.append(h * i)
        torch.check(z)
        h = <stack>(z, 1)
        return ((h,), ())
    (h,), () = <loop>(<iteration>, (n,), (h,), ())
    if n:

        def <iteration>(s, h):
            h = h + s
            return ((h,), ())
        (h,), () = <loop>(<iteration>, (n,), (h,), ())
    else:
        h = <stack>([h], 0)
    return h
""",
    ),
    "several in an order of their own": (
        """
def forward(self, b, a, c, n):
    for t in range(b, a, n):
        a = b
        b = a + c
        u.append(a)
        v.append(b)
        t = 3
""",
        """
def forward(self, b, a, c, n):

    def <iteration>(t, a, b):
        a = b
        b = a + c
        u = a
        v = b
        t = 3
        return ((a, b), (u, v))
    (a, b), (u, v) = <loop>(<iteration>, (b, a, n), (a, b), (u, v))
""",
    ),
}


@pytest.mark.parametrize("case", CHANGED)
def test_loops_become_calls(case: str) -> None:
    before, after = CHANGED[case]
    tree = loops.with_loops(before)
    assert ast.unparse(tree) == after.strip() and loops.has_loops(tree)


def test_functions_that_changed_code_calls() -> None:
    assert loops.functions() == {
        "<loop>": loops.loop,
        "<stack>": loops.stack,
        "<pick>": loops.pick,
        "<window>": loops.window,
        "<tensor>": loops.stored_tensor,
    }


def test_loops_with_numbers_run() -> None:
    seen: list[int] = []

    def iteration(index: int, a: Any, b: Any) -> Any:
        seen.append(index)
        return (b, a + index), (a * 10, b)

    first, second = [torch.tensor(-1)], list[Any]()
    carried, collected = loops.loop(iteration, (1, 6, 2), (torch.tensor(1), torch.tensor(2)), (first, second))
    assert seen == [1, 3, 5] and [int(value) for value in carried] == [5, 7]
    assert [[int(item) for item in found] for found in collected] == [[-1, 10, 20, 20], [2, 2, 5]]
    assert collected[0] is first and collected[1] is second


def test_what_loops_collect_is_stacked() -> None:
    parts = [torch.arange(3.0), torch.arange(3.0) + 5]
    assert loops.stack(parts, 1).equal(torch.stack(parts, 1))
    assert loops.stack(torch.stack(parts), 1).equal(torch.stack(parts, 1))
    assert loops.stack(torch.stack(parts), -1).equal(torch.stack(parts, -1))


def test_elements_are_picked() -> None:
    x = torch.arange(24).reshape(2, 3, 4)
    assert loops.pick(x, 1, 2).equal(x[:, 2]) and loops.pick(x, -1, torch.tensor(3)).equal(x[..., 3])
    assert loops.pick({"1": 7}, 0, "1") == 7
    assert loops.pick([4, 5, 6], 0, torch.tensor(1)) == 5 and loops.pick((4, 5, 6), 0, 2) == 6


@pytest.mark.parametrize("index", [1, torch.tensor(1)])
def test_windows_are_read(index: Any) -> None:
    x = torch.arange(24).reshape(2, 6, 2)
    assert loops.window(x, 1, lambda t: 2 * t, lambda t: 2 * t + 3, index).equal(x[:, 2:5])
    assert loops.window(x, -2, lambda t: 4 - t, lambda t: 5 - t, index).equal(x[:, 3:4])


class Scaling(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([2.0]))
        self.shift = torch.nn.Buffer(torch.tensor([5.0]))


def test_what_an_iteration_reads_is_replaced_meanwhile() -> None:
    module, pair, number = Scaling(), [torch.ones(1), torch.zeros(1) + 3], 7

    def iteration() -> Any:
        return [module.weight * 1, module.shift * 1, *pair, number]

    def values() -> list[float]:
        return [float(value) for value in iteration()]

    read = loops._Read(iteration.__closure__ or ())
    assert [float(tensor.detach()) for tensor in read.tensors] == [1.0, 3.0, 2.0, 5.0]
    before = pair
    with read.replaced([torch.tensor([value]) for value in (10.0, 20.0, 30.0, 40.0)]):
        assert values() == [30.0, 40.0, 10.0, 20.0, 7.0]
    assert values() == [2.0, 5.0, 1.0, 3.0, 7.0] and pair is before
    with pytest.raises(ValueError, match="inside"), read.replaced([torch.tensor([0.0])] * 4):
        raise ValueError("inside")
    assert values() == [2.0, 5.0, 1.0, 3.0, 7.0]


class Summed(torch.nn.Module):
    def __init__(self, by: float, fails: bool = False) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([by]))
        self.by, self.fails = by, fails
        self.seen: Any = None

    def forward(self, x: Any, ids: Any) -> Any:
        self.seen = SimpleNamespace(x=x, ids=ids, weight=float(self.weight.detach()))
        if self.fails:
            raise ValueError("no tensor")
        return (x * self.by).sum() + ids.sum(), torch.tensor(float("nan"))


def test_changed_code_computes_the_same() -> None:
    inputs = {"x": torch.zeros(2, 3), "ids": torch.zeros(4, dtype=torch.int64)}
    changed, generated = Summed(2.0), Summed(2.0)
    generated.weight.data.fill_(9.0)
    loops.require_same_outputs(changed, generated, inputs)
    for module in (changed, generated):
        assert module.seen.x.abs().sum() > 0 and module.seen.x.shape == (2, 3) and module.seen.weight == 2.0
        assert module.seen.ids.dtype == torch.int64 and {*module.seen.ids.tolist()} <= {0, 1}
    with pytest.raises(UntranslatableError, match=r"^its loops would compute something else$"):
        loops.require_same_outputs(Summed(2.0), Summed(2.5), inputs)
    with pytest.raises(UntranslatableError, match=r"^its loops cannot be changed to single operations: no tensor$"):
        loops.require_same_outputs(Summed(2.0, True), Summed(2.0), inputs)
