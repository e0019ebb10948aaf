"""Families composed of others: parts, parts by their types, lists by layer, and definitions of other files."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

import archspec
from archspec import ArchError
from archspec.core import resources
from archspec.formats.configs.family import read_family
from archspec.formats.configs.names import GGUFNames, Names, iter_families

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


def test_a_part_sets_hyperparameters_of_the_outer_definition(specs: Path) -> None:
    pair(specs, "like: llama, sets: {layers: height, tied: tied}")
    path = specs / "configs" / "pair.yaml"
    size = "  image_size: {sets: [height, width], default: 8, kind: size}\n"
    path.write_text(path.read_text().replace(size, ""))
    (specs / "pair.arch").write_text(SPEC.replace("height = 8,", "height = 8, tied = none,"))
    spec = read({"text_config": TEXT})
    assert "height = 2, tied = false" in spec and "layers" not in spec
    assert "height = 32, tied = true" in read({"text_config": {"tie_word_embeddings": True}})


def test_the_fields_of_a_flat_part_are_outside_of_it_if_it_is_absent(specs: Path) -> None:
    pair(specs, "like: llama, flat: true")
    outside = {name: value for name, value in TEXT.items() if name != "hidden_size"} | {"rope_scaling": None}
    assert "layers = 2" in read(outside) and "ffn = 24" in read(outside)
    assert "layers = 3" in read(outside | {"text_config": {"num_hidden_layers": 3}})
    assert "ffn = 11008" in read(outside | {"text_config": {"num_hidden_layers": 3}})
    with pytest.raises(ArchError, match="unknown field `hidden_sise`"):
        read({"hidden_sise": 3})


def test_a_part_that_is_absent_has_defaults_of_its_own(specs: Path) -> None:
    pair(specs, "like: llama", "\nabsent: {text_config: {intermediate_size: 30}}\n")
    assert "ffn = 30" in read({}) and "ffn = 11008" in read({"text_config": {}})
    assert "ffn = 24" in read({"text_config": TEXT})


def test_names_of_parts_apply_below_their_addresses(specs: Path) -> None:
    pair(specs, "interface: words, default: llama, at: text")
    for type in ("llama", "mixtral"):
        path = specs / "configs" / f"{type}.yaml"
        path.write_text(path.read_text().replace("\ninterfaces: {", f"\ninterfaces: {{words: {type}.{type.title()}, "))
    path = specs / "configs" / "pair.yaml"
    path.write_text(path.read_text() + "names: [[text, model.text]]\ngguf: [[flag, null], [text, model]]\n")
    llama, mixtral = iter_families("Pair", str(specs))
    name = "text.layers.1.block_sparse_moe.gate.weight"
    assert Names(llama.names).live(name) == "model.text.layers.1.block_sparse_moe.gate.weight"
    assert Names(mixtral.names).live(name) == "model.text.layers.1.mlp.gate.weight"
    assert Names(mixtral.names).live("block_sparse_moe.gate.weight") == "block_sparse_moe.gate.weight"
    names = GGUFNames(mixtral)
    assert names.locate(name, ()).names == ("blk.1.ffn_gate_inp.weight",)
    assert names.locate("flag", ()).names == ()


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


def test_a_part_may_state_types_of_its_own(specs: Path) -> None:
    pair(specs, "like: llama, types: [gemma]")
    assert read({"text_config": {**TEXT, "model_type": "gemma"}}) == read({"text_config": TEXT})


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


def test_a_part_of_a_part_is_chosen_by_its_type(specs: Path) -> None:
    (specs / "configs" / "pair.yaml").write_text(
        "architectures: {PairModel: pair.Pair}\n"
        "parts: {outer: {}, outer.text_config: {interface: words, default: llama, as: Text}}\n"
        "fields: {outer.text_config.hidden_size: {sets: hidden, default: 64}}\n"
    )
    for type, name in (("llama", "Llama"), ("qwen2", "Qwen2")):
        path = specs / "configs" / f"{type}.yaml"
        path.write_text(path.read_text() + f"\ninterfaces: {{words: {type}.{name}}}\n")
    for type, name in (("llama", "Llama"), ("qwen2", "Qwen2")):
        assert f"Text = {name}(" in read({"outer": {"text_config": TEXT | {"model_type": type}}})
    with pytest.raises(ArchError, match=r'unsupported type of `outer\.text_config` for model type `pair`: "bert"'):
        read({"outer": {"text_config": {"model_type": "bert"}}})
    with pytest.raises(ArchError, match="`outer` expects an object"):
        read({"outer": 3})


def test_fields_that_the_class_of_a_part_does_not_read_are_left_out(specs: Path) -> None:
    pair(specs, "like: llama")
    path = specs / "configs" / "_classes.json"
    facts = json.loads(path.read_text())
    facts["types"]["pair"] = {"classes": ["PairModel"], "fields": ["own_field"]}
    path.write_text(json.dumps(facts))
    written = {"transformers_version": facts["transformers"]}
    assert "Left out: text_config.house_style, not read by PairModel" in read(
        {**written, "text_config": {"house_style": 3}}
    )
    for field in ("own_field", "rowwise"):  # of the class, and of the class of the part
        with pytest.raises(ArchError, match=rf"unknown field `text_config\.{field}`"):
            read({**written, "text_config": {field: 3}})
    with pytest.raises(ArchError, match="unknown field"):
        read({"text_config": {"house_style": 3}})


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


def test_values_of_single_layers_are_those_of_kinds(specs: Path) -> None:
    field = "  per_layer_config.local.image_size: {sets: width, default: 5}\n"
    kinds = "  layer_types: {sets: flags, items: {local: true, global: false}, length: Text.layers}\n"
    path = specs / "configs" / "pair.yaml"
    pair(specs, "like: llama")
    text = path.read_text().replace("{sets: [height, width], default: 8, kind: size}", "{sets: height, default: 9}")
    path.write_text(text + field + kinds)
    layers = {"text_config": {"num_hidden_layers": 3}, "layer_types": ["local", "global", "local"]}

    def widths(**fields: Any) -> str:
        return read(layers | fields)

    assert "width = 5" in widths()
    assert "width = 6" in widths(per_layer_config={"0": {"image_size": 6}, "02": {"image_size": 6}})
    assert "height = 9, width = 9" in widths(per_layer_config={})
    assert "height = 7, width = 7" in widths(per_layer_config=None, image_size=7)
    for overrides in (
        {"0": {"image_size": 6}},
        {"0": {"image_size": 6}, "2": {"image_size": 7}},
        {"1": {"image_size": 6}},
        {"0": {"scales": 6}, "2": {"scales": 6}},
        {"3": {"image_size": 6}},
        {"a": {"image_size": 6}},
        [],
    ):
        with pytest.raises(ArchError, match="unsupported value of `per_layer_config`"):
            widths(per_layer_config=overrides)


def test_an_object_by_integers_is_a_list_of_pairs(specs: Path) -> None:
    pair(specs, "like: llama", "  pairs: {sets: pairs, default: null, kind: pairs}\n")
    (specs / "pair.arch").write_text(SPEC.replace("height = 8,", "height = 8, pairs = [[1, 2]],"))
    assert "pairs = [[4, 3], [16, 5]]" in read({"pairs": {"4": 3, "16": 5}})
    assert "pairs" not in read({"pairs": None})
    wrong: list[Any] = [{}, [4], {"a": 3}, {"4": 0}, {"4": "3"}]
    for value in wrong:
        with pytest.raises(ArchError, match="`pairs` expects an object of positive integers by integers"):
            read({"pairs": value})


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


DUAL = """
import std { Linear }
import bert { Bert }
import clip { normalized }
import vit { ViT }

