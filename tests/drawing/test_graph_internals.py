"""Steps of the code that the tests of graph cannot reach through public names."""

import json
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
from small import load
from test_graph import NESTED

import archspec
from archspec.drawing.graph.boxes import build_picture
from archspec.drawing.graph.dot import to_dot
from archspec.drawing.graph.mermaid import to_mermaid
from archspec.drawing.graph.nodelink import to_node_link
from archspec.drawing.graph.walk import close_blocks


def test_a_tensor_that_all_iterations_use_is_not_repeated(tmp_path: Path) -> None:
    spec = tmp_path / "net.arch"
    spec.write_text("""
block Inner(n)(x [n], outer [n]) -> [n] {
  scale: param [n]
  return x * .scale + outer
}
block Outer(n, times)(x [n], outer [n]) -> [n] {
  inner: Inner(n)
  return x |> .inner(_, outer) for i in 0..times |> * 0.5
}
block Net(n = 5, layers = 3, times = 4)(x [n]) -> [n] {
  outer: param [n]
  return x |> layers[i]: Outer(n, times)(_, .outer) for i in 0..layers
}
model "net" = Net()
""")
    model = archspec.load(str(spec))
    graph = model.graph(fold=True)
    repeats = dict(graph.nodes(data="repeat"))
    assert (repeats["outer"], repeats["layers.*.inner.scale"], repeats["layers.*.inner#mul.0"]) == (None, 3, 12)
    assert sum(repeat or 1 for repeat in repeats.values()) == len(model.graph())
    assert (
        close_blocks(graph, 0).nodes["layers.*"]["repeat"],
        close_blocks(graph, 1).nodes["layers.*.inner"]["repeat"],
    ) == (3, 12)
    picture = build_picture(graph)
    lines = {node.lines[0]: node.lines[1:] for node in picture.nodes if node.kind == "param"}
    assert lines == {"outer": ("real  5  25.0 %", "5"), "scale": ("real  3 x 5  75.0 %", "5")}


def test_operations_carry_their_hyperparameters_and_constants() -> None:
    model = archspec.load("bert-base-uncased")
    nodes = [data for _, data in model.graph("op").nodes(data=True)]
    assert {data["hyperparameters"]["eps"] for data in nodes if data["type"] == "layer_norm"} == {1e-12}
    assert {data["hyperparameters"]["axis"] for data in nodes if data["type"] == "softmax"} == {-1}
    assert {"b": 0.125} in [data.get("constants") for data in nodes if data["type"] == "mul"]
    assert all("hyperparameters" not in data for data in nodes if data["type"] in ("linear", "tanh"))
    other = archspec.load("bert-base-uncased", eps=1e-6).graph("op")
    assert to_node_link(model.graph("op")) != to_node_link(other)
    json.dumps(to_node_link(other), allow_nan=False)


def test_a_block_that_contains_only_a_repeated_one_is_counted_by_itself() -> None:
    """Three wrappers of four blocks each, in the titles of DOT and in a closed graph."""
    model = load(
        """
import std { Linear }
dim batch
block Inner()(x [batch, 4]) -> [batch, 4] { return x |> l: Linear(4, 4) }
block Wrap()(x [batch, 4]) -> [batch, 4] { return x |> inner[j]: Inner() for j in 0..4 }
block Net()(x [batch, 4]) -> [batch, 4] { return x |> layers[i]: Wrap() for i in 0..3 }
"""
    )
    graph = model.graph(fold=True)
    assert graph.graph["repeats"] == {"layers.*": 3, "layers.*.inner.*": 12}
    text = to_dot(graph, "nested")
    assert "3 x Wrap" in text and "4 x Inner" in text
    assert close_blocks(graph, 0).nodes["layers.*"]["repeat"] == 3


def described(graph: nx.DiGraph) -> str:
    """A graph as text: each node with its attributes, the number of blocks around it, and what enters it."""
    lines: list[str] = []
    for name, data in graph.nodes(data=True):
        amounts = [str(data[key]) for key in ("params", "macs", "elementwise")]
        shapes = [list(map(str, shape or ())) for shape in data.get("shapes", (data["shape"],))]
        text = f"{name}: {data['kind']} {data['type']}, {', '.join(amounts)}, {shapes}, in {len(data['path'])}"
        text += f", {len(data['tensors'])} tensors" if "tensors" in data else ""
        for key in ("address", "role", "frozen", "shared_with", "constants", "repeat", "unused"):
            text += f", {key} {data[key]}" if key in data else ""
        uses = [
            f"{before}.{output} as {argument}" if output else f"{before} as {argument}"
            for before in graph.predecessors(name)
            for output, argument in graph.edges[before, name]["uses"]
        ]
        lines += [f"{text}\n", *([f"    {', '.join(uses)}\n"] if uses else [])]
    return f"{ {key: value for key, value in graph.graph.items() if value} }\n{''.join(lines)}"


def test_views_of_nested_blocks_stay_as_they_are(golden: Callable[[str, str], None]) -> None:
    model = archspec.loads(NESTED, "nested")
    parts: list[str] = []
    for view in [{"level": "block", "depth": depth} for depth in range(4)] + [
        {"level": "layer"},
        {"level": "op", "fold": True},
    ]:
        for fold in {view.get("fold", False), True}:
            graph = model.graph(**{**view, "fold": fold})
            assert nx.is_directed_acyclic_graph(graph)
            parts.append(f"-- {' '.join(map(str, view.values()))}{' folded' if fold else ''}\n{described(graph)}")
    golden("graph/nested.txt", "\n".join(parts))
    runs = archspec.loads(NESTED, "runs")
    parts = [described(runs.graph(level, fold=True)) for level in ("block", "layer", "op")]
    golden("graph/runs.txt", "\n".join([*parts, to_mermaid(runs.graph(fold=True), "runs")]))


@pytest.mark.parametrize("name", ["bert-base-uncased-mlm", "t5-small", "swin-tiny", "runs"])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_closed_blocks_are_those_of_the_level_block(name: str, depth: int) -> None:
    model = archspec.loads(NESTED, name) if name == "runs" else archspec.load(name)
    small, expected = close_blocks(model.graph(), depth), model.graph("block", depth + 1)
    assert {*small.edges} == {*expected.edges}
    for node, data in expected.nodes(data=True):
        for key in ("kind", "type", "params", "frozen", "role", "shape", "path"):
            assert small.nodes[node].get(key) == data.get(key), (node, key)
