"""Functions of the standard library against PyTorch and `transformers`."""

from typing import Any

import pytest
from small import load

import archspec

torch = pytest.importorskip("torch")


def module_of(text: str, **settings: object) -> Any:
    """Return the module of a model in float64."""
    torch.set_default_dtype(torch.float64)
    try:
        torch.manual_seed(0)
        return archspec.to_torch(load(text), **settings).eval()
    finally:
        torch.set_default_dtype(torch.float32)


def random(*shape: int) -> Any:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize(
    ("mode", "weights"),
    [("bilinear", "linear_weights"), ("bilinear", "aligned_weights"), ("bicubic", "cubic_weights")],
)
@pytest.mark.parametrize("size", [(7, 5), (3, 9), (4, 6), (13, 1)])
def test_resizing(mode: str, weights: str, size: tuple[int, int]) -> None:
    text = f"""
import std {{ resize, {weights} }}
dim batch
block B()(x [batch, 2, 4, 6]) -> [batch, 2, {size[0]}, {size[1]}] {{
  w: param [1] ~ constant(1.0)
  return x * .w |> resize({size[0]}, {size[1]}, {weights})
}}
"""
    x = random(3, 2, 4, 6)
    expected = torch.nn.functional.interpolate(x, size, mode=mode, align_corners="aligned" in weights)
    # weights are computed from integers, in float32
    assert torch.allclose(module_of(text)(x), expected, atol=2e-6)


def test_convolution_with_sizes_for_each_axis() -> None:
    text = """
import std { Conv2d }
dim batch
block B()(x [batch, 4, 9, 12]) -> [batch, 6, 5, 10] {
  return x |> conv: Conv2d(4, 6, 3, stride = 2, padding = 1, groups = 2, kernel_width = 5, stride_width = 1)
}
"""
    module = module_of(text)
    reference = torch.nn.Conv2d(4, 6, (3, 5), (2, 1), 1, groups=2).double()
    reference.load_state_dict({name.removeprefix("conv."): value for name, value in module.state_dict().items()})
    x = random(2, 4, 9, 12)
    assert torch.allclose(module(x), reference(x), atol=1e-12)


@pytest.mark.parametrize("interleaved", [True, False])
def test_rotary_positions_of_three_numbers(interleaved: bool) -> None:
    text = f"""
import std {{ rotary_frequencies, rotate, sectioned_angles }}
dim batch, seq
block B()(x [batch, 2, seq, 16], positions int [3, batch, seq]) -> [batch, 2, seq, 16] {{
  w: param [1] ~ constant(1.0)
  angles = sectioned_angles([4, 2, 2], {str(interleaved).lower()})(positions, rotary_frequencies(16, 100.0))
    |> reshape([batch, 1, seq, 8])
  return rotate(x * .w, cos(angles), sin(angles))
}}
"""
    kind, configuration, embedding = (
        ("qwen3_vl", "Qwen3VLTextConfig", "Qwen3VLTextRotaryEmbedding")
        if interleaved
        else ("qwen2_vl", "Qwen2VLTextConfig", "Qwen2VLRotaryEmbedding")
    )
    modeling = pytest.importorskip(f"transformers.models.{kind}.modeling_{kind}")
    parameters = {"rope_type": "default", "rope_theta": 100.0, "mrope_section": [4, 2, 2]}
    settings = {"hidden_size": 32, "num_attention_heads": 2, "head_dim": 16, "rope_parameters": parameters}
    x, positions = random(2, 2, 5, 16), torch.arange(30).reshape(3, 2, 5) % 7
    angles = getattr(modeling, embedding)(getattr(modeling, configuration)(**settings))(x, positions)
    rotated, _ = modeling.apply_rotary_pos_emb(x, x, *angles)
    assert torch.allclose(module_of(text)(x, positions), rotated, atol=1e-5)


