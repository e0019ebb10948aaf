"""Steps of the code that the tests of side by side cannot reach through public names."""

import itertools
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import picture_lint
import pytest
from pictured import HOSTILE
from test_side_by_side import Seen

import archspec
from archspec import Model
from archspec.analysis.compare import pictures as comparisons
from archspec.analysis.diff import pictures as diffs
from archspec.core.addresses import address_pattern
from archspec.drawing.layout.frames import Frame
from archspec.drawing.layout.ties import tie_lines
from archspec.drawing.plan.plan import Node
from archspec.drawing.svg.marks import mark_colors, shown_marks, sign
from archspec.drawing.svg.paint import Paint
from archspec.drawing.svg.panels import Panel, align_rows
from archspec.drawing.svg.svg import Drawing
from archspec.drawing.svg.theme import DARK, LIGHT, Theme, contrast
from archspec.testing import main

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


MIX = """
dim batch
layer Mix()(x [batch, 4]) -> [batch, 4] {{
  weight: {weight}
  return x + sum(axis = 0)(sum(axis = 0)(.weight))
}}
block Net()(x [batch, 4]) -> [batch, 4] {{
  return x |> mix: Mix()
}}
model "net" = Net()
"""


MORE = "param [4, 4, 4]\n  more: unused param [4]"


def net(name: str, activation: str = "gelu", inner: int = 16, layers: int = 2, last: str = "out") -> Model:
    quoted = json.dumps(name, ensure_ascii=False)
    return archspec.loads(LAYER.format(name=quoted, activation=activation, inner=inner, layers=layers, last=last))


def pairs() -> list[Any]:
    rest = [pair for pair in itertools.combinations(MODELS, 2) if pair not in EVERYDAY]
    return [*EVERYDAY, *[pytest.param(pair, marks=pytest.mark.slow) for pair in rest]]


def compared(*models: Model) -> Sequence[Panel]:
    return comparisons.build_panels(models)[0]


def differing(a: Model, b: Model) -> Sequence[Panel]:
    return diffs.build_panels(archspec.diff(a, b), a, b)[0]


def marked(panel: Panel) -> dict[str, str]:
    shown = shown_marks(panel.plan, panel.is_open, panel.marks)
    return {panel.plan.nodes[id].name: mark.kind for id, mark in shown.items()}


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


def test_panels_are_apart() -> None:
    shown = ElementTree.fromstring(comparisons.picture([archspec.load("gpt2"), archspec.load("t5-small")]))
    width = float(shown.attrib["width"])
    xs = [float(re.findall(r"-?[\d.]+", group.attrib["transform"])[0]) for group in shown.iterfind("{*}g")]
    assert "".join(shown.itertext()).count("\N{HORIZONTAL ELLIPSIS}") == 0
    assert xs[0] == xs[2] < xs[1] + 1 and xs[2] + 500 < xs[3] == xs[5] < width - 500  # title, model and legend of each


def test_equal_models_have_no_marks() -> None:
    model = archspec.load("transformer-base")
    assert [panel.marks for panel in compared(model, model, model)] == [{}, {}, {}]
    assert "no differences" in comparisons.picture([model, model])
    assert "no differences" not in comparisons.picture([net("a"), net("b", inner=32)])


def test_marks_of_bert_and_roberta() -> None:
    a, b = (marked(panel) for panel in compared(archspec.load("bert-base-uncased"), archspec.load("roberta-base")))
    assert a.pop("#arange.0") == "removed" and b.pop("#positions_after.0") == "added"
    embeddings = {f"embeddings.{name}_embeddings" for name in ("word", "position", "token_type")}
    layer = "encoder.layer.*"
    norms = {"embeddings.LayerNorm", f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"}
    assert a == b == dict.fromkeys(embeddings | norms, "changed")


def test_a_part_that_some_models_lack() -> None:
    bert, gpt, albert = compared(*map(archspec.load, ("bert-base-uncased", "gpt2", "albert-base-v2")))
    node = next(node for node in bert.plan.nodes if node.name == "pooler.dense")
    assert bert.marks[node.id] == ("changed", "not in B")
    assert "pooler" not in marked(albert) and marked(gpt)["lm_head"] == "added"
    assert marked(albert)["encoder.embedding_hidden_mapping_in"] == "added"


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        ("param [4, 8]", "A: 4 \N{RIGHTWARDS ARROW} 4"),
        ("frozen param [4, 4]", "A: not frozen"),
        ("param [4, 4]\n  shift: unused param [4]", "A: without shift"),
        ("param [4, 4]\n  more: unused param [4]", "A: without more"),
    ],
)
def test_what_is_stored_is_described(weight: str, text: str) -> None:
    a, b = compared(*[archspec.loads(MIX.format(weight=each)) for each in ("param [4, 4]", weight)])
    assert marked(a)["mix"] == marked(b)["mix"] == "changed"
    assert [node.differs for node in b.plan.nodes if node.name == "mix"] == [text]


