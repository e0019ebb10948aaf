"""Families composed of others: parts, parts by their types, lists by layer, and definitions of other files."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

import archspec
from archspec import ArchError
from archspec.core import resources

SPEC = """
import std { Linear }
import llama { Llama, LlamaLayer }
import gemma2 { Gemma2 }

dim batch, seq

block Wide(..LlamaLayer)(..LlamaLayer) -> [batch, seq, hidden] {
  return layer: LlamaLayer(..)(..)
}

block Pair(hidden = 64, Text = Llama, height = 8, width = 8, flags = [true, true], scales = [1.0, 2.0])
          (input_ids int [batch, seq]) -> [batch, seq, hidden] {
  role flag for flag
  flag: param [height, width, hidden]
  return text: Text(hidden = hidden)(input_ids) + sum(axis = 0)(sum(axis = 0)(.flag))
}
"""
PAIR = """
architectures:
  PairModel: pair.Pair

parts:
  text_config: {%s, as: Text}

fields:
  text_config.hidden_size: {sets: hidden, default: 64}
  image_size: {sets: [height, width], default: 8, kind: size}
  scales: {sets: scales, default: null, kind: numbers, least: 0}
"""
TEXT = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50}
TEXT |= {"hidden_size": 16, "intermediate_size": 24, "head_dim": 4}


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = tmp_path / "specs"
    shutil.copytree(ROOT / "specs", copy)
    (copy / "pair.arch").write_text(SPEC)
    monkeypatch.setattr(resources, "specs_root", lambda: str(copy))
    return copy


def pair(specs: Path, part: str, more: str = "") -> None:
    (specs / "configs" / "pair.yaml").write_text(PAIR % part + more)


def read(config: dict[str, Any]) -> str:
    """The model line of a configuration, without its arguments of the outer definition."""
    return archspec.import_config({"model_type": "pair", **config})


def test_a_part_has_the_fields_of_its_family(specs: Path) -> None:
    pair(specs, "like: llama")
    text = TEXT | {"rope_theta": 5000.0, "hidden_act": "relu", "rope_scaling": {"type": "linear", "factor": 2.0}}
    model = archspec.load({"model_type": "pair", "text_config": {"model_type": "llama", **text}})
    alone = archspec.load({"model_type": "llama", **text})
    named = {tensor.name: tensor.shape for tensor in alone.tensors}
    assert {t.name.removeprefix("text."): t.shape for t in model.tensors if t.name != "flag"} == named
    spec = read({"text_config": text})
    assert "import std { linear_scaling, relu }\nimport pair { Pair }\n" in spec
    assert "Text = Llama(" in spec and "scaling = linear_scaling(factor = 2.0" in spec and "theta = 5000.0" in spec
    assert archspec.loads(spec).tensors == model.tensors


def test_the_scaling_of_a_part_stops_only_what_needs_its_computation(specs: Path) -> None:
    pair(specs, "like: llama")
    config = {"model_type": "pair", "text_config": TEXT | {"rope_scaling": {"type": "other", "factor": 2.0}}}
    assert archspec.load(config).count().table.notes[0] == (
        "not included: `text_config.rope_scaling` of the type `other`, which affects no tensor"
    )
    with pytest.raises(ArchError, match=r"the computation of `text_config\.rope_scaling` of the type `other`"):
        archspec.import_config(config)


def test_what_a_part_does_not_have_is_an_error(specs: Path) -> None:
    pair(specs, "like: llama")
    for field, message in (
        ({"hidden_sise": 3}, "unknown field `text_config.hidden_sise`"),
        ({"vocab_size": "3"}, "`text_config.vocab_size` expects an integer"),
        ({"is_decoder": True}, "unsupported value of `text_config.is_decoder`"),
    ):
        with pytest.raises(ArchError, match=message):
            read({"text_config": field})
    for field in ({"architectures": ["LlamaForCausalLM"]}, {"tie_word_embeddings": True}, {"model_type": "own"}):
        assert read({"text_config": field}) == read({})


def test_fields_can_be_left_out_of_what_is_inherited(specs: Path) -> None:
    (specs / "configs" / "other.yaml").write_text(
        "like: llama\nwithout: [hidden_act, 'rope_parameters.*', max_position_embeddings, pretraining_tp]\n"
        "fields:\n  hidden_act: {only: [relu]}\n"
    )
    other = {"model_type": "other", "architectures": ["LlamaModel"]}
    for field, message in (
        ({"hidden_act": "silu"}, "unsupported value"),
        ({"pretraining_tp": 1}, "unknown field"),
        ({"rope_scaling": {"factor": 2.0}}, "unknown field"),
    ):
        with pytest.raises(ArchError, match=message):
            archspec.load(other | field)
    assert archspec.load(other | {"mlp_bias": True}).hyperparameters["mlp_bias"] is True


def test_a_part_is_chosen_by_its_type(specs: Path) -> None:
    pair(specs, "interface: words, default: llama")
    for type, definition in (("llama", "llama.Llama"), ("gemma2", "gemma2.Gemma2"), ("qwen2", "qwen2.Qwen2")):
        path = specs / "configs" / f"{type}.yaml"
        path.write_text(path.read_text() + f"\ninterfaces: {{words: {definition}}}\n")
    assert "Text = Llama(" in read({"text_config": TEXT}) and "import llama { Llama }" in read({"text_config": TEXT})
    gemma = read({"text_config": TEXT | {"model_type": "gemma2", "query_pre_attn_scalar": 4}})
    assert "import gemma2 { Gemma2 }" in gemma and "Text = Gemma2(" in gemma and "divisor = 4" in gemma
    for spec, type in ((gemma, "gemma2"), (read({"text_config": TEXT | {"model_type": "qwen2"}}), "qwen2")):
        alone = archspec.load({"model_type": type, **TEXT})
        tensors = [tensor for tensor in archspec.loads(spec).tensors if tensor.name != "flag"]
        assert [t.shape for t in tensors] == [t.shape for t in alone.tensors]
    with pytest.raises(ArchError, match='unsupported type of `text_config` for model type `pair`: "bert"') as caught:
        read({"text_config": {"model_type": "bert"}})
    assert caught.value.diagnostics[0].help == "supported: gemma2, llama, qwen2"


def test_sizes_have_one_or_two_numbers(specs: Path) -> None:
    pair(specs, "like: llama", "  patch: {sets: width, kind: size}\n")
    assert "height = 9, width = 9" in read({"image_size": 9})
    assert "width = 4" in read({"image_size": [8, 4]}) and "height" not in read({"image_size": [8, 4]})
    assert "width = 8" not in read({"patch": [8, 8]})
    for field, message in (
        ({"image_size": [8, 0]}, "expects a positive integer, or two of them"),
        ({"image_size": [8, 8, 8]}, "expects a positive integer, or two of them"),
        ({"patch": [8, 4]}, "unsupported value of `patch`"),
    ):
        with pytest.raises(ArchError, match=message):
            read(field)


def test_lists_by_layer_are_values(specs: Path) -> None:
    kinds = "{full_attention: false, sliding_attention: true}"
    pair(specs, "like: llama", f"  layer_types: {{sets: flags, items: {kinds}, length: Text.layers}}\n")
    text = {"text_config": TEXT}
    assert "flags = [true, false]" in read({**text, "layer_types": ["sliding_attention", "full_attention"]})
    assert "flags" not in read({**text, "layer_types": ["sliding_attention"] * 2})
    for value, message in (
        (["full_attention"], "expected 2 items, found 1"),
        (["full_attention", "chunked_attention"], "unsupported value of `layer_types`"),
        (["full_attention", 3], "expects a list of strings"),
    ):
        with pytest.raises(ArchError, match=message):
            read({**text, "layer_types": value})


def test_numbers_can_be_zero_or_infinite(specs: Path) -> None:
    pair(specs, "like: llama")
    assert "scales = [0.0, inf]" in read({"scales": [0.0, json.loads("Infinity")]})
    assert "scales = [0.0, inf]" in read({"scales": [0, {"__float__": "Infinity"}]})
    with pytest.raises(ArchError, match="expects a list of non-negative numbers"):
        read({"scales": [-1.0]})


def test_rotary_positions_by_kind_of_layer(specs: Path) -> None:
    path = specs / "pair.arch"
    path.write_text(
        path.read_text()
        + """
