"""The scripts of the page compute and draw what Python does."""

import math
import random
import re
from typing import Any

import pages
import pytest
import scripts

import archspec
from archspec import Model, Polynomial
from archspec.core.algebra import dim_max, dim_min, evaluate, symbol
from archspec.drawing.api import build_plan
from archspec.drawing.page.page import data_of
from archspec.drawing.plan.amounts import amount_data as amount_data
from archspec.drawing.plan.amounts import sizes_of
from archspec.drawing.plan.metrics import is_known, shorten_text, width
from archspec.drawing.plan.plan import Plan
from archspec.drawing.svg.paint import Coloring, Paint
from archspec.drawing.svg.svg import svg
from archspec.drawing.svg.theme import THEMES

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

SAVED = """
return input.cases.map(([open, color, theme]) => {
  state.open = new Set(open);
  state.color = color;
  state.theme = theme;
  return savedPicture();
});
"""


def script_plan(model: Model) -> tuple[Plan, dict[str, Any]]:
    plan = build_plan(model)
    return plan, data_of({**plan.to_data(), "sizes": sizes_of(model)})


def cases(plan: Plan) -> list[tuple[list[int], Coloring, str]]:
    """Open and closed states, with all colors."""
    boxes = [node.id for node in plan.nodes if node.contents and node.kind not in ("root", "group")]
    blocks = [id for id in boxes if plan.nodes[id].kind in ("block", "period")]
    return [
        ([], "role", "light"),
        (boxes, "role", "dark"),
        (blocks, "params", "light"),
        (boxes[::2], "flops", "dark"),
        (boxes[::3], "bytes", "light"),
        (plan.opened, "role", "light"),
    ]


def check_pictures(name: str) -> None:
    model = archspec.load(name)
    plan, data = script_plan(model)
    sizes = {name: size for name, (size, _) in sizes_of(model).items()}
    drawn = scripts.run(SAVED, data, cases=cases(plan))
    for (open, coloring, theme), found in zip(cases(plan), drawn, strict=True):
        ids = set(open)
        paint = Paint(plan, THEMES[theme], coloring, sizes)
        expected = svg(plan, lambda node, ids=ids: node.id in ids, paint)
        assert NUMBER.sub("#", found) == NUMBER.sub("#", expected)
        numbers = zip(NUMBER.findall(found), NUMBER.findall(expected), strict=True)
        assert all(math.isclose(float(a), float(b), abs_tol=0.101) for a, b in numbers)