def test_what_is_stored_in_part_is_described() -> None:
    def described(first: str, second: str) -> list[str]:
        weights = [f"{each} [4, 4]\n  more: unused {other} [4]" for each, other in (first.split(), second.split())]
        _, b = compared(*[archspec.loads(MIX.format(weight=weight.replace("_", " "))) for weight in weights])
        return [node.differs or "" for node in b.plan.nodes if node.name == "mix"]

    assert described("frozen_param frozen_param", "param param") == ["A: frozen"]
    assert described("frozen_param param", "param param") == ["A: frozen in part"]
    assert described("param param", "frozen_param param") == ["A: not frozen"]


ALTERNATING = """
import std {{ Linear }}
dim batch
block One(n)(x [batch, n]) -> [batch, n] {{ return x |> up: Linear(n, n) |> + x }}
block Two(n)(x [batch, n]) -> [batch, n] {{ return x |> up: Linear(n, n) |> {activation} |> + x }}
block Net(n = {n}, layers = 4)(x {dtype} [batch, n], y [batch, n]) -> (out [batch, n], last [batch, n]) {{
  h = real(x)
  for i in 0..layers {{
    h = h |> layers[i]: (One(n) if i % 2 == 0 else Two(n))
  }}
  return h * y, y
}}
model "net" = Net()
"""


def test_inputs_outputs_and_parts_of_periods_are_marked() -> None:
    def texts(**other: Any) -> list[dict[str, str]]:
        usual: dict[str, Any] = {"activation": "tanh", "n": 8, "dtype": "int"}
        panels = compared(*[archspec.loads(ALTERNATING.format(**each)) for each in (usual, usual | other)])
        return [{panel.plan.nodes[id].name: mark.text for id, mark in panel.marks.items()} for panel in panels]

    times = "\N{MULTIPLICATION SIGN}"
    assert texts(dtype="bool") == [{"input:x": f"B: bool batch {times} 8"}, {"input:x": f"A: int batch {times} 8"}]
    assert texts(activation="exp") == [{"layers.1,3#tanh.0": "not in B"}, {"layers.1,3#exp.0": "not in A"}]
    smaller, _ = texts(n=4)
    ends = "input:y", "output:out", "output:last"
    assert {name: smaller[name] for name in ends} == dict.fromkeys(ends, f"B: real batch {times} 4")


def test_further_tensors_of_other_sizes_are_described() -> None:
    a, b = compared(*[archspec.loads(MIX.format(weight=f"param [4, 4]\n  more: unused param [{n}]")) for n in (4, 5)])
    assert marked(a)["mix"] == marked(b)["mix"] == "changed"
    assert [node.differs for node in b.plan.nodes if node.name == "mix"] == ["A: other sizes"]


PRENORM = """
import std {{ Linear, LayerNorm }}
dim batch
block Net(hidden = 8)(x [batch, hidden]) -> [batch, hidden] {{
  return x {steps}
}}
model "net" = Net()
"""


def test_marks_of_a_difference() -> None:
    a, b = differing(net("a"), net("b", "relu", inner=32, layers=3, last="end"))
    layer = "layers.*"
    changed = (layer, f"{layer}.up", f"{layer}.down", "output:output")
    common = dict.fromkeys(changed, "changed")
    assert marked(a) == {**common, f"{layer}#gelu.0": "removed", "out": "removed"}
    assert marked(b) == {**common, f"{layer}#relu.0": "added", "end": "added"}


