"""`archspec explain --flops`: the counting conventions behind a number of operations."""

from typing import Any

import pytest

import archspec
from archspec.testing import main


def test_ranks_of_conventions() -> None:
    model = archspec.load("gpt2", layers=2, hidden=24, heads=2, vocab=50)
    full = archspec.cost(model, batch=1, seq=8).work
    half = archspec.cost(model, batch=1, seq=8, causal_half=True).work
    macs, other, params = int(full.macs), int(full.elementwise), model.params.total
    attention = int(full.score_macs + full.mix_macs)
    layers = sum(tensor.params for tensor in model.tensors if tensor.type != "Embedding")
    for flops, rank, text in (
        (2 * macs, 0, "matrix products, 2 per multiply-accumulate"),
        (macs, 1, "matrix products, 1 per multiply-accumulate"),
        (2 * int(half.macs), 1, "matrix products, causal attention as half, 2 per multiply-accumulate"),
        (int(half.macs), 2, "matrix products, causal attention as half, 1 per multiply-accumulate"),
        (macs - attention, 2, "matrix products without attention, 1 per multiply-accumulate"),
        (2 * macs + other, 1, "matrix products, 2 per multiply-accumulate, with elementwise operations"),
        (
            3 * (macs + other),
            3,
            "matrix products, 1 per multiply-accumulate, with elementwise operations, "
            "forward and backward pass (3 times)",
        ),
        (16 * params, 1, "estimate: 2 x all parameters x tokens"),
        (48 * params, 1, "estimate: 6 x all parameters x tokens"),
        (48 * layers, 2, "estimate: 6 x parameters without embedding tables x tokens"),
        (
            48 * layers + 6 * attention,
            3,
            "estimate: 6 x parameters without embedding tables x tokens and the products of attention",
        ),
    ):
        (answer,) = archspec.explain_flops(model, flops, batch=1, seq=8).answers
        assert [(match.text, match.rank) for match in answer.matches] == [(text, rank)]


def test_the_size_of_a_batch_is_1_unless_it_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    model = archspec.load("gpt2", layers=1, hidden=24, heads=2, vocab=50)

    def sizes(**given: Any) -> dict[str, int | None]:
        return archspec.explain_flops(model, "1K", **given).cost.dims

    assert sizes(seq=8) == {"batch": 1, "seq": 8}
    assert sizes(batch=2, seq=8) == sizes(dims={"batch": 2, "seq": 8}) == {"batch": 2, "seq": 8}
    arguments = ["explain", "gpt2", "1K", "--flops", "--set", "layers=1", "--seq", "8"]
    for given, shown in (["--dim", "batch=3"], 3), (["--batch", "4"], 4), ([], 1):
        main([*arguments, *given])
        assert f"at batch = {shown}, seq = 8" in capsys.readouterr().out
    other = archspec.loads(
        "dim minibatch\nblock Net(n = 4)(x [minibatch, n]) -> [minibatch, n] {\n"
        '  w: param [n, n]\n  return linear(x, .w)\n}\nmodel "net" = Net()\n'
    )
    (answer,) = archspec.explain_flops(other, 2 * 16 * 3, dims={"minibatch": 3}).answers
    assert answer.matches[0].text == "matrix products, 2 per multiply-accumulate"
    with pytest.raises(archspec.ArchError, match="unknown dimension `batch` of net"):
        archspec.explain_flops(other, "96", batch=2, dims={"minibatch": 3})


def test_estimates_from_active_parameters() -> None:
    model = archspec.load("mixtral-8x7b", joined=True, layers=1, hidden=24, ffn=10, heads=2, groups=2, vocab=50)
    layer = 24 * 24 * 4 + 8 * 24 + 2 * 24  # attention, the choice of experts, and norms
    active = 2 * 50 * 24 + 24 + layer + 2 * 3 * 24 * 10  # two of eight experts
    assert active < model.params.total
    for factor, tokens in ((2, 5), (6, 15)):
        (answer,) = archspec.explain_flops(model, factor * active * tokens, batch=tokens // 5, seq=5).answers
        text = f"estimate: {factor} x active parameters x tokens"
        assert (text, 2) in [(match.text, match.rank) for match in answer.matches]


def test_several_sequences_have_no_estimates() -> None:
    model = archspec.load("t5-small", layers=1)
    assert len({type.shape for type in model.inputs.values()}) > 1
    sizes = dict.fromkeys(archspec.cost(model).dims, 3)
    for factor in (2, 6):
        number = factor * model.params.total * 3
        (answer,) = archspec.explain_flops(model, number, dims=sizes, batch=3).answers
        assert not any(match.text.startswith("estimate") for match in answer.matches)