@pytest.mark.parametrize("name", ["bert-base-uncased", "transformer-seq2seq"])
def test_the_page_draws_what_python_draws(name: str) -> None:
    check_pictures(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", archspec.models())
def test_the_page_draws_every_bundled_model_as_python_does(name: str) -> None:
    check_pictures(name)


@pytest.mark.parametrize("name", ["bart-base", "llama-3.1-405b", "mamba-130m"])
def test_work_is_that_of_cost(name: str) -> None:
    model = archspec.load(name)
    _, data = script_plan(model)
    sizes = {name: 3 + i for i, name in enumerate(data["sizes"])}
    code = """
      for (const [name, size] of Object.entries(input.sizes)) state.sizes[name] = String(size);
      return Object.entries(amountsOf(0)).map(([key, amount]) => [key, String(amount)]);
    """
    found = dict(scripts.run(code, data, sizes=sizes))
    work = archspec.cost(model, dims=sizes).work
    assert int(found["flops"]) == work.flops and int(found["elementwise"]) == work.elementwise


def check_sums(name: str) -> None:
    model = archspec.load(name)
    plan, data = script_plan(model)
    code = """
      return input.cases.map(([open]) => {
        const isOpen = new Set(open);
        const closed = plan.nodes.filter(({ id, kind }) => id !== 0 && kind !== "group" && !isOpen.has(id)
          && plan.path(id).slice(0, -1).every((outer) => isOpen.has(outer)));
        const sum = (amount) => String(closed.map(amount).reduce((a, b) => a + b, 0n));
        return [
          sum(({ params }) => BigInt(params ?? 0)),
          ...["flops", "elementwise", "bytes"].map((key) => sum(({ id }) => amountsOf(id)[key])),
        ];
      });
    """
    sizes = {name: size for name, (size, _) in sizes_of(model).items()}
    work = archspec.cost(model, dims=sizes).work
    totals = {tuple(map(int, sums)) for sums in scripts.run(code, data, cases=cases(plan))}
    assert len(totals) == 1
    assert totals.pop()[:3] == (model.params.total, work.flops, work.elementwise)


@pytest.mark.parametrize("name", ["albert-base-v2", "mamba-130m"])
def test_what_is_shown_sums_to_the_whole(name: str) -> None:
    check_sums(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", archspec.models())
def test_what_is_shown_of_every_bundled_model_sums_to_the_whole(name: str) -> None:
    check_sums(name)


def test_polynomials() -> None:
    a, b = symbol("a"), symbol("b")
    chosen = random.Random(1)
    amounts: list[Any] = [
        7,
        2**70,
        a,
        3 * a**2 * b + b,
        (a + b) // 3,
        (a - 5 * b) // 4 + 1,
        (a - 5 * b) % 4,
        dim_min(a, b) * 2**60,
        dim_max(a, 2 * b) - a,
    ]
    sizes = [{"a": chosen.randint(1, 999), "b": chosen.randint(1, 999)} for _ in range(50)]
    code = """
      return input.sizes.map((given) => {
        const sizes = Object.fromEntries(Object.entries(given).map(([name, size]) => [name, BigInt(size)]));
        return input.amounts.map((amount) => String(valueOf(amount, sizes)));
      });
    """
    found = scripts.run(code, amounts=[amount_data(amount) for amount in amounts], sizes=sizes)
    for given, texts in zip(sizes, found, strict=True):
        expected = [evaluate(amount, given) if isinstance(amount, Polynomial) else amount for amount in amounts]
        assert [int(text) for text in texts] == expected


def test_sizes_that_a_model_cannot_run_with_give_no_numbers() -> None:
    _, data = script_plan(archspec.load("bert-base-uncased"))
    code = """
      return input.texts.map((text) => {
        state.sizes.seq = text;
        return [sizeError("seq"), amountsOf(0) === null, shares() === null || state.color === "params"];
      });
    """
    texts = ["512", "513", "0", "-1", "1.5", "", "x", "9" * 30]
    found = scripts.run("state.color = 'flops';" + code, data, texts=texts)
    assert found[0] == [None, False, False]
    assert all(error and is_null and no_shares for error, is_null, no_shares in found[1:])
    assert "its largest seq is 512" in found[1][0]


def test_texts_are_measured_and_shortened_alike() -> None:
    texts = ["encoder.layer.*", "a" * 300, "768 \u00d7 3072 \u2192 \u2026", "Ünïcode ✓", *pages.HOSTILE[:-1]]
    code = (
        "return input.texts.map((t) => [textWidth(t, 9.5), textWidth(t, 12, true), shortened(t, 11, 120), isKnown(t)])"
    )
    for text, found in zip(texts, scripts.run(code, texts=texts), strict=True):
        assert found[:2] == pytest.approx([width(text, 9.5), width(text, 12.0, True)], abs=0.101)
        assert found[2:] == [shorten_text(text, 11, 120), is_known(text)]


def test_numbers_are_rounded_as_in_python() -> None:
    values = [i / 16 for i in range(-40, 400)] + [1.05, 2.675, 1e-7, 1234.5678]
    found = scripts.run(
        "return input.values.map((v) => [0, 1, 2].map((digits) => roundEven(v, digits)))", values=values
    )
    assert found == [[round(value, digits) for digits in (0, 1, 2)] for value in values]


def test_search() -> None:
    expected = {
        "encoder.layer.*.attention.self.query": "encoder.layer.*.attention.self.query",
        "encoder.layer.3.attention.self.query.weight": "encoder.layer.*.attention.self.query.weight",
        "layer.11.output.LayerNorm.b": "encoder.layer.*.output.LayerNorm.bias",
        "QUERY": "encoder.layer.*.attention.self.query",
        "word_embeddings.weight": "embeddings.word_embeddings.weight",
        "SelfAttention": "encoder.layer.*.attention.self",
        "pooler": "pooler.dense",
        "nothing like it": None,
    }
    _, data = script_plan(archspec.load("bert-base-uncased"))
    shown = scripts.run("return input.texts.map((text) => found(text)[0]?.shown ?? null)", data, texts=[*expected])
    assert dict(zip(expected, shown, strict=True)) == expected


def test_numbers_of_collapsed_addresses() -> None:
    code = "return input.pairs.map(([address, text]) => isOneOf(address, text))"
    pairs = [
        ("layers.1,4,...,19.attn", "layers.7.attn", True),
        ("layers.1,4,...,19.attn", "layers.8.attn", False),
        ("layers.1,4,...,19.attn", "layers.22.attn", False),
        ("layers.0-2.mlp", "layers.2", True),
        ("layers.0-2.mlp", "layers.3", False),
        ("layers.0,5.mlp", "5.mlp", True),
        ("layers.*.mlp", "ers.12.m", True),
        ("layers.*.mlp", "layers.x.mlp", False),
    ]
    assert scripts.run(code, pairs=[pair[:2] for pair in pairs]) == [pair[2] for pair in pairs]


def test_values_come_from_layers_blocks_and_functions() -> None:
    plan, data = script_plan(archspec.load("bert-base-uncased"))
    code = """
      return plan.nodes.flatMap(({ id, inputs }) => (inputs ?? []).map((_, port) => {
        const { from, through } = plan.maker(plan.feeding(id, port));
        return [id, port, from, through];
      }));
    """
    makers: dict[tuple[str, int], tuple[str, list[str]]] = {}
    for id, port, maker, through in scripts.run(code, data):
        node, source = plan.nodes[id], plan.nodes[maker]
        makers[node.name, port] = source.name, [plan.nodes[step].title for step in through]
        if not is_inside_layer(plan, id):
            assert not is_inside_layer(plan, maker), (node.name, source.name)
    attention = "encoder.layer.*.attention.self"
    assert makers[f"{attention}.query", 0] == ("embeddings.LayerNorm", [])
    assert makers[f"{attention}#attention.0", 0] == (f"{attention}.query", ["split_heads"])
    assert makers[f"{attention}#attention.0", 3] == ("input:attention_mask", ["key_mask"])
    assert makers["encoder.layer.*.attention.output.dense", 0] == (attention, [])
    assert makers["pooler.dense", 0] == ("encoder.layer.*", ["first"])


def test_only_the_lines_of_a_node_are_marked() -> None:
    plan, data = script_plan(archspec.load("bert-base-uncased"))
    ids = {node.name: node.id for node in plan.nodes}
    code = """
      const source = (owner, value) => plan.node(owner).contents.values[value].from ?? 0;
      const ends = (wire) => [wire[0], source(wire[0], wire[1]), wire[2]];
      return input.ids.map((id) => [...plan.wiresAround(id)].map((wire) => ends(wire.split(".").map(Number))));
    """
    attention = "encoder.layer.*.attention.self"
    names = {id: name for name, id in ids.items()} | {0: ""}
    wires = [
        {(names[owner], names[source], names[to]) for owner, source, to in found}
        for found in scripts.run(code, data, ids=[ids[f"{attention}.query"], ids["encoder.layer.*"]])
    ]
    assert {wire for wire in wires[0] if wire[0] in ("", "encoder.layer.*", attention)} == {
        ("", "embeddings.LayerNorm", "encoder.layer.*"),
        ("encoder.layer.*", "", attention),
        (attention, "", f"{attention}.query"),
        (attention, f"{attention}.query", f"{attention}#split_heads.0"),
    }
    around = {to for owner, _, to in wires[1] if not owner}
    assert around == {"encoder.layer.*", "#first.0", "output:last_hidden_state"}


def is_inside_layer(plan: Plan, id: int) -> bool:
    parent = plan.nodes[id].parent
    return parent is not None and (plan.nodes[parent].kind == "layer" or is_inside_layer(plan, parent))


def test_the_scripts_share_no_name() -> None:
    declared = re.findall(
        r"^(?:async )?(?:function|const|let|class) (\w+)",
        "\n".join(map(scripts.script_of, scripts.SCRIPTS)),
        re.MULTILINE,
    )
    assert len(declared) == len(set(declared))
