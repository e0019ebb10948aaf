"""Fields that the class of `transformers` does not read are left out, with a note."""

import json
from pathlib import Path
from typing import Any

import pytest
from drawn_configs import TYPES, Drawn, draw_inputs, torch, transformers, with_parts
from hints import live_inputs
from live import in_float64
from paths import ROOT

import archspec
from archspec import ArchError
from archspec.formats.configs.facts import read_facts
from archspec.formats.configs.generate import classes_text
from archspec.testing import main

VERSION = read_facts(str(ROOT / "specs"))["transformers"]
BERT = {"model_type": "bert", "architectures": ["BertForMaskedLM"], "transformers_version": "4.48.3"}
CLIP = {"model_type": "clip", "architectures": ["CLIPModel"], "transformers_version": "4.48.3"}


def notes(config: dict[str, Any]) -> tuple[str, ...]:
    return archspec.load(config).count().table.notes


def test_one_note_lists_the_fields_that_the_class_does_not_read() -> None:
    odd = BERT | {"house_style": 3, "house_rules": {"indent": 2}, "a\x1b": 0}
    note = f"left out: house_style, house_rules, a\\x1b, not read by BertForMaskedLM (transformers {VERSION})"
    assert notes(odd) == (note,)
    assert archspec.load(odd).tensors == archspec.load(BERT).tensors
    assert f"\n# L{note[1:]}.\n" in archspec.import_config(odd)
    assert notes(CLIP | {"text_config": {"house_style": 3}}) == (
        f"left out: text_config.house_style, not read by CLIPModel (transformers {VERSION})",
    )


def test_strict_makes_them_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(BERT | {"house_style": 3}))
    for command in ("count", "import", "check"):
        assert main([command, str(path)]) == 0
        assert main([command, str(path), "--strict"]) == 1
        assert "unknown field `house_style`" in capsys.readouterr().err
        assert main([command, str(path)]) == 0  # also from the cache
    for load in (archspec.load, archspec.import_config):
        with pytest.raises(ArchError, match="unknown field `house_style`"):
            load(archspec.Configuration(path, strict=True))
    with pytest.raises(ArchError, match="unknown field `house_style`"):
        archspec.import_config(path, strict=True)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (BERT | {"house_style": 3, "transformers_version": None}, "unknown field `house_style`"),
        (BERT | {"house_style": 3, "transformers_version": "99.0.0"}, "unknown field `house_style`"),
        (BERT | {"house_style": 3, "transformers_version": "new"}, "unknown field `house_style`"),
        (BERT | {"house_style": 3, "auto_map": {"AutoConfig": "mine.BertConfig"}}, "unknown field `house_style`"),
        (CLIP | {"image_config": {"hidden_size": 3}, "d_model": 3}, "unknown field `d_model`"),
        (BERT | {"rope_scaling": {"factor": 2.0}}, "unknown field `rope_scaling`"),
        (BERT | {"__class__": "Other"}, "unknown field `__class__`"),
        (
            {**BERT, "model_type": "t5", "architectures": ["T5WithLMHeadModel"], "house_style": 3},
            "unknown field `house_style`",
        ),
        (
            {**BERT, "model_type": "llama", "architectures": ["LlamaModel"], "rope_parameters": {"house_style": 3}},
            "unknown field `rope_parameters.house_style`",
        ),
    ],
)
def test_other_fields_stay_errors(config: dict[str, Any], message: str) -> None:
    """Without a version that is known, with code of its own, and where a class may read a field of this name."""
    with pytest.raises(ArchError, match=message):
        archspec.load(config)


def test_versions_are_compared_as_numbers() -> None:
    for version in ("2.0", "4.9.1", "4.31.0.dev0", "5.0.0rc0"):
        assert notes(BERT | {"house_style": 3, "transformers_version": version})


@pytest.mark.skipif(transformers.__version__ != VERSION, reason="another version of transformers")
def test_the_facts_are_those_of_the_installed_library() -> None:
    assert (ROOT / "specs" / "configs" / "_classes.json").read_text() == classes_text()


@pytest.mark.slow
@pytest.mark.parametrize("type", TYPES)
def test_every_field_that_a_class_reads_is_listed(type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn(type, 0, tmp_path)
    facts = read_facts(str(ROOT / "specs"))
    parts = [part.model_type for _, part in with_parts(drawn.config) if part.model_type in facts["types"]]
    listed = {*facts["shared"], *(field for each in (type, *parts) for field in facts["types"][each]["fields"])}
    inputs = draw_inputs(drawn, [*drawn.load().inputs])
    read = set[str]()
    get = transformers.PretrainedConfig.__getattribute__

    def record(config: Any, name: str) -> Any:
        read.add(name)
        return get(config, name)

    monkeypatch.setattr(transformers.PretrainedConfig, "__getattribute__", record)
    live = drawn.live(drawn.config).double().eval()
    with torch.no_grad(), in_float64():
        live(**live_inputs(torch, type, drawn.config, inputs))
    assert len(read) > 10
    read.discard("output_router_logits")  # asks for further outputs
    assert {name for name in read if not name.startswith("__")} <= listed
