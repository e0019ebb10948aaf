"""Every primitive operation in every way it can be written, as the outputs of one block for each."""

import re

INPUTS = {
    "r": "[batch, 3, 4]",
    "s": "[4]",
    "m": "[4, 3]",
    "w": "[2, 3, 3]",
    "v": "[2, 3]",
    "i": "int [batch, 3, 4]",
    "j": "int [4]",
    "h": "int [4, 3]",
    "b": "bool [batch, 3, 4]",
    "c": "bool [4]",
}
HYPERPARAMETERS = {
    "half": "0.5",
    "one": "1",
    "two": "2",
    "place": "1",
    "axes": "[-1]",
    "small": "0.01",
    "turned": "[2, 0, 1]",
    "pair": "[2, 3]",
    "pair2": "[2, 2]",
    "sixes": "[2, 6]",
    "flag": "true",
}
ELEMENTWISE = {
    "neg": [("", "-r"), ("int", "-i"), ("", "neg(r)"), ("int", "neg(i)")],
    "abs": [("", "abs(r)"), ("int", "abs(j - i)")],
    "exp": [("", "exp(r)"), ("", "exp(i)")],
    "log": [("", "log(abs(r))"), ("", "log(i + 1)")],
    "sqrt": [("", "sqrt(abs(r))"), ("", "sqrt(i)")],
    "sin": [("", "sin(r)"), ("", "sin(i)")],
    "cos": [("", "cos(r)"), ("", "cos(i)")],
    "tanh": [("", "tanh(r)"), ("", "tanh(i)")],
    "sigmoid": [("", "sigmoid(r)"), ("", "sigmoid(i)")],
    "erf": [("", "erf(r)"), ("", "erf(i)")],
    "floor": [("int", "floor(r)"), ("int", "floor(-2.5 * r)"), ("int", "floor(i)"), ("int", "floor(i / 2)")],
    "real": [("", "real(r)"), ("", "real(i)"), ("", "real(b)"), ("", "real(b) * r"), ("", "real(b and c) / 3")],
    "int": [("int", "int(r)"), ("int", "int(-3.7 * r)"), ("int", "int(i)"), ("int", "int(b)"), ("int", "int(i / 2)")],
    "not": [("bool", "not b"), ("bool", "not (b and c)"), ("bool", "not r > 0")],
    "add": [("", "r + s"), ("", "r + i"), ("", "j + r"), ("int", "i + j"), ("", "r + 2"), ("", "0.5 + r"), ("int", "i + 2"), ("", "i + 0.5"), ("", "2.5 + i"), ("", "i + 0.5 + r"), ("", "i + half"), ("int", "i + two")],
    "sub": [("", "r - s"), ("", "i - r"), ("int", "i - j"), ("int", "2 - i"), ("", "2.5 - i"), ("", "i - 2.5"), ("", "1 - (2 - r)"), ("", "r - (s - r)"), ("int", "i - (j - i)")],
    "mul": [("", "r * s"), ("", "r * i"), ("int", "i * j"), ("int", "i * 2"), ("", "i * 0.5"), ("", "(r + s) * (r - 1)"), ("", "2 * i * r"), ("", "half * i")],
    "div": [("", "r / 2"), ("", "1 / (abs(r) + 1)"), ("", "i / 2"), ("", "i / (j + 1)"), ("", "2 / (i + 1)"), ("", "r / (i + 1)"), ("", "i / (1 + abs(r))"), ("", "r / (s / r)"), ("", "i / 2.5"), ("", "i / (j + 1) * r")],
    "floordiv": [("", "r // 0.3"), ("", "r // 2"), ("int", "i // 2"), ("int", "-i // 2"), ("int", "(i - 3) // (j + 1)"), ("int", "i // -3"), ("int", "7 // (i + 1)"), ("", "r // (i + 1)"), ("", "i // 1.5"), ("", "(i - 2.5) // (s * s + 1)")],
    "mod": [("", "r % 0.3"), ("", "r % 2"), ("int", "i % 2"), ("int", "-i % 3"), ("int", "(i - 3) % (j + 1)"), ("int", "i % -3"), ("int", "7 % (i + 1)"), ("", "r % -(i + 1)"), ("", "i % 1.5")],
    "pow": [("", "r ** 2"), ("", "r ** 3.0"), ("int", "i ** 2"), ("", "(i + 1) ** -0.5"), ("", "i ** 0.5"), ("", "abs(r) ** s"), ("", "r ** i"), ("int", "2 ** i"), ("", "2.5 ** i"), ("", "2 ** r"), ("int", "i ** j"), ("", "-r ** 2"), ("", "(-r) ** 2"), ("", "(abs(r) + 1) ** -1"), ("", "10000.0 ** (i / 4)"), ("", "2 ** -s * r"), ("", "(2 ** s) ** r")],
    "min": [("", "min(r, s)"), ("", "min(r, 0)"), ("", "min(0.5, r)"), ("int", "min(i, j)"), ("int", "min(i, 2)"), ("int", "min(2, i)"), ("", "min(i, 2.5)"), ("", "min(r, i)"), ("", "min(i, r)"), ("", "min(i, half)"), ("", "min(i, 2.0)")],
    "max": [("", "max(r, s)"), ("", "max(r, 0.0)"), ("", "max(0, r)"), ("int", "max(i, j)"), ("int", "max(i, 2)"), ("", "max(2.5, i)"), ("", "max(i, r)"), ("", "max(i, 0.5) * r"), ("", "max(1.0, i)")],
    "eq": [("bool", "r == s"), ("bool", "i == j"), ("bool", "i == 2"), ("bool", "i == 2.0"), ("bool", "b == c"), ("bool", "r == i"), ("bool", "2 == i"), ("bool", "i / 2 == 1")],
    "ne": [("bool", "r != s"), ("bool", "i != j"), ("bool", "i != 2"), ("bool", "b != c"), ("bool", "b != (i != 0)")],
    "lt": [("bool", "r < s"), ("bool", "i < 2"), ("bool", "0 < r"), ("bool", "i < r"), ("bool", "i < 2.5")],
    "le": [("bool", "r <= s"), ("bool", "i <= j"), ("bool", "2 <= i")],
    "gt": [("bool", "r > s"), ("bool", "i > j"), ("bool", "r > 0.1")],
    "ge": [("bool", "r >= s"), ("bool", "i >= j"), ("bool", "i + 1 >= 2 * j")],
    "and": [("bool", "b and c"), ("bool", "b and r > 0"), ("bool", "b and c and i == 1"), ("bool", "b and not c")],
    "or": [("bool", "b or c"), ("bool", "b or c and r > 0"), ("bool", "(b or c) and r > 0"), ("bool", "not b or not (c or b)")],
    "where": [("", "where(b, r, s)"), ("", "where(b, r, 0)"), ("", "where(b, 0.5, r)"), ("", "where(b, r, -inf)"), ("", "where(b, r, i)"), ("", "where(c, i, r)"), ("int", "where(b, i, j)"), ("int", "where(b, i, 2)"), ("", "where(b, i, 2.5)"), ("int", "where(b, 1, 2)"), ("", "where(b, 1.5, 2)"), ("", "where(b, 1, half)"), ("bool", "where(b, c, r > 0)"), ("", "where(b, 1.0, 2.0) * r"), ("", "where(b, i, 2.5) + r"), ("", "where(r > 0 and c, r, -r)"), ("", "where(b, i, 2.0)"), ("int", "where(b, two, i)")],
}  # fmt: skip
"""By operation: element type and expression, each of the shape of `r`."""

