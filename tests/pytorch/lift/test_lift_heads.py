"""Lifting: attention that modules write in other ways, their masks, and heads that stand for several."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec

nn = torch.nn
F = nn.functional
INF = float("inf")
Q = torch.linspace(-1, 1, 240).reshape(2, 4, 5, 6)


class Attention(nn.Module):
    """Queries, keys, values and where they are visible."""

    def __init__(self, function: Callable[[Any, Any, Any, Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, q: Any, k: Any, v: Any, mask: Any) -> Any:
        return self.function(q, k, v, mask)


def returned(module: nn.Module, *inputs: Any) -> str:
    """The statements of the only definition of a spec, in one line."""
    text = archspec.lift(module.eval(), inputs)
    return " ".join(text[text.index("{\n") + 2 : text.index("\n}\n")].split())


WRITTEN: dict[str, tuple[Callable[[Any, Any, Any, Any], Any], str]] = {
    "hidden where it is not visible": (
        lambda q, k, v, mask: torch.where(mask, q @ k.mT * 0.25, -INF).softmax(-1) @ v,
        "return attention(scale = 0.25)(q, k, v, mask)",
    ),
    "hidden where it is not to be seen": (
        lambda q, k, v, mask: torch.where(mask, -INF, q @ k.mT / 8.0).softmax(-1) @ v,
        "return attention(scale = 0.125)(q, k, v, not mask)",
    ),
    "less visible": (
        lambda q, k, v, mask: torch.where(mask, q @ k.mT * 0.25, -50.0).softmax(-1) @ v,
        "h = matmul(q, transpose(k)) * 0.25 return matmul(softmax(axis = -1)(where(mask, h, -50.0)), v)",
    ),
    "less visible where it is not to be seen": (
        lambda q, k, v, mask: torch.where(mask, -50.0, q @ k.mT * 0.25).softmax(-1) @ v,
        "h = matmul(q, transpose(k)) * 0.25 return matmul(softmax(axis = -1)(where(mask, -50.0, h)), v)",
    ),
    "scaled before": (
        lambda q, k, v, mask: torch.where(mask, (q * 0.5) @ (k / 4.0).mT, -INF).softmax(-1) @ v,
        "return attention(scale = 0.125)(q, k, v, mask)",
    ),
    "repeated keys": (
        lambda q, k, v, mask: F.scaled_dot_product_attention(
            q, k[:, :2].repeat_interleave(2, 1), v[:, :2].repeat_interleave(2, 1), mask
        ),
        "return attention(q, slice(axis = 1, stop = 2)(k), slice(axis = 1, stop = 2)(v), mask)",
    ),
    "repeated keys alone": (
        lambda q, k, v, mask: F.scaled_dot_product_attention(q, k[:, :2].repeat_interleave(2, 1), v, mask),
        "repeat_heads(2) return attention(q, key, v, mask)",
    ),
    "the lowest number": (
        lambda q, k, v, mask: torch.where(mask, q @ k.mT, torch.finfo(torch.float32).min),
        "return where(mask, matmul(q, transpose(k)), lowest)",
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_attention_is_recognized(name: str) -> None:
    function, expected = WRITTEN[name]
    assert expected in returned(Attention(function), Q, Q + 1, Q + 2, torch.ones(5, 5) > 0)


class Split(nn.Module):
    """Heads that are scaled as tokens, and then split."""

    def forward(self, x: Any) -> Any:
        q = (x.unflatten(-1, (2, 4)) * 0.5).transpose(1, 2)
        k = x.unflatten(-1, (2, 4)).transpose(1, 2)
        return (q @ k.mT).softmax(-1) @ k


def test_heads_are_scaled_before_they_are_split() -> None:
    x = torch.linspace(-1, 1, 80).reshape(2, 5, 8)
    assert returned(Split(), x) == "k = split_heads(2)(x) return attention(k, k, k)"


class Padded(nn.Module):
    """Two layers with a mask of padding, which may be left out."""

    def forward(self, x: Any, attention_mask: Any = None) -> Any:
        visible = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
        return F.scaled_dot_product_attention(x, x, F.scaled_dot_product_attention(x, x, x, visible), visible)


def test_padding_is_a_statement_of_its_own() -> None:
    text = returned(Padded(), Q, torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]))
    assert "mask = key_mask(attention_mask) if attention_mask != none" in text
    assert text.endswith("return attention(x, x, value, mask)")


class Recurrent(nn.Module):
    """Recurrent layers that begin with given states."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.layer = nn.LSTM(8, 12, bias=bias, batch_first=True)

    def forward(self, x: Any, state: Any) -> Any:
        return self.layer(x, (state, state * 2))[0]


@pytest.mark.parametrize(
    ("bias", "expected"),
    [
        (False, "lstm(linear(x, .layer.weight_ih_l0), .layer.weight_hh_l0, full([48], 0.0), pick(axis = 0, index = 0)"),
        (True, ".layer.weight_hh_l0, .layer.bias_hh_l0, pick(axis = 0, index = 0)(state),"),
    ],
)
def test_recurrent_layers_begin_with_states(bias: bool, expected: str) -> None:
    x, state = torch.linspace(-1, 1, 80).reshape(2, 5, 8), torch.ones(1, 2, 12)
    assert expected in returned(Recurrent(bias), x, state)