dim texts, images, seq

block Dual(text_hidden = 768, vision_hidden = 768, projection = 512, image = 224, channels = 3, Text = Bert,
           Vision = ViT)
          (input_ids int [texts, seq], token_type_ids int [texts, seq],
           pixel_values [images, channels, image, image], attention_mask int [texts, seq] = none)
          -> (logits_per_image [images, texts], logits_per_text [texts, images]) {
  logit_scale: param []
  _, vision = vision_model: Vision(hidden = vision_hidden, image = image, channels = channels)(pixel_values)
  _, text = text_model: Text(hidden = text_hidden)(input_ids, token_type_ids, attention_mask)
  t = text |> text_projection: Linear(text_hidden, projection, bias = false) |> normalized
  v = vision |> visual_projection: Linear(vision_hidden, projection, bias = false) |> normalized
  logits = matmul(t, transpose(v)) * exp(.logit_scale)
  return transpose(logits), logits
}
"""
DUAL_FIELDS = """
architectures: {VisionTextDualEncoderModel: dual.Dual}
parts:
  text_config: {interface: text, default: bert, as: Text}
  vision_config: {interface: image, default: vit, as: Vision, at: vision_model}
fields:
  projection_dim: {sets: projection, default: 512}
  text_config.hidden_size: {sets: text_hidden, default: 768}
  vision_config.hidden_size: {sets: vision_hidden, default: 768}
  vision_config.image_size: {sets: image, default: 224, kind: size}
  vision_config.num_channels: {sets: channels, default: 3}
