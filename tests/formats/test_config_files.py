"""Specs from configurations: published ones give the bundled models, and nothing in one is passed over."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from paths import DATA

import archspec
from archspec import ArchError, Diagnostic
from archspec.testing import main

PUBLISHED = sorted((DATA / "configs").glob("*.json"))
EVERYDAY_TYPES = ("albert", "bart", "bert", "clip", "deberta-v2", "gpt2", "llama", "modernbert", "t5", "wav2vec2")


def published() -> list[object]:
    """Published configurations; every day, those of a few types."""
    everyday = [json.loads(path.read_text())["model_type"] in EVERYDAY_TYPES for path in PUBLISHED]
    found = zip(PUBLISHED, everyday, strict=True)
    return [path if is_everyday else pytest.param(path, marks=pytest.mark.slow) for path, is_everyday in found]


def write(folder: Path, config: Any, name: str = "small.json") -> str:
    path = folder / name
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return str(path)


def diagnostics(path: str) -> Sequence[Diagnostic]:
    """What is wrong with a configuration."""
    with pytest.raises(ArchError) as caught:
        archspec.import_config(path)
    return caught.value.diagnostics


def marked(found: Diagnostic) -> str:
    """The characters that a diagnostic points at."""
    return found.span.source.text[found.span.start : found.span.end] if found.span else ""


def codes(path: str) -> list[tuple[str, str]]:
    """What is wrong with a configuration: the codes, and the characters that are pointed at."""
    return [(found.code, marked(found)) for found in diagnostics(path)]


# What it gives --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", published(), ids=lambda p: p.stem)
def test_a_published_configuration_gives_the_bundled_model(path: Path) -> None:
    ours, bundled = archspec.load(str(path)), archspec.load(path.stem)
    assert ours.name == path.stem
    assert ours.tensors == bundled.tensors
    assert ours.buffers == bundled.buffers
    assert {n: v for n, v in ours.hyperparameters.items() if v != bundled.hyperparameters[n]} == {}


def test_the_text_is_a_spec_of_the_same_model(tmp_path: Path) -> None:
    config = write(tmp_path, {"model_type": "albert", "hidden_act": "relu", "hidden_size": 64, "embedding_size": 16})
    text = archspec.import_config(config)
    (tmp_path / "small.arch").write_text(text)
    assert text.splitlines()[2:] == [
        "import std { relu }",
        "import albert { Albert }",
        "",
        'model "small" = Albert(factor = 16, hidden = 64, heads = 64, ffn = 16384, activation = relu)',
    ]
    assert archspec.load(str(tmp_path / "small.arch")).tensors == archspec.load(config).tensors


def test_long_calls_take_several_lines(tmp_path: Path) -> None:
    fields = {"vocab_size": 1234, "hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6}
    fields |= {"intermediate_size": 123, "max_position_embeddings": 77, "type_vocab_size": 3, "layer_norm_eps": 1e-7}
    fields |= {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.2}
    text = archspec.import_config(write(tmp_path, {"model_type": "bert", **fields}))
    assert text.partition("\n\n")[2].splitlines()[2:] == [
        'model "small" = Bert(',
        "  vocab = 1234, hidden = 96, layers = 3, heads = 6, ffn = 123, positions = 77, types = 3,",
        "  eps = 1e-07, hidden_dropout = 0.3, attention_dropout = 0.2",
        ")",
    ]


def test_lines_have_at_most_100_characters(tmp_path: Path) -> None:
    def widths(digits: int, **more: object) -> list[int]:
        fields = {"model_type": "bert", "hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6}
        fields |= {"intermediate_size": 123, "max_position_embeddings": 77, "vocab_size": 10**digits, **more}
        return [len(line) for line in archspec.import_config(write(tmp_path, fields)).splitlines()[4:]]

    assert [widths(digits) for digits in (6, 7)] == [[100], [21, 81, 1]]
    more = {"type_vocab_size": 3, "layer_norm_eps": 1e-7}
    expected = [[21, 100, 1], [21, 89, 13, 1], [21, 100, 13, 1], [21, 90, 24, 1]]
    assert [widths(digits, **more) for digits in (2, 3, 14, 15)] == expected


def test_parts_are_definitions_with_hyperparameters(tmp_path: Path) -> None:
    parts = {"text_config": {"num_hidden_layers": 2, "eos_token_id": 2}, "vision_config": {"hidden_act": "relu"}}
    path = write(tmp_path, {"model_type": "clip", **parts})
    assert archspec.import_config(path).splitlines()[2:] == [
        "import std { relu }",
        "import clip { Clip, ClipText, ClipVision }",
        "",
        'model "small" = Clip(Text = ClipText(layers = 2), Vision = ClipVision(activation = relu))',
    ]
    assert archspec.load(path).params.total == 151_277_313 - 10 * 3_152_384
    other = {"model_type": "clip", "text_config": {"eos_token_id": 7}}
    assert "Text = ClipText(end = 7))" in archspec.import_config(write(tmp_path, other))


def test_a_configuration_goes_wherever_a_spec_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, {"model_type": "bert", "num_hidden_layers": 2, "vocab_size": 99}, "config.json")
    for command in (
        ["count", path, "--set", "layers=3"],
        ["cost", path, "--batch", "2", "--seq", "8"],
        ["graph", path],
        ["build", path],
        ["formula", path, "--open", "layers,vocab"],
        ["check", path],
    ):
        assert main(command) == 0, capsys.readouterr().err
        said = capsys.readouterr()
        assert said.err == ""
        assert tmp_path.name in said.out or command[0] in ("check", "formula")  # the folder gives the model its name


def test_output_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write(tmp_path, {"model_type": "bert"}), tmp_path / "out.arch"
    assert main(["import", path, "-o", str(out)]) == 0
    assert out.read_text() == archspec.import_config(path)
    out.write_text("mine")
    assert main(["import", path, "-o", str(out)]) == 2
    assert main(["import", write(tmp_path, "{", "bad.json"), "-o", str(out), "--force"]) == 1
    assert out.read_text() == "mine"
    with out.open() as before:
        assert main(["import", path, "-o", str(out), "--force"]) == 0
        assert before.read() == "mine"  # a file is replaced as a whole, when it is complete
    assert out.read_text().startswith("# BertModel")
    assert main(["import", str(out)]) == 2


@pytest.mark.parametrize(
    ("type", "field", "projections"),
    [
        ("opt", "word_embed_proj_dim", ["decoder.project_in.weight", "decoder.project_out.weight"]),
        ("electra", "embedding_size", ["embeddings_project.weight", "embeddings_project.bias"]),
    ],
)
def test_a_width_of_embeddings_that_is_that_of_the_layers_needs_no_projection(
    type: str, field: str, projections: list[str], tmp_path: Path
) -> None:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 64}
    sizes |= {"ffn_dim": 48} if type == "opt" else {"intermediate_size": 48}
    for width, expected in ((16, projections), (32, [])):
        model = archspec.load(write(tmp_path, {"model_type": type, **sizes, field: width}))
        assert [tensor.name for tensor in model.tensors if "project" in tensor.name] == expected


def test_an_activation_is_a_function_of_the_library(tmp_path: Path) -> None:
    config = {"model_type": "llama", "hidden_act": "relu2", "rope_scaling": {"type": "linear", "factor": 4}}
    text = archspec.import_config(write(tmp_path, config))
    assert "import std { linear_scaling, relu2 }" in text
    assert "scaling = linear_scaling(factor = 4.0)" in text and "activation = relu2" in text


def test_parts_and_code_are_read_as_transformers_does() -> None:
    """`text_config_dict` replaces `text_config`; classes of `auto_map` that the library has, too, are its own."""
    parts = {"text_config": {"num_hidden_layers": 2}, "text_config_dict": {"num_hidden_layers": 3}}
    assert archspec.load({"model_type": "clip", **parts}).hyperparameters["Text"]
    three = archspec.load({"model_type": "clip", "text_config": {"num_hidden_layers": 3}})
    assert archspec.load({"model_type": "clip", **parts}).tensors == three.tensors
    own = {
        "AutoConfig": "configuration_falcon.FalconConfig",
        "AutoModelForCausalLM": "modeling_falcon.FalconForCausalLM",
    }
    assert (
        archspec.load({"model_type": "falcon", "auto_map": own}).tensors
        == archspec.load({"model_type": "falcon"}).tensors
    )
    mixed = own | {"AutoModel": "modeling_falcon.FalconWithMore"}
    with pytest.raises(ArchError, match="unsupported value of `auto_map`"):
        archspec.load({"model_type": "falcon", "auto_map": mixed})


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("vocab_size", {1: "vocab = 1"}),
        ("layer_norm_eps", {10**18 - 1: "eps = 1e+18", 0: "eps = 0.0"}),
        ("hidden_dropout_prob", {0: "hidden_dropout = 0.0", 0.99: "hidden_dropout = 0.99"}),
    ],
)
def test_the_largest_and_smallest_values(field: str, values: dict[float, str]) -> None:
    for value, text in values.items():
        assert f"({text})" in archspec.import_config({"model_type": "bert", field: value})


@pytest.mark.parametrize("field", [{"parallel_attn": False}, {"num_ln_in_parallel_attn": 3}])
def test_grouped_heads_of_falcon_have_parallel_parts_with_one_or_two_norms(field: dict[str, Any]) -> None:
    with pytest.raises(ArchError, match="parallel"):
        archspec.load({"model_type": "falcon", "new_decoder_architecture": True, "num_kv_heads": 1, **field})


def test_a_llama3_scale_needs_all_its_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, {"model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0}})
    with pytest.raises(ArchError, match=r"missing `rope_parameters\.low_freq_factor`"):
        archspec.load(path)


def test_a_list_of_kinds_of_layers_is_one_number(tmp_path: Path) -> None:
    one, other = "full_attention", "sliding_attention"
    for layers, period in (
        ([one] * 4, 1),
        ([one, other, one, other], 2),
        ([one, other, other, one], 3),
        ([one, other, other, other], 4),
        ([one, other], 3),  # as by default
    ):
        config = {"model_type": "modernbert", "num_hidden_layers": len(layers), "layer_types": layers}
        assert archspec.load(write(tmp_path, config)).hyperparameters["period"] == period
    both = {"layer_types": [one, other], "global_attn_every_n_layers": 2, "num_hidden_layers": 2}
    assert archspec.load(write(tmp_path, {"model_type": "modernbert", **both})).hyperparameters["period"] == 2
    for config in ({}, {"layer_types": None}):
        older = {"model_type": "modernbert", "global_attn_every_n_layers": 4, **config}
        assert archspec.load(write(tmp_path, older)).hyperparameters["period"] == 4
    conflict = {"layer_types": [one, other], "global_attn_every_n_layers": 3, "num_hidden_layers": 2}
    assert archspec.load(write(tmp_path, {"model_type": "modernbert", **conflict})).hyperparameters["period"] == 3
    conflict = {"layer_types": [one, other, one], "global_attn_every_n_layers": 3, "num_hidden_layers": 3}
    assert [code for code, _ in codes(write(tmp_path, {"model_type": "modernbert", **conflict}))] == ["unsupported"]
    for layers, period in (([other, other, one, other], 3), ([one] * 4, 1)):
        last = {"model_type": "gemma3_text", "num_hidden_layers": 4, "layer_types": layers}
        assert archspec.load(write(tmp_path, last)).hyperparameters["period"] == period
    mixed = {"layer_types": [one, *[other] * 9_000, "linear"], "num_hidden_layers": 9_002}
    assert [code for code, _ in codes(write(tmp_path, {"model_type": "modernbert", **mixed}))] == ["unsupported"]


def test_a_list_of_equal_integers_is_one(tmp_path: Path) -> None:
    for field, windows in ((6, [6]), ([6, 6], [6]), ([6, 4], [6, 4]), (None, [512])):
        config = {"model_type": "longformer", "num_hidden_layers": 2, "attention_window": field}
        assert archspec.load(write(tmp_path, config)).hyperparameters["windows"] == windows


def test_a_value_can_mean_that_nothing_is_set(tmp_path: Path) -> None:
    for field, buckets in ((-1, None), (None, None), (8, 8)):
        config = {"model_type": "deberta-v2", "position_buckets": field, "relative_attention": True}
        model = archspec.load(write(tmp_path, {**config, "pos_att_type": ["c2p"]}))
        assert model.hyperparameters["buckets"] == buckets


@pytest.mark.parametrize("as_mapping", [False, True])
def test_long_lists_of_quantized_layers_are_read(tmp_path: Path, as_mapping: bool) -> None:
    names = [f"model.layers.{i // 1000}.mlp.experts.{i % 1000}.gate_proj" for i in range(75_000 // (1 + as_mapping))]
    lists: dict[str, Any] = {"modules_to_not_convert": names}
    if as_mapping:
        lists = {"extra_config": {name: {"bits": 16, "data_type": "fp"} for name in names}}
    config = {"model_type": "llama", "num_hidden_layers": 1, "quantization_config": {"quant_method": "awq", **lists}}
    path = write(tmp_path, config)
    assert os.path.getsize(path) > 2_800_000
    plain = archspec.load({"model_type": "llama", "num_hidden_layers": 1})
    assert archspec.load(path).params.total == plain.params.total


def test_very_many_mistakes_end_somewhere(tmp_path: Path) -> None:
    found = codes(write(tmp_path, {"model_type": "bert", **{f"field_{i}": i for i in range(300)}}))
    assert len(found) == 101
    assert found[-1][0] == "budget"


def test_every_mistake_is_found_in_one_run(tmp_path: Path) -> None:
    config = {
        "model_type": "bert",
        "is_encoder_decoder": True,
        "hidden_size": "big",
        "mystery": 1,
        "num_attention_heads": 0,
    }
    assert [code for code, _ in codes(write(tmp_path, config))] == [
        "unsupported",
        "wrong-kind",
        "unknown-name",
        "wrong-kind",
    ]


# The data -------------------------------------------------------------------------------------------------------------


def test_an_object_without_a_type_of_rotary_positions_has_no_scaling(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "gpt_oss", "num_hidden_layers": 1}')
    assert archspec.load(str(path)).hyperparameters["factor"] == 32.0
    path.write_text('{"model_type": "gpt_oss", "num_hidden_layers": 1, "rope_parameters": {"rope_theta": 1000.0}}')
    assert archspec.load(str(path)).hyperparameters["factor"] == 1.0
