"""Specs from configurations: published ones give the bundled models, and nothing in one is passed over."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from paths import DATA
from small import load_table

import archspec
from archspec import ArchError, Diagnostic
from archspec.testing import main

PUBLISHED = sorted((DATA / "configs").glob("*.json"))


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


@pytest.mark.sampled(12)
@pytest.mark.parametrize("path", PUBLISHED, ids=lambda p: p.stem)
def test_a_published_configuration_gives_the_bundled_model(path: Path) -> None:
    ours, bundled = archspec.load(str(path)), archspec.load(path.stem)
    assert ours.name == path.stem
    assert ours.tensors == bundled.tensors
    assert ours.buffers == bundled.buffers
    assert {n: v for n, v in ours.hyperparameters.items() if v != bundled.hyperparameters[n]} == {}


def test_the_first_architecture_is_meant_where_none_is_named(tmp_path: Path) -> None:
    for config in ({}, {"architectures": None}, {"architectures": []}):
        text = archspec.import_config(write(tmp_path, {"model_type": "bert", **config}))
        assert text == '# BertModel, from small.json.\n\nimport bert { Bert }\n\nmodel "small" = Bert()\n'


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


def test_a_folder_stands_for_the_configuration_in_it(tmp_path: Path) -> None:
    path = write(tmp_path, {"model_type": "bert", "num_hidden_layers": 1}, "config.json")
    for folder in (str(tmp_path), f"{tmp_path}{os.sep}", tmp_path):
        assert archspec.load(folder).name == tmp_path.name
        assert archspec.import_config(folder) == archspec.import_config(path)
        assert load_table(folder)[0] == load_table(path)[0]


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


T5_XXL = {"d_ff": 10240, "d_model": 4096, "num_heads": 64, "num_layers": 24, "num_decoder_layers": 24}
GATED = {"feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu_new", "is_gated_act": True}
VARIANTS: list[tuple[str, dict[str, Any], int]] = [
    ("bert.BertModel", {"hidden_act": "relu", "embedding_size": 768, "directionality": "bidi"}, 109_482_240),
    ("distilbert.DistilBertModel", {"sinusoidal_pos_embds": True, "vocab_size": 31102}, 66_808_320),
    ("albert.AlbertModel", {"layers_to_keep": [], "hidden_act": "gelu"}, 222_595_584),
    ("electra.ElectraForMaskedLM", {"embedding_size": 1024, "num_hidden_layers": 24}, 51_295_290),
    ("gpt2.GPT2Model", {"scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True}, 124_439_808),
    ("bart.BartModel", {"activation_function": "relu", "scale_embedding": True, "save_step": 58}, 406_291_456),
    ("llama.LlamaModel", {"rope_scaling": {"type": "linear", "factor": 4}, "max_sequence_length": 4096}, 6_607_343_616),
    ("llama.LlamaModel", {"rope_interleaved": False, "transformers.js_config": {"dtype": "q4"}}, 6_607_343_616),
    ("t5.T5EncoderModel", {**T5_XXL, **GATED, "tie_word_embeddings": False}, 4_762_310_656),
    ("t5.T5WithLMHeadModel", {"feed_forward_proj": "gated-silu"}, 73_089_536),
    ("siglip.SiglipForImageClassification", {"vision_config": {"hidden_size": 384}}, 38_795_138),
    ("modernbert.ModernBertForMaskedLM", {"classifier_bias": True, "hidden_activation": "silu"}, 149_656_000),
]
"""An architecture, fields as published configurations of old and new have them, and the total of the model that
`transformers` makes of these.
"""


@pytest.mark.parametrize(("model", "fields", "total"), VARIANTS)
def test_variants_are_counted(model: str, fields: dict[str, Any], total: int, tmp_path: Path) -> None:
    type, architecture = model.split(".")
    config = {"model_type": type, "architectures": [architecture], **fields}
    assert archspec.load(write(tmp_path, config)).params.total == total


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


def test_a_table_is_kept_while_the_configuration_stays(tmp_path: Path) -> None:
    for vocabulary in (100, 200, 100):
        path = write(tmp_path, {"model_type": "bert", "vocab_size": vocabulary})
        table, _ = load_table(path, {})
        assert table.tensors[0].shape == (vocabulary, 768)


@pytest.mark.parametrize(
    ("type", "architecture", "labels", "params"),
    [
        ("bert", "BertForSequenceClassification", 2, 109_483_778),
        ("bert", "BertForSequenceClassification", 1, 109_483_009),
        ("bert", "BertForNextSentencePrediction", None, 109_483_778),
        ("bert", "BertForTokenClassification", 9, 108_891_648 + 9 * (768 + 1)),
        ("bloom", "BloomForQuestionAnswering", None, 16_156_674),
        ("falcon", "FalconForQuestionAnswering", None, 6_921_729_794),
        ("gpt_neox", "GPTNeoXForQuestionAnswering", None, 20_244_725_762),
        ("opt", "OPTForQuestionAnswering", None, 125_240_834),
    ],
)
def test_heads_have_as_many_labels_as_are_listed(
    type: str, architecture: str, labels: int | None, params: int, tmp_path: Path
) -> None:
    config = {"model_type": type, "architectures": [architecture]}
    names = {str(i): f"LABEL_{i}" for i in range(labels or 7)}
    for said in ({"id2label": names}, {"num_labels": len(names)}, {"id2label": names, "num_labels": len(names)}):
        model = archspec.load(write(tmp_path, {**config, **said}))
        assert model.params.total == params
        assert model.hyperparameters.get("labels") == labels


def test_labels_are_two_where_nothing_is_said(tmp_path: Path) -> None:
    for said in ({}, {"id2label": None}, {"num_labels": None}):
        config = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], **said}
        assert archspec.load(write(tmp_path, config)).params.total == 109_483_778


def test_a_field_of_a_scaling_stops_only_what_needs_its_computation() -> None:
    scaling = {"type": "linear", "factor": 2.0, "finetuned": True}
    config = {"model_type": "llama", "architectures": ["LlamaModel"], "rope_scaling": scaling}
    scaled = archspec.load(config)
    assert scaled.count().table.notes == (
        "not included: `rope_scaling` with the field `finetuned`, which affects no tensor",
    )
    with pytest.raises(
        ArchError, match="the computation of `rope_scaling` with the field `finetuned` is not supported"
    ):
        archspec.import_config(config)
    assert "linear_scaling(factor = 2.0)" in archspec.import_config(config, ignore=["rope_scaling.finetuned"])


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

CLASSIFIER = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}
WRONG = [
    ({"model_type": "albert", "is_decoder": True}, "unsupported", "true"),
    ({"model_type": "bert", "add_cross_attention": True}, "unsupported", "true"),
    ({"model_type": "bert", "hidden_act": "prelu"}, "unsupported", '"prelu"'),
    ({"model_type": "bert", "hidden_act": None}, "unsupported", "null"),
    ({"model_type": "bert", "position_embedding_type": "relative_key"}, "unsupported", '"relative_key"'),
    ({"model_type": "bert", "pruned_heads": {"1": [2]}}, "unsupported", '{"1": [2]}'),
    ({"model_type": "bert", "quantization_config": {"bits": 4}}, "unsupported", '{"bits": 4}'),
    ({"model_type": "bert", "auto_map": {"AutoModel": "mine.Model"}}, "unsupported", '{"AutoModel": "mine.Model"}'),
    ({"model_type": "bert", "hidden_sizes": 3}, "unknown-name", '"hidden_sizes"'),
    ({"model_type": "bert", "architectures": ["BertForRegression"]}, "unknown-name", None),
    ({"model_type": "bert", "architectures": ["BertModel", "BertForMaskedLM"]}, "wrong-kind", None),
    ({"model_type": "bert", "architectures": "BertModel"}, "wrong-kind", '"BertModel"'),
    ({"model_type": "bert", "hidden_size": 0}, "wrong-kind", "0"),
    ({"model_type": "bert", "hidden_size": 768.0}, "wrong-kind", "768.0"),
    ({"model_type": "bert", "hidden_size": True}, "wrong-kind", "true"),
    ({"model_type": "bert", "hidden_size": None}, "wrong-kind", "null"),
    ({"model_type": "bert", "hidden_size": 10**18}, "wrong-kind", str(10**18)),
    ({"model_type": "bert", "layer_norm_eps": -1.0}, "wrong-kind", "-1.0"),
    ({"model_type": "bert", "layer_norm_eps": 10**18}, "wrong-kind", str(10**18)),
    ({"model_type": "bert", "hidden_dropout_prob": 1}, "wrong-kind", "1"),
    ({"model_type": "bert", "hidden_dropout_prob": -0.5}, "wrong-kind", "-0.5"),
    ({"model_type": "bert", "hidden_dropout_prob": True}, "wrong-kind", "true"),
    ({"model_type": "bert", "architectures": ["BertForMaskedLM"], "tie_word_embeddings": 1}, "wrong-kind", "1"),
    ({"model_type": "roberta", "pad_token_id": None}, "wrong-kind", "null"),
    ({"model_type": "albert", "num_hidden_groups": 2}, "unsupported", "2"),
    ({"model_type": "gpt2", "n_embd": 768, "hidden_size": 512}, "duplicate-name", '"hidden_size"'),
    ({"model_type": "bart", "encoder_attention_heads": 8}, "unsupported", '"encoder_attention_heads"'),
    ({"model_type": "bart", "is_encoder_decoder": False}, "unsupported", "false"),
    ({"model_type": "t5", "feed_forward_proj": "gated-prelu"}, "unsupported", '"gated-prelu"'),
    ({"model_type": "t5", "dense_act_fn": "gelu_new"}, "unsupported", '"dense_act_fn"'),
    ({"model_type": "t5", "is_gated_act": True}, "unsupported", '"is_gated_act"'),
    ({"model_type": "llama", "rope_scaling": {"type": "linear"}}, "missing-argument", '"linear"'),
    ({"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 0}}, "wrong-kind", "0"),
    ({"model_type": "llama", "rope_parameters": {"rope_type": "default", "factor": 2.0}}, "unsupported", '"factor"'),
    ({"model_type": "llama", "rope_parameters": {"partial_rotary_factor": 0.5}}, "unknown-name", None),
    ({"model_type": "llama", "rope_parameters": 3}, "wrong-kind", "3"),
    ({"model_type": "modernbert", "layer_types": ["full_attention"]}, "wrong-kind", '["full_attention"]'),
    ({"model_type": "modernbert", "layer_types": ["sliding_attention"] * 22}, "unsupported", None),
    ({"model_type": "modernbert", "layer_types": ["a"]}, "unsupported", '["a"]'),
    ({"model_type": "qwen2", "layer_types": ["sliding_attention"]}, "unsupported", '["sliding_attention"]'),
    ({"model_type": "modernbert", "layer_types": "full_attention"}, "wrong-kind", '"full_attention"'),
    ({"model_type": "longformer", "attention_window": [4, 6]}, "wrong-kind", "[4, 6]"),
    ({"model_type": "longformer", "attention_window": []}, "wrong-kind", "[]"),
    ({"model_type": "longformer", "attention_window": [4, 0]}, "wrong-kind", "[4, 0]"),
    ({"model_type": "longformer", "attention_window": "4"}, "wrong-kind", '"4"'),
    ({"model_type": "deberta-v2", "pos_att_type": ["c2c"]}, "unsupported", '["c2c"]'),
    ({"model_type": "deberta-v2", "position_buckets": -2}, "wrong-kind", "-2"),
    ({"model_type": "swin", "depths": []}, "wrong-kind", "[]"),
    ({"model_type": "swin", "depths": [2, 0]}, "wrong-kind", "[2, 0]"),
    ({"model_type": "swin", "depths": 2}, "wrong-kind", "2"),
    ({"model_type": "vit", "image_size": [224, 112]}, "unsupported", "[224, 112]"),
    ({"model_type": "vit", "image_size": [224]}, "wrong-kind", "[224]"),
    ({"model_type": "vit", "patch_size": [16, 16]}, "wrong-kind", "[16, 16]"),
    ({"model_type": "wav2vec2", "mask_time_prob": -0.1}, "wrong-kind", "-0.1"),
    ({"model_type": "clip", "text_config": {"is_decoder": True}}, "unsupported", "true"),
    ({"model_type": "clip", "text_config": {"layers": 3}}, "unknown-name", '"layers"'),
    ({"model_type": "clip", "text_config": 3}, "wrong-kind", "3"),
    ({"model_type": "siglip", "text_config": {"hidden_size": 24}}, "unsupported", '"hidden_size"'),
    ({"model_type": "siglip", "vision_config": {"hidden_size": 24}}, "unsupported", '"hidden_size"'),
    ({"model_type": "siglip", "text_config": {"projection_size": 24}}, "unsupported", '"projection_size"'),
    ({**CLASSIFIER, "id2label": {"0": "no", "1": "yes"}, "num_labels": 3}, "unsupported", '"num_labels"'),
    ({**CLASSIFIER, "id2label": ["no", "yes"]}, "wrong-kind", '["no", "yes"]'),
    ({**CLASSIFIER, "id2label": {}}, "wrong-kind", "{}"),
    ({**CLASSIFIER, "num_labels": 0}, "wrong-kind", "0"),
    ({"model_type": "borg"}, "unknown-name", '"borg"'),
    ({"model_type": "../configs/bert"}, "unknown-name", '"../configs/bert"'),
    ({"model_type": "_common"}, "unknown-name", '"_common"'),
    ({"model_type": ["bert"]}, "wrong-kind", '["bert"]'),
    ({"hidden_size": 768}, "missing-argument", "{"),
    ([1], "wrong-kind", "[1]"),
    ("", "syntax", ""),
    ("{", "syntax", "{"),
    ('{"model_type":  ', "syntax", ":"),
    ('{"model_type": "bert"} x', "syntax", "x"),
    ('{"model_type": "bert",}', "syntax", ","),
    ('{"model_type": "bert", "architectures": ["BertModel",]}', "syntax", ","),
    ('{"model_type" "bert"}', "syntax", '"model_type"'),
    ('{"model_type": "bert" "a": 1}', "syntax", '"a"'),
    ('{"model_type": "bert", "hidden_size": NaN}', "wrong-kind", "NaN"),
    ('{"model_type": "bert", "layer_norm_eps": {"__float__": "Infinity"}}', "wrong-kind", '{"__float__": "Infinity"}'),
    ('{"model_type": "bert", "hidden_dropout_prob": -Infinity}', "wrong-kind", "-Infinity"),
    ('{"model_type": "bert", "hidden_size": Nan}', "syntax", "Nan"),
    ('{"model_type": "bert", "hidden_size": 01}', "syntax", "01"),
    ('{"model_type": "bert", "layer_norm_eps": 1e999}', "syntax", "1e999"),
    ('{"model_type": "bert", "a": "\\x"}', "syntax", None),
    ('{"model_type": "bert", "a": "b\n"}', "syntax", None),
    ('{"model_type": "bert", "model_type": "bert"}', "duplicate-name", '"model_type"'),
    ('{"model_type": "bert", "hidden_size": %s}' % ("9" * 5000), "budget", None),
    ("[" * 100_000, "budget", "["),
    ("[" + "1," * 500_000 + "1]", "budget", None),
]


def test_what_is_not_understood_is_an_error_that_points_at_it(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    shown: list[str] = []
    for config, code, word in WRONG:
        found = diagnostics(write(tmp_path, config))
        assert [each.code for each in found] == [code], config
        assert word is None or marked(found[0]).strip() == word, config
        text = config if isinstance(config, str) else json.dumps(config)
        notes = [f"note: {note.text}" for note in found[0].notes]
        help = [f"help: {found[0].help}"] if found[0].help else []
        message = found[0].message.replace(str(tmp_path), "")
        at = found[0].span.start if found[0].span else None
        shown.append("\n".join([f"=== {text[:120]!r}", f"{code} at {at}: {message}", *notes, *help]))
    golden("config-messages.txt", "\n\n".join(shown) + "\n")


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


@pytest.mark.parametrize("type", ["vit", "deit", "dinov2", "swin"])
def test_a_square_image_can_have_two_sizes(type: str) -> None:
    square = archspec.load({"model_type": type, "image_size": [448, 448]})
    assert square.tensors == archspec.load({"model_type": type, "image_size": 448}).tensors


def test_an_answer_has_two_labels(tmp_path: Path) -> None:
    config = {"model_type": "bert", "architectures": ["BertForQuestionAnswering"], "num_labels": 3}
    with pytest.raises(ArchError) as caught:
        archspec.load(write(tmp_path, config))
    assert {d.code for d in caught.value.diagnostics} == {"dimension"}


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


def test_a_field_may_have_to_be_a_product_of_hyperparameters(tmp_path: Path) -> None:
    """The module of Mamba takes its inner size from this field, and its defaults from the others."""
    fields = {"model_type": "mamba", "architectures": ["MambaModel"], "num_hidden_layers": 1, "hidden_size": 16}
    path = tmp_path / "config.json"
    totals: list[int] = []
    for more in {}, {"intermediate_size": 32}, {"expand": 3, "intermediate_size": 48}:
        path.write_text(json.dumps(fields | more))
        totals.append(archspec.load(str(path)).params.total)
    assert totals[0] == totals[1] < totals[2]
    path.write_text(json.dumps(fields | {"expand": 3, "intermediate_size": 32}))
    with pytest.raises(ArchError, match=r"supported value: `48`, which is expand \* hidden"):
        archspec.load(str(path))
