"""`verify` and `count` of GGUF files: names of llama.cpp, and tensors that its conversion rearranges."""

from pathlib import Path
from typing import Any

import pytest
from checkpoints import gguf, header, safetensors

import archspec
from archspec import ArchError, Model
from archspec.testing import main

Shapes = dict[str, tuple[int, ...]]

SIZES: dict[str, Any] = {"vocab": 64, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48}
ATTENTION: Shapes = {"attn_q": (32, 32), "attn_k": (16, 32), "attn_v": (16, 32), "attn_output": (32, 32)}
GATED: Shapes = {"ffn_gate": (48, 32), "ffn_up": (48, 32), "ffn_down": (32, 48)}
NORMS: Shapes = {"attn_norm": (32,), "ffn_norm": (32,)}
OUTER: Shapes = {"token_embd.weight": (64, 32), "output_norm.weight": (32,), "output.weight": (64, 32)}


def layers(*parts: Shapes, end: str = ".weight") -> Shapes:
    """The tensors of both layers; a name has the given end, unless it has one already."""
    return {
        f"blk.{i}.{name}{'' if '.' in name else end}": shape
        for i in range(2)
        for part in parts
        for name, shape in part.items()
    }


def biased(shapes: Shapes) -> Shapes:
    """Linear layers, and their biases."""
    return {f"{name}.weight": shape for name, shape in shapes.items()} | {
        f"{name}.bias": shape[:1] for name, shape in shapes.items()
    }


LLAMA = OUTER | layers(ATTENTION, GATED, NORMS)
EXPERTS: Shapes = {"ffn_gate_inp": (3, 32), "ffn_gate_exps": (3, 48, 32), "ffn_up_exps": (3, 48, 32)}
MIXTRAL = OUTER | layers(ATTENTION, NORMS, EXPERTS, {"ffn_down_exps": (3, 32, 48)})
GPT2_LAYER = biased({"attn_qkv": (96, 32), "attn_output": (32, 32), "ffn_up": (48, 32), "ffn_down": (32, 48)})
GPT2_NORMS = biased(NORMS)
GPT2: Shapes = {"token_embd.weight": (64, 32), "position_embd.weight": (16, 32), **biased({"output_norm": (32,)})}
GPT2 |= layers(GPT2_LAYER, GPT2_NORMS)
GPT_OSS_LAYER = biased({**ATTENTION, "ffn_gate_inp": (3, 32)}) | {"attn_sinks.weight": (4,)}
GPT_OSS_LAYER |= {"attn_norm.weight": (32,), "post_attention_norm.weight": (32,)}
GPT_OSS_EXPERTS: Shapes = {f"ffn_{part}_exps.weight": (3, 48, 32) for part in ("gate", "up")}
GPT_OSS_EXPERTS |= {f"ffn_{part}_exps.bias": (3, 48) for part in ("gate", "up")}
GPT_OSS_EXPERTS |= {"ffn_down_exps.weight": (3, 32, 48), "ffn_down_exps.bias": (3, 32)}
GPT_OSS = OUTER | layers(GPT_OSS_LAYER, GPT_OSS_EXPERTS)
BERT_LAYER = biased({**{f"attn_{part}": (32, 32) for part in ("q", "k", "v", "output")}, "ffn_up": (48, 32)})
BERT_LAYER |= biased({"ffn_down": (32, 48), "attn_output_norm": (32,), "layer_output_norm": (32,)})
BERT: Shapes = {"token_embd.weight": (64, 32), "position_embd.weight": (16, 32), "token_types.weight": (2, 32)}
BERT |= biased({"token_embd_norm": (32,)}) | layers(BERT_LAYER)
DEEPSEEK_LAYER: Shapes = {"attn_q_a": (8, 32), "attn_q_a_norm": (8,), "attn_q_b": (4 * 24, 8)}
DEEPSEEK_LAYER |= {"attn_kv_a_mqa": (12 + 8, 32), "attn_kv_a_norm": (12,), "attn_output": (32, 4 * 10)}
HEADS: Shapes = {"attn_k_b": (4, 12, 16), "attn_v_b": (4, 10, 12)}
DEEPSEEK = OUTER | layers(DEEPSEEK_LAYER, HEADS, NORMS)
DEEPSEEK |= {f"blk.0.{name}.weight": shape for name, shape in GATED.items()}
SHARED: Shapes = {"ffn_gate_shexp": (6, 32), "ffn_up_shexp": (6, 32), "ffn_down_shexp": (32, 6)}
ROUTED: Shapes = {"ffn_gate_exps": (4, 6, 32), "ffn_up_exps": (4, 6, 32), "ffn_down_exps": (4, 32, 6)}
ROUTED |= {"ffn_gate_inp": (4, 32), **SHARED}
DEEPSEEK |= {f"blk.1.{name}.weight": shape for name, shape in ROUTED.items()} | {"blk.1.exp_probs_b.bias": (4,)}