OTHERS = {
    "sum": [("[batch, 3]", "sum(axis = -1)(r)"), ("int [batch, 4]", "sum(axis = 1)(i)"), ("[4]", "sum(axis = [0, 1])(r)"), ("[batch, 1, 1]", "sum(axis = [1, -1], keep = true)(r)"), ("[]", "sum(axis = [0, 1, 2])(r)"), ("int [1, 1, 1]", "sum([0, 1, 2], true)(i)"), ("[batch, 1, 4]", "r |> sum(place, keep = true)"), ("[batch, 3]", "sum(axis = axes)(sum(axis = -1, keep = true)(r))")],
    "amax": [("[batch, 3]", "amax(axis = -1)(r)"), ("int [batch, 4]", "amax(axis = 1)(i)"), ("[4]", "amax(axis = [0, 1])(r)"), ("[batch, 1, 1]", "amax(axis = [1, -1], keep = true)(r)"), ("[batch, 3]", "amax(axis = -1)(i / 2)")],
    "softmax": [("[batch, 3, 4]", "softmax(r)"), ("[batch, 3, 4]", "softmax(axis = 1)(r)"), ("[batch, 3, 4]", "softmax(i)"), ("[batch, 3, 4]", "softmax(axis = place)(r * 3)"), ("[batch, 3, 4]", "softmax(i) * r"), ("[4]", "softmax(j / 2)")],
    "cumsum": [("[batch, 3, 4]", "cumsum(r)"), ("int [batch, 3, 4]", "cumsum(axis = 1)(i)"), ("[batch, 3, 4]", "cumsum(axis = 0)(r)"), ("[batch, 3, 4]", "cumsum(i / 2)")],
    "topk": [("([batch, 3, 2], int [batch, 3, 2])", "topk(k = 2)(r)"), ("(int [batch, 2, 4], int [batch, 2, 4])", "topk(2, axis = 1)(i)"), ("([batch, 3, 4], int [batch, 3, 4])", "topk(4)(i / 2)"), ("([1, 3, 4], int [1, 3, 4])", "r |> topk(k = 1, axis = 0)"), ("([batch, 3, 1], int [batch, 3, 1])", "topk(one)(r)")],
    "matmul": [("[batch, 3, 3]", "matmul(r, m)"), ("int [batch, 3, 3]", "matmul(i, h)"), ("[batch, 3, 3]", "matmul(r, h)"), ("[batch, 3, 3]", "matmul(i, m)"), ("[batch, 3, 3]", "matmul(i / 2, m)"), ("[batch, 3, 3]", "matmul(i / 2, h / 3)"), ("[batch, 3, 3]", "matmul(i, h / 3)"), ("[batch, 3, 3]", "matmul(r, transpose(r))"), ("[4, 4]", "matmul(m, transpose(h))"), ("[batch, 3, 4]", "matmul(softmax(matmul(r, transpose(r))), r)"), ("[1, 1]", "matmul(reshape([1, 4])(s), reshape([4, 1])(s))")],
    "linear": [("[batch, 3, 3]", "linear(r, transpose(m))"), ("[batch, 3, 4]", "linear(matmul(r, m), m, s)"), ("[batch, 3, 4]", "linear(matmul(i, m), h, j)"), ("int [batch, 3, 4]", "linear(matmul(i, h), h)"), ("int [batch, 3, 4]", "linear(matmul(i, h), h, j)"), ("[batch, 3, 4]", "linear(matmul(i, h), m)"), ("[4]", "linear(sum(axis = [0, 2])(r), m, bias = s)"), ("[batch, 3, 4]", "linear(matmul(i / 2, h), h, j)"), ("[batch, 3, 4]", "linear(matmul(i / 2, m), h)")],
    "expert_linear": [("[4, 3]", "expert_linear(m, pick(axis = 1, index = 0)(min(h, 1)), w)"), ("[4, 3]", "expert_linear(m, pick(axis = 1, index = 0)(min(h, 1)), w, v)"), ("[4, 3]", "expert_linear(h, pick(axis = 1, index = 0)(min(h, 1)), w, v)"), ("[4, 4, 3]", "expert_linear(m, min(h, 1) |> pick(axis = 1, index = 0) |> reshape([4, 1]), w)"), ("[4]", "expert_linear(s, 1, reshape([2, 4, 4])(arange(32)))"), ("int [4]", "expert_linear(j, 1, reshape([2, 4, 4])(arange(32)))"), ("[batch, 3, 4]", "expert_linear(i, pick(axis = 2, index = 0)(min(i, 1)), reshape([2, 4, 4])(arange(32)) / 7)")],
    "conv": [("[batch, 2, 4]", "conv(padding = 1)(r, w)"), ("[batch, 2, 4]", "conv(padding = 1)(r, reshape([2, 3, 3])(arange(18)))")],
    "layer_norm": [("[batch, 3, 4]", "layer_norm(1e-3)(r)"), ("[batch, 3, 4]", "layer_norm(eps = 0.1)(i)"), ("[batch, 3, 4]", "layer_norm(1e-3)(r, s)"), ("[batch, 3, 4]", "layer_norm(1e-3)(r, bias = s)"), ("[batch, 3, 4]", "layer_norm(1e-3)(r, s, s + 1)"), ("[batch, 3, 4]", "layer_norm(1e-3)(r, j, s)"), ("[batch, 3, 4]", "layer_norm(1e-3)(i, s, j)"), ("[batch, 3, 4]", "layer_norm(1e-3)(r, transpose(m), transpose(h))"), ("[batch, 3, 4]", "layer_norm(small)(i / 2)"), ("[batch, 3, 4]", "layer_norm(1)(r)")],
    "embedding": [("[batch, 3, 4, 3]", "embedding(min(i, 3), m)"), ("[batch, 3, 4]", "embedding(min(i, 3), s)"), ("[4, 4, 3]", "embedding(min(j, 1), reshape([2, 4, 3])(arange(24)) * 0.5)"), ("bool [batch, 3, 4]", "embedding(min(i, 3), c)"), ("int [4, 3]", "embedding(min(j, 3), h)"), ("[3]", "embedding(2, m)"), ("[batch, 3]", "embedding(min(sum(axis = [1, 2])(i), 3), m)"), ("[4, 3, 3]", "embedding(min(h, 3), m)"), ("int [4, 3]", "embedding(min(h, 3), j)"), ("int [4, 3, 3]", "embedding(min(h, 3), h)")],
    "gather": [("[batch, 3, 4]", "gather(axis = -1)(r, min(i, 3))"), ("int [4, 3]", "gather(axis = 0)(h, min(h, 3))"), ("bool [batch, 3, 4]", "gather(axis = 1)(b, min(i, 2))"), ("[batch, 3, 4]", "gather(axis = 1)(r, min(i, 2))"), ("[batch, 3, 1]", "gather(axis = 2)(r, reshape([batch, 3, 1])(min(pick(axis = 2, index = 0)(i), 3)))")],
    "reshape": [("[batch, 12]", "reshape([batch, 12])(r)"), ("int [12 * batch]", "reshape([12 * batch])(i)"), ("bool [4, 1, 1]", "c |> reshape([4, 1, 1])"), ("[batch, 2, 6]", "reshape([batch, sixes[0], sixes[1]])(r)"), ("[batch, 2, 6]", "reshape([batch, two, 12 // two])(r)"), ("[]", "reshape([])(sum(axis = [0, 1, 2], keep = true)(r))")],
    "transpose": [("[batch, 4, 3]", "transpose(r)"), ("bool [3, batch, 4]", "transpose(0, 1)(b)"), ("[4, 3, batch]", "transpose(a = 0, b = 2)(r)"), ("[4, 3, batch]", "transpose(place - 1, -1)(r)")],
    "permute": [("[4, batch, 3]", "permute([2, 0, 1])(r)"), ("int [batch, 4, 3]", "permute([0, -1, 1])(i)"), ("[4, batch, 3]", "permute(turned)(r)"), ("[4]", "permute([0])(s)")],
    "expand": [("[batch, 3, 4]", "expand([batch, 3, 4])(s)"), ("bool [2, 4]", "expand([2, 4])(c)"), ("int [batch, 4]", "expand([batch, 4])(j)"), ("[2, batch, 3, 4]", "expand([two, batch, 3, 4])(r)"), ("[4, 5]", "expand([4, 5])(reshape([4, 1])(s))"), ("[2, 3]", "expand(pair)(sum(axis = [0, 1, 2])(r))")],
    "concat": [("[batch, 6, 4]", "concat(axis = 1)(r, i)"), ("[batch, 3, 12]", "concat(axis = -1)(r, r * 2, i)"), ("int [batch, 3, 8]", "concat(axis = 2)(i, i + 1)"), ("bool [8]", "concat(axis = 0)(c, not c)"), ("[4]", "concat(axis = 0)(s)"), ("[2 * batch, 3, 4]", "concat(0)(i, i / 2)"), ("[2 * batch, 3, 4]", "concat(0)(i / 2, r)"), ("[2 * batch, 3, 4]", "i |> concat(0)(_, r)")],
    "split": [("([batch, 3, 1], [batch, 3, 3])", "split([1, 3])(r)"), ("(int [batch, 1, 4], int [batch, 2, 4])", "split([1, 2], axis = 1)(i)"), ("(bool [2], bool [2])", "split([2, 2])(c)"), ("([batch, 3, 2], [batch, 3, 2])", "split(sizes = pair2)(r)"), ("([1], [1], [2])", "split([one, one, two], 0)(s)"), ("([batch, 3, 2], [batch, 3, 2])", "split([2, 2])(i / 2)")],
    "slice": [("[batch, 3, 2]", "slice(axis = -1, start = 2)(r)"), ("int [batch, 2, 4]", "slice(axis = 1, stop = 2)(i)"), ("bool [2]", "slice(axis = 0, start = -3, stop = -1)(c)"), ("[batch, 3, 2]", "slice(2, step = 2)(r)"), ("[batch, 1, 4]", "slice(1, 1, 2)(r)"), ("[batch, 2, 4]", "r |> slice(axis = -2, start = one, stop = two + 1)"), ("[batch - 1, 3, 4]", "slice(axis = 0, start = 1)(concat(0)(r, r) |> slice(0, 0, batch))"), ("[batch, 3, 2]", "slice(-1, 0, 4, step = two)(r)")],
    "pick": [("[batch, 3]", "pick(axis = 2, index = 0)(r)"), ("int [batch, 4]", "pick(axis = 1, index = -1)(i)"), ("bool []", "pick(axis = 0, index = 3)(c)"), ("[3, 4]", "pick(axis = 0, index = batch - 1)(r)"), ("[batch, 3]", "pick(-1, one)(r)"), ("[batch, 4]", "pick(axis = -2, index = -one)(r)")],
    "arange": [("int [5]", "arange(5)"), ("int [batch]", "arange(batch)"), ("[batch]", "arange(batch) / batch"), ("[batch]", "arange(batch) * 0.5"), ("int [2 * batch]", "arange(2 * batch) * 2"), ("bool [batch]", "arange(batch) < batch - 1"), ("int [two]", "arange(two)"), ("[batch, 3, 4]", "reshape([batch, 1, 1])(arange(batch)) + r"), ("[batch, 3, 4]", "reshape([batch, 1, 1])(arange(batch) / 2) + r"), ("[batch]", "real(arange(batch))"), ("int [batch]", "min(arange(batch), two)"), ("[batch]", "cos(arange(batch))")],
    "full": [("[2, 3]", "full([2, 3], 0.5)"), ("int [batch]", "full([batch], 3)"), ("bool [2]", "full([2], true)"), ("[]", "full([], inf)"), ("[2]", "full([2], -inf)"), ("int [2]", "full([2], batch)"), ("int [two]", "full([two], two)"), ("[two]", "full([two], half)"), ("[batch, 3, 4]", "r + full([4], 0.5)"), ("[batch, 3, 4]", "i + full([4], 0.5)"), ("[4]", "full([4], 1 / two) * j"), ("bool [2]", "full([2], flag)"), ("[3, 4]", "full([3, 4], 1.0) * full([4], 2)"), ("[2]", "full([2], -half)")],
}  # fmt: skip
"""By operation: output types and expression."""


