"""Bare files of quantized weights: counted at logical size, and equal to the models of their own configurations."""

import json
import random
import struct
from collections.abc import Mapping
from math import ceil, prod
from pathlib import Path
from typing import Any

import pytest
from checkpoints import read, safetensors
from small import load_table

import archspec
from archspec import ArchError
from archspec.testing import main

WIDTHS = {"I64": 8, "I32": 4, "I16": 2, "F32": 4, "F16": 2, "BF16": 2, "I8": 1, "U8": 1}
WIDTHS |= {"F8_E4M3": 1, "F8_E8M0": 1, "F8_E5M2": 1}
Layout = dict[str, tuple[str, tuple[int, ...]]]
Data = dict[str, bytes]

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "torch_dtype": "float16",
    "vocab_size": 1000,
    "hidden_size": 256,
    "intermediate_size": 384,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 100,
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 32,
}
GPT_OSS: dict[str, Any] = {
    "model_type": "gpt_oss",
    "architectures": ["GptOssForCausalLM"],
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "layer_types": ["sliding_attention", "full_attention"],
    "quantization_config": {"quant_method": "mxfp4"},
}


def write(path: Path, layout: Layout, data: Mapping[str, bytes] | None = None) -> Path:
    """A safetensors file of zeros, except for `data`."""
    head: dict[str, Any] = {}
    body = b""
    for name, (dtype, shape) in layout.items():
        start = len(body)
        body += (data or {}).get(name, bytes(WIDTHS[dtype] * prod(shape)))
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, len(body)]}
    path.write_bytes(safetensors(json.dumps(head).encode(), 0) + body)
    return path


# The tensors of a linear layer of n inputs and m outputs, as the libraries create them --------------------------------


