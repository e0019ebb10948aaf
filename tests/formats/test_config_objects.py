"""Configuration objects of `transformers`, and the fields that it knows to change nothing."""

import dataclasses
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from families import TYPES, document, mapping
from hints import hints

import archspec

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.slow

COMMON = document("_common")
KNOWN = {*COMMON["ignored"], *COMMON["fields"], "model_type", "architectures"}
OBJECTS = [type for type in TYPES if type in transformers.models.auto.CONFIG_MAPPING]


def unnamed(text: str) -> str:
    """A spec without comments, the name of its model and layout."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return "".join(re.sub(r'model "[^"]*"', "", " ".join(lines)).split()).replace(",)", ")")


@pytest.mark.sampled(80)
@pytest.mark.parametrize("type", OBJECTS)
def test_an_object_is_what_it_writes(type: str, tmp_path: Path) -> None:
    made = transformers.models.auto.CONFIG_MAPPING[type](**hints(type).get("defaults", {}))
    made.to_json_file(tmp_path / "short.json")
    made.to_json_file(tmp_path / "long.json", use_diff=False)
    assert unnamed(archspec.import_config(made)) == unnamed(archspec.import_config(tmp_path / "long.json"))
    assert archspec.load(made).tensors == archspec.load(tmp_path / "short.json").tensors
    assert archspec.load(made.to_dict()).tensors == archspec.load(json.loads(made.to_json_string())).tensors


def generation() -> set[str]:
    return set(transformers.GenerationConfig().to_dict())


def training() -> set[str]:
    return {field.name for field in dataclasses.fields(transformers.TrainingArguments)}


def configuration() -> set[str]:
    return set(transformers.PretrainedConfig().to_dict())


def tokenizers() -> set[str]:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase as Base

    return {*Base.SPECIAL_TOKENS_ATTRIBUTES, "padding_side", "truncation_side", "model_input_names", "chat_template"}


@pytest.mark.parametrize("fields", [generation, training, configuration, tokenizers])
def test_the_fields_of_others_are_known(fields: Any) -> None:
    assert fields() - KNOWN == set()


def test_no_configuration_class_declares_what_is_ignored_everywhere() -> None:
    """What a class declares may have an effect there; then its family declares it, too."""
    harmless = configuration() | generation() | tokenizers() | {"initializer_range", "gradient_checkpointing"}
    harmless |= {"layerdrop", "prefix"}
    unread = {"eurobert": {"mask_token_id"}, "xlm": {"mask_token_id"}, "modernbert": {"cls_token_id", "sep_token_id"}}
    unread |= {"hunyuan_v1_moe": {"sep_token_id"}, "modernbert-decoder": {"cls_token_id", "sep_token_id"}}
    for type in OBJECTS:
        family = mapping(type)
        declared = set(inspect.signature(transformers.models.auto.CONFIG_MAPPING[type].__init__).parameters)
        assert declared & family.ignored & set(COMMON["ignored"]) <= harmless | unread.get(type, set()), type
