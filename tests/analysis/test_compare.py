"""`archspec compare`: parts line up whatever they are called, sums are the models' totals, and nothing is pretended."""

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pytest
import yaml
from bundled import pairs
from paths import SPECS
from small import DENSE, load

import archspec
from archspec import Comparison, Component
from archspec.analysis.compare.compare import compare_tables
from archspec.analysis.compare.components import find_components
from archspec.core.reports.terminal import format_bar
from archspec.pipeline.model import get_compilation
from archspec.pipeline.tables import load_table
from archspec.testing import main

BUNDLED = archspec.models()
EXAMPLES = str(SPECS / "std" / "examples.arch")

GPT = """
import std { Embedding, LayerNorm, Linear, FeedForward, split_heads, merge_heads, attention }

dim batch, seq

block Attention(hidden, heads)(x [batch, seq, hidden]) -> [batch, seq, hidden] {
  role attention
  a = x |> c_attn: Linear(hidden, 3 * hidden)
  q, k, v = split([hidden, hidden, hidden], axis = -1)(a)
  return attention(causal = true)(split_heads(heads)(q), split_heads(heads)(k), split_heads(heads)(v))
    |> merge_heads
    |> c_proj: Linear(hidden, hidden)
}

block Layer(hidden, heads)(x [batch, seq, hidden]) -> [batch, seq, hidden] {
  h = x |> ln_1: LayerNorm(hidden) |> attn: Attention(hidden, heads) |> + x
  return h |> ln_2: LayerNorm(hidden) |> mlp: FeedForward(hidden, 4 * hidden) |> + h
}

block Gpt(vocab = 100, hidden = 16, layers = 3, heads = 2)(ids int [batch, seq]) -> [batch, seq, hidden] {
  return wte: Embedding(vocab, hidden)(ids)
    |> + wpe: Embedding(64, hidden)(arange(seq))
    |> h[i]: Layer(hidden, heads) for i in 0..layers
    |> ln_f: LayerNorm(hidden)
}

model "gpt" = Gpt()
"""


def matched(found: Comparison) -> list[tuple[int, tuple[str, ...], str]]:
    """Level, addresses and how they were found, of each line."""
    return [
        (
            part.row.level,
            tuple(" + ".join(component.address for component in group) for group in part.row.groups),
            part.row.by[1],
        )
        for part in found.parts
    ]


# Parts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", pairs())
def test_the_parts_of_two_bundled_models_are_all_of_them(pairs: Sequence[tuple[str, str]]) -> None:
    tables = {name: load_table(name, {})[0] for name in dict.fromkeys(chain(*pairs))}
    for table, other in ((tables[a], tables[b]) for a, b in pairs):
        found = compare_tables([table, other], 2)
        for i, model in enumerate((table, other)):
            outer = [part for part in found.parts if part.row.level == 0]
            assert sum(part.params.values[i] or 0 for part in outer) == model.params.total  # type: ignore[misc]
            assert sum(figure.values[i] for figure in found.roles) == model.params.total  # type: ignore[misc]
            names = [c.address for part in outer for c in part.row.groups[i]]
            assert len(names) == len(set(names))
        same = [group for part in found.parts for group in part.row.groups]
        if table is other:
            assert same[::2] == same[1::2] and not found.settings


STACKS = """
import std { Linear, LayerNorm }
dim batch, seq
block Part(n, normed = true)(x [batch, seq, n]) -> [batch, seq, n] {
  role attention for attn
  role feed_forward for ff
  return x
    |> attn.q: Linear(n, 2 * n) |> attn.out: Linear(2 * n, n)
    |> norm: LayerNorm(n) if normed
    |> ff: Linear(n, n)
}
block Net(n = 4)(x [batch, seq, n]) -> [batch, seq, n] {
  return x
    |> first.0: Part(n) |> left: Part(n) |> right: Part(n) |> around.inner.only.0: Part(n)
    |> layers[i]: Part(n, i > 0) for i in 0..3
    |> mixed[i]: (Part(n) if i % 2 == 0 else Linear(n, n)) for i in 0..4
    |> end.norm: LayerNorm(n)
}
model "stacks" = Net()
"""


