"""Products with the matrices of experts in generated modules: sorted once where several follow each other."""

import ast
from collections.abc import Callable
from typing import Any

import pytest
import torch_compare
from small import load

import archspec
from archspec.codegen.build import torch_source
from archspec.codegen.classes.experts import sort_experts_once


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


@pytest.mark.parametrize("case", BODIES)
def test_vectors_are_sorted_once(case: str) -> None:
    source = torch_source(load(spec(case)))
    assert source.count("ByExpert(chosen, x)") == 1 and "expert_linear(" not in source


def test_vectors_are_in_order_for_other_experts() -> None:
    text = """
dim tokens
layer Experts()(x [tokens, 4], chosen int [tokens]) -> [tokens, 4] {
  up: param [2, 4, 4]
  down: param [2, 4, 4]
  last: param [2, 4, 4]
  other = 1 - chosen
  return expert_linear(expert_linear(expert_linear(x, chosen, .up), chosen, .down), other, .last)
}
"""
    source = " ".join(torch_source(load(text)).split())
    assert "expert_linear( by_expert.restored( by_expert.linear(" in source and "other, self.last" in source, source


def test_vectors_are_in_order_where_the_experts_are_others_in_between() -> None:
    text = """
dim tokens
layer Experts()(x [tokens, 4], chosen int [tokens]) -> [tokens, 4] {
  up: param [2, 4, 4]
  down: param [2, 4, 4]
  h = expert_linear(x, chosen, .up)
  for i in 0..1 { chosen = 1 - chosen }
  return expert_linear(h, chosen, .down)
}
"""
    source = torch_source(load(text))
    assert (
        "h = expert_linear(x, chosen, self.up)\n" in source and "return expert_linear(h, chosen, self.down)\n" in source
    )


def test_vectors_are_in_order_where_they_are_split_by_token() -> None:
    text = """
dim tokens
layer Experts()(x [tokens, 4, 4], chosen int [tokens, 4]) -> [tokens, 2, 4] {
  up: param [2, 4, 4]
  down: param [2, 4, 4]
  a, b = split([2, 2], axis = 1)(expert_linear(expert_linear(x, chosen, .up), chosen, .down))
  return a * b
}
"""
    source = " ".join(torch_source(load(text)).split())
    assert "a, b = torch.split( by_expert.restored(" in source and "(2, 2), dim=1, )" in source


@pytest.mark.parametrize(
    "body",
    [
        "return expert_linear(x, chosen, .up)",
        "return concat(axis = -1)(expert_linear(x, chosen, .up), expert_linear(x, chosen, .gate))",
        "return expert_linear(expert_linear(x, chosen, .up), 1 - chosen, .down)",
        "return expert_linear(roll(expert_linear(x, chosen, .up)), chosen, .down)",
        "return expert_linear(halved(expert_linear(x, chosen, .up)), chosen, .down)",
    ],
)
def test_nothing_is_rewritten_that_saves_no_sorting(body: str) -> None:
    declared = "\n".join(f"  {n}: param [2, 4, 4]" for n in ("up", "gate", "down") if f".{n}" in body)
    size = 8 if "concat" in body else 4
    text = f"""
dim tokens
fn roll(x [tokens, 4]) -> [tokens, 4] {{ return transpose(0, 1)(softmax(axis = 0)(transpose(0, 1)(x))) }}
fn halved(x [tokens, 4]) -> [tokens, 4] {{ return x |> * 0.5 for i in 0..tokens }}
layer Experts()(x [tokens, 4], chosen int [tokens]) -> [tokens, {size}] {{
{declared}
  {body}
}}
"""
    unused = tuple(f"fn {name}" for name in ("roll", "halved") if name not in body)
    text = "\n".join(line for line in text.splitlines() if not line.startswith(unused))
    assert "expert_linear(" in torch_source(load(text))


STATEMENTS = """\
y = expert_linear(F.silu(h) * 2.0, chosen, self.down)
y = expert_linear(self.scale * h, chosen, self.down)
y = expert_linear(self.other * h, chosen, self.down)
y = expert_linear(h ** -self.scale, chosen, self.down)
y = expert_linear(h ** (2 * self.scale + 1), chosen, self.down)
y = expert_linear(h ** (2 * self.other + 1), chosen, self.down)
y = expert_linear(-h, chosen, self.down)
y = expert_linear(h @ other, chosen, self.down)
y = expert_linear(h * other, chosen, self.down)
y = expert_linear(h.clamp(min=0.5, max=self.scale), chosen, self.down)
y = expert_linear(h.clamp(min=other), chosen, self.down)
y = expert_linear(torch.maximum(h, h), chosen, self.down)
y = expert_linear(torch.maximum(h, other), chosen, self.down)
y = expert_linear(F.gelu(h, approximate='tanh'), chosen, self.down)
y = expert_linear(F.softmax(h, dim=-1), chosen, self.down)
y = expert_linear(h, chosen, self.down, self.bias)
y = expert_linear(h, chosen, h)
y = expert_linear(h, others, self.down)
a, b = torch.split(h, (2, 2), dim=-1);y = expert_linear(a * b, chosen, self.down)
a, b = torch.split(h, (2, 2), dim=1);y = expert_linear(a * b, chosen, self.down)
a, b = torch.split(h, (2, 2), -1);y = expert_linear(a * b, chosen, self.down)
a = h;y = expert_linear(a, chosen, self.down)
h = x;y = expert_linear(h, chosen, self.down)
self.kept = h;y = expert_linear(h, chosen, self.down)
h[0] = x;y = expert_linear(h, chosen, self.down)
chosen = x;y = expert_linear(h, chosen, self.down)
y = expert_linear(h, chosen, self.down);x = x + y.sum(-1);y = y + expert_linear(x, chosen, self.up)
y = expert_linear(h, chosen, self.down) + expert_linear(x, chosen, self.up);x = h
x = h;y = expert_linear(expert_linear(x, chosen, self.down), chosen, self.down)
y = expert_linear(h, chosen, self.down) + expert_linear(z, chosen, self.up)
y = expert_linear(h, chosen, self.down) + h.sum(-1)
y = expert_linear(h, chosen, self.down);z = h + y
y = h if self.scale > 2 else x;y = expert_linear(y, chosen, self.down)
f(h);y = expert_linear(h, chosen, self.down)
"""
"""Statements after a first product, each case in a line."""


def test_where_the_order_of_vectors_is_restored(golden: Callable[[str, str], None]) -> None:
    """Only values are kept in the order of experts of which each element is computed by itself."""
    functions, texts = {"F.silu", "F.gelu", "torch.maximum"}, list[str]()
    for line in STATEMENTS.splitlines():
        code = "\n".join(["h = expert_linear(x, chosen, self.up)", *line.split(";"), "return y"])
        body = sort_experts_once(ast.parse(code).body, "order", functions, {"scale"})
        found = "\n".join([ast.unparse(ast.fix_missing_locations(statement)) for statement in body])
        texts.append(f"# {line}\n{found if found != code else '(as it is)'}\n\n")
    branch = (
        "h = expert_linear(x, chosen, self.up)\ny = expert_linear(h, chosen, self.down)\nif a:\n    y = y + h\nreturn y"
    )
    body = sort_experts_once(ast.parse(branch).body, "order", functions, set())
    golden("torch/experts.txt", "".join([*texts, *[f"{ast.unparse(statement)}\n" for statement in body]]))


@pytest.mark.slow
@pytest.mark.parametrize("case", BODIES)
def test_the_module_computes_what_the_spec_says(case: str, torch: Any) -> None:
    torch_compare.agrees(load(spec(case)))


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
