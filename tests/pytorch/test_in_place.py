"""Programs that change values in place, as programs of new values: they compute the same."""

import random
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphs import Module

from archspec.pytorch.passes.in_place import functionalize


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


FUNCTIONS = (slices, views_of_views, pieces, results, masks)


def program_of(function: Callable[[Any], Any], x: Any) -> Any:
    with torch.no_grad():
        return torch.export.export(Module(function), (x,), strict=False)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_is_changed_and_the_results_are_the_same(function: Callable[[Any], Any]) -> None:
    x = torch.randn(4, 6, dtype=torch.float64)
    program = program_of(function, x)
    changing = [node for node in program.graph.nodes if node.op == "call_function" and "_" in str(node.target)]
    assert changing
    assert functionalize(program)
    for node in program.graph.nodes:
        assert not getattr(getattr(node.target, "_schema", None), "is_mutable", False)
    wanted = function(x.clone())
    constants = [program.constants[name] for name in program.graph_signature.inputs_to_lifted_tensor_constants.values()]
    found = torch.fx.Interpreter(program.graph_module).run(*constants, x.clone())
    for a, b in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def an_input(x: Any) -> Any:
    return x.add_(1.0)


def a_view_of_an_input(x: Any) -> Any:
    x.view(-1)[2] = 1.0
    return x * 2


def another_type(x: Any) -> Any:
    return x.float().exp().mul_(x.double())


def a_comparison(x: Any) -> Any:
    return x.clone().gt_(0.0)


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
    first = y[:1]
    whole = first.expand_as(y)
    y.mul_(2.0)
    return whole + 1.0


def turned_axes(x: Any) -> Any:
    return x.exp().transpose_(0, 1)


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


@pytest.mark.parametrize(
    "function",
    [
        an_input,
        a_view_of_an_input,
        another_type,
        a_comparison,
        a_flat_view,
        an_output_that_is_given,
        a_view_of_a_size,
        a_graph_of_its_own,
        turned_axes,
        several_at_once,
    ],
)
def test_other_changes_are_left_to_pytorch(function: Callable[[Any], Any]) -> None:
    program = program_of(function, torch.randn(4, 6, dtype=torch.float64))
    before = str(program.graph)
    assert not functionalize(program)
    assert str(program.graph) == before


def drawn_view(draw: random.Random, x: Any) -> Any:
    axis = draw.randrange(x.dim())
    size = x.shape[axis]
    first = draw.randrange(size)
    match draw.randrange(8):
        case 0:
            return torch.ops.aten.slice.Tensor(x, axis, first, draw.randrange(first + 1, size + 1))
        case 1:
            return torch.ops.aten.slice.Tensor(x, axis, first, size, 2)
        case 2 if x.dim() > 1:
            return x.select(axis, draw.choice([first, -1]))
        case 3:
            return x.transpose(axis, draw.randrange(x.dim()))
        case 4:
            return x.unsqueeze(draw.choice([axis, -1]))
        case 5:
            return x.split(1, axis)[first]
        case 6:
            return x.reshape(-1, x.shape[-1])
        case _:
            return x.detach()


def drawn_change(draw: random.Random, x: Any, other: Any) -> Any:
    changes: list[Callable[[], Any]] = [
        lambda: x.add_(1.5),
        lambda: x.mul_(-2.0),
        lambda: x.fill_(3.0),
        lambda: x.masked_fill_(x > 1, 0.25),
        lambda: x.copy_(other.sum().expand(x.shape)),
        lambda: x.sub_(other.clone() if other.shape == x.shape else other.mean()),
    ]
    return draw.choice(changes)()


def drawn_function(seed: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        draw = random.Random(seed)
        values = [x * 2, torch.zeros(4, 6, dtype=x.dtype)]
        for _ in range(draw.randrange(4, 14)):
            value = draw.choice(values)
            turn = draw.random()
            if turn < 0.4 and value.dim() < 4:
                values.append(drawn_view(draw, value))
            elif turn < 0.8:
                changed = drawn_change(draw, value, draw.choice(values))
                values += [changed] if draw.random() < 0.5 else []
            else:
                values.append(value + 1)
        return tuple([value + 0 for value in values])

    return function


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 60, 15))
def test_drawn_programs_compute_the_same(start: int) -> None:
    same = 0
    for seed in range(start, start + 15):
        function = drawn_function(seed)
        x = torch.randn(4, 6, dtype=torch.float64)
        program = program_of(function, x)
        if functionalize(program):
            same += 1
            names = program.graph_signature.inputs_to_lifted_tensor_constants.values()
            constants = [program.constants[name] for name in names]
            found = torch.fx.Interpreter(program.graph_module).run(*constants, x.clone())
            for a, b in zip(found, function(x.clone()), strict=True):
                torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert same > 5
