"""Pictures of graphs: DOT, Mermaid, node-link data."""

import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pytest
from bundled import each, groups

import archspec
from archspec.drawing.graph.boxes import Box, build_picture
from archspec.drawing.graph.dot import to_dot
from archspec.drawing.graph.exchange import gexf_text, graphml_text
from archspec.drawing.graph.formats import format_graph, format_model
from archspec.drawing.graph.mermaid import MAX_CHARACTERS, MAX_EDGES, to_mermaid
from archspec.drawing.graph.nodelink import to_node_link
from archspec.drawing.graph.walk import close_blocks
from archspec.testing import main

GEXF = "http://www.gexf.net/1.2draft"
HOSTILE = 'a"b\\c<i>d</i>&amp;{|}\x1b[0m\n]]>%%#quot;\u202e'


def graph(*nodes: tuple[str, dict[str, Any]], blocks: dict[str, str] | None = None) -> Any:
    """A chain of nodes."""
    made = nx.DiGraph(blocks=blocks or {})
    usual = {"kind": "layer", "type": "Linear", "params": 0, "shape": ("batch", 4), "path": (), "source": "x.arch:1"}
    for name, facts in nodes:
        made.add_node(name, **{**usual, **facts})
    made.add_edges_from(
        zip([n for n, _ in nodes], [n for n, _ in nodes[1:]], strict=False), shape=("batch", 4), uses=[(0, "x")]
    )
    return made


STACK = ("layer.*",)
STACKED = graph(
    ("input:x", {"kind": "input", "type": "real"}),
    ("layer.*.inner.dense", {"params": 240, "path": (*STACK, "layer.*.inner"), "repeat": 12}),
    ("layer.*#gelu.0", {"kind": "op", "type": "gelu", "path": STACK, "repeat": 12}),
    ("layer.*.same", {"params": 36, "path": STACK, "repeat": 24}),
    ("layer.*.expert.*", {"params": 480, "path": STACK, "repeat": 48, "type": "Expert"}),
    ("shared", {"params": 7, "repeat": 3}),
    ("decoder", {"shared_with": ("shared",)}),
    ("output:y", {"kind": "output", "type": "real"}),
    blocks={"layer.*": "Layer", "layer.*.inner": "Inner"},
)
STACKED.graph["repeats"] = {"layer.*": 12, "layer.*.inner": 12}


def boxes(box: Box) -> list[Box]:
    return [box, *(inner for item in box.items if isinstance(item, Box) for inner in boxes(item))]


def test_boxes_are_the_enclosing_blocks_with_their_repetition() -> None:
    assert [box.title for box in boxes(build_picture(STACKED).box)] == ["", "layer.*   12 x Layer", "inner   Inner"]


def test_labels_say_name_type_parameters_and_shape() -> None:
    lines = [item.lines for box in boxes(build_picture(STACKED).box) for item in box.items if not isinstance(item, Box)]
    assert lines == [
        ("x", "batch x 4"),
        ("shared", "Linear, applied 3 times  7", "batch x 4"),
        ("decoder", "Linear", "shares with shared", "batch x 4"),
        ("y", "batch x 4"),
        ("gelu",),  # its shape is that of what it takes
        ("same", "Linear, applied 2 times  12 x 3", "batch x 4"),
        ("expert.*", "Expert  48 x 10", "batch x 4"),
        ("dense", "Linear  12 x 20", "batch x 4"),
    ]


def test_a_second_application_is_named_within_its_own_block() -> None:
    again = graph(("shared.dense@2", {"path": ("shared@2",)}))
    (box,) = [item for item in build_picture(again).box.items if isinstance(item, Box)]
    assert box.title == "shared@2"
    assert box.items[0].lines[0] == "dense@2"  # type: ignore[union-attr]
    apart = graph(("other.dense", {"path": ("lone", "other@2")}), ("third.dense", {"path": ("lone", "other@2")}))
    assert [node.lines[0] for node in build_picture(apart).nodes] == ["dense", "third.dense"]


@pytest.mark.parametrize("kind", ["input", "output", "layer", "block", "op", "param", "buffer"])
def test_every_kind_can_be_drawn(kind: str) -> None:
    one = graph((f"{kind}:x", {"kind": kind, "type": kind}))
    assert "n0 [" in to_dot(one, "") and "n0" in to_mermaid(one, "")


def test_nodes_are_frozen_if_all_of_their_parameters_are() -> None:
    amounts = [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]
    nodes = [(f"n{i}", {"params": params, "frozen": frozen}) for i, (params, frozen) in enumerate(amounts)]
    assert [node.frozen for node in build_picture(graph(*nodes)).nodes] == [False, False, True, False, True]


def test_nothing_in_a_name_acts_as_markup() -> None:
    hostile = graph(
        (HOSTILE, {"type": HOSTILE, "path": (HOSTILE + "p",), "shared_with": (HOSTILE,)}),
        blocks={HOSTILE + "p": HOSTILE},
    )
    drawn = to_mermaid(hostile, HOSTILE)
    starts = ["--", "ti", "--", "fl", "su", "n0", "en", "cl", "cl", "cl"]
    assert [line.strip().split(" ")[0][:2] for line in drawn.splitlines()] == starts
    assert json.loads(drawn.splitlines()[1].removeprefix("title: ")).startswith('a"b\\c<i>d</i>')
    assert all(len(re.findall('"', line)) in (0, 2) for line in drawn.splitlines()[3:])
    assert "\x1b" not in drawn + to_dot(hostile, HOSTILE) and "<i>" not in to_dot(hostile, HOSTILE)


