"""Pictures of graphs: DOT, Mermaid, node-link data."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import networkx as nx
import pytest
from bundled import groups

import archspec
from archspec.cli import main
from archspec.graph.dot import dot
from archspec.graph.mermaid import mermaid
from archspec.graph.nodelink import nodelink
from archspec.graph.picture import Box, arrange

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
    ("layer.*.expert.*", {"params": 480, "path": STACK, "repeat": 48, "type": "Expert"}),
    ("shared", {"params": 7, "repeat": 3}),
    ("decoder", {"shared_with": ("shared",)}),
    ("output:y", {"kind": "output", "type": "real"}),
    blocks={"layer.*": "Layer", "layer.*.inner": "Inner"},
)


def boxes(box: Box) -> list[Box]:
    return [box, *(inner for item in box.items if isinstance(item, Box) for inner in boxes(item))]


def test_boxes_are_the_enclosing_blocks_with_their_repetition() -> None:
    assert [box.title for box in boxes(arrange(STACKED).box)] == ["", "layer.*   12 x Layer", "inner   Inner"]


def test_labels_say_name_type_parameters_and_shape() -> None:
    lines = [item.lines for box in boxes(arrange(STACKED).box) for item in box.items if not isinstance(item, Box)]
    assert lines == [
        ("x", "batch x 4"),
        ("shared", "Linear, applied 3 times  7", "batch x 4"),
        ("decoder", "Linear", "shares with shared", "batch x 4"),
        ("y", "batch x 4"),
        ("gelu",),  # its shape is that of what it takes
        ("expert.*", "Expert  48 x 10", "batch x 4"),
        ("dense", "Linear  12 x 20", "batch x 4"),
    ]


def test_a_second_application_is_named_within_its_own_block() -> None:
    again = graph(("shared.dense@2", {"path": ("shared@2",)}))
    (box,) = [item for item in arrange(again).box.items if isinstance(item, Box)]
    assert box.title == "shared@2"
    assert box.items[0].lines[0] == "dense@2"  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["input", "output", "layer", "block", "op", "param", "buffer"])
def test_every_kind_can_be_drawn(kind: str) -> None:
    one = graph((f"{kind}:x", {"kind": kind, "type": kind}))
    assert "n0 [" in dot(one, "") and "n0" in mermaid(one, "")


def test_nothing_in_a_name_acts_as_markup() -> None:
    hostile = graph(
        (HOSTILE, {"type": HOSTILE, "path": (HOSTILE + "p",), "shared_with": (HOSTILE,)}),
        blocks={HOSTILE + "p": HOSTILE},
    )
    drawn = mermaid(hostile, HOSTILE)
    assert [line.strip().split(" ")[0][:2] for line in drawn.splitlines()] == ["%%", "fl", "su", "n0", "en", "cl"]
    assert all(len(re.findall('"', line)) in (0, 2) for line in drawn.splitlines())
    assert "\x1b" not in drawn + dot(hostile, HOSTILE) and "<i>" not in dot(hostile, HOSTILE)


def test_node_link_data_reads_back() -> None:
    model = archspec.load("bert-base-uncased")
    back = nx.node_link_graph(json.loads(json.dumps(nodelink(model.graph()))), edges="edges")
    assert isinstance(back, nx.DiGraph)
    assert list(back.edges) == list(model.graph().edges)
    query = back.nodes["encoder.layer.0.attention.self.query"]
    assert query["params"] == 590_592 and query["shape"] == ["batch", "seq", 768]
    assert sum(facts["params"] for _, facts in back.nodes(data=True)) == model.params.total


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
    assert size("--to", "json") == size("--to", "json", "--no-fold") > size("--to", "json", "--fold")
    assert size("--level", "block") < size() < size("--level", "op")


@pytest.mark.skipif(not shutil.which("dot"), reason="needs Graphviz")
@pytest.mark.parametrize("models", groups())
def test_graphviz_takes_it_without_a_word(models: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    hostile = graph(
        (HOSTILE, {"type": HOSTILE, "path": (HOSTILE + "p",), "shared_with": (HOSTILE,)}),
        blocks={HOSTILE + "p": HOSTILE},
    )
    texts = [dot(hostile, HOSTILE), dot(STACKED, "stack")]
    for name in models:
        for level in ("layer", "block", "op"):
            assert main(["graph", name, "--level", level]) == 0
            texts.append(capsys.readouterr().out)
    for text in texts:
        done = subprocess.run(["dot", "-Tcanon"], input=text.encode(), capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")
