"""Steps of the code that the tests of config files cannot reach through public names."""

import contextlib
import fnmatch
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import ROOT
from small import load_table

import archspec
from archspec import ArchError, Diagnostic, Source
from archspec.codegen.build import torch_source
from archspec.formats.configs.family import known_types, read_family
from archspec.formats.configs.names import iter_families
from archspec.formats.strict_json import read_data, read_json

FAMILIES = {type: read_family(str(ROOT / "specs"), type, {}) for type in known_types(str(ROOT / "specs"))}


EVERYDAY_TYPES = ("albert", "bart", "bert", "clip", "deberta-v2", "gpt2", "llama", "modernbert", "t5", "wav2vec2")


def architectures() -> list[object]:
    """The architectures of each type: every day, all of a few types, and the first of each other one."""
    found: list[object] = []
    for type, family in FAMILIES.items():
        for number, name in enumerate(family.architectures):
            everyday = type in EVERYDAY_TYPES or number == 0
            found.append((type, name) if everyday else pytest.param(type, name, marks=pytest.mark.slow))
    return found


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


@pytest.mark.parametrize(("type", "architecture"), architectures())
def test_every_architecture_compiles_with_all_at_default(type: str, architecture: str, tmp_path: Path) -> None:
    model = archspec.load(write(tmp_path, {"model_type": type, "architectures": [architecture]}))
    assert model.params.total > 8_000_000
    assert model.warnings == ()


def test_the_first_architecture_is_meant_where_none_is_named(tmp_path: Path) -> None:
    for config in ({}, {"architectures": None}, {"architectures": []}):
        text = archspec.import_config(write(tmp_path, {"model_type": "bert", **config}))
        assert text == '# BertModel, from small.json.\n\nimport bert { Bert }\n\nmodel "small" = Bert()\n'


def test_a_folder_stands_for_the_configuration_in_it(tmp_path: Path) -> None:
    path = write(tmp_path, {"model_type": "bert", "num_hidden_layers": 1}, "config.json")
    for folder in (str(tmp_path), f"{tmp_path}{os.sep}", tmp_path):
        assert archspec.load(folder).name == tmp_path.name
        assert archspec.import_config(folder) == archspec.import_config(path)
        assert load_table(folder)[0] == load_table(path)[0]


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


@pytest.mark.parametrize("type", ["llama", "qwen2", "phi3", "granite", "falcon", "modernbert", "gpt_neox", "gemma2"])
def test_a_scaling_of_positions_stops_only_what_needs_its_computation(type: str) -> None:
    plain = archspec.load({"model_type": type})
    scaled = archspec.load({"model_type": type, "rope_scaling": {"type": "axial", "factor": 2.0, "other": [1.0]}})
    assert scaled.tensors == plain.tensors
    assert scaled.count().table.notes == (
        "not included: `rope_scaling` of the type `axial`, which affects no tensor",
        *plain.count().table.notes,
    )
    assert archspec.cost(scaled).work == archspec.cost(plain).work
    config = {"model_type": type, "rope_scaling": {"rope_type": "made-up"}}
    for needs_it in (torch_source, archspec.import_config, lambda model: archspec.equivalent(model, plain)):
        with pytest.raises(ArchError, match=r"the computation of `rope_scaling` of the type `.*` is not supported"):
            needs_it(scaled if needs_it is not archspec.import_config else config)


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
    ({"model_type": "vit", "image_size": [224, 224]}, "wrong-kind", "[224, 224]"),
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


def test_an_answer_has_two_labels(tmp_path: Path) -> None:
    config = {"model_type": "bert", "architectures": ["BertForQuestionAnswering"], "num_labels": 3}
    with pytest.raises(ArchError) as caught:
        archspec.load(write(tmp_path, config))
    assert {d.code for d in caught.value.diagnostics} == {"dimension"}


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN"])
def test_floats_that_json_does_not_have_are_read(tmp_path: Path, number: str) -> None:
    expected = repr(float(number))
    for text in (number, f'{{"__float__": "{number}"}}'):
        assert repr(read_json(Source("a", text)).data()) == expected
        config = f'{{"model_type": "mamba", "num_hidden_layers": 2, "time_step_max": [0.0, {text}]}}'
        by_path = archspec.load(write(tmp_path, config)).params.total
        assert archspec.load(json.loads(config)).params.total == by_path
    others: list[Any] = [{"__float__": "1"}, {"__float__": 1}, {"__float__": "NaN", "a": 1}, {"a": {}}]
    for data in others:
        assert read_json(Source("a", json.dumps(data))).data() == data


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


