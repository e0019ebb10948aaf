"""Graphs for Netron and Model Explorer, also as their own packages read them."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paths import read_spec
from small import load
from written import written

import archspec
from archspec.testing import main

TINY = read_spec("viewers_tiny")


def for_netron(spec: str, *options: str) -> Any:
    """The graph, with the values of arguments instead of their numbers."""
    (graph,) = json.loads(written(spec, "--to", "netron", *options))["graphs"]
    for each in (graph, *graph["nodes"]):
        for side in ("inputs", "outputs"):
            each[side] = {a["name"]: [graph["values"][i] for i in a["value"]] for a in each[side]}
    return graph


def for_explorer(spec: str, *options: str) -> Any:
    return json.loads(written(spec, "--to", "model-explorer", *options))


def test_netron_has_layers_with_their_tensors() -> None:
    graph = for_netron(TINY)
    nodes = {node["name"]: node for node in graph["nodes"]}
    dense = nodes["layers.1.inner.dense"]
    assert dense["type"] == {"name": "Linear", "category": "Layer"}
    assert dense["inputs"]["x"][0]["name"] == "layers.1#mul.0"
    assert dense["inputs"]["weight"] == [
        {
            "name": "layers.1.inner.dense.weight",
            "initializer": {"type": {"dataType": "real", "shape": {"dimensions": [8, 8]}}},
        }
    ]
    assert dense["outputs"]["output"][0]["type"] == {"dataType": "real", "shape": {"dimensions": ["batch", "seq", 8]}}
    assert nodes["layers.0#mul.0"]["inputs"]["b"][0]["name"] == "layers.0.scale"
    assert [*graph["inputs"]] == ["ids"] and [*graph["outputs"]] == ["states", "scores"]
    assert graph["outputs"]["states"] == dense["outputs"]["output"]
    assert {"name": "shares tensors with", "value": "words"} in nodes["decoder"]["attributes"]


def test_results_that_nothing_reads_are_outputs_of_their_nodes() -> None:
    text = """