def outlined(part: Component, indent: str = "  ") -> Iterator[str]:
    """A component and those in it."""
    roles = ", ".join(f"{role} {number}" for role, number in part.roles.items())
    inside = ", ".join(f"{number} {role} {what}".strip() for (role, what), number in part.pattern.items())
    number = " (numbered)" if part.numbered else ""
    yield f"{indent}{part.address}{number}: {part.type}, {part.times} x {part.each} = {part.total}; {roles}; {inside}"
    for each in part.parts:
        yield from outlined(each, indent + "  ")


def test_components_of_models(golden: Callable[[str, str], None]) -> None:
    names = ("t5-small", "deepseek-v3", "whisper-tiny", "swin-tiny")
    lines: list[str] = []
    for table in (get_compilation(archspec.loads(STACKS)).table, *(load_table(name, {})[0] for name in names)):
        lines += [table.model, *(line for part in find_components(table) for line in outlined(part))]
    golden("compare/components.txt", "\n".join(lines) + "\n")


def test_layers_line_up_by_what_they_consist_of() -> None:
    assert matched(archspec.compare("bert-base-uncased", "albert-base-v2", depth=2)) == [
        (0, ("embeddings", "embeddings"), "address"),
        (1, ("embeddings.word_embeddings", "embeddings.word_embeddings"), "address"),
        (1, ("embeddings.position_embeddings", "embeddings.position_embeddings"), "address"),
        (1, ("embeddings.token_type_embeddings", "embeddings.token_type_embeddings"), "address"),
        (1, ("embeddings.LayerNorm", "embeddings.LayerNorm"), "address"),
        (0, ("encoder.layer.*", "encoder.albert_layer_groups.0.albert_layers.0"), "structure"),
        (1, ("encoder.layer.*.attention", "encoder.albert_layer_groups.0.albert_layers.0.attention"), "address"),
        (1, ("encoder.layer.*.intermediate.dense", "encoder.albert_layer_groups.0.albert_layers.0.ffn"), "structure"),
        (1, ("encoder.layer.*.output", "encoder.albert_layer_groups.0.albert_layers.0.ffn_output"), "role"),
        (1, ("", "encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm"), ""),
        (0, ("pooler.dense", "pooler"), "structure"),
        (0, ("", "encoder.embedding_hidden_mapping_in"), ""),
    ]


def test_a_prefix_is_no_hindrance() -> None:
    assert matched(archspec.compare("bert-base-uncased", "bert-base-uncased-mlm")) == [
        (0, ("embeddings", "bert.embeddings"), "address"),
        (0, ("encoder.layer.*", "bert.encoder.layer.*"), "address"),
        (0, ("pooler.dense", ""), ""),
        (0, ("", "cls.predictions"), ""),
    ]


def test_a_decoder_of_other_names_lines_up() -> None:
    gpt = load(GPT)
    assert matched(archspec.compare("bert-base-uncased", gpt, depth=2)) == [
        (0, ("embeddings", "wte + wpe"), "role"),
        (
            1,
            (
                "embeddings.word_embeddings + embeddings.position_embeddings + embeddings.token_type_embeddings",
                "wte + wpe",
            ),
            "role",
        ),
        (1, ("embeddings.LayerNorm", ""), ""),
        (0, ("encoder.layer.*", "h.*"), "structure"),
        (1, ("encoder.layer.*.attention", "h.*.attn"), "role"),
        (1, ("encoder.layer.*.intermediate.dense + encoder.layer.*.output", "h.*.mlp"), "role"),
        (1, ("", "h.*.ln_1"), ""),
        (1, ("", "h.*.ln_2"), ""),
        (0, ("pooler.dense", ""), ""),
        (0, ("", "ln_f"), ""),
    ]


def test_layers_that_are_not_all_alike_are_one_stack() -> None:
    found = archspec.compare("bert-base-uncased", "modernbert-base", depth=2)
    lines = matched(found)
    assert (0, ("encoder.layer.*", "layers.*"), "structure") in lines
    assert (1, ("encoder.layer.*.attention", "layers.*.attn"), "role") in lines
    (stack,) = [part.row.groups[1][0] for part in found.parts if part.params.name == "encoder.layer.*"]
    assert (stack.times, stack.each) == (22, None)
    norms = {part.address: part.total for part in stack.parts if part.role == "norm"}
    assert norms == {"layers.*.attn_norm": 21 * 768, "layers.*.mlp_norm": 22 * 768}
    found = archspec.compare("bert-base-uncased", "t5-small")
    assert (0, ("encoder.layer.*", "encoder.block.*"), "structure") in matched(found)