def gptq(name: str, n: int, m: int, bits: int = 4, group: int = 128) -> Layout:
    """QuantLinear of AutoGPTQ (auto_gptq/nn_modules/qlinear/qlinear_cuda.py)."""
    groups = -(-n // group) if group > 0 else 1
    return {
        f"{name}.qweight": ("I32", (n // 32 * bits, m)),
        f"{name}.qzeros": ("I32", (groups, m // 32 * bits)),
        f"{name}.scales": ("F16", (groups, m)),
        f"{name}.g_idx": ("I32", (n,)),
    }


def gptq_without(name: str, n: int, m: int, missing: str = "g_idx") -> Layout:
    return {key: value for key, value in gptq(name, n, m, 3).items() if not key.endswith(missing)}


def awq(name: str, n: int, m: int, group: int = 64) -> Layout:
    """WQLinear_GEMM of AutoAWQ (awq/modules/linear/gemm.py)."""
    return {
        f"{name}.qweight": ("I32", (n, m // 8)),
        f"{name}.qzeros": ("I32", (n // group, m // 8)),
        f"{name}.scales": ("F16", (n // group, m)),
    }


def zeros_width(n: int, group: int = 128) -> int:
    """calculate_zeros_width (awq/utils/packing_utils.py)."""
    multiple = {128: 1, 64: 2, 32: 4}[group]
    return ceil(ceil(n // group / 8) / multiple) * multiple


def awq_gemv(name: str, n: int, m: int) -> Layout:
    """WQLinear_GEMV of AutoAWQ (awq/modules/linear/gemv.py)."""
    return {
        f"{name}.qweight": ("I32", (m, n // 8)),
        f"{name}.qzeros": ("I32", (m, zeros_width(n))),
        f"{name}.scales": ("F16", (m, zeros_width(n) * 8)),
    }


def awq_gemv_fast(name: str, n: int, m: int) -> Layout:
    """WQLinear_GEMVFast of AutoAWQ (awq/modules/linear/gemv_fast.py)."""
    return {
        f"{name}.qweight": ("I16", (m // 4, n // 4 * 4)),
        f"{name}.scales": ("F16", (zeros_width(n) * 8, m)),
        f"{name}.qzeros": ("F16", (zeros_width(n) * 8, m)),
    }


def awq_marlin(name: str, n: int, m: int) -> Layout:
    """WQLinear_Marlin of AutoAWQ (awq/modules/linear/marlin.py)."""
    return {f"{name}.qweight": ("I32", (n // 16, m * 16 // 8)), f"{name}.scales": ("F16", (n // 128, m))}


def int8(name: str, n: int, m: int) -> Layout:
    """Linear8bitLt of bitsandbytes (bitsandbytes/nn/modules.py: _save_to_state_dict)."""
    return {
        f"{name}.weight": ("I8", (m, n)),
        f"{name}.SCB": ("F32", (m,)),
        f"{name}.weight_format": ("U8", ()),
    }


def state(n: int, m: int, type: str) -> bytes:
    """QuantState.as_dict of bitsandbytes (bitsandbytes/functional.py), as JSON."""
    return json.dumps({"quant_type": type, "blocksize": 64, "dtype": "float16", "shape": [m, n]}).encode()


def nf4(name: str, n: int, m: int, type: str = "nf4") -> Layout:
    """Linear4bit of bitsandbytes; fp4 is nested here."""
    blocks = -(-n * m // 64)
    found: Layout = {
        f"{name}.weight": ("U8", (-(-n * m // 2), 1)),
        f"{name}.weight.absmax": ("F32", (blocks,)),
        f"{name}.weight.quant_map": ("F32", (16,)),
        f"{name}.weight.quant_state.bitsandbytes__{type}": ("U8", (len(state(n, m, type)),)),
    }
    if type == "fp4":
        found[f"{name}.weight.absmax"] = ("U8", (blocks,))
        found[f"{name}.weight.nested_absmax"] = ("F32", (-(-blocks // 256),))
        found[f"{name}.weight.nested_quant_map"] = ("F32", (256,))
    return found


def fp4(name: str, n: int, m: int) -> Layout:
    return nf4(name, n, m, "fp4")


def nf4_in_bfloat16(name: str, n: int, m: int) -> Layout:
    """`bnb_4bit_quant_storage`: the bytes are those of numbers of another type."""
    return nf4(name, n, m) | {f"{name}.weight": ("BF16", (n * m // 4, 1))}


def fp8_blocks(name: str, n: int, m: int) -> Layout:
    """FP8Linear of transformers (integrations/finegrained_fp8.py), as in DeepSeek-V3."""
    blocks = (-(-m // 128), -(-n // 128))
    return {f"{name}.weight": ("F8_E4M3", (m, n)), f"{name}.weight_scale_inv": ("F32", blocks)}


def fp8_static(name: str, n: int, m: int) -> Layout:
    """FP8Linear with `activation_scheme="static"` and without blocks."""
    scales: Layout = {f"{name}.weight_scale_inv": ("F32", ()), f"{name}.activation_scale": ("F32", ())}
    return {f"{name}.weight": ("F8_E4M3", (m, n)), **scales}


def fp8_tensor(name: str, n: int, m: int) -> Layout:
    """compressed-tensors and ModelOpt: a scale of the weight, and one of the inputs."""
    scales: Layout = {f"{name}.weight_scale": ("F32", (1,)), f"{name}.input_scale": ("F32", (1,))}
    return {f"{name}.weight": ("F8_E5M2", (m, n)), **scales}


def fp8_rows(name: str, n: int, m: int) -> Layout:
    """FbgemmFp8Linear of transformers (integrations/fbgemm_fp8.py)."""
    scales: Layout = {f"{name}.weight_scale": ("F32", (m, 1)), f"{name}.input_scale_ub": ("F32", (1,))}
    return {f"{name}.weight": ("F8_E4M3", (m, n)), **scales}


def fp8_inputs(name: str, n: int, m: int) -> Layout:
    return {f"{name}.weight": ("F8_E4M3", (m, n)), f"{name}.input_scale": ("F32", ())}


def int8_rows(name: str, n: int, m: int) -> Layout:
    """compressed-tensors, `int-quantized`."""
    return {f"{name}.weight": ("I8", (m, n)), f"{name}.weight_scale": ("BF16", (m, 1))}


def packed(name: str, n: int, m: int, bits: int = 4) -> Layout:
    """compressed-tensors, `pack-quantized`."""
    return {
        f"{name}.weight_packed": ("I32", (m, ceil(n / (32 // bits)))),
        f"{name}.weight_scale": ("BF16", (m, n // 128)),
        f"{name}.weight_shape": ("I64", (2,)),
    }


def packed8(name: str, n: int, m: int) -> Layout:
    return packed(name, n, m, 8)


def mxfp4_pairs(name: str, n: int, m: int) -> Layout:
    """DeepSeek-V4: `_unpack_fp4` of transformers (integrations/finegrained_fp8.py)."""
    return {f"{name}.weight": ("I8", (m, n // 2)), f"{name}.scale": ("F8_E8M0", (m, n // 32))}


def nvfp4(name: str, n: int, m: int) -> Layout:
    """compressed-tensors, `nvfp4-pack-quantized`."""
    return {
        f"{name}.weight_packed": ("U8", (m, n // 2)),
        f"{name}.weight_scale": ("F8_E4M3", (m, n // 16)),
        f"{name}.weight_global_scale": ("F32", (1,)),
        f"{name}.input_global_scale": ("F32", (1,)),
    }


LAYOUTS = [
    gptq, gptq_without, awq, awq_gemv, awq_gemv_fast, awq_marlin, int8, nf4, fp4, nf4_in_bfloat16, fp8_blocks,
    fp8_static, fp8_tensor, fp8_rows, fp8_inputs, int8_rows, packed, packed8, mxfp4_pairs, nvfp4,
]  # fmt: skip


def is_linear(name: str) -> bool:
    return name.endswith("_proj.weight") or (name.startswith("transformer.h.") and ".c_" in name)


def quantized(config: dict[str, Any], layout: Any, is_transposed: bool = False) -> tuple[Layout, Data]:
    """The tensors of a model, of which the linear layers in the stack are quantized."""
    found: Layout = {}
    data: Data = {}
    for tensor in archspec.load(config).tensors:
        if tensor.tied_to:
            continue
        if not is_linear(tensor.name) or not tensor.name.endswith(".weight"):
            found[tensor.name] = ("F16", tensor.shape)
            continue
        m, n = reversed(tensor.shape) if is_transposed else tensor.shape
        parts = layout(tensor.name.removesuffix(".weight"), n, m)
        found |= parts
        data |= {name: state(n, m, name[-3:]) for name in parts if "quant_state" in name}
        data |= {name: struct.pack("<2q", m, n) for name in parts if name.endswith("weight_shape")}
    return found, data


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_quantized_file_is_counted_at_logical_size_and_verified(tmp_path: Path, layout: Any) -> None:
    tensors, data = quantized(LLAMA, layout)
    path = write(tmp_path / "model.safetensors", tensors, data)
    model = archspec.load(LLAMA)
    found = archspec.verify(model, path)
    assert found.is_exact, found
    assert found.stored.elements == model.params.total
    assert found.stored.bytes == sum(WIDTHS[dtype] * prod(shape) for dtype, shape in tensors.values())
    assert any("14 tensors counted at logical size" in note for note in found.notes)
    table = load_table(str(path))[0]
    assert table.params.total == model.params.total and table.is_consistent()
    assert any(note.startswith("quantized (") for note in table.notes)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("group", [32, 128, -1])
def test_bits_and_groups_of_gptq(tmp_path: Path, bits: int, group: int) -> None:
    path = write(tmp_path / "m.safetensors", gptq("a", 128, 96, bits, group))
    (entry,) = read(str(path)).entries
    assert (entry.name, entry.shape, entry.dtype) == ("a.weight", (96, 128), f"GPTQ_{bits}")


@pytest.mark.parametrize("layout", [gptq, nf4, int8])
def test_transposed_linear_layers_are_quantized_as_others(tmp_path: Path, layout: Any) -> None:
    path = write(tmp_path / "model.safetensors", *quantized(GPT2, layout, is_transposed=True))
    found = archspec.verify(GPT2, path)
    assert found.is_exact, found
    assert any("quantized as [out, in], in the spec [in, out]" in note for note in found.notes)
    wrong = write(tmp_path / "wrong.safetensors", *quantized(LLAMA, layout, is_transposed=True))
    assert {finding.kind for finding in archspec.verify(LLAMA, wrong).findings} == {"shape"}


def experts() -> Layout:
    """gpt-oss: `Mxfp4ReverseDeserialize` of transformers (integrations/mxfp4.py)."""
    found: Layout = {}
    for tensor in archspec.load(GPT_OSS).tensors:
        if len(tensor.shape) == 3:
            number, n, m = tensor.shape
            found[f"{tensor.name}_blocks"] = ("U8", (number, m, n // 32, 16))
            found[f"{tensor.name}_scales"] = ("U8", (number, m, n // 32))
        else:
            found[tensor.name] = ("BF16", tensor.shape)
    return found


def test_experts_in_mxfp4(tmp_path: Path) -> None:
    path = write(tmp_path / "model.safetensors", experts())
    found = archspec.verify(GPT_OSS, path)
    assert found.is_exact, found
    assert found.stored.elements == archspec.load(GPT_OSS).params.total
    layout: Layout = {"mlp1_weight.blocks": ("U8", (4, 96, 2, 16)), "mlp1_weight.scales": ("U8", (4, 96, 2))}
    (entry,) = read(str(write(tmp_path / "openai.safetensors", layout))).entries
    assert (entry.name, entry.shape, entry.dtype) == ("mlp1_weight", (4, 96, 64), "MXFP4")


def test_stacked_experts_in_fp8(tmp_path: Path) -> None:
    layout: Layout = {
        "experts.gate_up_proj": ("F8_E4M3", (4, 96, 64)),
        "experts.gate_up_proj_scale_inv": ("F32", (4, 1, 1)),
        "experts.gate_up_proj_activation_scale": ("F32", (4,)),
        "router.weight": ("F32", (4, 64)),
    }
    entries = read(str(write(tmp_path / "m.safetensors", layout))).entries
    assert [(entry.name, entry.dtype, entry.bytes) for entry in entries] == [
        ("experts.gate_up_proj", "FP8_E4M3", 4 * 96 * 64 + 32),
        ("router.weight", "float32", 1024),
    ]


def test_scales_of_activations_and_of_cached_keys(tmp_path: Path) -> None:
    """AWQ scales activations without a linear layer before them (awq/modules/act.py: ScaledActivation)."""
    layout: Layout = awq("mlp.up", 128, 64) | awq("mlp.down", 64, 128) | {"mlp.act.scales": ("F16", (64,))}
    layout |= {"act.scales": ("F16", (3,))}
    for name in ("q", "k"):
        layout |= fp8_tensor(f"attn.{name}_proj", 8, 6) | {f"attn.{name}_scale": ("F32", (1,))}
    entries = read(str(write(tmp_path / "m.safetensors", layout))).entries
    names = ["mlp.up.weight", "mlp.down.weight", "act.scales", "attn.q_proj.weight", "attn.k_proj.weight"]
    assert [entry.name for entry in entries] == names
    assert sum(entry.bytes for entry in entries) == sum(WIDTHS[dtype] * prod(s) for dtype, s in layout.values())


def test_what_is_not_certain_is_said(tmp_path: Path) -> None:
    tensors, _ = quantized(LLAMA, nf4)
    found = archspec.verify(LLAMA, write(tmp_path / "model.safetensors", tensors))  # the shapes are bytes of zeros
    assert found.is_exact
    assert "the shapes of 14 quantized tensors cannot be read, only element counts" in found.notes
    assert any(note.startswith("only element counts were compared: `model.layers.*") for note in found.notes)
    other = archspec.verify({**LLAMA, "intermediate_size": 392}, tmp_path / "model.safetensors")
    assert {finding.kind for finding in other.findings} == {"shape"}


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ({**gptq("a", 64, 64), "a.g_idx": ("I32", (60,))}, "`a.qweight` has a name as in GPTQ or AWQ"),
        ({**gptq("a", 64, 64), "a.weight": ("F16", (3,))}, "`weight` is stored, too"),
        ({"a.qweight": ("I32", (8, 64)), "a.scales": ("F16", (1, 64))}, "the shapes fit no layout"),
        ({**int8("a", 4, 6), "a.SCB": ("F32", (5,))}, "the shapes of `weight` and `SCB` do not fit"),
        ({**nf4("a", 64, 64), "a.weight.absmax": ("F32", (3,))}, "as in bitsandbytes, but the sizes"),
        ({"a_blocks": ("U8", (2, 3, 4, 16)), "a_scales": ("U8", (2, 3, 5))}, "as in MXFP4, but the shapes"),
        ({**fp8_blocks("a", 4, 6), "a.weight_scale_inv": ("F32", (7, 9))}, "FP8_E4M3 with scales, but the shapes"),
        ({**packed("a", 256, 64)}, "the size is not that of the shape in `weight_shape`"),
    ],
)
def test_other_shapes_are_counted_as_stored(tmp_path: Path, layout: Layout, said: str) -> None:
    checkpoint = read(str(write(tmp_path / "m.safetensors", layout)))
    assert {entry.name: entry.shape for entry in checkpoint.entries} == {name: s for name, (_, s) in layout.items()}
    (note,) = checkpoint.notes
    assert note.startswith("counted as stored: ") and said in note


def test_any_shapes_can_be_read(tmp_path: Path) -> None:
    source = random.Random(0)
    layouts: list[Any] = [gptq, awq, awq_gemv, awq_gemv_fast, int8, nf4, fp4, fp8_static, fp8_rows, packed, nvfp4]
    layouts += [lambda _, n, m: {"a_blocks": ("U8", (n, m, 2, 16)), "a_scales": ("U8", (n, m, 2))}]
    path = tmp_path / "m.safetensors"
    for _ in range(300):
        layout: Layout = source.choice(layouts)("a", 128, 64)
        for name in source.sample([*layout], source.randint(1, len(layout))):
            size = source.choice([(), (0,), (1,), (64,), (0, 3), (64, 8), (1, 64), (8, 64), (2, 64, 1), (2, 3, 0, 16)])
            layout[name] = (source.choice([layout[name][0], *WIDTHS]), size)
        data = {key: source.randbytes(16) for key, value in layout.items() if value == ("I64", (2,))}
        checkpoint = read(str(write(path, layout, data)))
        assert sum(entry.bytes for entry in checkpoint.stored) == sum(entry.bytes for entry in checkpoint.entries)
        assert load_table(str(path))[0].is_consistent()


def test_names_alone_are_not_a_layout(tmp_path: Path) -> None:
    layout: Layout = {
        "a.qweight": ("I32", (4, 6)),
        "a.weight": ("F8_E4M3", (2, 2)),
        "b.weight": ("F16", (2, 2)),
        "b.weight_scale": ("F16", (2, 1)),
        "c.weight": ("U8", (2, 2)),
        "c.scale": ("F32", (1,)),
        "transformer_blocks": ("U8", (2, 2)),
    }
    checkpoint = read(str(write(tmp_path / "m.safetensors", layout)))
    assert [entry.name for entry in checkpoint.entries] == [*layout] and not checkpoint.notes


def test_biases_of_zeros_that_gptq_adds(tmp_path: Path) -> None:
    tensors, _ = quantized(LLAMA, gptq)
    widths = {name: shape[1] for name, (_, shape) in tensors.items() if name.endswith("qweight")}
    biases: Layout = {name.replace("qweight", "bias"): ("F16", (width,)) for name, width in widths.items()}
    found = archspec.verify(LLAMA, write(tmp_path / "model.safetensors", tensors | biases))
    assert found.is_exact
    assert any("`model.layers.*.self_attn.q_proj.bias` (0-1), bias of zeros" in note for note in found.notes)
    data = {"model.layers.0.self_attn.q_proj.bias": b"\0\x3c" * 256}
    found = archspec.verify(LLAMA, write(tmp_path / "model.safetensors", tensors | biases, data))
    assert [finding.fold.names for finding in found.findings] == [("model.layers.0.self_attn.q_proj.bias",)]


def test_missing_and_unexpected_weights_are_reported(tmp_path: Path) -> None:
    tensors, _ = quantized({**LLAMA, "num_hidden_layers": 1}, gptq)
    found = archspec.verify(LLAMA, write(tmp_path / "model.safetensors", tensors))
    assert {finding.kind for finding in found.findings} == {"missing"}
    found = archspec.verify({**LLAMA, "intermediate_size": 128}, tmp_path / "model.safetensors")
    assert {(finding.kind, finding.dtype) for finding in found.findings} == {("missing", None), ("shape", None)}


def test_quantized_shards(tmp_path: Path) -> None:
    tensors, _ = quantized(LLAMA, awq)
    names = list(tensors)
    shards = {"a.safetensors": names[:25], "b.safetensors": names[25:]}  # the tensors of one weight are in both
    for file, part in shards.items():
        write(tmp_path / file, {name: tensors[name] for name in part})
    size = sum(WIDTHS[dtype] * prod(shape) for dtype, shape in tensors.values())
    weight_map = {name: file for file, part in shards.items() for name in part}
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    found = archspec.verify(LLAMA, tmp_path)
    assert found.is_exact and found.stored.bytes == size and found.files == 2


def test_it_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path / "model.safetensors", *quantized(LLAMA, gptq)))
    assert main(["count", path, "--depth", "0"]) == 0
    said = capsys.readouterr().out
    assert f"{archspec.load(LLAMA).params.total:,} parameters" in said and "bits per element" in said
    assert main(["scaffold", path]) == 0
    (tmp_path / "draft.arch").write_text(capsys.readouterr().out)
    assert main(["verify", str(tmp_path / "draft.arch"), path]) == 0
    assert "stored as `qweight`, `qzeros`, `scales` and `g_idx`" in capsys.readouterr().out


def test_weights_that_are_quantized_are_not_loaded(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = write(tmp_path / "model.safetensors", *quantized(LLAMA, fp8_blocks))
    with pytest.raises(ArchError, match="is FP8_E4M3 in the checkpoint"):
        archspec.load_weights(archspec.to_torch(LLAMA), path)
