"""Lifting: modules become specs that are proven equal to them and read as if written by hand."""

import re
from collections.abc import Callable

import pytest
from paths import SPECS

import archspec
from archspec import ArchError

torch = pytest.importorskip("torch")

MODELS = ["bert", "distilbert", "albert", "gpt2", "llama", "vit", "t5"]

MOST_LINES = 1.5
"""How much longer a lifted encoder may be than the bundled one, without its heads."""


class Residual(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(30, 16)
        parts = [
            torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.GELU(), torch.nn.Linear(24, 16)) for _ in range(3)
        ]
        self.layers = torch.nn.ModuleList(parts)
        self.head = torch.nn.Linear(16, 30, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


@pytest.mark.slow
def test_a_sequence_of_layers() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(12, 20), torch.nn.ReLU(), torch.nn.Linear(20, 7)).eval()
    text = archspec.lift(module, (torch.randn(3, 12),))
    assert '|> "0": Linear(12, 20)\n    |> relu\n    |> "2": Linear(20, 7)' in text
    assert archspec.loads(text).params.total == sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.slow
def test_residuals_and_ties() -> None:
    module = Residual().eval()
    text = archspec.lift(module, {"ids": torch.randint(0, 30, (2, 7))})
    assert "tie head.weight = words.weight" in text
    assert text.count("|> + x") + text.count("+ x\n") >= 1
    assert archspec.equivalent(archspec.loads(text), module)


@pytest.mark.slow
def test_a_sequence_with_a_tied_head() -> None:
    module = torch.nn.Sequential(torch.nn.Embedding(30, 16), torch.nn.GELU(), torch.nn.Linear(16, 30, bias=False))
    module[2].weight = module[0].weight
    text = archspec.lift(module.eval(), (torch.randint(0, 30, (2, 7)),))
    assert 'tie "2".weight = "0".weight' in text
    model = archspec.loads(text)
    assert model.params.total == 30 * 16
    assert archspec.equivalent(model, module)


@pytest.mark.slow
def test_transformer_of_pytorch() -> None:
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        layer = torch.nn.TransformerEncoderLayer(24, 4, 40, batch_first=True)
        encoder = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
        assert "for i in 0..3" in archspec.lift(encoder, (torch.randn(2, 7, 24),))
        decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(24, 4, 40, batch_first=True), 2).eval()
        assert "for i in 0..2" in archspec.lift(decoder, (torch.randn(2, 7, 24), torch.randn(2, 5, 24)))
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def test_training_is_refused() -> None:
    with pytest.raises(ArchError, match=r"cannot lift `Linear`: it is in training: call `eval\(\)` first$") as caught:
        archspec.lift(torch.nn.Linear(3, 4), (torch.randn(2, 3),))
    assert caught.value.diagnostics[0].code == "lift"


class Branching(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x


class Unknown(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(x)


class Transforming(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(x)


@pytest.mark.slow
def test_what_the_language_cannot_express_is_refused() -> None:
    with pytest.raises(ArchError, match=r"cannot lift `Branching`: torch.export fails: Could not guard on data-dep"):
        archspec.lift(Branching().eval(), (torch.randn(2, 3),))
    with pytest.raises(ArchError, match=r"the operation `aten\.linalg_inv`"):
        archspec.lift(Unknown().eval(), (torch.randn(3, 3),))
    with pytest.raises(ArchError, match=r"it has complex outputs$"):
        archspec.lift(Transforming().eval(), (torch.randn(2, 8),))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_models_read_as_if_written_by_hand(name: str, golden: Callable[[str, str], None]) -> None:
    pytest.importorskip("transformers")
    from lifted import subject

    from archspec.pytorch.lift.api import lift_subject

    text = lift_subject(subject(name))
    assert not re.search(r"\b(part|n|tmp)[0-9]+\b|[a-z]+[0-9]+ =", text)
    assert all(len(line) <= 120 for line in text.splitlines())
    if name in ("bert", "gpt2"):
        golden(f"lift/{name}.arch", text)


LAYERS = {"bert": "num_hidden_layers", "gpt2": "n_layer"}
FURTHER_LAYERS = {
    "distilbert": "n_layers",
    "albert": "num_hidden_layers",
    "llama": "num_hidden_layers",
    "vit": "num_hidden_layers",
    "t5": "num_layers",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "field"),
    [*LAYERS.items(), *[pytest.param(*item, marks=pytest.mark.exhaustive) for item in FURTHER_LAYERS.items()]],
)
def test_text_does_not_grow_with_depth(name: str, field: str) -> None:
    pytest.importorskip("transformers")
    from lifted import subject

    from archspec.pytorch.lift.api import lift_subject

    few, many = [re.sub(r"params == [0-9_]+", "", lift_subject(subject(name, **{field: n}))) for n in (2, 12)]
    assert few.replace(f"{field} = 2", f"{field} = 12") == many


@pytest.mark.slow
def test_a_lifted_encoder_is_not_much_longer_than_the_bundled_one() -> None:
    pytest.importorskip("transformers")
    from lifted import subject

    from archspec.pytorch.lift.api import lift_subject

    bundled = (SPECS / "bert.arch").read_text()
    start, end = bundled.index("import std"), bundled.index("## Scores for the word at each token")
    ours = [line for line in lift_subject(subject("bert")).splitlines() if line.strip()]
    theirs = [line for line in bundled[start:end].splitlines() if line.strip() and not line.startswith("##")]
    assert len(ours) <= MOST_LINES * len(theirs)


class Biased(torch.nn.Module):
    """Distances in a window of four by four, as Swin numbers them, and a tensor that is filled in two parts."""

    def __init__(self) -> None:
        super().__init__()
        places = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        rows, columns = places[:, :, None] - places[:, None, :] + 3
        self.register_buffer("numbers", rows * 7 + columns, persistent=False)
        self.table = torch.nn.Parameter(torch.randn(49, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = x.new_empty(x.shape[0], 6)
        both[:, :4].copy_(x)
        both[:, 4:].copy_(x[:, :2] * 2)
        return both.sum(-1)[:, None, None, None] + self.table[self.numbers]


@pytest.mark.slow
def test_distances_in_windows_and_empty_tensors() -> None:
    module = Biased().eval()
    model = archspec.loads(archspec.lift(module, (torch.randn(3, 4),)))
    assert archspec.equivalent(model, module).verdict in ("equal", "outputs equal")
