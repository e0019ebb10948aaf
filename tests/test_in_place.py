"""Programs that change values in place, as programs of new values: they compute the same."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from archspec.equivalence.in_place import without_changes  # noqa: E402

pytestmark = pytest.mark.slow  # as PyTorch takes seconds to be loaded


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


class Module(torch.nn.Module):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def program_of(function: Callable[[Any], Any], x: Any) -> Any:
    with torch.no_grad():
        return torch.export.export(Module(function), (x,), strict=False)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_is_changed_and_the_results_are_the_same(function: Callable[[Any], Any]) -> None:
    x = torch.randn(4, 6, dtype=torch.float64)
    program = program_of(function, x)
    changing = [node for node in program.graph.nodes if node.op == "call_function" and "_" in str(node.target)]
    assert changing
    assert without_changes(program)
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


@pytest.mark.parametrize("function", [an_input, a_view_of_an_input, another_type, a_comparison, a_flat_view])
def test_other_changes_are_left_to_pytorch(function: Callable[[Any], Any]) -> None:
    program = program_of(function, torch.randn(4, 6, dtype=torch.float64))
    before = str(program.graph)
    assert not without_changes(program)
    assert str(program.graph) == before
