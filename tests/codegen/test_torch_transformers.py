"""BERT as generated is BERT as `transformers` has it: the same weights give the same outputs, element by element."""

from typing import Any

import pytest

import archspec

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.slow

TINY = {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "positions": 40}
SIZES = [TINY, {**TINY, "hidden": 48, "heads": 6, "layers": 3, "types": 3, "eps": 1e-5}, {}]


def theirs_of(overrides: dict[str, Any], attention: str) -> Any:
    names = {
        "vocab": "vocab_size",
        "hidden": "hidden_size",
        "layers": "num_hidden_layers",
        "heads": "num_attention_heads",
        "ffn": "intermediate_size",
        "positions": "max_position_embeddings",
        "types": "type_vocab_size",
        "eps": "layer_norm_eps",
    }
    config = transformers.BertConfig(**{names[name]: value for name, value in overrides.items()})
    config._attn_implementation = attention
    torch.manual_seed(0)
    model = transformers.BertModel(config).double().eval()
    with torch.no_grad():  # biases and norms that differ from how they start out
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("overrides", SIZES, ids=["tiny", "other sizes", "base"])
def test_bert_is_what_transformers_has(overrides: dict[str, Any], attention: str, masked: bool) -> None:
    theirs = theirs_of(overrides, attention)
    ours = archspec.to_torch(archspec.load("bert-base-uncased", **overrides)).double().eval()
    ours.load_state_dict(theirs.state_dict())
    ids = torch.randint(0, 97, (3, 20))
    inputs = {"input_ids": ids, "token_type_ids": torch.randint(0, 2, (3, 20))}
    if masked:
        inputs["attention_mask"] = (torch.arange(20) < torch.tensor([[20], [13], [1]])).long()
    states: list[Any] = []
    for name in ("embeddings.LayerNorm", *(f"encoder.layer.{i}" for i in range(len(ours.encoder.layer)))):
        ours.get_submodule(name).register_forward_hook(lambda *call: states.append(call[2]))
    with torch.no_grad():
        expected = theirs(**inputs, output_hidden_states=True)
        found = ours(**inputs)
    assert len(states) == len(expected.hidden_states)
    pairs = [*zip(states, expected.hidden_states, strict=True)]
    pairs += [(getattr(found, name), expected[name]) for name in ("last_hidden_state", "pooler_output")]
    assert max(float((a - b).abs().max()) for a, b in pairs) <= 1e-9
