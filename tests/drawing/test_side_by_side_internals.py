"""Steps of the code that the tests of side by side cannot reach through public names."""

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import picture_lint
import pytest
from pictured import HOSTILE

import archspec
from archspec import Model
from archspec.analysis.compare import pictures as comparisons
from archspec.analysis.diff import pictures as diffs
from archspec.core.addresses import address_pattern
from archspec.drawing.layout.frames import Frame
from archspec.drawing.layout.ties import tie_lines
from archspec.drawing.plan.plan import Node
from archspec.drawing.svg.marks import mark_colors, sign
from archspec.drawing.svg.paint import Paint
from archspec.drawing.svg.panels import Panel, align_rows
from archspec.drawing.svg.svg import Drawing
from archspec.drawing.svg.theme import DARK, LIGHT, Theme, contrast

MODELS = (
    "albert-base-v2",
    "bart-base",
    "bert-base-uncased",
    "bert-base-uncased-mlm",
    "deepseek-v3",
    "gpt2",
    "llama-3.2-1b",
    "modernbert-base",
    "swin-tiny",
    "t5-small",
    "t5-v1_1-base",
    "transformer-base",
    "whisper-tiny",
)
"""One of each kind of structure."""


EVERYDAY = [
    ("bert-base-uncased", "gpt2"),
    ("albert-base-v2", "modernbert-base"),
    ("bart-base", "transformer-base"),
    ("bert-base-uncased", "bert-base-uncased-mlm"),
]


LAYER = """
import std {{ Linear, LayerNorm, {activation} }}
dim batch
block Layer(hidden, inner)(x [batch, hidden]) -> [batch, hidden] {{
  return x |> norm: LayerNorm(hidden) |> up: Linear(hidden, inner) |> {activation} |> down: Linear(inner, hidden) |> + x
}}
block Net(hidden = 8, inner = {inner}, layers = {layers})(x [batch, hidden]) -> [batch, hidden] {{
  return x |> layers[i]: Layer(hidden, inner) for i in 0..layers |> {last}: Linear(hidden, hidden)
}}
model {name} = Net()
"""


def net(name: str, activation: str = "gelu", inner: int = 16, layers: int = 2, last: str = "out") -> Model:
    quoted = json.dumps(name, ensure_ascii=False)
    return archspec.loads(LAYER.format(name=quoted, activation=activation, inner=inner, layers=layers, last=last))


def pairs() -> list[Any]:
    rest = [pair for pair in itertools.combinations(MODELS, 2) if pair not in EVERYDAY]
    return [*EVERYDAY, *[pytest.param(pair, marks=pytest.mark.slow) for pair in rest]]


def differing(a: Model, b: Model) -> Sequence[Panel]:
    return diffs.build_panels(archspec.diff(a, b), a, b)[0]


@pytest.mark.parametrize("pair", pairs())
def test_nothing_overlaps(pair: tuple[str, str]) -> None:
    a, b = map(archspec.load, pair)
    for panels, found in (comparisons.build_panels([a, b]), diffs.build_panels(archspec.diff(a, b), a, b)):
        for panel, root in zip(panels, align_rows(panels, found), strict=True):
            assert picture_lint.faults(panel.plan, root) == []
            assert picture_lint.text_faults(root) == []
            drawing = Drawing(panel.plan, Paint(panel.plan, LIGHT))
            drawing.contents(root, 0.0, 0.0, 0)
            assert picture_lint.tie_faults(drawing.placed, tie_lines(panel.plan, drawing.placed)) == []


def heights(root: Frame) -> dict[str, float]:
    return {box.frame.node.name: box.y for box in picture_lint.boxes_of(root)}


def test_what_corresponds_is_level() -> None:
    models = [archspec.load(name) for name in ("bert-base-uncased", "roberta-base", "albert-base-v2")]
    a, b, c = map(heights, align_rows(*comparisons.build_panels(models)))
    layer, shared = "encoder.layer.*", "encoder.albert_layer_groups.0.albert_layers.0"
    for name in (layer, f"{layer}.attention.self.query", f"{layer}.intermediate.dense", f"{layer}.output.LayerNorm"):
        assert a[name] == pytest.approx(b[name], abs=0.5), name
    assert a[layer] == pytest.approx(c[shared], abs=0.5)
    assert a[f"{layer}.intermediate.dense"] == pytest.approx(c[f"{shared}.ffn"], abs=0.5)
    assert a["pooler.dense"] == pytest.approx(c["pooler"], abs=0.5)


@pytest.mark.parametrize(
    "pair",
    [
        *EVERYDAY,
        ("bert-base-uncased", "bert-large-uncased"),
        pytest.param(("t5-small", "t5-v1_1-base"), marks=pytest.mark.slow),
    ],
)
def test_exactly_the_layers_that_differ_are_marked(pair: tuple[str, str]) -> None:
    """By the names of tensors alone, without the code that places changes."""
    a, b = map(archspec.load, pair)
    found = archspec.diff(a, b)
    added, removed = found.prefix
    changed = {change.name.rpartition(".")[0] for change in found.tensors}
    words = {name for change in found.operations for name in change.fold.names}
    operated = {address_pattern(name) for name in words} | {address_pattern(added + name) for name in words}
    for own, panel in enumerate(differing(a, b)):
        for node in panel.plan.nodes:
            if node.kind != "layer" or not node.addresses:
                continue
            names = [added + address.removeprefix(removed) if own == 0 else address for address in node.addresses]
            is_operated = bool({address_pattern(name) for name in names} & operated)
            if changed.intersection(names):
                assert any(id in panel.marks for id in ids_around(panel, node)), node.name
            elif not is_operated:
                assert node.id not in panel.marks, node.name


def ids_around(panel: Panel, node: Node) -> list[int]:
    """The ids of a node and of those around it."""
    found = [node.id]
    while node.parent is not None:
        node = panel.plan.nodes[node.parent]
        found.append(node.id)
    return found


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_are_legible_and_distinguished_without_color(theme: Theme) -> None:
    colors = mark_colors(theme)
    for color in colors.values():
        assert contrast(color.fill, color.line) >= 4.5
        assert all(contrast(color.line, around) >= 4.5 for around in (theme.background, *theme.frames))
    paths = [re.findall(r'<path d="([^"]+)"', sign(kind, 0, 0, theme)) for kind in colors]
    assert len({*map(str, paths)}) == len(colors) == 4


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_inert_and_inside(name: str, tmp_path: Path) -> None:
    long = "very_" * 40 + "long"
    a, b = net(name), net(f"{name} 2", inner=12, last=long)
    for shown in (comparisons.picture([a, b]), diffs.picture(archspec.diff(a, b), a, b, theme="dark")):
        root = ElementTree.fromstring(shown)
        assert not [element for element in root.iter() if element.tag.endswith("script")]
        assert "\u202e" not in "".join(root.itertext())
    for panels, found in (comparisons.build_panels([a, b]), diffs.build_panels(archspec.diff(a, b), a, b)):
        assert [picture_lint.text_faults(root) for root in align_rows(panels, found)] == [[], []]