ignored: [logit_scale_init_value]
"""
DUAL_PARTS = {
    "bert": {"vocab_size": 60, "hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 20},
    "roberta": {"vocab_size": 60, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 20},
    "vit": {"hidden_size": 12, "num_attention_heads": 2, "intermediate_size": 20, "image_size": 16, "patch_size": 8},
    "deit": {"hidden_size": 18, "num_attention_heads": 3, "intermediate_size": 20, "image_size": 32, "patch_size": 8},
    "clip_vision_model": {"hidden_size": 12, "intermediate_size": 20, "image_size": 16, "patch_size": 4},
}
INTERFACES = {"bert": "text: bert.Bert", "roberta": "text: bert.Bert", "vit": "image: vit.ViT"}
INTERFACES |= {"deit": "image: deit.DeiT", "clip_vision_model": "image: clip.ClipVision"}


@pytest.mark.slow
@pytest.mark.parametrize("text", ["bert", "roberta"])
@pytest.mark.parametrize("vision", ["vit", "deit", "clip_vision_model"])
def test_a_model_of_two_chosen_parts_is_that_of_transformers(text: str, vision: str, specs: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    spec = specs / "dual.arch"
    spec.write_text(DUAL)
    (specs / "configs" / "vision-text-dual-encoder.yaml").write_text(DUAL_FIELDS)
    for type, interface in INTERFACES.items():
        path = specs / "configs" / f"{type}.yaml"
        text_of_file = re.sub(r"\ninterfaces: .*\n", "\n", path.read_text())
        path.write_text(text_of_file + f"\ninterfaces: {{{interface}}}\n")
    torch.manual_seed(0)
    parts = [
        transformers.AutoConfig.for_model(type, num_hidden_layers=2, **DUAL_PARTS[type]) for type in (vision, text)
    ]
    config = transformers.VisionTextDualEncoderConfig.from_vision_text_configs(*parts, projection_dim=10)
    config._attn_implementation = "eager"
    live = transformers.VisionTextDualEncoderModel(config).double().eval()
    config.save_pretrained(specs)
    model = archspec.load(specs / "config.json")
    family = read_family(str(specs), "vision-text-dual-encoder", {}, {"vision_config": vision, "text_config": text})
    live_name = Names(family.names).live
    names = {n: tuple(p.shape) for n, p in live.named_parameters()}
    assert {live_name(t.name): t.shape for t in model.tensors} == names
    module = archspec.to_torch(model).double().eval()
    module.load_state_dict({name: live.state_dict()[live_name(name)] for name in module.state_dict()})
    size = DUAL_PARTS[vision]["image_size"]
    inputs = {"input_ids": torch.randint(2, 60, (3, 7)), "pixel_values": torch.rand(2, 3, size, size).double()}
    inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
    with torch.no_grad():
        expected, outputs = live(**inputs), module(**inputs)
    assert (outputs.logits_per_image - expected.logits_per_image).abs().max() <= 1e-6