def specs() -> dict[str, str]:
    """A text for each operation: a block whose outputs are its expressions, or a function of these in a block."""
    found: dict[str, str] = {}
    for op, typed in ELEMENTWISE.items():
        found[op] = _spec([(f"{dtype} [batch, 3, 4]".strip(), expr) for dtype, expr in typed])
    for op, typed in OTHERS.items():
        one = [(outputs, expr) for outputs, expr in typed if not outputs.startswith("(")]
        if one:
            found[op] = _spec(one)
        for n, (outputs, expr) in enumerate((o, e) for o, e in typed if o.startswith("(")):
            found[f"{op} {n}"] = _spec([(outputs, expr)])
    return found


def _spec(typed: list[tuple[str, str]]) -> str:
    words = set(re.findall(r"\w+", " ".join(expr for _, expr in typed)))
    hyper = [f"{name} = {value}" for name, value in HYPERPARAMETERS.items() if name in words]
    inputs = {name: shape for name, shape in INPUTS.items() if name in words}
    if "batch" in words | set(re.findall(r"\w+", " ".join(o for o, _ in typed))):
        inputs = {**inputs, **({} if any("batch" in s for s in inputs.values()) else {"r": INPUTS["r"]})}
    if not inputs:
        inputs = {"s": INPUTS["s"]}
    outputs = typed[0][0] if typed[0][0].startswith("(") else f"({', '.join(o for o, _ in typed)})"
    given = ", ".join(f"{name} {shape}" for name, shape in inputs.items())
    values = ", ".join(expr for _, expr in typed)
    both = f"({', '.join(hyper)})({given})\n   -> {outputs}"
    direct = f"block Direct{both} {{\n  return {values}\n}}\n"
    function = f"fn function{both} {{\n  return {values}\n}}\n"
    through = f"block Through{both} {{\n  return function{'(..)' if hyper else ''}({', '.join(inputs)})\n}}\n"
    models = 'model "direct" = Direct()\nmodel "through" = Through()\n'
    dims = "dim batch\n\n" if "batch" in both + values else ""
    return f"{dims}{direct}\n{function}\n{through}\n{models}"
