"""Families of configurations, and JSON, in steps that no command shows."""

import contextlib
import fnmatch
import json
from pathlib import Path
from typing import Any

import pytest
from hints import hints
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import ROOT

import archspec
from archspec import ArchError, Source
from archspec.codegen.build import torch_source
from archspec.formats.configs.documents import DocumentReader, part_entries
from archspec.formats.configs.family import known_types, read_family
from archspec.formats.configs.names import iter_families
from archspec.formats.strict_json import read_data, read_json

PART_KEYS = {"like", "types", "interface", "default", "as", "sets", "at", "flat"}
FAMILIES = {type: read_family(str(ROOT / "specs"), type, {}) for type in known_types(str(ROOT / "specs"))}
ARCHITECTURES = [(type, name) for type, family in FAMILIES.items() for name in family.architectures]


def write(folder: Path, config: Any, name: str = "small.json") -> str:
    path = folder / name
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return str(path)


SMALL = {"mobilenet_v2": 2_000_000, "patchtst": 500_000}
"""Types whose models have fewer than 3 million parameters by default."""


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("type", "architecture"), ARCHITECTURES)
def test_every_architecture_compiles_with_all_at_default(type: str, architecture: str, tmp_path: Path) -> None:
    stated = hints(type).get("defaults", {})
    model = archspec.load(write(tmp_path, {"model_type": type, "architectures": [architecture], **stated}))
    assert model.params.total > SMALL.get(type, 3_000_000)
    assert model.warnings == ()


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
        (
            "Bert",
            ["bert", "camembert", "chinese_clip_text_model", "data2vec-text", "electra", "roberta", "xlm-roberta"],
        ),
        ("BertForMaskedLM", ["bert", "megatron-bert"]),
        ("LlamaForCausalLM", ["llama", "internlm3"]),
        ("ClipText", ["clip_text_model", "metaclip_2_text_model"]),
        ("Llama", ["llama", "internlm3"]),
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
    entries = part_entries(DocumentReader(str(ROOT / "specs"), {}).read_inherited(type)).values()
    assert {key for entry in entries for key in entry} <= PART_KEYS
    for field in family.fields.values():
        unmatched = {each for each in field.architectures or () if not fnmatch.filter(family.architectures, each)}
        assert all(each.startswith("*") for each in unmatched - {"AlbertForPreTraining"}), field.name  # of the parent
        assert field.only is not None or field.values is not None or field.kind or field.architectures == [], field.name
        assert all(name in family.fields for names in field.needs.values() for name in names), field.name
