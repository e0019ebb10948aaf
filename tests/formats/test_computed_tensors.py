"""Tensors that old versions of libraries store although they are computed: causal masks, positions, frequencies."""

import json
from collections.abc import Callable
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from checkpoints import safetensors
from small import load_table

import archspec
from archspec.testing import main

GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 50,
    "n_embd": 16,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 20,
}
SIZES = {"F32": 4, "F16": 2, "BF16": 2, "U8": 1, "BOOL": 1, "I64": 8}
Tensor = tuple[str, tuple[int, ...], bytes]


def write(path: Path, tensors: dict[str, Tensor]) -> Path:
    head: dict[str, Any] = {}
    body = b""
    for name, (dtype, shape, data) in tensors.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    path.write_bytes(safetensors(json.dumps(head).encode(), 0) + body)
    return path


def numbers(dtype: str, *values: float) -> bytes:
    if dtype == "BF16":
        return b"".join(pack("<f", value)[2:] for value in values)
    return pack(f"<{len(values)}{ {'F32': 'f', 'F16': 'e', 'U8': 'B', 'BOOL': 'B', 'I64': 'q'}[dtype] }", *values)


def mask(size: int, dtype: str = "F32", window: int = 1000, seen: float = 1, hidden: float = 0) -> Tensor:
    values = [seen if i - window < j <= i else hidden for i in range(size) for j in range(size)]
    return dtype, (1, 1, size, size), numbers(dtype, *values)


def model(config: dict[str, Any], prefix: str = "") -> dict[str, Tensor]:
    return {
        tensor.name.removeprefix(prefix): ("F32", tensor.shape, bytes(4 * tensor.size))
        for tensor in archspec.load(config).tensors
        if not tensor.tied_to
    }


@pytest.mark.parametrize("dtype", ["F32", "F16", "U8", "BOOL"])
@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_masks_of_gpt2_are_no_difference(tmp_path: Path, dtype: str, prefix: str) -> None:
    tensors = model(GPT2, prefix)
    h = "h" if prefix else "transformer.h"
    for i in range(3):
        tensors[f"{h}.{i}.attn.bias"] = mask(20, dtype)
        tensors[f"{h}.{i}.attn.masked_bias"] = ("F32", (), pack("<f", -1e4))
    path = write(tmp_path / "model.safetensors", tensors)
    found = archspec.verify(GPT2, path)
    assert found.is_exact, found
    assert f"not in the spec, ignored: `{h}.*.attn.bias` (0-2), causal mask" in found.notes
    assert f"not in the spec, ignored: `{h}.*.attn.masked_bias` (0-2), the score of masked positions" in found.notes
    table = load_table(str(path))[0]
    assert table.params.total == archspec.load(GPT2).params.total
    assert f"computed: `{h}.*.attn.bias` (0-2), causal mask" in table.notes


def changed(tensor: Tensor, index: int, value: float) -> Tensor:
    dtype, shape, data = tensor
    width = SIZES[dtype]
    return dtype, shape, data[: index * width] + numbers(dtype, value) + data[(index + 1) * width :]


def test_a_learned_bias_is_reported(tmp_path: Path) -> None:
    tensors = model(GPT2) | {"transformer.h.0.attn.bias": changed(mask(20), 5, 0.5)}
    found = archspec.verify(GPT2, write(tmp_path / "model.safetensors", tensors))
    assert [finding.fold.names for finding in found.findings] == [("transformer.h.0.attn.bias",)]


def test_masks_of_a_spec_are_compared(tmp_path: Path) -> None:
    spec = tmp_path / "m.arch"
    spec.write_text(
        "dim batch\nblock M()(x [batch, 2]) -> [batch, 2] {\n  attn.bias: unused buffer [1, 1, 3, 3]\n"
        '  w: param [2]\n  return x * .w\n}\nmodel "m" = M()\n'
    )
    w = {"w": ("F32", (2,), bytes(8))}
    assert archspec.verify(spec, write(tmp_path / "a.safetensors", {**w, "attn.bias": mask(3)})).is_exact
    found = archspec.verify(spec, write(tmp_path / "b.safetensors", {**w, "attn.bias": mask(4)}))
    assert [finding.kind for finding in found.findings] == ["shape"]
    found = archspec.verify(spec, write(tmp_path / "c.safetensors", w))
    assert [finding.kind for finding in found.findings] == ["missing"]


