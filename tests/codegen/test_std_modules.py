"""The standard library and `float32` in PyTorch: training as in `torch.nn`, half precision, Fourier mixing."""

from typing import Any

import pytest
import torch_compare
from building import build
from library import BASES, BATCH, BIASED, TOKENS, WINDOWS, stored
from paths import read_spec
from reference import Array
from small import load

import archspec

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("text", [*BASES, TOKENS, WINDOWS, BIASED], ids=range(7))
def test_modules_compute_what_the_library_says(text: str) -> None:
    torch_compare.agrees(load(text))


def module_of(text: str, dtype: Any, weights: dict[str, Array]) -> Any:
    module = archspec.to_torch(load(text)).to(dtype)
    module.load_state_dict({n: torch.tensor(weights[n]) for n in module.state_dict() if n in weights}, strict=False)
    return module.eval()


def test_batch_norm_trains_as_in_pytorch() -> None:
    torch.manual_seed(0)
    module = archspec.to_torch(load(BATCH))
    theirs = torch.nn.BatchNorm2d(4, eps=0.1)
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(module.state_dict()[f"norm.{name}"], tensor)
    for training in (True, True, False):
        module.train(training)
        theirs.train(training)
        x = torch.randn(3, 4, 5, 6)
        assert torch.equal(module(x), torch.relu(theirs(x)))
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(module.state_dict()[f"norm.{name}"], tensor)


def test_buffers_start_out_as_declared() -> None:
    text = """
layer Net(n = 3)(x [n]) -> [n] {
  scale: buffer [n] ~ constant(2.5)
  return x * .scale
}
"""
    assert archspec.to_torch(load(text)).state_dict()["scale"].tolist() == [2.5] * 3


HIDDEN = """
import std { attention }
dim batch, seq
block Net(heads = 2, size = 4)(x [batch, heads, seq, size], bias [batch, heads, seq, seq],
                               mask bool [seq, seq] = none) -> [batch, heads, seq, size] {
  weight: param [size, size]
  return attention(finite = true)(x, x, linear(x, .weight), mask, bias)
}
"""


@pytest.mark.parametrize("mask", [None, [[True, True, False]] * 3])
def test_queries_with_no_key_left_by_biases_attend_to_all_alike(mask: list[list[bool]] | None) -> None:
    module = archspec.to_torch(load(HIDDEN))
    x, bias = torch.randn(1, 2, 3, 4), torch.zeros(1, 2, 3, 3)
    bias[:, :, 1] = -torch.inf
    found = module(x, bias, None if mask is None else torch.tensor(mask))
    values = x @ module.weight.T
    assert torch.allclose(found[:, :, 1], values.mean(dim=2), atol=1e-6)
    seen = 3 if mask is None else 2
    weights = torch.softmax(x @ x[:, :, :seen].transpose(-1, -2) / 2, dim=-1)
    assert torch.allclose(found[:, :, ::2], (weights @ values[:, :, :seen])[:, :, ::2], atol=1e-6)


# In half precision ----------------------------------------------------------------------------------------------------

HALF = read_spec("std_modules_half")


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_float32_keeps_what_half_precision_cannot(name: str) -> None:
    """Squares of 300 are beyond float16; what comes out is in the type of the model all the same."""
    dtype = getattr(torch, name)
    x = torch.tensor([[300.0, -300.0, 300.0, -300.0]], dtype=dtype)
    norm, passed, weighted, loops = module_of(HALF, dtype, {})(abs(x))
    assert {t.dtype for t in (norm, passed, weighted, loops)} == {dtype}
    for tensor, expected in ((norm, 300.0), (passed, 300.0), (weighted, 300.0), (loops, 300.0**0.75)):
        assert torch.allclose(tensor.double(), torch.tensor(expected).double(), rtol=2e-3)


def test_float32_is_the_identity_from_float32_on() -> None:
    plain = HALF.replace("|> float32 ", "").replace("float32(x)", "x")
    for dtype in (torch.float32, torch.float64):
        x = torch.rand(3, 4, dtype=dtype)
        for one, other in zip(module_of(HALF, dtype, {})(x), module_of(plain, dtype, {})(x), strict=True):
            assert one.dtype == dtype and torch.equal(one, other)