NO_TYPES = {name: shape for name, shape in BERT.items() if name != "token_types.weight"}
MAMBA_LAYER: Shapes = {"ssm_a": (64, 4), "ssm_d": (64,), "ssm_in.weight": (128, 32), "ssm_x.weight": (11, 64)}
MAMBA_LAYER |= {"attn_norm.weight": (32,), "ssm_conv1d.weight": (64, 4), "ssm_conv1d.bias": (64,)}
MAMBA_LAYER |= {"ssm_dt.weight": (64, 3), "ssm_dt.bias": (64,), "ssm_out.weight": (32, 64)}
MAMBA = {"token_embd.weight": (64, 32), "output_norm.weight": (32,)} | layers(MAMBA_LAYER, end="")
ONE_BY_ONE: Shapes = {f"{part}.{i}": (48, 32) for part in ("ffn_gate", "ffn_up") for i in range(3)}
ONE_BY_ONE |= {f"ffn_down.{i}": (32, 48) for i in range(3)} | {"ffn_gate_inp": (3, 32)}
OLD_MIXTRAL = OUTER | layers(ATTENTION, NORMS)
OLD_MIXTRAL |= {f"blk.{i}.{name}.weight": shape for i in range(2) for name, shape in ONE_BY_ONE.items()}

GROUPS: dict[str, Any] = {**SIZES, "groups": 2, "size": 8}
MODELS: dict[str, tuple[str, dict[str, Any], Shapes]] = {
    "llama": ("llama-3.1-8b", GROUPS, LLAMA),
    "mixtral": ("mixtral-8x7b", {**GROUPS, "experts": 3}, MIXTRAL),
    "mixtral, older": ("mixtral-8x7b", {**GROUPS, "experts": 3}, OLD_MIXTRAL),
    "mamba": ("mamba-130m", {"vocab": 64, "hidden": 32, "layers": 2, "states": 4, "rank": 3}, MAMBA),
    "gpt2": ("gpt2", {**SIZES, "positions": 16}, GPT2),
    "gpt-oss": ("gpt-oss-20b", {**GROUPS, "experts": 3, "chosen": 2}, GPT_OSS),
    "bert": ("bert-base-uncased-nopooler", {**SIZES, "positions": 16}, BERT),
    "roberta": ("roberta-base", {**SIZES, "positions": 18, "types": 2, "pooler": False}, BERT),
    "camembert": ("camembert-base", {**SIZES, "positions": 16, "types": 2, "pooler": False}, BERT),
    "distilbert": ("distilbert-base-uncased", {**SIZES, "positions": 16}, NO_TYPES),
    "eurobert": ("eurobert-210m", GROUPS, {n: shape for n, shape in LLAMA.items() if n != "output.weight"}),
    "deepseek": (
        "deepseek-v3",
        {**SIZES, "q_rank": 8, "kv_rank": 12, "nope_size": 16, "rope_size": 8, "value_size": 10, "dense_layers": 1}
        | {"expert_ffn": 6, "experts": 4, "expert_groups": 2, "best_groups": 1, "best": 2},
        DEEPSEEK,
    ),
}


def model_of(case: str) -> Model:
    name, sizes, _ = MODELS[case]
    return archspec.load(name, **sizes)


