"""Lifting: the sizes of a spec follow those of a third module, which it was not lifted from."""

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import further

import archspec
from archspec.pytorch.lift.sources.architecture import Architecture
from archspec.pytorch.lift.sources.lifting import lift_or_replace
from archspec.pytorch.lift.sources.subjects import source_of_architecture

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


class Parts(nn.Module):
    """Two parts with fields of the same names and values."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        inner = fields["vision_config"]
        self.vision, self.own = Scaled(inner), Scaled(fields)
        self.joined = nn.Linear(inner["hidden_size"], fields["hidden_size"])

    def forward(self, x: Any) -> Any:
        return self.own(self.joined(self.vision(x)))


SIZES = {"hidden_size": 192, "intermediate_size": 768, "num_attention_heads": 6}
FIELDS = {**SIZES, "vision_config": {"model_type": "vision", **SIZES}}


def images(module: Any, turn: int) -> Iterator[dict[str, Any]]:
    yield {"x": torch.zeros((3, 2)[turn], (5, 8)[turn], module.joined.in_features)}


def test_parts_with_fields_of_the_same_names_and_values_have_their_own_sizes() -> None:
    def build(changed: dict[str, Any]) -> Parts:
        return Parts({**FIELDS, **changed})

    spec = lift_or_replace(source_of_architecture(Architecture("Parts", FIELDS, build, images)))
    sizes = {"hidden_size": 24, "intermediate_size": 20, "num_attention_heads": 4}
    other = build({**sizes, "vision_config": {"hidden_size": 60, "intermediate_size": 28, "num_attention_heads": 3}})
    model = archspec.loads(
        spec,
        **sizes,
        vision_hidden_size=60,
        vision_intermediate_size=28,
        vision_num_attention_heads=3,
    )
    assert archspec.equivalent(model, other.double().eval())


class Expanded(nn.Module):
    """Two widths that are twice another one; only that of `inner` is so because of `expand`."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        hidden, inner = fields["hidden_size"], fields["hidden_size"] * fields["expand"]
        if inner != 2 * fields["hidden_size"]:
            raise ValueError("unequal sizes")
        self.inner, self.outer = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x: Any) -> Any:
        return self.outer(self.inner(x).exp())


def test_a_field_of_which_no_other_value_is_known_names_no_size() -> None:
    fields = {"hidden_size": 192, "expand": 2}

    def inputs(module: Any, turn: int) -> Iterator[dict[str, Any]]:
        yield {"x": torch.zeros((3, 2)[turn], (5, 8)[turn], module.inner.in_features)}

    made = Architecture("Expanded", fields, lambda changed: Expanded({**fields, **changed}), inputs)
    spec = lift_or_replace(source_of_architecture(made))
    assert "2 * hidden_size" in spec
    assert "expand" not in spec


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