def test_a_norm_before_a_stack_is_not_taken_for_one_behind_it() -> None:
    found = matched(archspec.compare("bart-base-model", "t5-small"))
    assert not [names for _, names, by in found if by == "structure" and "norm" in "".join(names)]
    assert (0, ("transformer.ln_f", "model.norm"), "structure") in matched(archspec.compare("gpt2", "llama-3.2-1b"))


def test_the_layer_of_an_encoder_is_not_taken_for_that_of_a_decoder() -> None:
    found = matched(archspec.compare("bert-base-uncased", "transformer-base"))
    assert (0, ("encoder.layer.*", "encoder.layer_stack.*"), "structure") in found
    assert (0, ("", "decoder.layer_stack.*"), "") in found


def test_three_models() -> None:
    found = archspec.compare("bert-base-uncased", "albert-base-v2", "bert-base-uncased-mlm")
    rows = {tuple(g[0].address if g else "" for g in part.row.groups): part.row.by for part in found.parts}
    layers = ("encoder.layer.*", "encoder.albert_layer_groups.0.albert_layers.0", "bert.encoder.layer.*")
    assert rows[layers] == ("", "structure", "address")
    assert ("", "encoder.embedding_hidden_mapping_in", "") in rows and ("", "", "cls.predictions") in rows


# Figures --------------------------------------------------------------------------------------------------------------


def test_figures() -> None:
    found = archspec.compare("bert-base-uncased", "albert-base-v2")
    totals = {figure.name: figure for figure in found.totals}
    assert totals["all"].values == (109_482_240, 11_683_584)
    assert totals["all"].differences == (0, 11_683_584 - 109_482_240)
    assert totals["all"].ratios == (1.0, 11_683_584 / 109_482_240)
    assert totals["without embeddings"].values == (109_482_240 - 23_835_648, 11_683_584 - 4_004_864)
    assert totals["per layer of its stack"].values == (7_087_872, 7_087_872)
    assert {setting.name: setting.values for setting in found.settings} == {
        "vocab": {0: 30522, 1: 30000},
        "padding": {0: None},
        "Layer": {0: "BertLayer"},
        "causal": {0: False},
        "factor": {0: None, 1: 128},
        "activation": {0: "gelu", 1: "gelu_tanh"},
        "hidden_dropout": {0: 0.1, 1: 0.0},
        "attention_dropout": {0: 0.1, 1: 0.0},
    }


def test_what_is_not_known_is_not_given() -> None:
    found = archspec.compare(
        load("layer It(n = 4)(x [..., n]) -> [..., n] {\n  w: param [n]\n  return x * .w\n}\n"), "roberta-base"
    )
    totals = {figure.name: figure for figure in found.totals}
    assert totals["without embeddings"].values[0] is None and totals["without embeddings"].ratios == (None, None)
    assert totals["per layer of its stack"].values == (None, 7_087_872)
    assert [line for line in str(found).splitlines() if "embedding`" in line] == [
        "it: no tensor has the role `embedding`"
    ]


def test_costs_are_those_of_cost() -> None:
    found = archspec.compare("bert-base-uncased", "albert-base-v2", batch=2, seq=64).costs
    assert found is not None and found.notes == ("", "")
    one, two = (archspec.cost(name, 2, 64) for name in ("bert-base-uncased", "albert-base-v2"))
    figures = {figure.name: figure.values for figure in found.figures}
    assert figures["FLOPs of matrix products"] == (one.work.flops, two.work.flops)
    assert figures["elementwise operations"] == (one.work.elementwise, two.work.elementwise)
    assert figures["bytes of weights, float32"] == (one.memory.weights, two.memory.weights)


def test_sizes_are_for_the_models_that_have_them() -> None:
    sizes = {"batch": 1, "seq": 8, "source": 8, "target": 4}
    found = archspec.compare("bert-base-uncased", "transformer-base", dims=sizes).costs
    assert found is not None
    assert found.notes == ("has no dimension `source`; has no dimension `target`", "has no dimension `seq`")
    assert all(isinstance(value, int) for figure in found.figures for value in figure.values)
    open_ = archspec.compare("bert-base-uncased", "transformer-base", batch=1, seq=8).costs
    assert open_ is not None and open_.notes[1] == "has no dimension `seq`; source, target symbolic"
    assert open_.figures[0].differences == (0, None) and "source" in str(open_.figures[0].values[1])
    long = archspec.compare("bert-base-uncased", "roberta-base", batch=1, seq=513).costs
    assert long is not None and "largest index is 511" in long.notes[0]
    assert long.figures[0].values[0] is None
    with pytest.raises(archspec.ArchError, match="unknown dimension `frames`: no model has it"):
        archspec.compare("bert-base-uncased", "roberta-base", dims={"frames": 3})