def write(folder: Path, shapes: Shapes, **types: str) -> str:
    path = folder / "model.gguf"
    metadata = {"general.architecture": "llama", "tokenizer.ggml.tokens": ["a", "b"]}
    path.write_bytes(gguf(shapes, metadata, types))
    return str(path)


@pytest.mark.parametrize("case", MODELS)
def test_a_file_matches_its_model(tmp_path: Path, case: str) -> None:
    found = archspec.verify(model_of(case), write(tmp_path, MODELS[case][2]))
    assert found.is_exact, found
    others = {"deepseek": 4, "roberta": -2 * 32}.get(case, 0)  # a buffer, rows that are left out
    assert found.stored.elements == sum(tensor.params for tensor in model_of(case).tensors) + others


def test_heads_of_encoders(tmp_path: Path) -> None:
    config = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_labels": 5}
    config |= {"intermediate_size": 48, "max_position_embeddings": 18, "type_vocab_size": 2}
    shapes = BERT | biased({"cls": (32, 32), "cls.output": (5, 32)})
    roberta = config | {"architectures": ["RobertaForSequenceClassification"]}
    found = archspec.verify(archspec.load(roberta), write(tmp_path, shapes))
    assert found.is_exact, found
    assert "`position_embd` is `embeddings.position_embeddings` without its first 2 rows (1 name)" in str(found)
    bert = config | {"architectures": ["BertForSequenceClassification"], "max_position_embeddings": 16}
    for head in ("cls", "cls.output"):
        found = archspec.verify(archspec.load(bert), write(tmp_path, BERT | biased({head: (5, 32)})))
        assert [finding.fold.pattern for finding in found.findings] == [
            "bert.pooler.dense.weight",
            "bert.pooler.dense.bias",
        ]


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in ("bert", "deepseek") else pytest.mark.slow) for case in MODELS]
)
def test_any_other_shape_or_number_of_tensors_is_found(tmp_path: Path, case: str) -> None:
    model, good = model_of(case), MODELS[case][2]

    def is_exact(shapes: Shapes) -> bool:
        return archspec.verify(model, write(tmp_path, shapes)).is_exact

    changed = [name for name in good if not name.startswith("blk.1")]
    changed += [name for name in good if case == "deepseek" and name.startswith("blk.1.ffn")]
    for name in changed:
        less = {other: shape for other, shape in good.items() if other != name}
        assert not is_exact(less), name
        for axis, size in enumerate(good[name]):
            for other in (size - 1, size + 1):
                shape = (*good[name][:axis], other, *good[name][axis + 1 :])
                assert not is_exact(good | {name: shape}), (name, shape)


def test_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = archspec.verify(model_of("llama"), write(tmp_path, LLAMA | {"rope_freqs.weight": (4,)}))
    assert found.is_exact
    lines = str(found).splitlines()
    assert "the names of llama.cpp are read as those of model type `llama` (21 names)" in lines
    assert "ignored, because the conversion to GGUF adds it: `rope_freqs.weight`" in lines
    mixtral = str(archspec.verify(model_of("mixtral"), write(tmp_path, MIXTRAL))).splitlines()
    assert "`ffn_gate_exps` is `block_sparse_moe.experts.*.w1`, stacked (2 names)" in mixtral
    mamba = str(archspec.verify(model_of("mamba"), write(tmp_path, MAMBA))).splitlines()
    assert "`ssm_conv1d.weight` is `mixer.conv1d.weight`, squeezed (2 names)" in mamba
    transposed = str(archspec.verify(model_of("gpt2"), write(tmp_path, GPT2))).splitlines()
    assert "`attn_qkv.weight` is `attn.c_attn.weight`, transposed (2 names)" in transposed
    joined = str(archspec.verify(model_of("gpt-oss"), write(tmp_path, GPT_OSS))).splitlines()
    assert "`ffn_gate_exps.weight` and `ffn_up_exps.weight` are parts of `mlp.experts.gate_up_proj` (2 names)" in joined


def test_what_the_conversion_drops_is_missing(tmp_path: Path) -> None:
    whole = archspec.load("bert-base-uncased", **SIZES, positions=16)
    found = archspec.verify(whole, write(tmp_path, BERT))
    assert [finding.fold.pattern for finding in found.findings] == ["pooler.dense.weight", "pooler.dense.bias"]
    assert found.fits == ("bert-base-uncased-nopooler",)
    assert "the conversion to GGUF drops `pooler.dense.weight`, `pooler.dense.bias`" in found.notes


