"""Names of Python and PyTorch that the language lacks: each error says what to write instead."""

import pytest
from small import load

from archspec import ArchError

INSTEAD = {
    "None": "write `none`",
    "True": "write `true`",
    "False": "write `false`",
    "null": "write `none`",
    "nil": "write `none`",
    "view": "write `reshape([...])(x)`",
    "unsqueeze": "give the new shape: `reshape([...])(x)`",
    "squeeze": "give the new shape: `reshape([...])(x)`",
    "flatten": "give the new shape: `reshape([...])(x)`",
    "cat": "write `concat(axis)(a, b)`",
    "concatenate": "write `concat(axis)(a, b)`",
    "hstack": "write `concat(axis)(a, b)`",
    "chunk": "write `split([size, size])(x)`",
    "mm": "write `matmul(a, b)`",
    "bmm": "write `matmul(a, b)`",
    "dot": "write `matmul(a, b)`",
    "einsum": "use `matmul`, with `transpose` and `reshape`",
    "masked_fill": "write `where(mask, value, x)`",
    "rsqrt": "write `1.0 / sqrt(x)`",
    "zeros": "write `full([size, size], 0.0)`, with the value",
    "ones": "write `full([size, size], 0.0)`, with the value",
    "empty": "write `full([size, size], 0.0)`, with the value",
    "tril": "use `causal_mask`: `import std { causal_mask }`",
    "triu": "use `causal_mask`: `import std { causal_mask }`",
    "float": "write `real(x)`",
    "double": "write `real(x)`",
    "long": "write `int(x)`",
    "minimum": "write `min(a, b)`",
    "maximum": "write `max(a, b)`",
    "range": "write `for i in 0..n`, or `arange(n)` for a tensor",
    "swish": "use `silu`: `import std { silu }`",
    "contiguous": "remove it: tensors have no memory layout",
    "Parameter": "write `address: param [size, size]`",
    "Sequential": "write the layers as the steps of a chain: `x |> first: Layer(n) |> relu`",
    "ModuleList": "write a loop: `|> layers[i]: Layer(n) for i in 0..depth`",
}


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
def test_operators_that_assign_have_a_suggested_fix(sign: str) -> None:
    with pytest.raises(ArchError) as found:
        load(f"dim seq\nblock Net(n = 4)(x [seq, n]) -> [seq, n] {{\n  y = x\n  y {sign}= x\n  return y\n}}\n")
    help = f"write `y = y {sign} ...` in a loop, and assign to a new name elsewhere"
    assert [(error.message, error.help) for error in found.value.diagnostics] == [(f"unknown operator `{sign}=`", help)]


@pytest.mark.parametrize("name", INSTEAD)
def test_a_name_of_pytorch_has_a_suggested_fix(name: str) -> None:
    with pytest.raises(ArchError) as found:
        load(f"dim seq\nlayer Net(n = 4)(x [seq, n]) -> [seq, n] {{\n  w: param [n]\n  return x * .w + {name}(x)\n}}\n")
    assert [(error.code, error.help) for error in found.value.diagnostics] == [("unknown-name", INSTEAD[name])]
