"""Plans of pictures, their geometry, and SVG: over the bundled models, closed and open."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import picture_lint
import pytest

import archspec
from archspec.algebra import evaluate
from archspec.model import internals
from archspec.pictures.api import opened, picture, plan_of
from archspec.pictures.frames import Frame
from archspec.pictures.layout import layout
from archspec.pictures.paint import Paint, totals_of
from archspec.pictures.plan import Node, Plan
from archspec.pictures.svg import Drawing, svg
from archspec.pictures.theme import DARK, LIGHT, Theme, contrast, heat, role_styles
from archspec.pictures.ties import tie_lines
from archspec.work import work_of

HERE = Path(__file__).parent
MODELS = archspec.models()
EVERYDAY = [
    "albert-base-v2-pretraining",
    "bart-base",
    "bert-base-uncased",
    "electra-small-discriminator-pretraining",
    "gpt2",
    "llama-3.2-1b",
    "modernbert-base",
    "t5-v1_1-base",
    "transformer-seq2seq",
]

State = Callable[[Node], bool]


def states(plan: Plan) -> Iterator[tuple[str, State]]:
    """Yield ways of opening a plan: the levels of the command, everything closed, and some at random."""
    for level, depth in (("layer", None), ("op", None), ("block", 1), ("block", 2), ("block", 3)):
        yield f"{level} {depth}", opened(plan, level, depth)
    yield "closed", lambda node: False
    for seed in range(3):
        chosen = random.Random(seed)
        flags = {node.id: chosen.random() < 0.6 for node in plan.nodes}
        yield f"seed {seed}", lambda node, flags=flags: flags[node.id]


def closed_boxes(frame: Frame) -> Iterator[Node]:
    for inner, _, _ in frame.items:
        if inner.is_open:
            yield from closed_boxes(inner)
        else:
            yield inner.node


def check(plan: Plan, body_flops: object, sizes: dict[str, int]) -> None:
    """Check the geometry and the sums of a plan in all states."""
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


def check_model(name: str) -> None:
    model = archspec.load(name)
    plan = plan_of(model)
    sizes = dict.fromkeys(plan.dimensions, 24)
    check(plan, archspec.cost(model, dims=sizes).work.flops, sizes)
    shares = {share.role: share.params for share in plan.roles}
    counted: dict[str | None, int] = {}
    for tensor in model.tensors:
        counted[tensor.role] = counted.get(tensor.role, 0) + tensor.params
    assert shares == counted


@pytest.mark.parametrize("name", EVERYDAY)
def test_geometry_and_sums(name: str) -> None:
    check_model(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if name not in EVERYDAY])
def test_geometry_and_sums_of_all_models(name: str) -> None:
    check_model(name)


@pytest.mark.parametrize("spec", ["mamba.arch", *[f"values.arch:{name}" for name in ("attention", "nested", "looped")]])
def test_geometry_of_other_specs(spec: str) -> None:
    model = archspec.load(f"{HERE / spec}")
    plan = plan_of(model)
    sizes = dict.fromkeys(plan.dimensions, 24)
    check(plan, evaluate(work_of(internals(model).body).flops, sizes), sizes)