def neox(layer: str) -> dict[str, Tensor]:
    frequencies = numbers("F32", *(10000 ** (-i / 4) for i in range(4)))
    return {
        f"{layer}.attention.bias": mask(16, "BOOL"),
        f"{layer}.attention.masked_bias": ("F32", (), pack("<f", -1e9)),
        f"{layer}.attention.rotary_emb.inv_freq": ("F32", (4,), frequencies),
    }


def llama(layer: str) -> dict[str, Tensor]:
    frequencies = numbers("F32", *(10000 ** (-i / 8) for i in range(8)))
    return {f"{layer}.self_attn.rotary_emb.inv_freq": ("F32", (8,), frequencies)}


@pytest.mark.parametrize(
    ("config", "stack", "buffers"),
    [
        (
            {
                "model_type": "gpt_neox",
                "architectures": ["GPTNeoXForCausalLM"],
                "vocab_size": 50,
                "hidden_size": 32,
                "num_hidden_layers": 2,
                "num_attention_heads": 1,
                "intermediate_size": 64,
            },
            "gpt_neox.layers",
            neox,
        ),
        (
            {
                "model_type": "llama",
                "architectures": ["LlamaForCausalLM"],
                "vocab_size": 50,
                "hidden_size": 32,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "intermediate_size": 64,
            },
            "model.layers",
            llama,
        ),
    ],
)
def test_buffers_of_other_families(
    tmp_path: Path, config: dict[str, Any], stack: str, buffers: Callable[[str], dict[str, Tensor]]
) -> None:
    tensors = model(config)
    for i in range(2):
        tensors |= buffers(f"{stack}.{i}")
    found = archspec.verify(config, write(tmp_path / "model.safetensors", tensors))
    assert found.is_exact, found


@pytest.mark.parametrize("is_zip", [True, False])
def test_old_files_of_pytorch(tmp_path: Path, capsys: pytest.CaptureFixture[str], is_zip: bool) -> None:
    torch: Any = pytest.importorskip("torch")
    state = {name: torch.zeros(shape) for name, (_, shape, _) in model(GPT2, "transformer.").items()}
    for i in range(3):
        state[f"h.{i}.attn.bias"] = torch.ones(20, 20).tril().view(1, 1, 20, 20)
    path = tmp_path / "pytorch_model.bin"
    torch.save(state, path, _use_new_zipfile_serialization=is_zip)
    (tmp_path / "config.json").write_text(json.dumps(GPT2))
    assert main(["verify", str(tmp_path), str(path)]) == 0
    assert "not in the spec, ignored: `h.*.attn.bias` (0-2), causal mask" in capsys.readouterr().out
    state["h.1.attn.bias"][0, 0, 2, 3] = 0.5
    torch.save(state, path, _use_new_zipfile_serialization=is_zip)
    assert main(["verify", str(tmp_path), str(path)]) == 1
    assert "contains all of" in capsys.readouterr().out


def test_a_draft_of_an_old_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tensors = model(GPT2) | {f"transformer.h.{i}.attn.bias": mask(20) for i in range(3)}
    path = str(write(tmp_path / "model.safetensors", tensors))
    assert main(["scaffold", path]) == 0
    draft = tmp_path / "draft.arch"
    draft.write_text(capsys.readouterr().out)
    assert "buffer" in draft.read_text()
    assert main(["verify", str(draft), path]) == 0


def test_models_that_match_are_named_in_spite_of_masks(tmp_path: Path) -> None:
    small = {"vocab": 50, "hidden": 12, "heads": 2, "ffn": 24, "positions": 8}
    tensors: dict[str, Tensor] = {
        tensor.name: ("F32", tensor.shape, bytes(4 * tensor.size))
        for tensor in archspec.load("bert-base-uncased-pretraining", **small).tensors
        if not tensor.tied_to
    }
    tensors["bert.embeddings.position_ids"] = ("I64", (1, 8), numbers("I64", *range(8)))
    found = archspec.verify(archspec.load("bert-base-uncased", **small), write(tmp_path / "model.safetensors", tensors))
    assert not found.is_exact and found.fits == ("bert-base-uncased-pretraining",)
