"""The graph of every bundled model, at every level."""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from bundled import each
from paths import DATA, read_spec
from small import load
from written import written

import archspec
from archspec.testing import main

MODELS = archspec.models()
VIEWS: list[dict[str, Any]] = [
    {},
    {"level": "block", "depth": 0},
    {"level": "block"},
    {"level": "block", "depth": 2},
    {"level": "block", "depth": 9},
    {"level": "op"},
    {"fold": True},
    {"level": "block", "fold": True},
    {"level": "op", "fold": True},
]


def view_id(view: dict[str, Any]) -> str:
    return "-".join(str(v) for v in view.values()) or "layer"


def costs(graph: nx.DiGraph) -> tuple[Any, ...]:
    """What the nodes add up to: multiply-accumulates, elementwise operations, FLOPs."""
    return tuple(sum(data[key] for _, data in graph.nodes(data=True)) for key in ("macs", "elementwise", "flops"))


@cache
def work_of(name: str) -> tuple[Any, ...]:
    work = archspec.cost(name).work
    return (*work[::3], work.flops)


@pytest.mark.sampled(40)
@pytest.mark.parametrize("view", VIEWS, ids=view_id)
@pytest.mark.parametrize("name", each())
def test_every_view_is_acyclic_in_one_piece_and_sums_to_the_total(name: str, view: dict[str, Any]) -> None:
    model = archspec.load(name)
    graph = model.graph(**view)
    assert nx.is_directed_acyclic_graph(graph)
    alone = {"input:token_type_ids"} if name.startswith("deberta") else set[str]()  # there are no types
    unused = {node for node in nx.isolates(graph) if "contact_head" in node}  # of ESM-2
    assert nx.is_weakly_connected(graph.subgraph(set(graph) - alone - unused))
    assert sum(data["params"] for _, data in graph.nodes(data=True)) == model.params.total
    assert costs(graph) == work_of(name)


@pytest.mark.parametrize("name", each())
def test_nodes_and_edges_say_what_they_are(name: str) -> None:
    graph = archspec.load(name).graph()
    for node, data in graph.nodes(data=True):
        assert {"kind", "type", "params", "macs", "flops", "elementwise", "shape", "path", "source"} <= set(data), node
        assert data["kind"] in {"input", "output", "layer", "op", "param", "buffer", "const"}
        file, _, line = data["source"].rpartition(":")
        assert file.endswith(".arch") and int(line) > 0
    for _, _, data in graph.edges(data=True):
        assert data["uses"] and all(isinstance(index, int) for index, _ in data["uses"])
        assert data["shape"] is not None
    sources = {n for n in graph if graph.in_degree(n) == 0}
    assert {n for n in graph if n.startswith("input:")} <= sources
    assert all(graph.out_degree(n) == 0 for n in graph if n.startswith("output:"))


def test_a_layer_reports_its_parameters_and_its_place() -> None:
    graph = archspec.load("bert-base-uncased").graph()
    node = graph.nodes["encoder.layer.0.attention.self.query"]
    assert node["params"] == 590_592
    assert node["kind"] == "layer"
    assert [str(d) for d in node["shape"]] == ["batch", "seq", "768"]
    assert node["path"] == ("encoder.layer.0", "encoder.layer.0.attention.self")


def test_a_model_drawn_as_one_node_has_all_of_its_parameters_and_no_address() -> None:
    model = archspec.load("bert-base-uncased")
    graph = model.graph("block", depth=0)
    (node,) = (data for _, data in graph.nodes(data=True) if data["kind"] not in ("input", "output"))
    assert (node["params"], node["address"], node["path"]) == (109_482_240, "", ())


def test_each_graph_is_a_fresh_object() -> None:
    model = archspec.load("bert-base-uncased")
    first, second = model.graph(), model.graph()
    first.nodes["pooler.dense"]["params"] = 0
    first.remove_node("input:input_ids")
    assert second.nodes["pooler.dense"]["params"] == 590_592
    assert "input:input_ids" in second


def test_a_layer_applied_again_has_a_node_for_each_application_and_counts_once() -> None:
    graph = archspec.load("albert-base-v2").graph()
    name = "encoder.albert_layer_groups.0.albert_layers.0.ffn"
    again = [n for n in graph if n == name or n.startswith(name + "@")]
    assert again == [name, *(f"{name}@{k}" for k in range(2, 13))]
    assert graph.nodes[name]["params"] == 2_362_368
    assert graph.nodes[f"{name}@12"]["params"] == 0
    assert graph.nodes[f"{name}@12"]["shared_with"] == (name,)


def test_a_tied_tensor_stands_on_the_first_node_that_uses_it() -> None:
    graph = archspec.load("bert-base-uncased-mlm").graph()
    assert graph.nodes["bert.embeddings.word_embeddings"]["params"] == 30522 * 768
    decoder = graph.nodes["cls.predictions.decoder"]
    assert decoder["params"] == 30522
    assert decoder["shared_with"] == ("bert.embeddings.word_embeddings",)