def test_rotary_positions_in_images() -> None:
    modeling = pytest.importorskip("transformers.models.pixtral.modeling_pixtral")
    configuration = modeling.PixtralVisionConfig(hidden_size=32, num_attention_heads=2, image_size=64, patch_size=16)
    text = """
import std { rotary_frequencies, rotate, grid_angles }
dim batch
block B()(x [batch, 2, 12, 16]) -> [batch, 2, 12, 16] {
  w: param [1] ~ constant(1.0)
  place  = arange(12)
  pairs  = reshape([4, 2])(rotary_frequencies(16))
  down   = pick(axis = 1, index = 0)(pairs)
  across = pick(axis = 1, index = 1)(pairs)
  angles = grid_angles(real(place // 4), real(place % 4), down, across)
  return rotate(x * .w, cos(angles), sin(angles))
}
"""
    x, place = random(3, 2, 12, 16), torch.arange(12)
    positions = torch.stack((place // 4, place % 4), dim=-1)
    angles = modeling.PixtralVisionRotaryEmbedding(configuration)(x, positions)
    rotated, _ = modeling.apply_rotary_pos_emb(x, x, *angles, unsqueeze_dim=0)
    assert torch.allclose(module_of(text)(x), rotated, atol=1e-6)


def test_gated_delta_rule() -> None:
    modeling = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next")
    text = """
import std { gated_delta_rule }
dim batch, seq
block B()(q [batch, seq, 2, 4], k [batch, seq, 2, 4], v [batch, seq, 2, 3], decay [batch, seq, 2], rate [batch, seq, 2])
         -> [batch, seq, 2, 3] {
  w: param [1] ~ constant(1.0)
  return gated_delta_rule(q * .w, k, v, decay, rate)
}
"""
    shapes = ((2, 5, 2, 4), (2, 5, 2, 4), (2, 5, 2, 3), (2, 5, 2), (2, 5, 2))
    q, k, v, decay, rate = (random(*shape) for shape in shapes)
    inputs = (q, k, v, -decay.exp(), rate.sigmoid())
    expected, _ = modeling.torch_recurrent_gated_delta_rule(*inputs, None, False)
    assert torch.allclose(module_of(text)(*inputs), expected, atol=1e-5)


@pytest.mark.parametrize("late", [True, False])
def test_gated_norms(late: bool) -> None:
    if late:
        modeling = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next")
        norm = modeling.Qwen3NextRMSNormGated(6, eps=1e-5)
    else:
        modeling = pytest.importorskip("transformers.models.mamba2.modeling_mamba2")
        norm = modeling.MambaRMSNormGated(6, 6, eps=1e-5)
    text = f"""
import std {{ gated_rms_norm }}
dim batch
block B()(x [batch, 6], gate [batch, 6]) -> [batch, 6] {{
  norm.weight: param [6]
  return gated_rms_norm(1e-5, late = {str(late).lower()})(x, gate, .norm.weight)
}}
"""
    module = module_of(text)
    weight, x, gate = random(6), random(300, 6), random(6, 300).T
    module.load_state_dict({"norm.weight": weight})
    norm.double().load_state_dict({"weight": weight})
    assert torch.allclose(module(x, gate), norm(x, gate), atol=1e-6)
    for dtype in (torch.bfloat16, torch.float16):
        halves = x.to(dtype), gate.to(dtype)
        assert torch.equal(module.to(dtype)(*halves).to(dtype), norm.to(dtype)(*halves))


def test_channel_norm() -> None:
    text = """
import std { channel_norm }
dim batch
block B()(x [batch, 3, 4, 5]) -> [batch, 3, 4, 5] {
  weight: param [3] ~ constant(1.0)
  bias:   param [3] ~ constant(0.0)
  return channel_norm(x, .weight, .bias)
}
"""
    x = random(2, 3, 4, 5)
    expected = torch.nn.functional.layer_norm(x.permute(0, 2, 3, 1), (3,), eps=1e-6).permute(0, 3, 1, 2)
    assert torch.allclose(module_of(text)(x), expected, atol=1e-12)


def test_chunk_mask() -> None:
    text = """
import std { chunk_mask }
dim batch
block B()(x [batch, 5, 5]) -> [batch, 5, 5] {
  w: param [1] ~ constant(1.0)
  return where(chunk_mask(5, 2), x * .w, 0.0)
}
"""
    index = torch.arange(5)
    visible = (index[:, None] >= index) & (index[:, None] // 2 == index // 2)
    x = random(1, 5, 5)
    assert torch.equal(module_of(text)(x), x * visible)


MIXER = """
import std { Linear, Conv1d, gated_rms_norm, softplus, silu, state_space_scan }
dim batch, seq
block Mixer(hidden = 8, heads = 4, size = 4, groups = 2, states = 3, kernel = 4)
           (x [batch, seq, hidden]) -> [batch, seq, hidden] {
  inner   = heads * size
  shared  = groups * states
  A_log:   param [heads]
  D:       param [heads]
  dt_bias: param [heads]
  gate, main, time = x
    |> in_proj: Linear(hidden, 2 * inner + 2 * shared + heads, bias = false)
    |> split([inner, inner + 2 * shared, heads], axis = -1)
  y = transpose(1, 2)(main)
    |> conv1d: Conv1d(inner + 2 * shared, inner + 2 * shared, kernel, padding = kernel - 1, groups = inner + 2 * shared)
    |> slice(axis = 2, stop = seq)
    |> transpose(1, 2)
    |> silu
  h, enter, read = y |> split([inner, shared, shared], axis = -1)
  tokens  = rearrange("b s (h d) -> b s h d", h = heads)(h)
  enters  = repeat("b s (g n) -> b s (g r) n", g = groups, r = heads // groups)(enter)
  reads   = repeat("b s (g n) -> b s (g r) n", g = groups, r = heads // groups)(read)
  scanned = state_space_scan(tokens, softplus(time + .dt_bias), -exp(.A_log), enters, reads)
    |> + tokens * reshape([heads, 1])(.D)
    |> rearrange("b s h d -> b s (h d)")
  norm.weight: param [inner]
  return gated_rms_norm(1e-5, groups)(scanned, gate, .norm.weight) |> out_proj: Linear(inner, hidden, bias = false)
}
"""


def test_state_space_scan() -> None:
    modeling = pytest.importorskip("transformers.models.mamba2.modeling_mamba2")
    settings: dict[str, Any] = {"hidden_size": 8, "num_heads": 4, "head_dim": 4, "expand": 2, "n_groups": 2}
    settings |= {"state_size": 3, "conv_kernel": 4, "chunk_size": 4, "num_hidden_layers": 1, "use_bias": False}
    config = modeling.Mamba2Config(**settings)
    mixer = modeling.Mamba2Mixer(config, layer_idx=0).double().eval()
    module = module_of(MIXER)
    names = {name: random(*tensor.shape) for name, tensor in mixer.state_dict().items()}
    mixer.load_state_dict(names)
    module.load_state_dict(names)
    x = random(2, 6, 8)
    with torch.no_grad():
        assert torch.allclose(module(x), mixer(x), atol=1e-5)


def test_conformer_layer() -> None:
    modeling = pytest.importorskip("transformers.models.parakeet.modeling_parakeet")
    settings = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 12, "conv_kernel_size": 3}
    configuration = modeling.ParakeetEncoderConfig(**settings, attn_implementation="eager")
    reference = modeling.ParakeetEncoderBlock(configuration, 0).double().eval()
    text = """
import std { ConformerLayer }
dim batch, seq
block B()(x [batch, seq, 8], positions [2 * seq - 1, 8], tokens bool [batch, seq] = none) -> [batch, seq, 8] {
  return ..: ConformerLayer(8, 2, 12, 3)(x, positions, tokens)
}
"""
    module = module_of(text)
    state = {name: random(*value.shape) for name, value in reference.state_dict().items()}
    state["conv.norm.running_var"] = state["conv.norm.running_var"].abs()
    state["conv.norm.num_batches_tracked"] = torch.tensor(0)
    reference.load_state_dict(state)
    module.load_state_dict(state)
    x, positions = random(2, 5, 8), random(9, 8)
    tokens = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)
    mask = tokens[:, None, None, :] & tokens[:, None, :, None]
    with torch.no_grad():
        for ours, theirs in (((), None), ((tokens,), mask)):
            expected = reference(x, theirs, positions.expand(2, 9, 8))
            outputs = module(x, positions, *ours)
            seen = tokens if ours else torch.ones_like(tokens)  # a padded query sees no key: NaN in the reference
            assert torch.allclose(outputs[seen], expected[seen], atol=1e-6)


def test_put_rows() -> None:
    text = """
import std { put_rows }
dim batch, seq, images
block B()(x [batch, seq, 3], marked bool [batch, seq], rows [images, 3]) -> [batch, seq, 3] {
  w: param [1] ~ constant(1.0)
  return put_rows(x * .w, marked, rows)
}
"""
    x, rows = random(2, 5, 3), random(4, 3)
    marked = torch.tensor([[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]], dtype=torch.bool)
    expected = x.masked_scatter(marked[..., None].expand_as(x), rows)
    assert torch.equal(module_of(text)(x, marked, rows), expected)
