"""Pictures of graphs: DOT, Mermaid, node-link data."""

import io
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pytest
from bundled import groups
from written import written

import archspec
from archspec.testing import main

GEXF = "http://www.gexf.net/1.2draft"
HOSTILE = 'a"b\\c<i>d</i>&amp;{|}\x1b[0m\n]]>%%#quot;\u202e'


def test_node_link_data_reads_back() -> None:
    model = archspec.load("bert-base-uncased")
    back = nx.node_link_graph(json.loads(written("bert-base-uncased", "--to", "json")), edges="edges")
    assert isinstance(back, nx.DiGraph)
    assert list(back.edges) == list(model.graph().edges)
    query = back.nodes["encoder.layer.0.attention.self.query"]
    assert query["params"] == 590_592 and query["shape"] == ["batch", "seq", 768]
    assert sum(facts["params"] for _, facts in back.nodes(data=True)) == model.params.total


@pytest.mark.parametrize(("read", "to"), [(nx.read_graphml, "graphml"), (nx.read_gexf, "gexf")])
@pytest.mark.parametrize(("model", "level"), [("transformer-seq2seq", "op"), ("bert-base-uncased", "layer")])
def test_other_formats_read_back_as_node_link_data(read: Callable[[Any], Any], to: str, model: str, level: str) -> None:
    options = ["--level", level, *["--fold"] * model.startswith("bert")]
    graph = archspec.load(model).graph(level, fold=model.startswith("bert"))
    text = written(model, "--to", to, *options)
    back = read(io.BytesIO(text.encode()))
    data: Any = json.loads(written(model, "--to", "json", *options))
    if to == "gexf":
        description = ElementTree.fromstring(text).findtext("g:meta/g:description", "", {"g": GEXF})
        whole = json.loads(description)
    else:
        whole = back.graph
        whole = {k: json.loads(v) if f"graph {k}" in whole["json_attributes"] else v for k, v in whole.items() if v}
    in_json = set(whole.pop("json_attributes").split(", "))
    assert whole == {key: value for key, value in data["graph"].items() if value}

    def facts(part: str, found: dict[str, Any]) -> dict[str, Any]:
        own = {name: value for name, value in found.items() if name not in ("id", "label")}
        return {name: json.loads(value) if f"{part} {name}" in in_json else value for name, value in own.items()}

    nodes = {name: facts("node", found) for name, found in back.nodes(data=True)}
    edges = {(a, b): facts("edge", found) for a, b, found in back.edges(data=True)}
    assert list(nodes) == list(graph) and back.is_directed()
    assert nodes == {node.pop("id"): node for node in data["nodes"]}
    assert edges == {(edge.pop("source"), edge.pop("target")): edge for edge in data["edges"]}


def test_nodes_have_the_tensors_and_the_role_that_they_count() -> None:
    model = archspec.load("bert-base-uncased-mlm")
    sizes = {tensor.name: tensor.params for tensor in model.tensors}
    for fold in (False, True):
        made = model.graph(fold=fold)
        for _, data in made.nodes(data=True):
            assert sum(sizes[name] for name in data.get("tensors", ())) == data["params"]
        assert made.graph["params"] == model.params.total == sum(made.graph["roles"].values())
    assert made.nodes["bert.encoder.layer.*.attention.self.query"]["role"] == "attention"
    assert len(made.nodes["bert.encoder.layer.*.attention.self.query"]["tensors"]) == 24
    tied = archspec.load("t5-small").graph().nodes["lm_head"]
    assert tied["params"] == 0 and "tensors" not in tied and tied["role"] == "head"


@pytest.mark.parametrize("to", ["dot", "mermaid"])
def test_the_picture_of_bert_is_as_it_was_looked_at(
    capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None], to: str
) -> None:
    assert main(["graph", "bert-base-uncased", "--to", to]) == 0
    out = capsys.readouterr().out
    assert "encoder.layer" in out and "12 x BertLayer" in out
    assert len(out.splitlines()) < 100
    golden(f"bert-base-uncased.{to}", out)


def test_pictures_fold_unless_told_and_data_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    def size(*arguments: str) -> int:
        assert main(["graph", "bert-base-uncased", *arguments]) == 0
        return len(capsys.readouterr().out.splitlines())

    assert size() == size("--fold") < size("--no-fold")
    lengths: list[int] = []
    for fold in ((), ("--fold",), ("--no-fold",)):
        assert main(["graph", "bert-base-uncased", "--set", "layers=2", "--to", "svg", *fold]) == 0
        lengths.append(len(capsys.readouterr().out))
    assert lengths[0] == lengths[1] < lengths[2]
    for data in ("graphml", "gexf"):
        assert size("--to", data) == size("--to", data, "--no-fold") > size("--to", data, "--fold")
    assert size("--to", "json") == size("--to", "json", "--no-fold") > size("--to", "json", "--fold")
    assert size("--level", "block") < size() < size("--level", "op")


@pytest.mark.skipif(not shutil.which("dot"), reason="needs Graphviz")
@pytest.mark.parametrize("models", groups())
def test_graphviz_takes_it_without_a_word(models: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    texts: list[str] = []
    for name in models:
        for level in ("layer", "block", "op"):
            assert main(["graph", name, "--level", level]) == 0
            texts.append(capsys.readouterr().out)
    for text in texts:
        done = subprocess.run(["dot", "-Tcanon"], input=text.encode(), capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")