def test_different_lengths_at_one_size_are_noted(tmp_path: Path) -> None:
    models: list[archspec.Model] = []
    for length in ("seq", "4 * seq", "2 * seq"):
        shape = f"[batch, {length}, width]"
        body = "{ return x |> proj: Linear(width, width) }"
        text = f"import std {{ Linear }}\ndim batch, seq\nblock B(width)(x {shape}) -> {shape} {body}\n"
        models.append(archspec.loads(text + 'model "m" = B(8)'))
    note = "input lengths differ at equal `seq`: "
    costs = archspec.compare(*models, batch=1, seq=32).costs
    assert costs is not None and costs.notes == ("", f"{note}4*seq = 128", f"{note}2*seq = 64")
    costs = archspec.compare(models[0], models[1], batch=1).costs
    assert costs is not None and costs.notes == ("seq symbolic", f"{note}4*seq; seq symbolic")
    costs = archspec.compare(models[1], models[1], batch=1, seq=32).costs
    assert costs is not None and costs.notes == ("", "")


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="depth"):
        archspec.compare("bert-base-uncased", "roberta-base", depth=-1)
    with pytest.raises(ValueError, match="at least two models"):
        archspec.compare("bert-base-uncased")


# The command ----------------------------------------------------------------------------------------------------------

PAIRS = {
    "base-large": ("bert-base-uncased", "bert-large-uncased", "--batch", "1", "--seq", "128"),
    "base-roberta": ("bert-base-uncased", "roberta-base"),
    "base-albert": ("bert-base-uncased", "albert-base-v2", "--depth", "2"),
    "transformer-base": ("transformer-base", "bert-base-uncased", "--batch", "1", "--seq", "128"),
    "three": ("bert-base-uncased", "albert-base-v2", "roberta-base"),
}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["compare", *words])
    return status, *capsys.readouterr()


@pytest.mark.parametrize("pair", PAIRS)
def test_pages(pair: str, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]) -> None:
    status, out, err = run(capsys, *PAIRS[pair])
    assert (status, err) == (0, "")
    golden(f"compare/{pair}.txt", out)


def test_formats(capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]) -> None:
    models = ("bert-base-uncased", "albert-base-v2", "--batch", "1", "--seq", "128")
    texts = {f: run(capsys, *models, "--format", f)[1] for f in ("json", "yaml", "csv", "markdown")}
    document = json.loads(texts["json"])
    assert yaml.safe_load(texts["yaml"]) == document
    assert [m["params"]["total"] for m in document["models"]] == [109_482_240, 11_683_584]
    golden("compare/base-albert.md", texts["markdown"])
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    assert {row["section"] for row in rows} == {"hyperparameters", "totals", "roles", "components", "costs"}
    second = sum(int(r["value"]) for r in rows if r["section"] == "components" and r["model"] == "albert-base-v2")
    assert second == 11_683_584


def test_formulas_and_names_are_well_formed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "odd.arch"
    text = "block It(n = 4)(x [n]) -> [n] {\n  w: param [n]\n  return x * .w\n}\n"
    spec.write_text(text + 'model "a | `b`" = It()\nmodel "c" = It(n = 5)\n')
    page = run(capsys, f"{spec}:a | `b`", f"{spec}:c", "--format", "markdown")[1]
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    models = ("bert-base-uncased", "t5-small", "--batch", "1", "--seq", "64")
    figures = json.loads(run(capsys, *models, "--format", "json")[1])["costs"]["figures"]
    flops = archspec.cost("t5-small", batch=1, seq=64).work.flops
    assert figures[0]["values"][1] == str(flops) and "," not in str(flops)
    assert f",{flops},,," in run(capsys, *models, "--format", "csv")[1]


def test_settings_are_for_all_models_or_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    models = ("bert-base-uncased", "bert-base-uncased", "--set", "layers=2", "--set", "2:hidden=96")
    status, out, _ = run(capsys, *models)
    assert status == 0
    models = "bert-base-uncased, with layers = 2 (38.6M) and bert-base-uncased, with layers = 2, hidden = 96 (4.25M)"
    assert out.startswith(f"{models}\n")