@given(st.text(min_size=1), VALUES)
@settings(max_examples=4, deadline=None)
def test_no_field_is_ignored_that_is_not_known(name: str, value: Any) -> None:
    family = FAMILIES["bert"]
    if name in family.fields or name in family.ignored or name in ("model_type", "architectures"):
        return
    with pytest.raises(ArchError) as caught:
        import_text(json.dumps({"model_type": "bert", name: value}))
    assert [d.code for d in caught.value.diagnostics] == ["unknown-name"]
    assert "unknown field" in caught.value.diagnostics[0].message


@given(st.sampled_from(sorted(FAMILIES)), st.data())
@settings(max_examples=25, deadline=None)
def test_any_value_of_any_field_gives_a_spec_or_a_diagnostic(type: str, data: Any) -> None:
    names = sorted(FAMILIES[type].fields)
    fields = data.draw(st.dictionaries(st.sampled_from(names), VALUES, max_size=3))
    with contextlib.suppress(ArchError):
        assert import_text(json.dumps({"model_type": type, **fields})).startswith("# ")


def import_text(config: str) -> str:
    from archspec.compiler.resolve.files import Library
    from archspec.core.diagnostics import Report
    from archspec.formats.configs.spec import DEFAULT_READING, build_config_unit
    from archspec.pipeline.files import parse_cached

    report = Report()
    unit = build_config_unit(
        Source("config.json", config), Library(str(ROOT / "specs"), parse_cached), report, DEFAULT_READING
    )
    report.check()
    assert unit is not None
    return unit.source.text


@given(VALUES, st.sampled_from([(None, None), (1, None), (4, None), (None, (",", ":"))]))
@settings(max_examples=50, deadline=None)
def test_json_is_read_as_the_standard_library_reads_it(value: Any, form: tuple[Any, Any]) -> None:
    text = json.dumps(value, indent=form[0], separators=form[1])
    assert read_json(Source("config.json", text)).data() == json.loads(text)
    if "Infinity" not in text:
        assert read_data(Source("config.json", text)) == json.loads(text)


def test_values_of_json_are_nested_as_deeply_as_the_limit() -> None:
    text = '{"a":[[1,{"b":2}],3]}'
    assert read_json(Source("config.json", text)).data() == json.loads(text)
    assert read_json(Source("config.json", "[" * 17 + "]" * 17)).data() == json.loads("[" * 17 + "]" * 17)
    with pytest.raises(ArchError, match="the limit is 16 levels"):
        read_json(Source("config.json", "[" * 18 + "]" * 18))


@given(st.text(alphabet='{}[],:"\\01.-e truefalsn/', max_size=12))
@settings(max_examples=100, deadline=None)
def test_what_is_no_json_for_the_standard_library_is_none_here(text: str) -> None:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        expected = [json.loads(text, object_pairs_hook=pairs, parse_constant=refuse)]
    except ValueError:
        expected = []
    for read in (lambda source: read_json(source).data(), read_data):
        try:
            found = [read(Source("config.json", text))]
        except ArchError:
            found = []
        assert found == expected


def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(items)) < len(items):
        raise ValueError("a name twice")
    return dict(items)


@pytest.mark.parametrize(
    ("definition", "types"),
    [
        ("Bert", ["bert", "camembert", "electra", "roberta", "xlm-roberta"]),
        ("BertForMaskedLM", ["bert"]),
        ("LlamaForCausalLM", ["llama"]),
        ("ClipText", ["clip_text_model"]),
        ("Llama", ["llama"]),
        ("LlamaModel", []),
        ("num_hidden_layers", []),
    ],
)
def test_families_of_a_definition(definition: str, types: list[str]) -> None:
    assert [family.type for family in iter_families(definition, str(ROOT / "specs"))] == types


@pytest.mark.parametrize("type", sorted(FAMILIES))
def test_the_data_of_a_family_is_consistent(type: str) -> None:
    family = FAMILIES[type]
    assert not set(family.fields) & family.ignored
    for field in family.fields.values():
        assert {each for each in field.architectures or () if not fnmatch.filter(family.architectures, each)} <= {
            "*Classification",  # of all families
            "*QuestionAnswering",
            "AlbertForPreTraining",
            "*Generation",  # of BART and the families like it
        }, field.name
        assert field.only is not None or field.values is not None or field.kind or field.architectures == [], field.name
        assert all(name in family.fields for names in field.needs.values() for name in names), field.name


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
