"""Scalings of rotary positions: the functions of the library, and the configurations that choose them."""

from pathlib import Path
from typing import Any

import pytest

import archspec

SIZE, THETA = 8, 100.0
SHORT, LONG = [1.0, 1.5, 2.0, 3.0], [2.0, 3.0, 4.0, 5.5]


LONGER = f"longrope_scaling(short = {SHORT}, long = {LONG}, context = 10"


def probe(folder: Path, scaling: str, size: int = SIZE) -> archspec.Model:
    path = folder / "probe.arch"
    path.write_text(f"""
import std {{ {scaling.partition("(")[0]} }}
dim seq
block Probe(size = {size}, theta = {THETA}, scaling = {scaling})
           (x [seq, size // 2]) -> (cosines [seq, size // 2], sines [seq, size // 2]) {{
  one: param []
  cosines, sines = scaling(size, theta)(arange(seq))
  return cosines * x * .one, sines * x * .one
}}
model "probe" = Probe()
""")
    return archspec.load(str(path))


def test_what_cannot_be_scaled_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(archspec.ArchError, match="more than two components"):
        probe(tmp_path, "dynamic_scaling(factor = 2.0, positions = 10)", size=2)
    with pytest.raises(archspec.ArchError, match="a factor is needed for each pair"):
        probe(tmp_path, f"{LONGER})", size=16)


# Configurations -------------------------------------------------------------------------------------------------------

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
MORE = {"beta_fast": 16, "beta_slow": 2, "truncate": False, "mscale": 0.7, "mscale_all_dim": 1, "attention_factor": 2}
LISTS = {"short_factor": [1, 1.5, 2, 3], "long_factor": LONG}
READ: list[tuple[dict[str, Any], str]] = [
    ({"rope_scaling": None}, "no_scaling"),
    ({"rope_scaling": {"type": "linear", "factor": 4}}, "linear_scaling(factor = 4.0)"),
    ({"rope_parameters": YARN}, "yarn_scaling(factor = 4.0, context = 64)"),
    ({"rope_parameters": {**YARN, "attention_factor": None}}, "yarn_scaling(factor = 4.0, context = 64)"),
    (
        {"rope_scaling": {**YARN, **MORE}},
        "yarn_scaling(factor = 4.0, context = 64, fast = 16.0, slow = 2.0, rounded = false, mscale = 0.7, "
        "mscale_all = 1.0, strength = 2.0)",
    ),
    ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "yarn_scaling(factor = 4.0, context = 2048)"),
    ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "dynamic_scaling(factor = 2.0, positions = 2048)"),
    (
        {"rope_scaling": {"type": "dynamic", "factor": 2.0}, "max_position_embeddings": 128},
        "dynamic_scaling(factor = 2.0, positions = 128)",
    ),
    (
        {"rope_scaling": {"type": "longrope", "original_max_position_embeddings": 512, **LISTS}},
        f"longrope_scaling(short = {SHORT}, long = {LONG}, context = 512, positions = 2048)",
    ),
    (
        {"rope_parameters": {**YARN, "rope_type": "dynamic", "mscale": 0.7}},  # the type has no such fields
        "dynamic_scaling(factor = 4.0, positions = 2048)",
    ),
]


def scaling_of(config: dict[str, Any]) -> str:
    """The argument that is written for the configuration."""
    text = " ".join(archspec.import_config(config).split())
    _, _, argument = text.partition("scaling = ")
    depth = 0
    for i, character in enumerate(argument):
        depth += (character in "([") - (character in ")]")
        if depth < 0 or (depth == 0 and character == ","):
            return argument[:i].strip()
    return argument


@pytest.mark.parametrize(("fields", "expected"), READ)
def test_fields_choose_the_scaling(fields: dict[str, Any], expected: str) -> None:
    assert scaling_of({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, **fields}) == expected


OTHERS = {"deepseek_v3": {"mscale": 1.0, "mscale_all_dim": 1.0}, "gpt_oss": {"truncate": False}, "llama": {}}


@pytest.mark.parametrize("type", OTHERS)
def test_the_older_name_of_the_type_may_be_next_to_the_newer(type: str) -> None:
    texts = {
        archspec.import_config({"model_type": type, "rope_parameters": {**YARN, **OTHERS[type], **other}})
        for other in ({}, {"type": "yarn"})
    }
    assert len(texts) == 1 and "4.0" in texts.pop()


def test_phi3_has_the_original_length_beside_the_scaling() -> None:
    for name in ("longrope", "su", "yarn"):
        config = {"model_type": "phi3", "max_position_embeddings": 131072, "rope_scaling": {"type": name, **LISTS}}
        expected = f"longrope_scaling(short = {SHORT}, long = {LONG}, context = 4096, positions = 131072)"
        assert scaling_of({**config, "hidden_size": 64, "num_attention_heads": 8}) == expected


WRONG = [
    ({"type": "dynamic"}, r"missing `rope_parameters\.factor`"),
    ({"type": "yarn", "original_max_position_embeddings": 64}, r"missing `rope_parameters\.factor`"),
    ({"type": "longrope", "short_factor": SHORT}, r"missing `rope_parameters\.long_factor`"),
    ({"type": "longrope", "short_factor": [1.0, 0.0]}, "expects a list of positive numbers"),
    ({**YARN, "factor": 0.0}, "expects a positive number"),
]


@pytest.mark.parametrize(("fields", "message"), WRONG)
def test_incomplete_scalings_are_errors(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(archspec.ArchError, match=message):
        archspec.load({"model_type": "llama", "rope_scaling": fields})


# Against transformers, where it is installed --------------------------------------------------------------------------
