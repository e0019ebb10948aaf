"""The three number systems agree: numbers, symbols (`formula`), and numbers with their origin (generated code)."""

import inspect
import random
from typing import Any

import pytest

import archspec
from archspec import testing

OPERATORS = ("+", "-", "*", "//", "%", "**")


def drawn_expression(rng: random.Random, depth: int = 3) -> str:
    """An expression of the hyperparameters n and m, whose value may be any integer."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["n", "m", "n", "m", str(rng.randint(1, 9))])
    operator = rng.choice(OPERATORS)
    left = drawn_expression(rng, depth - 1)
    right = drawn_expression(rng, depth - 1)
    match operator:
        case "**":
            return f"({left}) ** {rng.randint(1, 3)}"
        case "//" | "%":
            return f"({left}) {operator} {rng.randint(1, 7)}"
        case _:
            return f"({left}) {operator} ({right})"


def text_of(rng: random.Random) -> str:
    size = f"1 + (31 * n + 17 * m + {drawn_expression(rng)}) % 997"
    return (
        "dim batch\n"
        f"block Net(n = 3, m = 4)(x [batch]) -> [batch] {{\n  w: param [{size}]\n  return x * sum(axis = 0)(.w)\n}}\n"
        'model "net" = Net()\n'
    )


@pytest.mark.parametrize("seed", range(60))
def test_sizes_are_equal_as_numbers_and_symbols(seed: int) -> None:
    text = text_of(random.Random(seed))
    formula = archspec.formula(archspec.loads(text), "n", "m")
    for n, m in ((1, 1), (2, 5), (7, 3), (12, 30)):
        assert formula.at(n=n, m=m) == archspec.loads(text, n=n, m=m).params.total, text


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_sizes_are_equal_in_generated_code(seed: int) -> None:
    torch = pytest.importorskip("torch")
    text = text_of(random.Random(seed))
    result = testing.run("build", "-", stdin=text)
    assert result.status == 0, result.errors
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(result.output, "generated", "exec"), names)
    for n, m in ((1, 1), (2, 5), (7, 3), (12, 30)):
        arguments = inspect.signature(names["Net"]).parameters
        with torch.device("meta"):
            module = names["Net"](**{name: value for name, value in (("n", n), ("m", m)) if name in arguments})
        assert module.w.numel() == archspec.loads(text, n=n, m=m).params.total, text