import std { no_scaling }

block Kinds(theta = 10.0, local_theta = 20.0, scaling = no_scaling, local_scaling = no_scaling, layers = 2)
           (x [seq, 4]) -> [seq, 2] {
  a, b = scaling(4, theta)(arange(seq))
  c, d = local_scaling(4, local_theta)(arange(seq))
  scale: param [2]
  return (a + b + c + d) * .scale
}
"""
    )
    (specs / "configs" / "kinds.yaml").write_text("""
architectures: {KindsModel: pair.Kinds}
includes:
  - {file: _rotary, under: [rope_parameters, rope_parameters.full_attention], sets: {}}
  - file: _rotary
    under: [rope_parameters, rope_parameters.sliding_attention]
    sets: {theta: local_theta, scaling: local_scaling}
fields:
  max_position_embeddings: {sets: [scaling.positions, local_scaling.positions], default: 2048}
""")
    kinds = {
        "full_attention": {"rope_theta": 5.0, "rope_type": "linear", "factor": 2.0},
        "sliding_attention": {"rope_theta": 6.0, "rope_type": "dynamic", "factor": 3.0},
    }
    spec = archspec.import_config({"model_type": "kinds", "rope_parameters": kinds})
    assert "theta = 5.0" in spec and "local_theta = 6.0" in spec
    assert "scaling = linear_scaling(factor = 2.0)" in spec.replace("\n  ", " ")
    assert "local_scaling = dynamic_scaling(factor = 3.0, positions = 2048)" in spec.replace("\n  ", " ")
    with pytest.raises(ArchError, match=r"missing `rope_parameters.full_attention.factor`"):
        archspec.import_config({"model_type": "kinds", "rope_parameters": {"full_attention": {"rope_type": "linear"}}})
