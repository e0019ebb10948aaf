"""Steps of graphs that no command shows: hostile names, limits, and graphs without networkx."""

import io
import json
import re
import shutil
import subprocess
from typing import Any

import networkx as nx
import pytest
from bundled import each
from test_graph import NESTED

import archspec
from archspec.drawing.graph.dot import to_dot
from archspec.drawing.graph.exchange import gexf_text, graphml_text
from archspec.drawing.graph.formats import format_graph, format_model
from archspec.drawing.graph.mermaid import MAX_CHARACTERS, MAX_EDGES, to_mermaid
from archspec.drawing.graph.walk import close_blocks

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


HARMFUL = graph(
    (HOSTILE, {"type": HOSTILE, "path": (HOSTILE + "p",), "shared_with": (HOSTILE,)}), blocks={HOSTILE + "p": HOSTILE}
)


@pytest.mark.skipif(not shutil.which("dot"), reason="needs Graphviz")
def test_graphviz_takes_hostile_names_without_a_word() -> None:
    text = to_dot(HARMFUL, HOSTILE)
    done = subprocess.run(["dot", "-Tcanon"], input=text.encode(), capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_nothing_in_a_name_acts_as_markup() -> None:
    hostile = HARMFUL
    drawn = to_mermaid(hostile, HOSTILE)
    starts = ["--", "ti", "--", "fl", "su", "n0", "en", "cl", "cl", "cl"]
    assert [line.strip().split(" ")[0][:2] for line in drawn.splitlines()] == starts
    assert json.loads(drawn.splitlines()[1].removeprefix("title: ")).startswith('a"b\\c<i>d</i>')
    assert all(len(re.findall('"', line)) in (0, 2) for line in drawn.splitlines()[3:])
    assert "\x1b" not in drawn + to_dot(hostile, HOSTILE) and "<i>" not in to_dot(hostile, HOSTILE)


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


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", each())
def test_formats_are_the_same_without_networkx(name: str) -> None:
    model = archspec.load(name)
    shapes = {tensor.name: tensor.shape for tensor in (*model.tensors, *model.buffers)}
    for level, depth, fold in (("layer", None, False), ("block", 1, True), ("op", None, True)):
        graph = model.graph(level, depth, fold=fold)
        for format in ("dot", "mermaid", "graphml", "gexf", "netron", "model-explorer", "json"):
            text = format_model(model, format, level, depth, fold)
            assert text == format_graph(graph, format, name, shapes), format


@pytest.mark.parametrize("name", ["bert-base-uncased-mlm", "t5-small", "swin-tiny", "runs"])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_closed_blocks_are_those_of_the_level_block(name: str, depth: int) -> None:
    model = archspec.loads(NESTED, name) if name == "runs" else archspec.load(name)
    small, expected = close_blocks(model.graph(), depth), model.graph("block", depth + 1)
    assert {*small.edges} == {*expected.edges}
    for node, data in expected.nodes(data=True):
        for key in ("kind", "type", "params", "frozen", "role", "shape", "path"):
            assert small.nodes[node].get(key) == data.get(key), (node, key)