def test_a_prefix_of_the_spec(tmp_path: Path) -> None:
    heads = archspec.load("bert-base-uncased-mlm", **SIZES, positions=16)
    found = archspec.verify(heads, write(tmp_path, BERT))
    assert {finding.kind for finding in found.findings} == {"missing"}
    assert all(finding.fold.pattern.startswith("cls.predictions") for finding in found.findings)


def test_tied_output_layers(tmp_path: Path) -> None:
    untied = {name: shape for name, shape in LLAMA.items() if name != "output.weight"}
    path = write(tmp_path, untied)
    tied = archspec.verify(archspec.load("llama-3.2-1b", **GROUPS), path)
    assert tied.is_exact
    assert "not stored because it is tied to `model.embed_tokens.weight`: `lm_head.weight`" in tied.notes
    found = archspec.verify(model_of("llama"), path)
    assert [(finding.kind, finding.fold.pattern) for finding in found.findings] == [("missing", "lm_head.weight")]


def test_stacks_of_another_number_of_experts(tmp_path: Path) -> None:
    more = MIXTRAL | {"blk.0.ffn_up_exps.weight": (5, 48, 32)}
    (extra,) = archspec.verify(model_of("mixtral"), write(tmp_path, more)).findings
    assert (extra.kind, extra.fold.pattern, extra.checkpoint) == ("unexpected", "blk.0.ffn_up_exps.weight", (2, 48, 32))
    less = MIXTRAL | {"blk.0.ffn_up_exps.weight": (2, 48, 32)}
    (lost,) = archspec.verify(model_of("mixtral"), write(tmp_path, less)).findings
    assert (lost.kind, lost.fold.pattern) == ("missing", "model.layers.0.block_sparse_moe.experts.2.w3.weight")


def test_keys_and_values_in_one_tensor(tmp_path: Path) -> None:
    """As older conversions of DeepSeek leave them."""
    shapes = {name: shape for name, shape in DEEPSEEK.items() if "k_b" not in name and "v_b" not in name}
    shapes |= {f"blk.{i}.attn_kv_b.weight": (4 * 26, 12) for i in range(2)}
    assert archspec.verify(model_of("deepseek"), write(tmp_path, shapes)).is_exact


@pytest.mark.parametrize("heads", [{"attn_k_b": (4, 11, 16)}, {"attn_v_b": (3, 10, 12)}, {"attn_v_b": (40, 12)}])
def test_keys_and_values_that_do_not_fit_together(heads: Shapes, tmp_path: Path) -> None:
    shapes = DEEPSEEK | {f"blk.0.{name}.weight": shape for name, shape in heads.items()}
    found = archspec.verify(model_of("deepseek"), write(tmp_path, shapes))
    assert {(finding.kind, finding.fold.pattern) for finding in found.findings} >= {
        ("missing", "model.layers.0.self_attn.kv_b_proj.weight")
    }


@pytest.mark.parametrize(
    ("case", "name", "shape", "lost"),
    [
        ("gpt2", "blk.0.attn_qkv.weight", (96,), {"transformer.h.0.attn.c_attn.weight"}),
        ("gpt-oss", "blk.0.ffn_up_exps.weight", (48,), {"model.layers.0.mlp.experts.gate_up_proj"}),
        ("gpt-oss", "blk.0.ffn_up_exps.weight", (3, 48, 31), {"model.layers.0.mlp.experts.gate_up_proj"}),
        ("gpt-oss", "blk.0.ffn_up_exps.weight", (2, 48, 32), {"model.layers.0.mlp.experts.gate_up_proj"}),
        ("gpt-oss", "blk.0.ffn_up_exps.bias", (), {"model.layers.0.mlp.experts.gate_up_proj_bias"}),
        ("mamba", "blk.0.ssm_conv1d.weight", (256,), {"backbone.layers.0.mixer.conv1d.weight"}),
        (
            "mixtral",
            "blk.0.ffn_up_exps.weight",
            (),
            {f"model.layers.0.block_sparse_moe.experts.{i}.w3.weight" for i in range(3)},
        ),
    ],
)
def test_tensors_that_do_not_fit_what_they_are_rearranged_to(
    case: str, name: str, shape: tuple[int, ...], lost: set[str], tmp_path: Path
) -> None:
    found = archspec.verify(model_of(case), write(tmp_path, MODELS[case][2] | {name: shape}))
    missing = {one for f in found.findings if f.kind == "missing" for one in f.fold.names}
    extra = {one for f in found.findings if f.kind == "unexpected" for one in f.fold.names}
    assert missing == lost and name in extra
    assert {f.kind for f in found.findings} == {"missing", "unexpected"}