def test_nothing_heavy_is_imported() -> None:
    script = (
        "import sys\nfrom archspec.app.cli import main\n"
        "words = ['compare', 'bert-base-uncased', 'albert-base-v2', '--format', 'json']\n"
        "main(words); first = set(sys.modules)\n"
        "heavy = {'rich', 'networkx', 'lark', 'yaml', 'torch', 'archspec.compiler.elaborate', 'archspec.ir.module'}\n"
        "heavy |= {'archspec.analysis.cost.api'}\n"
        "print(sorted(heavy & first))\n"
    )
    for _ in range(2):  # the first fills the cache
        out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"


# Bars -----------------------------------------------------------------------------------------------------------------


def test_bars_in_a_terminal() -> None:
    assert format_bar(100, 100, 10, "utf-8") == "█" * 10
    assert format_bar(0, 100, 10, "utf-8") == "" and format_bar(0, 0, 10, "utf-8") == ""
    assert format_bar(1, 10**9, 10, "utf-8") == "▏"
    assert format_bar(50, 100, 10, "ascii") == "#####"
    assert [len(format_bar(n, 80, 10, "utf-8")) for n in range(81)] == [-(-n // 8) for n in range(81)]


def test_parts_that_only_one_model_has() -> None:
    inner = "block Two(n)(x [n]) -> [n] {\n  return x |> u: Dense(n) |> v: Dense(n)\n}\n"
    outer = "block It(n = 4)(x [n]) -> [n] {\n  return x |> a: PART(n) |> b: Dense(n)\n}\n"
    nested = load(DENSE + inner + outer.replace("PART", "Two"))
    flat = load(DENSE + outer.replace("PART", "Dense"))

    def rows(one: archspec.Model, other: archspec.Model) -> list[tuple[int, str, tuple[int | None, ...]]]:
        parts = archspec.compare(one, other, depth=2).parts
        return [(p.row.level, next(g[0].address for g in p.row.groups if g), p.params.values) for p in parts]

    assert rows(nested, flat) == [
        (0, "a", (40, 20)),
        (1, "a.u", (20, None)),
        (1, "a.v", (20, None)),
        (0, "b", (20, 20)),
    ]
    assert rows(flat, nested) == [
        (0, "a", (20, 40)),
        (1, "a.u", (None, 20)),
        (1, "a.v", (None, 20)),
        (0, "b", (20, 20)),
    ]


def test_layers_line_up_by_what_their_matrices_do() -> None:
    conv = (
        "layer Conv(n, m, k)(x [1, n, 8, 8]) -> [1, m, 8, 8] {\n  w: param [m, n, k, k]\n"
        "  return conv([1, 1], [k // 2, k // 2])(x, .w, none)\n}\n"
    )

    def rows(one: str, other: str) -> list[tuple[str, str, str]]:
        def net(steps: str) -> archspec.Model:
            shape = "[1, 4, 8, 8]" if "Conv" in steps else "[4]"
            return load(f"{DENSE}{conv}block Net()(x {shape}) -> {shape} {{\n  return x |> {steps}\n}}\n")

        parts = archspec.compare(net(one), net(other)).parts
        return [
            ("".join(c.address for c in g), "".join(c.address for c in h), p.row.by[1])
            for p in parts
            for g, h in [p.row.groups]
        ]

    dense = "a: Dense(4, 2) |> b: Dense(2, 2) |> c: Dense(2, 4)", "p: Dense(4, 4) |> q: Dense(4, 2) |> r: Dense(2, 4)"
    assert rows(*dense) == [("a", "q", "structure"), ("b", "p", "structure"), ("c", "r", "structure")]
    assert rows(*reversed(dense)) == [("p", "b", "structure"), ("q", "a", "structure"), ("r", "c", "structure")]
    kernels = "a: Conv(4, 4, 1) |> b: Conv(4, 4, 3)", "p: Conv(4, 4, 5) |> q: Conv(4, 4, 1)"
    assert rows(*kernels) == [("a", "q", "structure"), ("b", "p", "structure")]


def test_models_that_are_one_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.arch"
    path.write_text(f'{DENSE}model "one" = Dense(4)\nmodel "two" = Dense(5)\n')
    (part,) = archspec.compare(f"{path}:one", f"{path}:two").parts
    assert part.params == ("(the model)", (20, 30))
    status, out, _ = run(capsys, f"{path}:one", f"{path}:two")
    assert status == 0
    assert re.search(r"^\(the model\) +\(the model\) +20 +30 +10 +x 1\.5", out, re.MULTILINE), out


def test_a_setting_may_be_for_the_first_model_alone(capsys: pytest.CaptureFixture[str]) -> None:
    models = ("bert-base-uncased", "bert-base-uncased", "--set", "1:layers=2", "--format", "json")
    assert main(["compare", *models]) == 0
    first, second = json.loads(capsys.readouterr().out)["models"]
    assert first["overrides"] == {"layers": 2} and second["overrides"] == {}
    for outside in ("0:layers=2", "3:layers=2"):
        assert main(["compare", "bert-base-uncased", "bert-base-uncased", "--set", outside]) == 2


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (1, "x < 0.001"),
        (10, "x 0.00100"),
        (99, "x 0.00990"),
        (100, "x 0.0100"),
        (1_000, "x 0.100"),
        (9_990, "x 0.999"),
        (9_999, "x 0.9999"),
        (10_000, "x 1"),
        (10_010, "x 1.001"),
        (50_000, "x 5.00"),
        (100_000, "x 10.0"),
        (1_000_000, "x 100"),
        (12_345_678, "x 1,235"),
    ],
)
def test_ratios_have_the_digits_that_matter(count: int, shown: str) -> None:
    one, other = (
        load(f"layer N()(x []) -> [] {{\n  w: param [{n}]\n  return x + sum(axis = 0)(.w)\n}}") for n in (10_000, count)
    )
    (line,) = [line for line in str(archspec.compare(one, other)).splitlines() if line.startswith("all ")]
    assert line.endswith(f"  {shown}")


