"""What a model costs: published totals, sums over modules, what counts as what, and attention's products."""

import pytest
from paths import ROOT

import archspec

# Known totals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("bert-base-uncased", 96_637_943_808),
        ("bert-large-uncased", 335_009_546_240),
        ("albert-base-v2", 96_738_607_104),
        ("bert-base-uncased-mlm", 121_244_221_440),
    ],
)
def test_flops_at_1_x_512(name: str, flops: int) -> None:
    cost = archspec.cost(name, batch=1, seq=512)
    assert cost.work.flops == flops == 2 * cost.work.macs
    assert cost.work.score_flops == cost.work.mix_flops


def test_routed_experts_have_a_row_of_their_own() -> None:
    cost = archspec.cost("deepseek-v3", batch=1, seq=128)
    per_token = 8 * 3 * 7168 * 2048  # experts of a token, matrices of an expert, its sizes (section 4.2)
    assert cost.work.expert_flops == 58 * 128 * 2 * per_token
    (row,) = [line.split() for line in str(cost).splitlines() if "(experts)" in line]
    assert row[:4] == ["(experts)", "routed", "experts", f"{58 * 128 * 2 * per_token:,}"]


@pytest.mark.parametrize("seq", [512, 128])
def test_what_other_tools_say_of_bert_differs_by_what_the_docs_say(seq: int) -> None:
    """Their numbers are measured; each is ours but for what it adds and leaves out."""
    model = archspec.load("bert-base-uncased")
    macs, scores, mixes, *_ = archspec.cost(model, batch=1, seq=seq).work
    attention = scores + mixes
    norms, softmax, params = 25 * seq * 768, 12 * 12 * seq * seq, model.params.total
    biases = 12 * seq * (4 * 768 + 3072 + 768) + 768
    embeddings = sum(tensor.params for tensor in model.tensors if tensor.type == "Embedding")
    expected = [
        2 * macs,
        macs,
        2 * (macs - attention),  # FlopCounterMode, fused
        2 * macs + 5 * norms + softmax,  # DeepSpeed, calflops
        2 * macs + 5 * norms,
        2 * (macs - attention) + 5 * norms,  # calflops, fused
        macs + 5 * norms,  # fvcore
        macs - attention + 5 * norms,
        macs + biases,  # ptflops
        macs - attention + biases,
        macs + biases + norms + softmax,
        macs - attention + biases + norms,
        macs - attention + 4 * norms,  # thop
        params,  # torchinfo
        6 * seq * (params - embeddings),  # transformers
        2 * seq * params,
        2 * seq * params + 2 * attention,
    ]
    page = (ROOT / "docs" / "comparison.md").read_text()
    column = 3 if seq == 512 else 4
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    shown = {row[column - 1] for row in rows if len(row) == 5 and row[2][-1].isdigit() and "," in row[2]}
    assert shown == {f"{number:,}" for number in expected}


# Sums -----------------------------------------------------------------------------------------------------------------


# What counts as what --------------------------------------------------------------------------------------------------
