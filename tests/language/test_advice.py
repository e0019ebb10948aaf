"""Names of Python and PyTorch that the language lacks: each error says what to write instead."""

import re

import pytest
from small import findings, load

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

SIZES = "name the sizes in the shape of an input, as in `x [batch, seq]`, and use these names"
METHODS = {
    "x.abs()": "write `abs(x)`",
    "x.t()": "write `transpose(x)`",
    "x.transpose(1, 2)": "write `transpose(1, 2)(x)`",
    "x.softmax(dim=-1)": "write `softmax(axis=-1)(x)`",
    "x.softmax(dim = -1).abs()": "write `softmax(axis = -1)(x)`",
    "x.view(2, 3)": "write `reshape([2, 3])(x)`",
    "x.view([2, 3])": "write `reshape([2, 3])(x)`",
    "x.view()": "write `reshape([...])(x)`",
    "x.reshape(n)": "write `reshape([n])(x)`",
    "x.permute(0, 2, 1)": "write `permute([0, 2, 1])(x)`",
    "x.expand(n, n)": "write `expand([n, n])(x)`",
    "x.repeat(2)": 'use `repeat` with a pattern of axes, as in `repeat("n d -> (r n) d", r = 2)(x)`',
    "x.unsqueeze(0)": "write `reshape([...])(x)`",
    "x.flatten(1)": "write `reshape([...])(x)`",
    "x.float()": "write `real(x)`",
    "x.long()": "write `int(x)`",
    "x.int()": "write `int(x)`",
    "x.split(2, dim=1)": "write `split([size, size])(x)`",
    "x.split([2, 2])": "write `split([2, 2])(x)`",
    "x.contiguous()": "remove it: tensors have no memory layout",
    "x.mean(1)": "use `sum(axis)(x)` and divide, or `mean(x)` for a sequence, with `import std { mean }`",
    "x.masked_fill(mask, 0)": "write `where(mask, value, x)`",
    "x.clamp(0, 1)": "write `min(max(x, low), high)`",
    "x.ceil()": "write `-floor(-x)`",
    "x.rsqrt()": "write `1.0 / sqrt(x)`",
    "x.tril()": "use `causal_mask`, with `import std { causal_mask }`",
    "x.add(f(y, [1, 2]), 2)": "write `add(x, f(y, [1, 2]), 2)`",
    "x.mm(y)": "write `matmul(x, y)`",
    "x.bmm(y)": "write `matmul(x, y)`",
    "x.max(y)": "write `max(x, y)`",
    "x.max()": "write `amax(axis)(x)`",
    "x.max(1)": "write `amax(axis)(x)`",
    "x.max(dim=1)": "write `amax(axis)(x)`",
    "x.min(-1)": "write `-amax(axis)(-x)`",
    "x[0].view(2)": "write `reshape([2])(x[0])`",
    "x.y[0].z.view(2)": "write `reshape([2])(x.y[0].z)`",
    f"x.view({'a' * 60})": f"write `reshape([{'a' * 60}])(x)`",
    f"x.view({'a' * 61})": "write `reshape([...])(x)`",
}
OF_VALUES = {  # without a name before the dot, which is all that is marked
    "(x + 1).abs()": "write `abs(x)`",
    "f(x).view(2)": "write `reshape([2])(x)`",
    "f(x)[0].view(2)": "write `reshape([2])(x)`",
    "[x].view(2)": "write `reshape([2])(x)`",
}
INDICES = {
    "x[:, 0]": "write `slice(1, 0, 1)(x)`, and `reshape` to drop the axis",
    "x[0,]": "write `slice(0, 0, 1)(x)`, and `reshape` to drop the axis",
    "x[:, -1]": "write `slice(1, -1)(x)`, and `reshape` to drop the axis",
    "x[:, i]": "write `slice(1, i, i + 1)(x)`, and `reshape` to drop the axis",
    "x[:, f(y, [2, 3])]": "write `slice(1, f(y, [2, 3]), f(y, [2, 3]) + 1)(x)`, and `reshape` to drop the axis",
    "x[1:]": "write `slice(0, 1)(x)`",
    "x[:n]": "write `slice(0, 0, n)(x)`",
    "x[1 : n]": "write `slice(0, 1, n)(x)`",
    "x[..., 9]": "write `slice(-1, 9, 10)(x)`, and `reshape` to drop the axis",
    "x[..., 1:, :]": "write `slice(-2, 1)(x)`",
    "x[..., :, 1:]": "write `slice(-1, 1)(x)`",
    **dict.fromkeys(("x[:, None]", "x[none, :]"), "use `reshape` to add an axis of size 1"),
    **dict.fromkeys(
        ("x[...]", "x[:]", "x[:, :]", "x[0, 1]", "x[..., 0, 1]", "x[,]"),
        "use `slice(axis, start, stop)(x)` to take part of an axis, and `reshape` to add or drop one",
    ),
    **dict.fromkeys(
        ("x[::2]", "x[:, 1:n:2]", "x[:, [0, 1]]"),
        "use `slice(axis, start, stop)(x)` for adjacent elements, and `gather` for others",
    ),
}
OTHERS = {
    **{
        f"x.{word}": ("x", f"a tensor has no attribute `{word}`", SIZES) for word in ("shape", "ndim", "dtype", "numel")
    },
    "x.size(0)": ("x", "a tensor has no attribute `size`", SIZES),
    "x.weight": ("x", "expected an expression, found the address `x.weight`", "write `.x.weight`"),
    "a.b[0].weight": ("a", "expected an expression, found the address `a.b[0].weight`", "write `.a.b[0].weight`"),
    "nn.ReLU()(x)": ("nn", "unknown module `nn`", "write `relu` without the name of a module"),
    "torch.nn.functional.softmax(x)": (
        "torch",
        "unknown module `torch.nn.functional`",
        "write `softmax` without the name of a module",
    ),
    "torch.nn.Linear(n, n)(x)": (
        "torch",
        "unknown module `torch.nn`",
        "write `Linear(...)`, and import it if the standard library has it: `import std { Linear }`",
    ),
    "self.weight": ("self", "unknown name `self`", "write `.weight` to refer to its declaration"),
    "self.layers[0](x)": ("self", "unknown name `self`", "write `.layers[0]` to refer to its declaration"),
    "self.a.b[i + 1].c |> abs": ("self", "unknown name `self`", "write `.a.b[i + 1].c` to refer to its declaration"),
}