def test_node_link_data_reads_back() -> None:
    model = archspec.load("bert-base-uncased")
    back = nx.node_link_graph(json.loads(json.dumps(to_node_link(model.graph()))), edges="edges")
    assert isinstance(back, nx.DiGraph)
    assert list(back.edges) == list(model.graph().edges)
    query = back.nodes["encoder.layer.0.attention.self.query"]
    assert query["params"] == 590_592 and query["shape"] == ["batch", "seq", 768]
    assert sum(facts["params"] for _, facts in back.nodes(data=True)) == model.params.total


@pytest.mark.parametrize(("read", "write"), [(nx.read_graphml, graphml_text), (nx.read_gexf, gexf_text)])
@pytest.mark.parametrize(("model", "level"), [("transformer-seq2seq", "op"), ("bert-base-uncased", "layer")])
def test_other_formats_read_back_as_node_link_data(
    read: Callable[[Any], Any], write: Callable[[Any], str], model: str, level: str
) -> None:
    graph = archspec.load(model).graph(level, fold=model.startswith("bert"))
    text = write(graph)
    assert text == write(graph)
    back = read(io.BytesIO(text.encode()))
    data: Any = json.loads(json.dumps(to_node_link(graph)))
    if write is gexf_text:
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


def test_hostile_names_stay_inert_in_other_formats() -> None:
    facts: dict[str, Any] = {"type": HOSTILE, "path": (), "flag": True, "huge": 2**63, "large": 2**63 - 1}
    hostile = graph((HOSTILE, facts), (HOSTILE + "2", {}))
    for read, write in ((nx.read_graphml, graphml_text), (nx.read_gexf, gexf_text)):
        back = read(io.BytesIO(write(hostile).encode()))
        assert [node.replace("\ufffd", "\x1b") for node in back] == [HOSTILE, HOSTILE + "2"]
        found = next(iter(back.nodes.values()))
        assert found["type"].replace("\ufffd", "\x1b") == HOSTILE and found["flag"] is True
        assert json.loads(found["huge"]) == 2**63 and found["large"] == 2**63 - 1


def test_characters_that_xml_cannot_have_are_replaced() -> None:
    kept = "a\tb\nc\rd \ud7ff\ue000\ufffd\U00010000\U0010ffff"
    text = f"{kept}\x00\x0b\x1f\ud800\udfff\ufffe\uffff"
    for read, write in ((nx.read_graphml, graphml_text), (nx.read_gexf, gexf_text)):
        back = read(io.BytesIO(write(graph((text, {"type": text}))).encode()))
        ((name, facts),) = back.nodes(data=True)
        assert name == facts["type"] == kept + "\ufffd" * 7


def test_mermaid_keeps_its_limits() -> None:
    model = archspec.load("bert-base-uncased")
    unfolded = model.graph()
    text = to_mermaid(unfolded, model.name)
    assert text.count(" --> ") <= MAX_EDGES < len(model.graph("op").edges) and len(text) <= MAX_CHARACTERS
    closed = to_mermaid(model.graph("op"), model.name)
    assert "blocks closed at depth 1, because Mermaid draws at most 500 edges" in closed.splitlines()[1]
    assert closed.count(" --> ") <= MAX_EDGES
    chain = graph(*((f"n{i}", {}) for i in range(MAX_EDGES + 2)))
    assert (
        "too large for Mermaid" in to_mermaid(chain, "chain") and to_mermaid(chain, "").count(" --> ") == MAX_EDGES + 1
    )


@pytest.mark.parametrize("model", ["bert-base-uncased", "t5-small", "transformer-seq2seq"])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_closed_blocks_keep_the_parameters(model: str, depth: int) -> None:
    for fold in (False, True):
        made = archspec.load(model).graph(fold=fold)
        small = close_blocks(made, depth)
        assert nx.is_directed_acyclic_graph(small) and len(small) <= len(made)
        for key in ("params", "frozen"):
            assert sum(data.get(key, 0) for _, data in small.nodes(data=True)) == sum(
                data.get(key, 0) for _, data in made.nodes(data=True)
            )
        if not fold:
            assert set(small) == set(archspec.load(model).graph("block", depth + 1))


def test_the_shape_of_a_closed_block_is_that_of_what_leaves_it() -> None:
    made = graph(("b.x", {"path": ("b",)}), ("output:y", {"kind": "output"}), blocks={"b": "Block"})
    made.add_node("b.z", **{**made.nodes["b.x"], "shape": ("batch", 9)})
    made.add_edge("b.x", "b.z", shape=("batch", 9), uses=[(0, "x")])
    made.nodes["b.x"]["shape"] = ("batch", 7)
    assert close_blocks(made, 0).nodes["b"]["shape"] == ("batch", 4)


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
    hostile = graph(
        (HOSTILE, {"type": HOSTILE, "path": (HOSTILE + "p",), "shared_with": (HOSTILE,)}),
        blocks={HOSTILE + "p": HOSTILE},
    )
    texts = [to_dot(hostile, HOSTILE), to_dot(STACKED, "stack")]
    for name in models:
        for level in ("layer", "block", "op"):
            assert main(["graph", name, "--level", level]) == 0
            texts.append(capsys.readouterr().out)
    for text in texts:
        done = subprocess.run(["dot", "-Tcanon"], input=text.encode(), capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("name", each())
def test_formats_are_the_same_without_networkx(name: str) -> None:
    model = archspec.load(name)
    shapes = {tensor.name: tensor.shape for tensor in (*model.tensors, *model.buffers)}
    for level, depth, fold in (("layer", None, False), ("block", 1, True), ("op", None, True)):
        graph = model.graph(level, depth, fold=fold)
        for format in ("dot", "mermaid", "graphml", "gexf", "netron", "model-explorer", "json"):
            text = format_model(model, format, level, depth, fold)
            assert text == format_graph(graph, format, name, shapes), format
