"""docs/comparison.md: the figures of archspec, and what the differences of other tools consist of."""

import re

import pytest
from paths import ROOT

import archspec

PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
SEQ = 128
MODELS = ("bert-base-uncased", "gpt2", "t5-small")


def figures(table: str) -> dict[str, dict[str, int]]:
    """The rows of a generated table without versions, each by model."""
    block = PAGE.split(f"<!-- {table} -->\n")[1].split("<!-- end -->")[0]
    found: dict[str, dict[str, int]] = {}
    for line in block.splitlines()[2:]:
        label, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(MODELS):
            numbers = [int(cell.split()[0].replace(",", "")) if cell != "error" else -1 for cell in cells]
            found[re.sub(r" [\d.]+\b", "", label)] = dict(zip(MODELS, numbers, strict=True))
    return found


def parameters_of(name: str, *types: str) -> int:
    return sum(tensor.params for tensor in archspec.load(name).tensors if tensor.type in types)


@pytest.mark.parametrize("name", MODELS)
def test_the_figures_of_archspec(name: str) -> None:
    dims = {"target": SEQ} if name == "t5-small" else {}
    macs = archspec.cost(name, batch=1, seq=SEQ, dims=dims).work.macs
    assert figures("parameters")["**archspec**"][name] == archspec.load(name).params.total
    assert figures("macs")["**archspec**"][name] == figures("macs")["`torch.utils.flop_counter`"][name] == macs


def test_differences_in_parameters() -> None:
    shown = figures("parameters")
    ours = shown["**archspec**"]
    for tool in ("`num_parameters()` of `transformers`, meta device", "fvcore", "ptflops", "calflops"):
        assert shown[tool] == ours
    tables = {"gpt2": 50_257 * 768, "t5-small": 32_128 * 512}
    assert shown["torchinfo"]["gpt2"] == ours["gpt2"] + tables["gpt2"]
    assert shown["torchinfo"]["t5-small"] == ours["t5-small"] + 2 * tables["t5-small"]
    assert shown["thop"]["gpt2"] == tables["gpt2"] + parameters_of("gpt2", "LayerNorm")
    name = "bert-base-uncased"
    assert shown["thop"][name] == ours[name] - parameters_of(name, "Embedding")


def test_differences_in_multiply_accumulates() -> None:
    shown = figures("macs")
    ours = shown["**archspec**"]
    for tool in ("fvcore", "ptflops", "calflops"):
        assert all(0 <= shown[tool][name] / ours[name] - 1 < 0.002 for name in MODELS)
    assert shown["torchinfo"]["bert-base-uncased"] == archspec.load("bert-base-uncased").params.total
    assert 10 < shown["torchinfo"]["gpt2"] / ours["gpt2"] < 11
    norms = 4 * 25 * 768 * SEQ
    assert shown["thop"]["gpt2"] == 50_257 * 768 * SEQ + norms


def test_the_examples_of_the_authors() -> None:
    rows = [
        line.split("|")[1:-1] for line in PAGE.split("<!-- examples -->")[1].split("<!-- end -->")[0].splitlines()[3:]
    ]
    shown = {
        label.strip().rpartition(": ")[2]: [cell.split()[0].replace(",", "") for cell in cells]
        for label, *cells in rows
    }
    bert = {"model_type": "bert", "vocab_size": 21128}
    specs = {
        "ResNet-152": "resnet-152",
        "ResNet-50": "resnet-50",
        "ViT-B/16": "vit-base-patch16-224",
        "Chinese RoBERTa": bert,
    }
    for name, spec in specs.items():
        seq = SEQ if spec is bert else None
        assert int(shown[name][2]) == archspec.cost(archspec.load(spec), batch=1, seq=seq).work.macs
    vit = archspec.cost("vit-base-patch16-224", batch=1).work
    biases = 197 * 12 * (5 * 768 + 3072) + 196 * 768 + 1000
    assert int(shown["ViT-B/16"][1]) == vit.macs - vit.score_macs - vit.mix_macs + biases
    for name in ("AlexNet", "Chinese RoBERTa"):
        assert float(shown[name][0]) == pytest.approx(3 * int(shown[name][1]) / 1e9, rel=1e-3)