def test_parts_of_a_tensor_without_the_others(tmp_path: Path) -> None:
    parts = {name: shape for name, shape in GPT_OSS.items() if name != "blk.0.ffn_up_exps.weight"}
    found = archspec.verify(model_of("gpt-oss"), write(tmp_path, parts))
    assert [(finding.kind, finding.fold.pattern) for finding in found.findings] == [
        ("missing", "model.layers.0.mlp.experts.gate_up_proj"),
        ("unexpected", "blk.0.ffn_gate_exps.weight"),
    ]


def test_names_of_llama_cpp_are_those_of_gguf_files_alone(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors(header(LLAMA)))
    found = archspec.verify(model_of("llama"), path)
    assert {finding.kind for finding in found.findings} == {"missing", "unexpected"} and not found.spellings


def test_a_spec_of_ones_own_and_renames(tmp_path: Path) -> None:
    spec = tmp_path / "own.arch"
    sizes = ", ".join(f"{name} = {size}" for name, size in GROUPS.items())
    spec.write_text(f"""\
import llama {{ LlamaForCausalLM }}

dim batch, seq

block Mine(..LlamaForCausalLM)(ids int [batch, seq]) -> [batch, seq, vocab] {{
  return ids |> ..: LlamaForCausalLM(..)
}}

model "own" = Mine({sizes})
""")
    path = write(tmp_path, {name.replace("blk.", "block."): shape for name, shape in LLAMA.items()})
    found = archspec.verify(str(spec), path, rename={"block.*": "blk.*"})
    assert found.is_exact
    assert [spelling.kind for spelling in found.spellings] == ["rename", "gguf"]


def test_logical_and_stored_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shapes: Shapes = {"token_embd.weight": (10, 256), "rope_freqs.weight": (4,)}
    path = write(tmp_path, shapes, **{"token_embd.weight": "Q4_K"})
    assert main(["count", path]) == 0
    printed = capsys.readouterr().out
    assert "2,560 parameters" in printed
    assert "not counted, as integers and rotary factors are treated as buffers: float32 4 elements" in printed
    stored = "stored in 1,456 bytes (1.46 kB), 4.54 bits per element: float32 4 elements, Q4_K 2,560 elements"
    assert stored in printed
    found = archspec.verify("bert-base-uncased", path)
    assert "1,456 bytes (1.46 kB), 4.54 bits per element, Q4_K 2,560, float32 4" in str(found)


def test_scaffolds_have_the_names_of_the_file(tmp_path: Path) -> None:
    shapes = OUTER | layers(ATTENTION, NORMS) | {"rope_freqs.weight": (4,)}
    path = write(tmp_path, shapes, **{"output.weight": "F16"})
    spec = tmp_path / "draft.arch"
    spec.write_text(archspec.scaffold(path))
    assert "rope_freqs.weight: unused buffer [4]  # unknown: a buffer according to its name" in spec.read_text()
    assert archspec.verify(str(spec), path).is_exact


def test_comparisons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "bert-base-uncased-nopooler", write(tmp_path, BERT)]) == 0
    assert "108,891,648" in capsys.readouterr().out


@pytest.mark.slow  # which needs PyTorch
def test_weights_are_not_loaded(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    with pytest.raises(ArchError, match="is a GGUF file, whose conversion changes weights"):
        archspec.load_weights(torch.nn.Linear(2, 2), write(tmp_path, LLAMA))
