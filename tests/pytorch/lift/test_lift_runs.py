"""Lifting: layers that are applied one after the other, and what each of them is given."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec import equivalent

nn = torch.nn


class Given(nn.Module):
    """A layer with an input of its own."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(hidden, inner), nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x: Any, own: Any) -> Any:
        gate = torch.sigmoid(self.gate(x)) + torch.tanh(self.up(x)) * 0.5
        return x + self.down(torch.relu(self.up(x)) * gate) * own


class Stack(nn.Module):
    """Layers that each take a slice of what is computed once; `wide` are the indices of those that are wider."""

    def __init__(self, count: int, wide: tuple[int, ...] = (), shift: int = 0) -> None:
        super().__init__()
        self.count, self.shift = count, shift
        self.inputs = nn.Linear(8, count * 8)
        self.layers = nn.ModuleList([Given(8, 16 if turn in wide else 12) for turn in range(count)])

    def forward(self, x: Any) -> Any:
        own = self.inputs(x).unflatten(-1, (self.count, 8))
        for turn, layer in enumerate(self.layers):
            x = layer(x, own[:, (turn + self.shift) % self.count])
        return x


def lifted(module: nn.Module) -> str:
    text = archspec.lift(module.eval(), (torch.zeros(2, 8),))
    assert equivalent(archspec.loads(text), module).verdict == "equal"
    return text


@pytest.mark.slow
def test_layers_that_take_slices_are_a_loop() -> None:
    text = lifted(Stack(5))
    assert "layers[i]: Given()(_, pick(axis = 1, index = i)(own)) for i in 0..5" in " ".join(text.split())


@pytest.mark.slow
def test_layers_that_take_slices_in_another_order_are_no_loop() -> None:
    text = lifted(Stack(5, shift=1))
    assert "[i]" not in text
    assert "pick(axis = 1, index = 4)" in text


@pytest.mark.slow
def test_layers_of_two_kinds_that_alternate_take_slices() -> None:
    text = " ".join(lifted(Stack(6, wide=(1, 3, 5))).split())
    assert "Given(12)(_, pick(axis = 1, index = i)(own)) if i % 2 == 0 else" in text


@pytest.mark.slow
def test_layers_of_two_kinds_without_a_rule_are_listed() -> None:
    text = " ".join(lifted(Stack(12, wide=(1, 2, 5, 8, 9))).split())
    assert "Given(12)(_, pick(axis = 1, index = i)(own)) if i not in [1, 2, 5, 8, 9] else" in text


class Scaled(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 6)
        self.register_buffer("scale", torch.tensor(scale), persistent=False)

    def forward(self, ids: Any) -> Any:
        return self.words(ids) * self.scale


@pytest.mark.parametrize(
    ("scale", "written"),
    [
        (48**0.5, str(48**0.5)),
        (48**-0.5, str(48**-0.5)),
        (2.5, "2.5"),
        (1.2345678806304932, "1.23456788063"),
    ],
)
def test_roots_that_are_kept_in_float32_are_roots(scale: float, written: str) -> None:
    assert written in archspec.lift(Scaled(scale).eval(), (torch.zeros(2, 3, dtype=torch.long),))


class Reading(nn.Module):
    """Layers whose results are normalized and scored by modules that a call is given."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])

    def forward(self, x: Any, norm: nn.Module, scores: nn.ModuleList) -> Any:
        found: list[Any] = []
        for layer, score in zip(self.layers, scores, strict=True):
            x = torch.tanh(layer(x)) * 0.5 + x
            found.append(score(norm(x)))
        return torch.stack(found, 1)


class Lending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decoder, self.decoder_norm = Reading(), nn.LayerNorm(8)
        self.scores = nn.ModuleList([nn.Linear(8, 3) for _ in range(2)])

    def forward(self, x: Any) -> Any:
        return self.decoder(self.decoder_norm(x), self.decoder_norm, self.scores)


def test_modules_that_a_call_is_given_stay_where_they_are() -> None:
    text = lifted(Lending())
    assert "decoder_norm: LayerNorm(8, 1e-5)" in text
    assert "decoder.layers.0: Linear(8, 8)" in text


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return self.second(torch.relu(self.first(x)))


class Borrowing(nn.Module):
    """A block of which a layer is applied alone as well."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Perceptron() for _ in range(2)])

    def forward(self, x: Any) -> Any:
        y = x
        for layer in self.layers:
            x = layer(x)
        for layer in self.layers:
            y = torch.tanh(layer.first(y))
        return x + y


def test_blocks_that_lend_a_layer_are_declared_before() -> None:
    module = Borrowing().eval()
    text = archspec.lift(module, (torch.randn(2, 5, 8),))
    assert "  layers[i]: Perceptron for i in 0..2\n" in text and ".layers.0.first\n" in text
    assert archspec.equivalent(archspec.loads(text), module).verdict == "equal"


class Near(nn.Module):
    """Causal attention, in a window if one is given."""

    def __init__(self, window: int | None) -> None:
        super().__init__()
        self.window = window
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        places = torch.arange(x.shape[1])
        mask = places[:, None] >= places
        if self.window is not None:
            mask = mask & (places[:, None] - places <= self.window)
        q, k, v = self.qkv(x).unflatten(-1, (2, 12)).transpose(1, 2).chunk(3, -1)
        found = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return x + self.out(found.transpose(1, 2).flatten(2)).tanh()


class Layers(nn.Module):
    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Any) -> Any:
        return self.layers(x)


@pytest.mark.parametrize(
    ("windows", "setting"),
    [
        ((3, None, 3, None, 3), "window = 3 if i % 2 == 0"),
        pytest.param((3, 3, None, 3, 3, None), "window = 3 if i % 3 != 2", marks=pytest.mark.slow),
    ],
)
def test_a_setting_that_some_layers_lack_has_a_condition(windows: tuple[int | None, ...], setting: str) -> None:
    module = Layers([Near(window) for window in windows]).eval()
    text = archspec.lift(module, (torch.zeros(2, 7, 8),))
    assert f"[i]: Near({setting}) for i in 0..{len(windows)}" in text
    assert equivalent(archspec.loads(text), module).verdict == "equal"