def test_a_folded_stack_is_drawn_once() -> None:
    graph = archspec.load("bert-base-uncased").graph(fold=True)
    node = graph.nodes["encoder.layer.*.attention.self.query"]
    assert node["repeat"] == 12
    assert node["params"] == 12 * 590_592
    assert str(node["macs"]) == f"{12 * 768 * 768}*batch*seq"
    assert not any("encoder.layer.0" in n for n in graph)


def test_other_levels_are_refused() -> None:
    model = archspec.load("bert-base-uncased")
    with pytest.raises(ValueError):
        model.graph("tensor")
    with pytest.raises(ValueError):
        model.graph("block", depth=-1)


ODD = read_spec("graph_odd")


@pytest.mark.parametrize(
    ("body", "total"),
    [
        ("tie enc.two.weight = enc.one.weight\n  return x |> enc: Enc(n)", 3),
        ("enc: Enc(n)\n  return x * .enc.one.weight |> .enc", 6),
        ("enc: Enc(n)\n  y = .enc.two(x)\n  return .enc(y)", 6),
        ("model: unused param [n]\n  return x |> enc: Enc(n)", 9),
        ("b: frozen Enc(n)\n  a: Enc(n)\n  tie b = a\n  return x |> .a |> .b", 6),
    ],
    ids=["a tie from outside", "a tensor read first", "a part applied first", "a name", "a frozen copy"],
)
def test_parts_that_are_used_from_outside_are_counted_once(tmp_path: Path, body: str, total: int) -> None:
    spec = tmp_path / "net.arch"
    spec.write_text(ODD.replace("BODY", body))
    model = archspec.load(str(spec))
    assert model.params == (total, total, 0)
    assert model.params.trainable == sum(t.params for t in model.tensors if t.trainable)
    for view in VIEWS:
        graph = model.graph(**view)
        assert nx.is_directed_acyclic_graph(graph)
        assert sum(data["params"] for _, data in graph.nodes(data=True)) == total
        assert costs(graph) == (*archspec.cost(model).work[::3], archspec.cost(model).work.flops)


def test_a_part_that_was_applied_before_its_block_has_both_applications(tmp_path: Path) -> None:
    spec = tmp_path / "net.arch"
    spec.write_text(ODD.replace("BODY", "enc: Enc(n)\n  y = .enc.two(x)\n  return .enc(y)"))
    graph = archspec.load(str(spec)).graph()
    assert {"enc.one", "enc.two", "enc.two@2"} <= set(graph)


def test_operations_and_tensors_of_a_stack_are_drawn_once() -> None:
    model = archspec.load("bert-base-uncased")
    graph = model.graph("op", fold=True)
    assert len(graph) < 100
    weight = graph.nodes["encoder.layer.*.intermediate.dense.weight"]
    assert (weight["params"], weight["repeat"]) == (12 * 3072 * 768, 12)
    assert sum(params for _, params in graph.nodes(data="params")) == model.params.total
    edge = graph.edges["encoder.layer.*.intermediate.dense.weight", "encoder.layer.*.intermediate.dense#linear.0"]
    assert (edge["uses"], edge["positions"], edge["dtype"]) == ([(0, "weight")], [1], "real")


def test_layers_that_alternate_are_folded_by_their_numbers(tmp_path: Path) -> None:
    spec = tmp_path / "net.arch"
    body = "return x |> l[i]: (Enc if i % 3 != 2 else Scale)(n) for i in 0..6"
    spec.write_text(ODD.replace("BODY", body))
    graph = archspec.load(str(spec)).graph(fold=True)
    assert {"l.0,3.one", "l.1,4.one", "l.2,5"} <= set(graph)


FAULTS = DATA / "faults"


@pytest.mark.parametrize("view", VIEWS, ids=view_id)
def test_frozen_parameters_of_all_nodes_sum_to_the_total(view: dict[str, Any]) -> None:
    for spec in ("transformer-base", str(FAULTS / "fold_frozen.arch:f")):
        model = archspec.load(spec)
        frozen = sum(data.get("frozen", 0) for _, data in model.graph(**view).nodes(data=True))
        assert frozen == model.params.frozen > 0


def test_hyperparameters_of_a_graph_are_fresh() -> None:
    model = archspec.load("bert-base-uncased")
    node = next(n for n, data in model.graph("op").nodes(data=True) if data["type"] == "layer_norm")
    model.graph("op").nodes[node]["hyperparameters"]["eps"] = 1
    assert model.graph("op").nodes[node]["hyperparameters"] == {"eps": 1e-12}


NESTED = read_spec("graph_nested")


@pytest.mark.parametrize("level", ["block", "layer", "op"])
def test_stacks_of_stacks_are_collapsed_without_cycles(level: str) -> None:
    model = load("""
import std { Linear }
dim batch
block Inner(n)(x [batch, n]) -> [batch, n] {
  return x |> one[i]: Linear(n, n) for i in 0..2 |> + x |> two[i]: Linear(n, n) for i in 0..3
}
block Outer(n)(x [batch, n]) -> [batch, n] { return x |> inner[i]: Inner(n) for i in 0..2 |> + x }
block Net(n = 4)(x [batch, n]) -> [batch, n] { return x |> stack[i]: Outer(n) for i in 0..3 }
model "net" = Net()
""")
    graph = model.graph(level, fold=True)
    assert nx.is_directed_acyclic_graph(graph)
    assert sum(data["params"] for _, data in graph.nodes(data=True)) == model.params.total
    if level == "layer":
        inner = "stack.*.inner.*"
        assert {*graph.edges} == {
            ("input:x", f"{inner}.one.*"),
            ("input:x", f"{inner}#add.0"),
            ("input:x", "stack.*#add.0"),
            (f"{inner}.one.*", f"{inner}#add.0"),
            (f"{inner}#add.0", f"{inner}.two.*"),
            (f"{inner}.two.*", "stack.*#add.0"),
            ("stack.*#add.0", "output:output"),
        }