def test_a_ratio_of_nothing_is_0() -> None:
    text = "layer N()(x []) -> [] {\n  w: param [2]\n  f: frozen param [3]\n"
    text += "  return x + sum(axis = 0)(.w) * sum(axis = 0)(.f)\n}\n"
    found = archspec.compare(load(text), load(text.replace("frozen ", "")))
    (line,) = [line for line in str(found).splitlines() if line.startswith("frozen")]
    assert line.split() == ["frozen", "3", "0", "-3", "x", "0"]


# Definitions with one name --------------------------------------------------------------------------------------------


def variant(folder: Path, spec: str, block: str, *edits: tuple[str, str]) -> str:
    file = folder / "variant.arch"
    assert main(["new", str(file), "--from", spec, "--block", block]) == 0
    text = file.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    file.write_text("".join(line for line in text.splitlines(keepends=True) if "expect" not in line))
    return str(file)


def test_a_changed_block_of_the_same_name_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    norm = "    |> attention.output.LayerNorm: LayerNorm(hidden, eps)"
    edits = [(norm, ""), ("    |> attention.self:", f"{norm}\n    |> attention.self:")]
    file = variant(tmp_path, "bert-base-uncased", "Layer", *edits, ("BertLayer)", "BertLayer, layers = 6)"))
    (definition,) = archspec.compare("bert-base-uncased", file).definitions
    assert definition.name == "BertLayer" and definition.changes[0] == {} and definition.changes[1]["moved"] == 1
    capsys.readouterr()
    _, out, _ = run(capsys, "bert-base-uncased", file)
    (line,) = [line for line in out.splitlines() if line.startswith("BertLayer")]
    assert "1 step moved" in line


def test_a_changed_block_on_standard_input_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    edits = [("> + h\n", "> + h\n    |> + h\n"), ("BertLayer)", "BertLayer, layers = 6)")]
    text = Path(variant(tmp_path, "bert-base-uncased", "Layer", *edits)).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    capsys.readouterr()
    status, out, err = run(capsys, "bert-base-uncased", "-")
    assert (status, err) == (0, "") and any(line.startswith("BertLayer  ") for line in out.splitlines())


def test_only_the_block_that_changed_is_named(tmp_path: Path) -> None:
    edit = ("value: Linear(hidden, shared, bias)", "value: Linear(hidden, shared, false)")
    file = variant(tmp_path, "bert-base-uncased", "SelfAttention", edit)
    (definition,) = archspec.compare("bert-base-uncased", file, batch=1, seq=8).definitions
    assert definition.name == "SelfAttention" and definition.changes[1] == {"tensors removed": 1, "computes": 1}