STATEMENTS = {
    "x.y.view(2)": ("a tensor has no method `view`", "write `reshape([2])(x.y)`", "x.y.view"),
    "view(2).abs()": ("a tensor has no method `abs`", "write `abs(x)`", "abs"),
    "self.w = x": ("unknown name `self`", "declare it with a colon: `w: ...`", "self.w"),
    "self.a[0].w = x": ("unknown name `self`", "declare it with a colon: `a[0].w: ...`", "self.a[0].w"),
    "self.w == x": ("unknown name `self`", "write `.w` to refer to its declaration", "self.w"),
}


def advice(expression: str, before: str = "y = ") -> tuple[str, str | None, str]:
    """What is said of an expression in a layer, the help, and the text that it is about."""
    text = f"layer Net(n = 4)(x [n]) -> [n] {{\n  w: param [n]\n  {before}{expression}\n  return x * .w\n}}\n"
    (error,) = findings(text)
    assert error.code == "syntax" and error.span is not None
    return error.message, error.help, text[error.span.start : error.span.end]


@pytest.mark.parametrize("expression", METHODS)
def test_a_method_has_a_suggested_function(expression: str) -> None:
    method = re.match(r"([\w.\[\]]+\.)?(\w+)\(", expression)
    assert method is not None
    assert advice(expression) == (f"a tensor has no method `{method[2]}`", METHODS[expression], method[0][:-1])


@pytest.mark.parametrize("expression", OF_VALUES)
def test_a_method_of_a_value_has_a_suggested_function(expression: str) -> None:
    method = re.findall(r"\.(\w+)\(", expression)[0]
    assert advice(expression) == (f"a tensor has no method `{method}`", OF_VALUES[expression], method)


@pytest.mark.parametrize("expression", INDICES)
def test_an_index_of_a_tensor_has_a_suggested_slice(expression: str) -> None:
    assert advice(expression) == (f"cannot index a tensor with `{expression[1:]}`", INDICES[expression], expression)


@pytest.mark.parametrize("expression", OTHERS)
def test_addresses_and_modules_have_a_suggested_name(expression: str) -> None:
    first, message, help = OTHERS[expression]
    found = advice(expression)
    assert found[0] == message
    assert (found[1] or "").startswith(help)
    assert found[2].startswith(f"{first}.")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_has_a_suggested_fix(statement: str) -> None:
    assert advice(statement, "") == STATEMENTS[statement]


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