@pytest.mark.parametrize(
    ("level", "depth", "about"),
    [("block", 0, 14), ("block", 1, 14), ("block", 2, 21), ("block", 3, 77), ("layer", None, 133), ("op", None, 220)],
)
def test_sizes_of_graphs_are_estimated_before_they_are_made(
    level: str, depth: int | None, about: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = archspec.loads(NESTED, "nested")
    made = model.graph(level, depth)
    monkeypatch.setattr("archspec.drawing.graph.MAX_GRAPH_NODES", about)
    assert [*model.graph(level, depth)] == [*made]
    monkeypatch.setattr("archspec.drawing.graph.MAX_GRAPH_NODES", about - 1)
    with pytest.raises(archspec.ArchError, match=f"too many graph nodes: about {about}, the limit is {about - 1}"):
        model.graph(level, depth)


def test_layers_that_only_act_in_training_are_left_out() -> None:
    """Not those that have a tensor, or compute something too."""
    graph = load(read_spec("graph_blocks")).graph()
    assert [*graph.edges()] == [("input:x", "b"), ("b", "d"), ("d", "e"), ("e", "output:output")]


def test_without_networkx(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    monkeypatch.delitem(sys.modules, "archspec.drawing.graph.network", raising=False)
    with pytest.raises(archspec.ArchError) as raised:
        archspec.load("bert-base-uncased").graph()
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "missing-package" and "archspec-dsl[graph]" in (diagnostic.help or "")
    assert main(["graph", "bert-base-uncased", "--to", "dot"]) == 0
    assert capsys.readouterr().out.startswith("digraph")


def test_a_tensor_that_all_iterations_use_is_not_repeated(tmp_path: Path) -> None:
    spec = tmp_path / "net.arch"
    spec.write_text(read_spec("graph_outer"))
    model = archspec.load(str(spec))
    graph = model.graph(fold=True)
    repeats = dict(graph.nodes(data="repeat"))
    assert (repeats["outer"], repeats["layers.*.inner.scale"], repeats["layers.*.inner#mul.0"]) == (None, 3, 12)
    assert sum(repeat or 1 for repeat in repeats.values()) == len(model.graph())
    shown = written(str(spec), "--to", "mermaid", "--fold")
    assert "outer<br/>real  5  25.0 #37;<br/>5" in shown and "scale<br/>real  3 x 5  75.0 #37;<br/>5" in shown


def test_operations_carry_their_hyperparameters_and_constants() -> None:
    model = archspec.load("bert-base-uncased")
    nodes = [data for _, data in model.graph("op").nodes(data=True)]
    assert {data["hyperparameters"]["eps"] for data in nodes if data["type"] == "layer_norm"} == {1e-12}
    assert {data["hyperparameters"]["axis"] for data in nodes if data["type"] == "softmax"} == {-1}
    assert {"b": 0.125} in [data.get("constants") for data in nodes if data["type"] == "mul"]
    assert all("hyperparameters" not in data for data in nodes if data["type"] in ("linear", "tanh"))
    texts = [
        written("bert-base-uncased", "--level", "op", "--to", "json", "--set", f"eps={eps}")
        for eps in ("1e-12", "1e-6")
    ]
    assert texts[0] != texts[1] and "NaN" not in texts[0]


def test_a_block_that_contains_only_a_repeated_one_is_counted_by_itself() -> None:
    """Three wrappers of four blocks each, in the titles of DOT and in a closed graph."""
    text = """
import std { Linear }
dim batch
block Inner()(x [batch, 4]) -> [batch, 4] { return x |> l: Linear(4, 4) }
block Wrap()(x [batch, 4]) -> [batch, 4] { return x |> inner[j]: Inner() for j in 0..4 }
block Net()(x [batch, 4]) -> [batch, 4] { return x |> layers[i]: Wrap() for i in 0..3 }
"""
    graph = load(text).graph(fold=True)
    assert graph.graph["repeats"] == {"layers.*": 3, "layers.*.inner.*": 12}
    shown = written(text)
    assert "3 x Wrap" in shown and "4 x Inner" in shown


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


def test_views_of_nested_blocks_stay_as_they_are(golden: Callable[[str, str], None], tmp_path: Path) -> None:
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
    (tmp_path / "nested.arch").write_text(NESTED)
    mermaid = written(f"{tmp_path}/nested.arch:runs", "--to", "mermaid", "--fold")
    golden("graph/runs.txt", "\n".join([*parts, mermaid]))
