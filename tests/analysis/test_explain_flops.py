"""`archspec explain --flops`: the counting conventions behind a number of operations."""

from typing import Any

import pytest

import archspec
from archspec.testing import main


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


@pytest.mark.parametrize(("model", "published"), [("convnext-tiny", "4.5G"), ("resnet-18", "1.8G")])
def test_published_flops_of_images_count_multiply_accumulates(model: str, published: str) -> None:
    """Liu et al. (2022), table 1; He et al. (2016), table 1."""
    (answer,) = archspec.explain_flops(model, published).answers
    assert [match.text for match in answer.matches] == ["matrix products, 1 per multiply-accumulate"]