TERMINALS = """
import std {{ Linear }}
dim batch
block Inner(n)(x [batch, n]) -> [batch, n] {{ return x |> one: Linear(n, n) |> two: Linear(n, n) |> + x }}
layer Scale(n)(x [batch, n]) -> [batch, n] {{
  weight: param [n]
  return x * .weight
}}
block Net(n = 8)({inputs}) -> (out [batch, n], rest [batch, n]) {{
  h = x |> up: Linear(n, n, {bias}) |> same: Scale(n) |> inner: Inner(n){gone}
  return {out}, h |> mask: Scale(n)
}}
model "net" = Net()
"""


def described(panel: Panel) -> dict[str, tuple[str, str]]:
    return {panel.plan.nodes[id].name: (mark.kind, mark.text) for id, mark in panel.marks.items()}


def test_what_marks_say() -> None:
    def spec(inputs: str, bias: str, gone: str, out: str) -> Model:
        return archspec.loads(TERMINALS.format(inputs=inputs, bias=bias, gone=gone, out=out))

    one = spec("x [batch, n], mask [batch, n]", "bias = false", " |> gone: Inner(n)", "h * mask")
    a, b = map(
        described, differing(one, spec("x [batch, n], mask int [batch, n]", "bias = true", "", "h + real(mask)"))
    )
    common = {
        "up": ("changed", "added up.bias; computes linear(no bias) -> linear"),
        "input:mask": ("changed", "input [batch, 8] -> int [batch, 8]"),
        "output:out": ("changed", "returns out gone * mask -> inner + real(mask)"),
        "mask": ("changed", "reads gone -> inner"),
    }
    assert a == {
        **common,
        "gone": ("removed", "removed gone"),
        "#mul.0": ("removed", "removed \N{MULTIPLICATION SIGN}"),
    }
    assert b == {**common, "#real.0": ("added", "added real")}
    a, b = map(described, differing(one, spec("x [batch, n]", "bias = false", " |> gone: Inner(n)", "h * x")))
    assert a["input:mask"] == ("removed", "input [batch, 8] -> none") and "input:mask" not in b


def test_a_layer_that_has_another_tensor_is_changed() -> None:
    a, b = map(described, differing(*[archspec.loads(MIX.format(weight=w)) for w in ("param [4, 4, 4]", MORE)]))
    assert a == b == {"mix": ("changed", "added mix.more")}


def test_a_block_without_one_of_its_layers_is_changed() -> None:
    text = TERMINALS.format(inputs="x [batch, n]", bias="bias = true", gone="", out="h * x")
    a, b = differing(*[archspec.loads(each) for each in (text, text.replace("|> two: Linear(n, n) ", ""))])
    assert marked(a) == {"inner": "changed", "inner.two": "removed"} and marked(b) == {"inner": "changed"}


@pytest.mark.parametrize(("length", "shown"), [(394, 400), (395, 400), (500, 400)])
def test_long_texts_of_marks_are_cut(length: int, shown: int) -> None:
    name = "x" * (length - len("mix."))
    more = MORE.replace("more", name)
    _, b = map(described, differing(*[archspec.loads(MIX.format(weight=w)) for w in ("param [4, 4, 4]", more)]))
    text = b["mix"][1]
    assert len(text) == shown and text.endswith("..." if length > 394 else "x")


def test_moved_parts_are_marked() -> None:
    post, pre = (
        "|> up: Linear(hidden, hidden) |> norm: LayerNorm(hidden)",
        "|> norm: LayerNorm(hidden) |> up: Linear(hidden, hidden)",
    )
    a, b = differing(
        *[archspec.loads(PRENORM.format(steps=f"{steps} |> down: Linear(hidden, hidden)")) for steps in (post, pre)]
    )
    assert marked(a) == marked(b) and marked(a)["norm"] == "moved"


def test_a_model_within_another_has_only_the_marks_of_what_is_around_it() -> None:
    sizes = {"vocab": 20, "hidden": 8, "layers": 2, "heads": 2, "ffn": 16, "positions": 10}
    inner, outer = (archspec.load(f"bert-base-uncased-{name}", **sizes) for name in ("nopooler", "mlm"))
    assert list(map(described, differing(inner, outer))) == [
        {"output:last_hidden_state": ("removed", "output [batch, seq, 8] -> none")},
        {
            "cls.predictions": ("added", "added cls.predictions"),
            "output:logits": ("added", "output none -> [batch, seq, 20]"),
        },
    ]
    assert list(map(described, differing(outer, inner))) == [
        {
            "cls.predictions": ("removed", "removed cls.predictions"),
            "output:logits": ("removed", "output [batch, seq, 20] -> none"),
        },
        {"output:last_hidden_state": ("added", "output none -> [batch, seq, 8]")},
    ]


