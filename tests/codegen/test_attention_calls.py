"""Which products are written as one call of attention, and with which arguments."""

import re
from collections.abc import Callable

from small import load

from archspec.codegen.build import torch_source

INPUTS = {
    "q": "q [batch, 2, n, 4]",
    "k": "k [batch, 2, n, 4]",
    "v": "v [batch, 2, n, 4]",
    "mask": "mask bool [batch, 1, 1, n]",
    "near": "near [n, n]",
    "far": "far [2, n, n] = none",
    "shown": "shown bool [n, n] = none",
    "seen": "seen bool [n, n] = none",
    "other": "other [n, n] = none",
    "steps": "steps int [n, n] = none",
    "more": "more [3, batch, 2, n, n] = none",
}
LINES = {"flat": "reshape([batch * 2, n, 4])(q)", "s": "matmul(q, transpose(k))"}
LINES |= {"masked": "where(shown, s, -inf) if shown != none else s", "biased": "s + far if far != none else s"}
SCORES = (
    "s",
    "s * 0.5",
    "0.25 * s",
    "s / 2.0",
    "s / 3.0 * 2.0",
    "s * scale",
    "s / sqrt(real(4))",
    "where(mask, s, -inf)",
    "where(mask, s * 0.5, -inf)",
    "where(mask, s, -1e9)",
    "where(not causal_mask(n), s, -inf)",
    "where(causal_mask(n), s, -inf)",
    "where(mask, where(causal_mask(n), s, -inf), -inf)",
    "where(shown, where(causal_mask(n), s, -inf), -inf) if shown != none else where(causal_mask(n), s, -inf)",
    "where(causal_mask(n), where(shown, s, -inf) if shown != none else s, -inf)",
    "where(shown, s, -inf) if shown != none else s",
    "s + near",
    "near + s",
    "s + near + far if far != none else s + near",
    "(s + far if far != none else s) + near",
    "s + steps if steps != none else s",
    "where(mask, s + near, -inf)",
    "where(mask, s, -inf) + near",
    "s + 1.0",
    "s - near",
    "s * near",
    "s + sum(axis = 0)(more) if more != none else s",
    "max(s, lowest)",
    "s + near + near * 2.0",
    "where(mask, where(mask, s, -inf), -inf)",
    "where(mask, where(causal_mask(n), where(mask, s, -inf), -inf), -inf)",
    "where(mask, s, -inf) * 0.5",
    "(s + near) * 0.5",
    "where(mask, near, -inf) + s",
    "where(mask, s, 0.0)",
    "where(mask, -inf, s)",
    "s * near * 0.5",
    "s / near",
    "2.0 / s",
    "float32(s)",
    "max(where(mask, s, -inf), lowest)",
    "max(where(mask, s + near, -inf), lowest)",
    "max(masked, lowest)",
    "max(s + near, lowest)",
    "max(where(mask, s, -inf), 0.0)",
    "s + far if far != none else s",
    "biased + other if other != none else biased",
    "biased + near",
    "(biased + near) + other if other != none else biased + near",
    "where(mask, biased, -inf)",
    "where(seen, masked, -inf) if seen != none else masked",
    "where(causal_mask(n), masked, -inf)",
    "where(seen, biased, -inf) if seen != none else biased",
    "where(mask, masked, -inf)",
    "masked + near",
    "masked + far if far != none else masked",
    "max(biased, lowest)",
    "max(where(mask, biased, -inf), lowest)",
    "max(where(mask, biased + near, -inf), lowest)",
    "max(where(seen, masked, -inf) if seen != none else masked, lowest)",
    "max(masked + far if far != none else masked, lowest)",
    "max(masked + near, lowest)",
    "max(matmul(q * 3.0, transpose(k)), lowest)",
)
PRODUCTS = (
    "matmul(softmax(axis = -2)(s), v)",
    "matmul(softmax(axis = 3)(s), v)",
    "matmul(dropout(0.0)(softmax(s)), v)",
    "matmul(dropout(rate)(softmax(s)) if rate != 0.0 else softmax(s), v)",
    "matmul(softmax(matmul(q, transpose(real(int(k))))), v)",
    "matmul(softmax(s), real(int(v)))",
    "matmul(dropout(0.1)(softmax(s)), v)",
    "matmul(dropout(rate)(softmax(s)), v)",
    "matmul(softmax(s) * 2.0, v)",
    "matmul(tanh(s), v)",
    "matmul(softmax(matmul(q, transpose(a = 2, b = 3)(k))), v)",
    "matmul(softmax(matmul(q, transpose(a = -1, b = -2)(k))), v)",
    "matmul(softmax(matmul(q, permute([0, 1, 3, 2])(k))), v)",
    "reshape([batch, 2, n, 4])(matmul(softmax(matmul(flat, transpose(flat))), flat))",
)


def body(value: str, scores: str = "") -> str:
    """The statements of a block that returns a value, of which `t` are the scores."""
    lines = {**LINES, **({"t": scores} if scores else {})}
    used = value
    for name, line in reversed(lines.items()):
        used += f" {line}" if re.search(rf"\b{name}\b", used) else ""
    statements = "".join([f"  {name} = {line}\n" for name, line in lines.items() if re.search(rf"\b{name}\b", used)])
    inputs = ", ".join([text for name, text in INPUTS.items() if re.search(rf"\b{name}\b", used)])
    imports = "import std { causal_mask }\n" if "causal_mask" in used else ""
    numbers = "scale = 0.7, rate = 0.2" if "scale" in used or "rate" in used else ""
    head = f"{imports}dim batch, n\nblock Net({numbers})({inputs}) -> [batch, 2, n, 4] {{\n"
    source = torch_source(load(f"{head}{statements}  return {value}\n}}\n"))
    forward = source[source.index("    def forward") : source.index("def build")].partition('"""\n')[2]
    return re.sub(r" {8}if [^\n]*\.shape[^\n]*:\n(?: {12}[^\n]*\n)+", "", forward)  # checks of sizes


def test_what_is_attention(golden: Callable[[str, str], None]) -> None:
    cases = {scores: body("matmul(softmax(t), v)", scores) for scores in SCORES} | {
        each: body(each) for each in PRODUCTS
    }
    golden("torch/scores.txt", "".join([f"{case}\n{text.rstrip()}\n\n" for case, text in cases.items()]))


def test_masks_with_fewer_than_two_axes_are_not_given_to_the_attention_of_pytorch() -> None:
    text = """
import std {{ attention }}
dim batch, n
block Net()(q [batch, 2, n, 4], mask bool [{shape}]) -> [batch, 2, n, 4] {{ return attention{how}(q, q, q, mask) }}
"""
    for shape, how, is_fused in [
        ("n", "", False),
        ("", "", False),
        ("n", "(finite = true)", False),
        ("n", "(causal = true)", True),
        ("1, n", "", True),
    ]:
        source = torch_source(load(text.format(shape=shape, how=how)))
        assert ("scaled_dot_product_attention" in source) == is_fused
