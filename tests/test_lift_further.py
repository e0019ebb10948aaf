"""Lifting: the sizes of a spec follow those of a third module, which it was not lifted from."""

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec  # noqa: E402
from archspec.lifting.sources.architecture import Architecture  # noqa: E402
from archspec.lifting.sources.lifting import lifted  # noqa: E402
from archspec.lifting.sources.subjects import source_of_architecture  # noqa: E402

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

    spec = lifted(source_of_architecture(Architecture("Parts", FIELDS, build, images)))
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
    spec = lifted(source_of_architecture(made))
    assert "2 * hidden_size" in spec
    assert "expand" not in spec
