"""Lifting: the sizes of a spec follow those of a third module, which it was not lifted from."""

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import further

from archspec.pytorch.lift.sources.architecture import Architecture

nn: Any = torch.nn
pytestmark = pytest.mark.slow


class Scaled(nn.Module):
    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        hidden, inner = fields["hidden_size"], fields["intermediate_size"]
        self.scale = (hidden // fields["num_attention_heads"]) ** -0.5
        self.up, self.down = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x: Any) -> Any:
        return self.down(self.up(x * self.scale).exp())


SIZES = {"hidden_size": 192, "intermediate_size": 768, "num_attention_heads": 6}
FIELDS = {**SIZES, "vision_config": {"model_type": "vision", **SIZES}}


def compared(text: str, fields: dict[str, Any]) -> str:
    def inputs(module: Any, turn: int) -> Iterator[dict[str, Any]]:
        yield {"x": torch.zeros((3, 2)[turn], (5, 8)[turn], module.up.in_features)}

    made = Architecture("Scaled", fields, lambda changed: Scaled({**fields, **changed}), inputs)
    return further.compared(text, made)


SCALED = """
import std {{ Linear }}
dim batch, seq
block Scaled({sizes})(x [batch, seq, hidden_size]) -> [batch, seq, hidden_size] {{
  return x * ({scale}) ** -0.5
    |> up:   Linear(hidden_size, intermediate_size)
    |> exp
    |> down: Linear(intermediate_size, hidden_size)
}}
model "Scaled" = Scaled()
"""
NAMES = "hidden_size = 192, intermediate_size = 768, num_attention_heads = 6"


def test_specs_are_compared_with_modules_of_further_sizes() -> None:
    spec = SCALED.format(sizes=NAMES, scale="hidden_size // num_attention_heads")
    assert compared(spec, SIZES) == further.EXACTLY
    few = SCALED.format(sizes="hidden_size = 192, intermediate_size = 768", scale="hidden_size // 6")
    assert compared(few, SIZES) == further.EXACTLY
    accidental = SCALED.format(sizes="hidden_size = 192, intermediate_size = 768", scale="intermediate_size // 24")
    assert compared(accidental, SIZES) == further.AT_ITS_SIZES


def test_specs_that_refuse_further_sizes_are_not_compared() -> None:
    spec = SCALED.format(sizes=NAMES, scale="hidden_size // num_attention_heads")
    refusing = spec.replace("  return x", '  require hidden_size == 192, "no other width is known"\n  return x')
    assert compared(refusing, SIZES) == further.NOT_COMPARED


def test_specs_are_compared_by_normal_form_with_modules_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(further, "MAX_ELEMENTS", 0)
    spec = SCALED.format(sizes=NAMES, scale="hidden_size // num_attention_heads")
    assert compared(spec, SIZES) == further.EXACTLY
    assert compared('block Scaled()(x [8]) -> [8] { return x }\nmodel "Scaled" = Scaled()', SIZES) == further.FIXED


def test_widths_are_multiples_of_heads_where_they_are_so_in_a_configuration() -> None:
    for part in ({}, {"vision_config": {"model_type": "vision", "hidden_size": 8, "num_heads": 2}}):
        fields = {**SIZES, **part}
        assert further.has_whole_heads(fields, {"hidden_size": 24})
        assert not further.has_whole_heads(fields, {"hidden_size": 16})
    assert not further.has_whole_heads(FIELDS, {"vision_config": {"hidden_size": 16}})
    assert further.has_whole_heads({**SIZES, "head_dim": 32}, {"hidden_size": 16})
