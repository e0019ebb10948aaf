"""Programs in which `torch.vmap` maps functions over axes, as programs of whole tensors: they compute the same."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphs import Module

import archspec
from archspec.pytorch.passes.mapped import inline_vmaps


def masks(x: Any) -> Any:
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    batch, length = x.shape
    kept = x > 0

    def is_visible(item: Any, query: Any, key: Any) -> Any:
        return (query >= key) & (query - key < 4) & kept[item, key]

    over_keys = torch.vmap(is_visible, (None, None, 0))
    over_all = torch.vmap(torch.vmap(over_keys, (None, 0, None)), (0, None, None))
    with TransformGetItemToIndex():
        return over_all(torch.arange(batch), torch.arange(length), torch.arange(length)), x.exp()


def rows(x: Any) -> Any:
    def products(row: Any, column: Any) -> Any:
        return row @ column, row * 2

    total, twice = torch.vmap(products, (0, 1))(x, x.T)
    return torch.vmap(torch.sin)(total), twice


def program_of(function: Callable[[Any], Any], x: Any) -> Any:
    sizes = {"x": {0: torch.export.Dim.AUTO, 1: torch.export.Dim.STATIC}}
    return torch.export.export(Module(function), (x,), dynamic_shapes=sizes, strict=False)


@pytest.mark.parametrize("function", [masks, rows])
def test_a_program_without_maps_computes_the_same(function: Callable[[Any], Any]) -> None:
    x = torch.randn(4, 6)
    program = program_of(function, x)
    assert inline_vmaps(program)
    assert not [node for node in program.graph.nodes if "batch_dim" in str(node.target) or node.op == "get_attr"]
    program.graph.lint()
    program.graph_module.recompile()
    for other in (x, torch.randn(7, 6)):
        for ours, theirs in zip(program.module()(other), function(other), strict=True):
            torch.testing.assert_close(ours, theirs)


def test_a_map_that_cannot_be_traced_stays() -> None:
    """PyTorch is in no map after that."""
    program = program_of(masks, torch.randn(4, 6))
    for node in program.graph.nodes:
        if "_remove_batch_dim" in str(node.target):
            node.target = failing
    before = str(program.graph)
    assert not inline_vmaps(program)
    assert str(program.graph) == before
    assert torch._C._functorch.maybe_current_level() is None


def failing(*_: Any) -> Any:
    raise RuntimeError("this cannot be traced")


def test_a_module_with_a_map_is_lifted() -> None:
    found = archspec.lift(Module(masks).eval(), {"x": torch.randn(3, 7)})
    assert "g    = mask and reshape([batch, 1, 7])(x > 0)" in found
