"""Exported programs that tests write by hand, in a fraction of the time that `torch.export` takes."""

from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo import config
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx


class Module(torch.nn.Module):
    """The module that is a function of one tensor."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


class Traced:
    def __init__(self, graph_module: Any) -> None:
        self.graph_module = graph_module

    @property
    def graph(self) -> Graph:
        return self.graph_module.graph


def traced(function: Callable[..., Any], *inputs: Any, symbolic: bool = False, composite: bool = False) -> Any:
    """The program of a function of tensors, perhaps with operations that are defined by others."""
    mode = "symbolic" if symbolic else "fake"
    with config.patch({"fake_tensor_cache_enabled": False}):
        return Traced(make_fx(function, tracing_mode=mode, pre_dispatch=composite)(*inputs))


def targets_of(program: Any) -> list[str]:
    """What a program calls, in order."""
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


OMITTED = ("device", "layout", "pin_memory")
"""Arguments that do not change what a program computes."""


def text_of(program: Any) -> list[str]:
    """A program as text: a line for each step, with its operation and arguments."""
    names: dict[Any, str] = {}
    lines: list[str] = []

    def argument(item: Any) -> str:
        if isinstance(item, list | tuple):
            return f"[{', '.join(map(argument, item))}]"
        return names.get(item, str(item)) if isinstance(item, Node) else str(item)

    for node in program.graph.nodes:
        named = [f"{key}={argument(item)}" for key, item in node.kwargs.items() if key not in OMITTED]
        items = [*map(argument, node.args), *named]
        name = str(node.target).removeprefix("aten.") if "." in str(node.target) else ""
        name = name.rpartition(".")[0] or getattr(node.target, "__name__", "")
        if node.op == "placeholder":
            names[node] = node.name.removesuffix("_1")
        elif node.op == "output":
            lines.append(f"return {items[0]}")
        elif node.users or name != "getitem":
            names[node] = f"%{len(lines) + 1}"
            lines.append(f"{names[node]} = {name}({', '.join(items)})")
    return lines


def run(program: Any, *inputs: Any) -> list[Any]:
    """What a program computes."""
    program.graph.lint()
    values: dict[Any, Any] = {}
    given = iter(inputs)
    for node in program.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(given)
        elif node.op == "call_function":
            args, named = torch.fx.map_arg((node.args, node.kwargs), values.get)
            is_the_same = args[1:] == ([],)  # a reshape of all rows, whose sizes are only in its type
            values[node] = args[0] if is_the_same else node.target(*args, **named)
    outputs = program.graph.output_node().args[0]
    return [values[node] for node in (outputs if isinstance(outputs, list | tuple) else [outputs])]
