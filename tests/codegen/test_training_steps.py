"""Training: generated modules drop where `transformers` does, and lose the same over the steps of an optimizer."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from drawn_configs import DRAWS, TYPES, Drawn, draw_inputs, state_of, with_parts
from hints import live_inputs
from live import in_float64
from trained import STEPS, TINY

import archspec

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.slow

SEEDS = [0, *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 9)]]
"""Each architecture of each family at least once."""


@contextmanager
def noted_dropouts(monkeypatch: pytest.MonkeyPatch) -> Generator[list[tuple[float, tuple[int, ...]]]]:
    """The rate and the shape of each dropout meanwhile, none of which drops anything."""
    noted: list[tuple[float, tuple[int, ...]]] = []
    attend = torch.nn.functional.scaled_dot_product_attention

    def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if training and p > 0:
            noted.append((p, tuple(input.shape)))
        return input

    def attention(query: Any, key: Any, value: Any, *, dropout_p: float = 0.0, **settings: Any) -> Any:
        if dropout_p > 0:
            noted.append((dropout_p, (*query.shape[:-1], key.shape[-2])))
        return attend(query, key, value, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.functional, "dropout", dropout)
        patch.setattr(torch.nn.functional, "scaled_dot_product_attention", attention)
        yield noted


def joined(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of hidden states with one axis for all tokens."""
    return (shape[0] * shape[1], shape[2]) if len(shape) == 3 else shape


RANDOM = {"layerdrop", "encoder_layerdrop", "decoder_layerdrop"}
RANDOM |= {"pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale"}
"""Fields of layers that are left out at random, and of angles that are changed at random."""

OTHER_SHAPES = (
    *("blip-2", "deepseek_ocr2", "deepseek_v4", "got_ocr2", "led", "longformer", "mistral3", "parakeet_ctc"),
    *("parakeet_encoder", "parakeet_rnnt", "parakeet_tdt", "pixtral", "sam", "sam_hq", "sam_hq_vision_model"),
    *("sam_vision_model", "squeezebert", "trocr", "wavlm", "xglm", "xlnet"),
)
"""Types whose live models pad sequences, join batch and heads or images, or exchange axes."""

ONE_BY_ONE = ("glm4v", "glm4v_moe")
"""Types whose live models attend within one image after the other."""


@pytest.mark.sampled(90)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("type", TYPES)
def test_dropout_is_where_the_live_model_has_it(
    type: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Drawn(type, seed, tmp_path)
    for _, part in with_parts(drawn.config):
        for name in RANDOM & set(vars(part)):
            setattr(part, name, None if "pos_embed" in name else 0.0)
    if hasattr(drawn.config, "apply_spec_augment"):  # which masks at random
        drawn.config.apply_spec_augment = False
    model = drawn.load()
    live, module = drawn.live(drawn.config).double(), archspec.to_torch(model).double()
    module.load_state_dict(state_of(model, live))
    inputs = draw_inputs(drawn, [*model.inputs])
    with torch.no_grad():
        evaluated = module.eval()(**inputs)
        with noted_dropouts(monkeypatch) as found:
            module(**inputs)
            assert not found
            trained = module.train()(**inputs)
        with noted_dropouts(monkeypatch) as expected, in_float64():
            live.train()(**live_inputs(torch, type, drawn.config, inputs))
    if type == "opt":  # the live model joins batch and sequence before its feed-forward layers
        found, expected = ([(rate, joined(shape)) for rate, shape in noted] for noted in (found, expected))
    if type in OTHER_SHAPES:
        found, expected = ([rate for rate, _ in noted] for noted in (found, expected))
    if type in ONE_BY_ONE:
        found, expected = ([*dict.fromkeys(rate for rate, _ in noted)] for noted in (found, expected))
    assert found == expected
    rates = [entry for entry in drawn.family.fields.values() if entry.get("kind") == "rate" and "for" not in entry]
    assert found or not rates or type not in DRAWS  # a stack may be drawn without attention
    if any("BatchNorm" in each.__class__.__name__ for each in module.modules()):
        return  # which differs while it is trained
    for one, other in zip(evaluated, trained, strict=True):
        torch.testing.assert_close(one, other)


def losses(model: Any) -> list[float]:
    """The losses of predicting the masked words of a batch over steps of AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    torch.manual_seed(1)
    words = torch.randint(5, 97, (4, 16))
    hidden = torch.rand(words.shape) < 0.3
    inputs = {"input_ids": words.masked_fill(hidden, 3), "token_type_ids": torch.zeros_like(words)}
    inputs["attention_mask"] = (torch.arange(16) < torch.tensor([[16], [13], [9], [16]])).long()
    model.train()
    found: list[float] = []
    for _ in range(STEPS):
        logits = model(**inputs).logits
        loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), words.masked_fill(~hidden, -100))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_bert_trains_like_the_live_model(rate: float, tmp_path: Path) -> None:
    """The same weights, batch and random numbers lead to the same losses."""
    config = transformers.BertConfig(
        **TINY, hidden_dropout_prob=rate, attention_probs_dropout_prob=rate, architectures=["BertForMaskedLM"]
    )
    config._attn_implementation = "sdpa"
    config.save_pretrained(tmp_path)
    torch.manual_seed(0)
    live = transformers.BertForMaskedLM(config).double()
    module = archspec.to_torch(str(tmp_path / "config.json")).double()
    module.load_state_dict(live.state_dict())
    expected = losses(live)
    found = losses(module)
    assert expected[-1] < expected[0] - 0.5
    assert found == pytest.approx(expected, rel=1e-9)
