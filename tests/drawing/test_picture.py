"""Plans of pictures, their geometry, and SVG: over the bundled models, closed and open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import fsum
from xml.etree import ElementTree

import picture_lint
import pytest
from paths import DATA, read_spec
from pictured import named, states
from small import load

import archspec
from archspec.core.algebra import evaluate
from archspec.drawing.api import build_plan, find_open_nodes, picture
from archspec.drawing.layout.frames import Frame
from archspec.drawing.layout.layout import layout
from archspec.drawing.layout.paths import _simplified  # pyright: ignore[reportPrivateUsage]
from archspec.drawing.layout.ties import tie_lines
from archspec.drawing.plan.labels import subtitle
from archspec.drawing.plan.plan import Node, Plan
from archspec.drawing.svg.paint import Paint, totals_of
from archspec.drawing.svg.svg import Drawing
from archspec.drawing.svg.theme import LIGHT
from archspec.ir.work import body_work
from archspec.pipeline.model import get_compilation

MODELS = archspec.models()
EVERYDAY = [
    "albert-base-v2-pretraining",
    "bart-base",
    "bert-base-uncased",
    "electra-small-discriminator-pretraining",
    "gpt2",
    "llama-3.2-1b",
    "modernbert-base",
    "transformer-seq2seq",
]


def closed_boxes(frame: Frame) -> Iterator[Node]:
    for inner, _, _ in frame.items:
        if inner.is_open:
            yield from closed_boxes(inner)
        else:
            yield inner.node


def summary(root: Frame) -> str:
    """Return the size of a picture, and the numbers and the sums of the coordinates of its boxes, texts and lines."""
    boxes, lines = [*picture_lint.boxes_of(root)], [*picture_lint.lines_of(root)]
    corners = [corner for line in lines for corner in line.points]
    dots = [line.path.dot for line in lines if line.path.dot is not None]
    headings = [x for box in boxes for x in box.frame.heading]
    parts = [
        f"{root.w:.1f} x {root.h:.1f}",
        f"{len(boxes)} boxes {fsum(box.x for box in boxes):.1f} {fsum(box.y for box in boxes):.1f}",
        f"{len(headings)} headings {fsum(headings):.1f}",
        f"{len(lines)} lines {fsum(x for x, _ in corners):.1f} {fsum(y for _, y in corners):.1f}",
        f"{len(dots)} dots {fsum(x for x, _ in dots):.1f} {fsum(y for _, y in dots):.1f}",
        f"{sum(line.path.arrow for line in lines)} arrows",
    ]
    return ", ".join(parts)


def check(plan: Plan, body_flops: object, sizes: dict[str, int]) -> str:
    """Check the geometry and the sums of a plan in all states; return summaries of the pictures."""
    found: list[str] = []
    totals = {what: totals_of(plan, what, sizes) for what in ("params", "flops", "bytes")}
    assert totals["flops"][0] == body_flops
    for name, is_open in states(plan):
        root = layout(plan, is_open)
        assert picture_lint.faults(plan, root) == [], name
        for what, total in totals.items():
            assert sum(total[node.id] for node in closed_boxes(root)) == total[0], (name, what)
        assert totals["params"][0] == plan.total
        drawing = Drawing(plan, Paint(plan, LIGHT))
        drawing.contents(root, 0.0, 0.0, 0)
        assert picture_lint.tie_faults(drawing.placed, tie_lines(plan, drawing.placed)) == [], name
        assert picture_lint.text_faults(root) == [], name
        found.append(f"{name}: {summary(root)}\n")
    return "".join(found)


def check_model(name: str) -> str:
    model = archspec.load(name)
    plan = build_plan(model)
    sizes = {name: 8_000 if name == "samples" else 24 for name in plan.dimensions}
    found = check(plan, archspec.cost(model, dims=sizes).work.flops, sizes)
    shares = {share.role: share.params for share in plan.roles}
    counted: dict[str | None, int] = {}
    for tensor in model.tensors:
        counted[tensor.role] = counted.get(tensor.role, 0) + tensor.params
    assert shares == counted
    return found


@pytest.mark.parametrize("name", EVERYDAY)
def test_geometry_and_sums(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"pictures/layouts/{name}.txt", check_model(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if name not in EVERYDAY])
def test_geometry_and_sums_of_all_models(name: str) -> None:
    check_model(name)


@pytest.mark.parametrize("name", ["attention", "nested", "looped"])
def test_geometry_of_other_specs(name: str, golden: Callable[[str, str], None]) -> None:
    model = archspec.load(f"{DATA / 'values.arch'}:{name}")
    plan = build_plan(model)
    sizes = {name: 8_000 if name == "samples" else 24 for name in plan.dimensions}
    found = check(plan, evaluate(body_work(get_compilation(model).body).flops, sizes), sizes)
    golden(f"pictures/layouts/{name}.txt", found)


# What is drawn


def test_a_period_is_one_frame() -> None:
    plan = build_plan(archspec.load("modernbert-base"))
    top = plan.children(plan.nodes[0])
    (period,) = [node for node in top if node.kind == "period"]
    assert (period.times, period.type, period.title) == (7, "period of 3", "layers.1\N{EN DASH}21")
    assert period.badge is not None and period.badge[0] == "\N{MULTIPLICATION SIGN} 7"
    assert [(node.times, node.differs) for node in plan.children(period)] == [(2, "local"), (1, "not local")]
    assert [node.title for node in plan.children(period)] == [
        "layers.1-2,4-5,7-8,10-11,...,19-20",
        "layers.3,6,9,12,...,21",
    ]
    (apart,) = [node for node in top if node.title == "layers.0"]
    assert apart.differs == "first, not local" and apart.times == 1


def test_equal_layers_of_a_period_are_one_if_the_same_number_varies() -> None:
    text = read_spec("picture_indices")
    plan = build_plan(archspec.loads(text))
    periods = [plan.children(node) for node in plan.nodes if node.kind == "period"]
    assert [[(node.title, node.times) for node in members] for members in periods] == [
        [("s.0", 1), ("s.1", 1), ("t", 1)],
        [("m.0-1,3-4", 2), ("m.2,5", 1)],
    ]


def test_layers_that_look_alike_say_what_differs() -> None:
    def texts(name: str, around: str) -> dict[str, str]:
        plan = build_plan(archspec.load(name))
        (outer,) = [node for node in plan.nodes if node.name == around]
        return {node.title: node.differs for node in plan.children(outer) if node.differs}

    assert texts("t5-small", "encoder") == {
        "block.0": "with relative_attention_bias",
        "block.1-5": "without relative_attention_bias",
    }
    assert texts("swin-tiny", "encoder.layers.0") == {"blocks.0": "shift = 0", "blocks.1": "shift = 3"}
    assert texts("gpt-oss-20b", "model.layers.0,2,4,6,...,22") == {"mlp": "router: 4 of 32 experts"}


def test_outputs_that_nothing_uses_have_no_lines() -> None:
    plan = build_plan(archspec.load("clip-vit-base-patch32"))
    towers = [node for node in plan.children(plan.nodes[0]) if node.title in ("text_model", "vision_model")]
    assert [tower.outputs for tower in towers] == [1, 1]


def test_the_line_between_tied_weights_crosses_no_other_frame() -> None:
    plan = build_plan(archspec.load("whisper-tiny"))
    drawing = Drawing(plan, Paint(plan, LIGHT))
    drawing.contents(layout(plan, find_open_nodes(plan, "layer", None)), 0.0, 0.0, 0)
    (line,) = tie_lines(plan, drawing.placed)
    (encoder,) = [node.id for node in plan.nodes if node.name == "model.encoder"]
    x, y, w, h = drawing.placed.frames[encoder]
    assert not [(a, b) for a, b in line.points if x < a < x + w and y < b < y + h]
    assert min(a for a, _ in line.points) > x + w or min(b for _, b in line.points) > y + h


def test_what_is_open_at_first() -> None:
    def names(model: str) -> list[str]:
        plan = build_plan(archspec.load(model))
        return [plan.nodes[id].name for id in plan.opened]

    assert names("bert-base-uncased") == ["encoder.layer.*", "encoder.layer.*.attention.self"]
    assert names("deepseek-v3")[:2] == ["model", "model.layers.3-60"]
    assert len([name for name in names("swin-tiny") if name.count(".") == 2]) == 1


def test_the_same_weights_again_have_no_sheets() -> None:
    plan = build_plan(archspec.load("albert-base-v2"))
    (layer,) = [node for node in plan.nodes if node.times == 12]
    assert layer.same and layer.copies == 1 and layer.badge is not None
    assert layer.badge[0] == "same weights, 12 times"
    shown = picture(archspec.load("albert-base-v2"))
    assert "same weights, 12 times" in shown and 'opacity=".55"' not in shown
    assert 'opacity=".55"' in picture(archspec.load("bert-base-uncased"))


def test_main_values_masks_and_streams() -> None:
    plan = build_plan(archspec.load("transformer-base"))
    layer = named(plan, "decoder.layer_stack.*")
    sides = {port.argument: port.side for port in layer.inputs}
    assert sides == {"x": "top", "memory": "left", "tokens": "right", "mask": "right", "memory_mask": "right"}
    assert layer.main == 0 and layer.times == 6
    rows = plan.nodes[0].contents
    assert rows is not None
    assert [named(plan, "encoder").id, named(plan, "decoder").id] in rows.rows  # side by side, the encoder on the left
    attention = named(plan, "encoder.layer_stack.*.slf_attn")
    assert [port.argument for port in attention.inputs] == ["x, memory", "mask"]


def test_ties_and_frozen_parts_are_marked() -> None:
    model = archspec.load("transformer-seq2seq")
    plan = build_plan(model)
    tied = {(plan.nodes[a].name, plan.nodes[b].name) for a, b in plan.ties}
    assert tied == {("encoder.src_word_emb", name) for name in ("decoder.tgt_word_emb", "tgt_word_prj")}
    shown = picture(model)
    assert shown.count('stroke-dasharray="2 3.5"') == 2 + 1  # two lines, and the legend
    assert shown.count("<title>frozen</title>") == 2 + 1
    names = {tensor.layer for tensor in model.tensors if not tensor.trainable}
    assert names == {node.name for node in plan.nodes if node.kind == "layer" and node.frozen}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_tie_and_every_frozen_tensor_is_in_the_plan(name: str) -> None:
    model = archspec.load(name)
    plan = build_plan(model)
    linked = {id for pair in plan.ties for id in pair}
    for node in plan.nodes:
        for tensor in node.tensors or ():
            if node.kind == "layer" and tensor.tied_to is not None:
                assert node.id in linked or node.again is not None, node.name  # either is drawn as a link
    assert plan.nodes[0].frozen == model.params.frozen


def test_tensors_that_differ_in_indices_are_one_node() -> None:
    model = archspec.loads(read_spec("picture_listed"))
    plan = build_plan(model)
    (weight,) = [node for node in plan.nodes if node.kind == "param"]
    times = "\N{MULTIPLICATION SIGN}"
    assert subtitle(weight) == f"8 of 4 {times} 4"
    weight.tensors = [tensor._replace(copies=2) for tensor in weight.tensors or ()]
    assert subtitle(weight) == f"2 of 4 {times} 4"
    weight.tensors = [tensor._replace(copies=1) for tensor in weight.tensors]
    assert subtitle(weight) == f"4 {times} 4"
    assert (weight.copies, weight.params, weight.title) == (8, 128, "parts.*.weight")
    check(plan, 0 if not plan.dimensions else 2 * 8 * 24 * 16, {"batch": 24})


def test_only_operations_on_tensors_that_differ_in_indices_are_one_node() -> None:
    plan = build_plan(load(read_spec("picture_mixed")))
    found = [(node.type, node.times) for node in plan.nodes if node.kind == "op" and node.type != "add"]
    assert found == [("tanh", 1), ("tanh", 1), ("linear", 16), ("mul", 8), ("mul", 8), ("exp", 8)]
    assert [(node.title, node.copies) for node in plan.nodes if node.kind == "param"] == [
        ("parts.*.w", 8),
        ("parts.*.v", 8),
    ]


def test_the_whole_model_is_one_box() -> None:
    shown = picture(archspec.load("bert-base-uncased"), "block", 0)
    texts = [element.text for element in ElementTree.fromstring(shown).iter() if element.tag.endswith("text")]
    assert texts.count("bert-base-uncased") == 2  # the title and the box
    assert {"input_ids", "token_type_ids", "attention_mask", "last_hidden_state", "pooler_output"} <= {*texts}


@pytest.mark.parametrize("name", ["albert-base-v2", "transformer-base"])
def test_pictures_with_every_layer(name: str) -> None:
    plan = build_plan(archspec.load(name), fold=False)
    assert plan.nodes[0].params == plan.total
    for level, depth in (("layer", None), ("block", 2)):
        root = layout(plan, find_open_nodes(plan, level, depth))
        assert picture_lint.faults(plan, root) == []
        assert sum(node.params for node in closed_boxes(root)) == plan.total


def test_a_picture_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load("layer Net(n = 4)(x [n]) -> [n] {\n  w: param [n]\n  return exp(x * .w)\n}\n")
    size = len(build_plan(model).nodes)
    monkeypatch.setattr("archspec.drawing.plan.scope.MAX_PICTURE_NODES", size)
    assert len(build_plan(model).nodes) == size
    monkeypatch.setattr("archspec.drawing.plan.scope.MAX_PICTURE_NODES", size - 1)
    with pytest.raises(archspec.ArchError) as caught:
        build_plan(model)
    assert str(caught.value) == (
        f"error[budget]: too many nodes for a picture: the limit is {size - 1}\n"
        "help: draw stacks of equal blocks once, without `--no-fold`"
    )


def test_long_names_of_models_are_shortened() -> None:
    text = "block Net()(x [4]) -> [4] { return x * 2.0 }\n" + f'model "{"m" * 500}" = Net()\n'
    (svg,) = [picture(archspec.loads(text))]
    assert float(ElementTree.fromstring(svg).attrib["width"]) < 650


def test_lines_have_no_needless_corners() -> None:
    points = [(0.0, 0.0), (0.0, 5.0), (0.0, 5.02), (0.0, 9.0), (4.0, 9.0), (9.0, 9.0), (9.0, 3.0)]
    assert _simplified(points) == [(0.0, 0.0), (0.0, 9.0), (9.0, 9.0), (9.0, 3.0)]
    assert _simplified([(0.0, 0.0), (0.0, 9.0), (0.0, 3.0)]) == [(0.0, 0.0), (0.0, 9.0), (0.0, 3.0)]
