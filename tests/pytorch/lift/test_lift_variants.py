"""Lifting: modules of a class that differ in settings of attention or in masks are of one definition."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec import equivalent
from archspec.pytorch.lift.notation.templates import (
    END,
    GAP,
    SETTING,
    SETTINGS,
    Gaps,
    Statement,
    Template,
    fill_gaps,
    joined,
)

nn = torch.nn
HIDDEN, HEADS = 8, 2


class Attention(nn.Module):
    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = [nn.Linear(HIDDEN, HIDDEN) for _ in range(4)]
        self.causal = causal

    def forward(self, x: Any, mask: Any = None) -> Any:
        q, k, v = [part(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in (self.q, self.k, self.v)]
        if self.causal:
            earlier = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
            mask = earlier if mask is None else earlier & mask
        found = nn.functional.scaled_dot_product_attention(q, k, v, mask)
        return self.o(found.transpose(1, 2).flatten(-2))


class Layer(nn.Module):
    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(HIDDEN), Attention(causal)

    def forward(self, x: Any, mask: Any = None) -> Any:
        return x + self.attention(self.norm(x), mask)


class Pair(nn.Module):
    """Layers for texts, which have masks, and for images."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.words, self.patches = nn.Embedding(11, HIDDEN), nn.Linear(3, HIDDEN)
        self.texts = nn.ModuleList([Layer(causal) for _ in range(2)])
        self.images = nn.ModuleList([Layer() for _ in range(2)])

    def forward(self, ids: Any, image: Any, attention_mask: Any = None) -> Any:
        text, image = self.words(ids), self.patches(image)
        visible = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
        for layer in self.texts:
            text = layer(text, visible)
        for layer in self.images:
            image = layer(image)
        return text.mean(1) @ image.mean(1).T


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(HIDDEN))

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3) * (1 + self.weight)


class Rotated(nn.Module):
    """A layer that multiplies by a table that its model computes."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.gate = nn.Linear(HIDDEN, 12), nn.Linear(12, HIDDEN), nn.Linear(HIDDEN, 12)
        self.norm = Norm()

    def forward(self, x: Any, table: Any) -> Any:
        x = self.norm(x)
        gate = torch.sigmoid(self.gate(x * table)) + torch.tanh(self.gate(x)) * 0.5
        return x + self.down(torch.relu(self.up(x)) * gate)


class Tables(nn.Module):
    """Layers of which only one uses a second table; a norm that is a definition follows them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Rotated() for _ in range(8)])
        self.norm = Norm()

    def forward(self, x: Any) -> Any:
        place = torch.arange(x.shape[1])[:, None]
        first, second = torch.cos(place * 0.1), torch.sin(place * 0.01)
        for turn, layer in enumerate(self.layers):
            x = layer(x, second if turn % 6 == 5 else first)
        return self.norm(x)


def lifted(module: nn.Module, *inputs: Any) -> str:
    text = archspec.lift(module.eval(), inputs)
    assert equivalent(archspec.loads(text), module).verdict == "equal"
    return " ".join(text.split())


def pair(causal: bool) -> str:
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])
    return lifted(Pair(causal), torch.zeros(2, 4, dtype=torch.long), torch.zeros(3, 5, 3), mask)


@pytest.mark.slow
def test_a_mask_that_only_some_modules_have_is_optional() -> None:
    text = pair(False)
    assert text.count("block Layer(") == text.count("block Attention(") == 1
    assert "Layer()(_, mask) for i in 0..2" in text
    assert "Layer for i in 0..2" in text
    assert "causal" not in text


@pytest.mark.slow
def test_attention_that_only_some_modules_limit_has_a_hyperparameter() -> None:
    text = pair(True)
    assert text.count("block Layer(causal)") == text.count("block Attention(causal)") == 1
    assert "attention(causal = causal)(" in text
    assert "Layer(causal = true)(_, mask) for i in 0..2" in text
    assert "Layer(causal = false) for i in 0..2" in text


@pytest.mark.slow
def test_a_table_that_one_layer_of_several_uses_is_given_to_it() -> None:
    text = lifted(Tables(), torch.zeros(2, 7, HIDDEN))
    assert text.count("block Rotated") == 1
    assert "layers[i]: Rotated()(_, h if i % 6 != 5 else g) for i in 0..8 |> norm: Norm" in text


def template(inputs: tuple[tuple[str, str, str], ...], *steps: str) -> Template:
    statements = (Statement((), "x", steps),)
    return Template("Layer", inputs, (("", "real", "[batch]"),), statements, (), ())


X, MASK = ("x", "real", "[batch]"), ("mask", "bool", "[batch] = none")


def test_templates_are_joined_if_one_has_masks_that_it_only_passes_on() -> None:
    given, bare = template((X, MASK), "a: Inner(_, mask)", "f(x, mask)"), template((X,), "a: Inner", "f(x)")
    assert joined(given, bare) == joined(bare, given) == joined(given, given) == given
    assert joined(bare, bare) == bare


def test_templates_are_not_joined_if_masks_are_used_otherwise() -> None:
    given, bare = template((X, MASK), "f(mask, x)"), template((X,), "f(x)")
    assert joined(given, bare) is None
    needed = template((X, ("mask", "bool", "[batch]")), "f(x, mask)")
    assert joined(needed, bare) is None


@pytest.mark.parametrize(
    ("gaps", "text"),
    [
        (["0.5", "true", "n - 1"], "attention(scale = 0.5, causal = true, window = n - 1)"),
        (["0.5", "false", "none"], "attention(scale = 0.5)"),
        (["0.5", "causal", "none"], "attention(scale = 0.5, causal = causal)"),
    ],
)
def test_settings_with_their_usual_values_are_not_written(gaps: list[str], text: str) -> None:
    written = Gaps()
    parts = [f"scale = {written.number(0.5)}", written.setting("causal", True), written.setting("window", 3)]
    assert fill_gaps(f"attention{SETTINGS}{SETTING.join(parts)}{END}(q)", gaps, []) == f"{text}(q)"


def test_no_settings_are_no_parentheses() -> None:
    written = Gaps()
    parts = [written.setting("causal", False), written.setting("window", None)]
    assert written.values == ["false", "none"]
    assert fill_gaps(f"attention{SETTINGS}{SETTING.join(parts)}{END}(q)", ["false", "none"], []) == "attention(q)"
    assert GAP not in fill_gaps(f"f{SETTINGS}{SETTING.join(parts)}{END}", ["true", "none"], [])
