"""Products with the matrices of experts in generated modules: sorted once where several follow each other."""

from typing import Any

import pytest
from small import load

import archspec


@pytest.fixture(scope="session")
def torch() -> Any:
    return pytest.importorskip("torch")


BODIES = {
    "gated": """
  gate, up = split([ffn, ffn])(expert_linear(x, chosen, .gate_up))
  return expert_linear(silu(gate) * up, chosen, .down)""",
    "with biases and numbers": """
  gate, up = split([ffn, ffn])(expert_linear(x, chosen, .gate_up, .bias))
  bounded = min(gate, 7.0)
  return expert_linear((up + 1.0) * bounded * sigmoid(scale * bounded), chosen, .down)""",
    "in one expression": """
  return expert_linear(silu(expert_linear(x, chosen, .up)), chosen, .down)""",
    "three in a row": """
  h = expert_linear(silu(expert_linear(x, chosen, .up)), chosen, .square)
  return expert_linear(h, chosen, .down)""",
    "gate and up apart": """
  gate = expert_linear(x, chosen, .up)
  up = expert_linear(x, chosen, .other)
  return expert_linear(silu(gate) * up, chosen, .down)""",
    "read besides": """
  h = expert_linear(x, chosen, .up)
  y = expert_linear(silu(h), chosen, .down)
  return softmax(axis = 1)(h) |> sum(axis = -1, keep = true) |> + y * sum(axis = -1, keep = true)(h)""",
    "read in a loop": """
  h = expert_linear(x, chosen, .up)
  y = expert_linear(silu(h), chosen, .down)
  for i in 0..scale { y = y + sum(axis = -1, keep = true)(h) * 0.5 }
  return y""",
}


def spec(case: str) -> str:
    body = BODIES[case]
    tensors = {
        "gate_up": "[count, 2 * ffn, hidden]",
        "bias": "[count, 2 * ffn]",
        "up": "[count, ffn, hidden]",
        "square": "[count, ffn, ffn]",
        "other": "[count, ffn, hidden]",
        "down": "[count, hidden, ffn]",
    }
    declared = "\n".join(f"  {name}: param {shape}" for name, shape in tensors.items() if f".{name}" in body)
    scale = ", scale = 2" if "scale" in body else ""
    head = f"count = 5, hidden = 6, ffn = 4{scale}"
    return f"""
import std {{ silu }}
dim tokens, best
layer Experts({head})(x [tokens, 1, hidden], chosen int [tokens, best]) -> [tokens, best, hidden] {{
{declared}
{body}
}}
"""


@pytest.mark.slow
@pytest.mark.parametrize("case", BODIES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_the_ways_to_compute_it_agree(case: str, dtype: str, torch: Any) -> None:
    """With and without gradients, in one type or two, and compiled, which gathers matrices; experts may be idle."""
    module = made(case, torch).to(getattr(torch, dtype))
    x = torch.randn(9, 1, 6, dtype=getattr(torch, dtype))
    chosen = torch.randint(0, 5, (9, 2)).masked_fill_(torch.rand(9, 2) < 0.5, 3)
    with torch.no_grad():
        plain = module(x, chosen)
        gathered = torch.compile(module, backend="eager")(x, chosen)
    within = {"float32": 1e-4, "float64": 1e-10, "bfloat16": 0.1}[dtype]
    torch.testing.assert_close(gathered, plain, atol=within, rtol=within)
    torch.testing.assert_close(module(x, chosen), plain, atol=within, rtol=within)
    module(x, chosen).sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


@pytest.mark.slow
def test_no_tokens_autocast_and_export(torch: Any) -> None:
    module, chosen = made("gated", torch), torch.randint(0, 5, (7, 2))
    with torch.no_grad():
        assert module(torch.randn(0, 1, 6), chosen[:0]).shape == (0, 2, 6)
        x = torch.randn(7, 1, 6)
        with torch.autocast("cpu", torch.bfloat16):
            torch.testing.assert_close(module(x, chosen), module(x, chosen), atol=0.1, rtol=0.1, check_dtype=False)
        exported = torch.export.export(module, (x, chosen)).module()
        torch.testing.assert_close(exported(x, chosen), module(x, chosen))


def made(case: str, torch: Any) -> Any:
    torch.manual_seed(0)
    return archspec.to_torch(load(spec(case)))