ROUTED = read_spec("std_modules_routed")


def test_routers_and_rotary_positions_in_half_precision() -> None:
    torch_compare.agrees(load(ROUTED))
    weights = stored(ROUTED)
    x = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    found, expected = (module_of(ROUTED, dtype, weights)(x.to(dtype)) for dtype in (torch.bfloat16, torch.float64))
    assert found.dtype == torch.bfloat16
    close = (found.double() - expected).abs() <= 0.05 * expected.abs().max()
    assert float(close.double().mean()) > 0.9  # where two experts are as good, the other may be taken


# Beside transformers --------------------------------------------------------------------------------------------------

FNET = read_spec("std_modules_fnet")


def test_fourier_mixing_is_that_of_fnet() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 40, "hidden_size": 12, "num_hidden_layers": 3, "intermediate_size": 20}
    config = transformers.FNetConfig(**sizes, max_position_embeddings=16, hidden_dropout_prob=0.0)
    theirs = transformers.FNetModel(config).double().eval()
    ours = archspec.to_torch(load(FNET)).double().eval()
    ours.load_state_dict(theirs.state_dict())
    ids, kinds = torch.randint(4, 40, (3, 11)), torch.randint(0, 4, (3, 11))
    expected = theirs(ids, token_type_ids=kinds)
    for name, tensor in ours(ids, kinds)._asdict().items():
        assert torch.allclose(tensor, expected[name], rtol=0, atol=1e-12)
    torch_compare.agrees(load(FNET))
    half = ours.to(torch.bfloat16)(ids, kinds).last_hidden_state
    assert half.dtype == torch.bfloat16 and bool(half.isfinite().all())


def test_shifted_windows_are_those_of_swin() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"image_size": 56, "patch_size": 4, "embed_dim": 48, "depths": [2], "num_heads": [3], "window_size": 7}
    theirs = transformers.SwinModel(transformers.SwinConfig(**sizes, drop_path_rate=0.0)).double().eval()
    ours = archspec.to_torch("specs/std/examples.arch:small-windows").double().eval()
    x = torch.randn(2, 14, 14, 48, dtype=torch.float64)
    h = x.reshape(2, 14 * 14, 48)
    for layer, block in zip(ours.layers, theirs.encoder.layers[0].blocks, strict=True):
        for parameter in block.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        given = dict(block.named_parameters())
        state = {name: given[name] for name in given if name.startswith("mlp.")}
        table = "relative_position_bias_table"
        state[f"attn.{table}"] = given[f"attention.relative_position_bias.{table}"]
        for word in ("weight", "bias"):
            state[f"norm1.{word}"] = given[f"layernorm_before.{word}"]
            state[f"norm2.{word}"] = given[f"layernorm_after.{word}"]
            state[f"attn.qkv.{word}"] = torch.cat([given[f"attention.{part}_proj.{word}"] for part in "qkv"])
            state[f"attn.proj.{word}"] = given[f"attention.o_proj.{word}"]
        layer.load_state_dict(state)
        with torch.no_grad():
            x, h = layer(x), block(h, (14, 14))
        h = h[0] if isinstance(h, tuple) else h
        torch.testing.assert_close(x.reshape(h.shape), h, rtol=1e-12, atol=1e-12)


KINDS = read_spec("std_modules_kinds")


def test_own_layers_that_are_modules_of_pytorch() -> None:
    """However they are written, and with other initial values."""
    source = build(KINDS)
    assert "class Either(nn.ConvTranspose1d)" in source and "class Norm(nn.BatchNorm1d)" in source
    state = archspec.to_torch(load(KINDS)).state_dict()
    assert state["norm.running_mean"].tolist() == [0.5] * 4 and state["norm.running_var"].tolist() == [1.0] * 4
    torch_compare.agrees(load(KINDS))