def test_a_size_that_a_block_changes_is_named(tmp_path: Path) -> None:
    edits = [("Linear(hidden, ffn)", "Linear(hidden, 2 * ffn)"), ("Linear(ffn, hidden)", "Linear(2 * ffn, hidden)")]
    file = variant(tmp_path, "bert-base-uncased", "Layer", *edits)
    (definition,) = archspec.compare("bert-base-uncased", file).definitions
    assert definition.changes[1] == {"tensors reshaped": 3}


@pytest.mark.parametrize("edit", [("BertLayer)", "BertLayer, hidden = 96)"), ("  h = x\n", "  # a chain\n  h = x\n")])
def test_a_copied_block_is_not_different(tmp_path: Path, edit: tuple[str, str]) -> None:
    file = variant(tmp_path, "bert-base-uncased", "Layer", edit)
    assert archspec.compare("bert-base-uncased", file).definitions == ()


FUNCTIONS = """import std {{ Linear }}
dim batch, m
fn sharp(x [batch, m]) -> [batch, m] {{ return {sharp} }}
fn act(x [batch, m]) -> [batch, m] {{
  # an activation
  return {act}
}}
block Mlp(n, f = act)(x [batch, n]) -> [batch, n] {{ return x |> up: Linear(n, 2 * n) |> f |> down: Linear(2 * n, n) }}
block Net(n = 4)(x [batch, n]) -> [batch, n] {{ return x |> p[i]: Mlp(n) for i in 0..2 |> {last} }}
model "net" = Net()
"""
SAME = {"sharp": "x * x", "act": "sharp(x) + x", "last": "act"}


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({"act": "sharp(x) - x"}, {"act": {"computes": 1}}),
        ({"sharp": "x * x * x"}, {"sharp": {"computes": 1}}),
        ({"sharp": "x * x * x", "act": "sharp(x) - x"}, {"sharp": {"computes": 1}, "act": {"computes": 1}}),
        ({"sharp": "(x * x)"}, {}),
        ({"act": "x + sharp(x)"}, {}),
        ({"last": "sharp"}, {"Net": {"returns": 1}}),
    ],
)
def test_a_changed_function_of_the_same_name_is_named(
    edit: dict[str, str], expected: dict[str, dict[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "a.arch", tmp_path / "b.arch"]
    for file, texts in zip(files, (SAME, {**SAME, **edit}), strict=True):
        file.write_text(FUNCTIONS.format(**texts))
    definitions = archspec.compare(*map(str, files)).definitions
    assert {name: changes[1] for name, changes in definitions} == expected
    _, out, _ = run(capsys, *map(str, files))
    for name in {*expected} & {"act", "sharp"}:
        assert any(re.match(rf"{name} +1 step with a different computation", line) for line in out.splitlines())


NUMBERS = """import std {{ Linear }}
dim batch
fn half(n) {{ return {half} }}
fn width(n) {{ return {width} }}
fn spare(n) {{ return {spare} }}
block Mlp(n)(x [batch, n]) -> [batch, n] {{ return x |> up: Linear(n, width(n)) |> down: Linear(width(n), n) }}
block Net(n = 4)(x [batch, n]) -> [batch, n] {{ return x |> p: Mlp(n){factor} }}
model "net" = Net({n})
"""
WIDE = {"half": "n // 2", "width": "8 * half(n)", "spare": "n", "factor": "", "n": "n = 8"}


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({"width": "6 * half(n)"}, {"width"}),
        ({"half": "n // 4"}, {"half"}),
        ({"width": "half(n) * 8"}, set[str]()),
        ({"spare": "n + 1"}, set[str]()),
        ({"spare": "n + 1", "half": "n // 4"}, {"half"}),
        ({"spare": "n + 1", "n": "n = 4"}, set[str]()),
        ({"width": "4 * n", "factor": " |> * 2"}, {"Net"}),
        ({"width": "6 * half(n)", "factor": " |> * 2"}, {"Net", "width"}),
    ],
)
def test_a_changed_function_of_numbers_is_named(edit: dict[str, str], expected: set[str], tmp_path: Path) -> None:
    files = [tmp_path / "a.arch", tmp_path / "b.arch"]
    for file, texts in zip(files, (WIDE, {**WIDE, **edit}), strict=True):
        file.write_text(NUMBERS.format(**texts))
    definitions = {name: changes[1] for name, changes in archspec.compare(*map(str, files)).definitions}
    assert {*definitions} == expected
    assert all(definitions[name] == {"differs": 1} for name in expected - {"Net"})