def test_blocks_that_are_drawn_apart_are_added_as_a_whole() -> None:
    text = "import std { Linear }\nblock Part()(x [4]) -> [4] {\n  return x |> a: Linear(4, 4) |> tanh\n}\n"
    text += (
        "block Net()(x [4]) -> [4] {\n  return x |> l.0: Part() |> sin |> l.1: Part()MORE\n}\n"
        + 'model "net" = Net()\n'
    )
    _, b = differing(*[archspec.loads(text.replace("MORE", more)) for more in ("", " |> exp |> l.2: Part()")])
    assert marked(b)["l.2"] == "added"


def test_a_changed_layer_says_what_differs() -> None:
    a, b = archspec.load("bert-base-uncased"), archspec.load("roberta-base")
    shown = diffs.picture(archspec.diff(a, b), a, b)
    assert shown.count(">eps = 1e-05 (A: 1e-12)<") == 3


def test_models_have_letters() -> None:
    model = net("a")
    names = [panel.name for panel in compared(*[model] * 28)]
    assert [name.partition(":")[0] for name in names] == [*"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "A1", "B1"]


def test_models_without_differences_have_no_marks() -> None:
    a, b = archspec.load("gpt2"), archspec.load("gpt2")
    assert [panel.marks for panel in differing(a, b)] == [{}, {}]
    assert "no differences" in diffs.picture(archspec.diff(a, b), a, b)


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


def test_changes_of_operations_are_marked() -> None:
    a, b = archspec.load("bert-base-uncased"), archspec.load("bert-base-uncased", eps=1e-5)
    layer = "encoder.layer.*"
    norms = ("embeddings.LayerNorm", f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm")
    assert [marked(panel) for panel in differing(a, b)] == [dict.fromkeys(norms, "changed")] * 2


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


def test_small_pictures_are_as_they_were_looked_at(golden: Callable[[str, str], None]) -> None:
    a, b = net("a"), net("b", "relu", inner=32, layers=3, last="end")
    golden("compare/pictures.svg", comparisons.picture([a, b]))
    golden("compare/diff-pictures.svg", diffs.picture(archspec.diff(a, b), a, b))


def test_svg_is_self_contained() -> None:
    models = [archspec.load(name) for name in ("bert-base-uncased", "transformer-base", "gpt2")]
    root = ElementTree.fromstring(comparisons.picture(models))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        "svg",
        "title",
        "rect",
        "g",
        "path",
        "text",
        "circle",
    }
    names = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in names if "href" in name or name.startswith("on") or name in ("id", "style")]


def test_compare_writes_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg, page = tmp_path / "models.svg", tmp_path / "models.html"
    words = ["compare", "bert-base-uncased", "albert-base-v2", "--svg", str(svg), "--html", str(page)]
    assert main([*words, "--depth", "2"]) == 0
    table = capsys.readouterr().out
    assert main([*words[:3], "--depth", "2"]) == 0 and capsys.readouterr().out == table
    assert svg.read_text() == comparisons.picture([archspec.load(name) for name in words[1:3]])
    seen = Seen(page.read_text())
    assert svg.read_text() in page.read_text() and not seen.tags & {"script", "img", "iframe", "object", "form"}
    assert not {"style", "src", "onclick"} & {*seen.attributes} and seen.attributes["href"] == {"data:,"}
    (policy,) = [value for value in seen.attributes["content"] if "default-src" in value]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    numbers = {*re.findall(r"\d+(?:,\d{3})+", table)}
    assert len(numbers) > 10 and not [number for number in numbers if number not in seen.text]
    assert main(words) == 2 and "already exists" in capsys.readouterr().err
    assert main([*words, "--force", "--dark"]) == 0
    assert svg.read_text() == comparisons.picture([archspec.load(name) for name in words[1:3]], theme="dark")