layer Two(n = 4)(x [2, n]) -> ([2, n], bool [2, n], [n]) {
  w: param [n]
  return x * .w, x < .w, .w
}
layer Three(n = 4)(x [2, n], y bool [2, n]) -> [2, n] {
  w: param [n]
  return where(y, x, .w)
}
block Net()(x [2, 4]) -> [2, 4] {
  a, b, c = two: Two()(x)
  return LAST
}
model "net" = Net()
"""
    two, three, *_ = for_netron(text.replace("LAST", "where(b, three: Three()(a, b), 1.0)"))["nodes"]
    found = {name: (value["name"], value["type"]) for name, (value,) in two["outputs"].items()}
    assert found == {
        "output": ("two", {"dataType": "real", "shape": {"dimensions": [2, 4]}}),
        "1": ("two:1", {"dataType": "bool", "shape": {"dimensions": [2, 4]}}),
        "2": ("two:2", {"dataType": "", "shape": {"dimensions": [4]}}),
    }
    assert (three["inputs"]["x"], three["inputs"]["y"]) == (two["outputs"]["output"], two["outputs"]["1"])
    two, _ = for_netron(text.replace("LAST", "three: Three()(a, b)"))["nodes"]
    types = {name: value["type"]["dataType"] for name, (value,) in two["outputs"].items()}
    assert types == {"output": "real", "1": "", "2": ""}  # an edge has the type of its first use


def test_netron_has_each_tensor_once_and_equal_layers_together_if_folded() -> None:
    named = [value["name"] for value in for_netron(TINY)["values"] if "initializer" in value]
    assert sorted(named) == sorted(t.name for t in load(TINY).tensors if t.tied_to is None)
    twice = "layer It(n = 4)(x [n]) -> [n] {\n  w: param [n]\n  return x * .w + .w\n}\n"
    values = for_netron(twice, "--level", "op")["values"]
    assert [value["name"] for value in values if "initializer" in value] == ["w"]
    folded = {node["name"]: node for node in for_netron(TINY, "--fold")["nodes"]}
    dense = folded["layers.*.inner.dense"]["inputs"]
    assert dense["bias"][0]["name"] == "layers.*.inner.dense.bias"
    assert dense["bias"][0]["initializer"]["type"]["shape"] == {"dimensions": [8]}


def test_model_explorer_has_groups_of_addresses() -> None:
    (graph,) = for_explorer(TINY)["graphs"]
    nodes = {node["id"]: node for node in graph["nodes"]}
    dense = nodes["layers.1.inner.dense"]
    assert dense["namespace"] == "layers/1" and dense["label"] == "dense: Linear"
    assert dense["incomingEdges"] == [
        {"sourceNodeId": "layers.1#mul.0", "sourceNodeOutputId": "0", "targetNodeInputId": "0"}
    ]
    assert dense["outputsMetadata"] == [{"id": "0", "attrs": [{"key": "tensor_shape", "value": "[batch, seq, 8]"}]}]
    assert {"key": "layers.1.inner.dense.weight", "value": "[8, 8]"} in dense["attrs"]
    groups = graph["groupNodeAttributes"]
    assert groups["layers/1"] == {"type": "Twice", "parameters": "80"}
    assert groups["layers"] == {"parameters": "160"} and groups[""]["parameters"] == "430"


def test_later_applications_are_other_groups() -> None:
    (graph,) = for_explorer("albert-base-v2", "--set", "layers=2")["graphs"]
    namespaces = {node["namespace"] for node in graph["nodes"]}
    assert {"encoder/albert_layer_groups/0/albert_layers/0", "encoder/albert_layer_groups/0/albert_layers/0@2"} <= {
        namespace.removesuffix("/attention").removesuffix("/attention@2") for namespace in namespaces
    }


@pytest.mark.parametrize("level", ["layer", "block", "op"])
@pytest.mark.parametrize("name", ["bert-base-uncased", "t5-small", "swin-tiny"])
def test_every_edge_is_there_at_every_level(name: str, level: str) -> None:
    graph = archspec.load(name).graph(level, fold=True)
    uses = sum(len(data["uses"]) for _, _, data in graph.edges(data=True))
    (explorer,) = for_explorer(name, "--level", level, "--fold")["graphs"]
    assert sum(len(node["incomingEdges"]) for node in explorer["nodes"]) == uses
    (shown,) = json.loads(written(name, "--to", "netron", "--level", level, "--fold"))["graphs"]
    stored = {i for i, value in enumerate(shown["values"]) if "initializer" in value}
    read = [i for node in (*shown["nodes"], {"inputs": shown["outputs"]}) for a in node["inputs"] for i in a["value"]]
    tensors = sum(1 for a, b in graph.edges if graph.nodes[a]["kind"] in ("param", "buffer", "const"))
    assert sum(i not in stored for i in read) == uses - tensors


def test_the_command_writes_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "gpt2", "-o", str(tmp_path / "it.netron")]) == 0
    assert main(["graph", "gpt2", "--to", "model-explorer", "-o", str(tmp_path / "it.json")]) == 0
    assert capsys.readouterr() == ("", "")
    assert json.loads((tmp_path / "it.json").read_text())["label"] == "gpt2"
    assert (tmp_path / "it.netron").read_text().startswith('{"signature": "netron:archspec",\n')


READ = """
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
const { ModelFactory } = await import(pathToFileURL(process.argv[1]));
const text = readFileSync(process.argv[2]);
const context = {
    stream: { length: text.length, peek: (n) => text.subarray(0, n) },
    peek: async () => JSON.parse(text),
    set: (type, value) => { context.value = value; return type; }
};
const factory = new ModelFactory();
if (await factory.match(context) !== 'message') throw new Error('not recognized');
const [graph] = (await factory.open(context)).modules;
const dense = graph.nodes.find((node) => node.name === 'layers.1.inner.dense');
console.log(JSON.stringify([graph.nodes.length, dense.inputs.map((i) => [i.name, i.value[0].type.toString()])]));
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js is installed")
def test_netron_reads_it(tmp_path: Path) -> None:
    package = pytest.importorskip("netron")
    file, reader = tmp_path / "it.netron", tmp_path / "message.mjs"
    file.write_text(written(TINY, "--to", "netron"), encoding="utf-8")
    shutil.copy(Path(package.__file__).parent / "message.js", reader)
    command = ["node", "--input-type=module", "-e", READ, str(reader), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [6, [["x", "real[batch,seq,8]"], ["weight", "real[8,8]"], ["bias", "real[8]"]]]


@pytest.mark.slow
def test_model_explorer_reads_it() -> None:
    builder = pytest.importorskip("model_explorer.graph_builder")
    dacite = pytest.importorskip("dacite")
    found = dacite.from_dict(builder.GraphCollection, for_explorer(TINY), dacite.Config(strict=True))
    assert [node.id for node in found.graphs[0].nodes] == [*load(TINY).graph()]


MARKED = read_spec("viewers_marked")


FORMATS = ["dot", "mermaid", "graphml", "gexf", "json", "netron", "model-explorer"]


@pytest.mark.parametrize(
    ("level", "format"),
    [("layer", format) for format in FORMATS] + [("op", f) for f in FORMATS if f not in ("graphml", "gexf")],
)
def test_graphs_stay_as_they_are(level: str, format: str, golden: Callable[[str, str], None]) -> None:
    golden(f"graph/{level}.{format}", written(MARKED, "--to", format, "--level", level, "--fold"))
