"""The primitive operations in PyTorch: a table keyed by their names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import NamedTuple

from archspec.ops import OPS, Op
from archspec.pytorch.code import literal, py, sequence
from archspec.pytorch.values import FREE

Code = ast.expr


class Cannot(Exception):
    """Something has no form in PyTorch; the text says what."""


class Operands(NamedTuple):
    """What an operation is given. `tensors` are its inputs in order, None where absent; `numbers` tells which of them
    are plain numbers. `settings` are its hyperparameters; `ranks` the numbers of axes of the inputs (None: several);
    `optional` tells which are None in some uses; `kind` is that of the result. `dtype` and `device` say what new
    tensors of reals are to be.
    """

    tensors: tuple[Code | None, ...]
    numbers: tuple[bool, ...]
    settings: Mapping[str, Code]
    ranks: tuple[int | None, ...]
    optional: tuple[bool, ...]
    kind: str
    dtype: Callable[[], Code]
    device: Callable[[], Code | None]

    def fill(self, template: str, op: str) -> Code:
        names = [i.name for i in OPS[op].inputs]
        parts = {n: t for n, t in zip(names, self.tensors, strict=False) if t is not None}
        return py(template, **parts, **self.settings)


def constant(code: Code) -> object:
    """The value of a literal, or an object equal to nothing."""
    try:
        return ast.literal_eval(code)
    except ValueError:
        return object()


def placed(call: ast.Call, device: Code | None) -> Code:
    """A call that makes a tensor, on a device if one is given."""
    if device is not None:
        call.keywords.append(ast.keyword("device", device))
    return call


def emit(op: str, operands: Operands) -> Code:
    """The expression of an operation. Raises Cannot."""
    template = _TEMPLATES.get(op)
    if template is not None:
        return operands.fill(template, op)
    special = _SPECIAL.get(op)
    if special is None:
        raise Cannot(f"`{op}` has no form in PyTorch")
    return special(operands)


_TEMPLATES = {
    "neg": "-x",
    **{n: f"torch.{n}(x)" for n in ("abs", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "erf")},
    "floor": "torch.floor(x).long()",
    "int": "x.long()",
    "not": "~x",
    **{
        n: f"a {symbol} b"
        for n, symbol in {
            "add": "+",
            "sub": "-",
            "mul": "*",
            "div": "/",
            "floordiv": "//",
            "mod": "%",
            "pow": "**",
            "lt": "<",
            "le": "<=",
            "gt": ">",
            "ge": ">=",
            "and": "&",
            "or": "|",
        }.items()
    },
    "softmax": "F.softmax(x, dim=axis)",
    "cumsum": "torch.cumsum(x, dim=axis)",
    "matmul": "torch.matmul(a, b)",
    "gather": "torch.gather(x, axis, index)",
    "transpose": "x.transpose(a, b)",
    "topk": "topk(x, k, axis)",
}


def _compared(symbol: str, method: str) -> Callable[[Operands], Code]:
    def emit(o: Operands) -> Code:
        a, b = _tensor(o, 0), _tensor(o, 1)
        for x, other in ((a, b), (b, a)):
            if isinstance(constant(other), bool):
                return py(f"x.{method}(other)", x=x, other=other)
        return py(f"a {symbol} b", a=a, b=b)

    return emit


def _tensor(o: Operands, index: int) -> Code:
    code = o.tensors[index]
    assert code is not None
    return code


def _extreme(function: str, limit: str) -> Callable[[Operands], Code]:
    def emit(o: Operands) -> Code:
        a, b = _tensor(o, 0), _tensor(o, 1)
        if o.numbers == (False, False):
            return py(f"torch.{function}(a, b)", a=a, b=b)
        x, bound = (a, b) if o.numbers[1] else (b, a)
        return py(f"x.clamp({limit}=bound)", x=x, bound=bound)

    return emit


def _where(o: Operands) -> Code:
    condition, a, b = _tensor(o, 0), _tensor(o, 1), _tensor(o, 2)
    if o.numbers[1] and o.numbers[2]:
        a = _number(o, a)
    return py("torch.where(condition, a, b)", condition=condition, a=a, b=b)


def _number(o: Operands, value: Code) -> Code:
    """A number as a tensor of the kind of the result."""
    return _made(o, "torch.full((), value)", value=value)


def _made(o: Operands, template: str, **parts: Code) -> Code:
    """A new tensor of the kind of the result."""
    call = py(template, **parts)
    assert isinstance(call, ast.Call)
    if o.kind == FREE:
        call.keywords.append(ast.keyword("dtype", o.dtype()))
    return placed(call, o.device())


def _reduction(function: str) -> Callable[[Operands], Code]:
    def emit(o: Operands) -> Code:
        keep = o.settings["keep"]
        if constant(keep) is False:
            return py(f"x.{function}(axis)", x=_tensor(o, 0), axis=o.settings["axis"])
        return py(f"x.{function}(axis, keepdim=keep)", x=_tensor(o, 0), axis=o.settings["axis"], keep=keep)

    return emit


def _linear(o: Operands) -> Code:
    template = "F.linear(x, weight)" if o.tensors[2] is None else "F.linear(x, weight, bias)"
    return o.fill(template, "linear")


def _expert_linear(o: Operands) -> Code:
    bias = "" if o.tensors[3] is None else ", bias"
    return o.fill(f"expert_linear(x, experts, weight{bias})", "expert_linear")


def _conv(o: Operands) -> Code:
    rank = o.ranks[0]
    if rank not in (3, 4, 5):
        raise Cannot("PyTorch has convolutions over one, two or three axes")
    turned = constant(o.settings["transposed"])
    if turned not in (True, False):
        raise Cannot("whether a convolution is transposed is not the same in every use")
    function = f"F.conv_transpose{rank - 2}d" if turned else f"F.conv{rank - 2}d"
    bias = ", bias" if o.tensors[2] is not None else ""
    words = "".join(
        f", {word}={word}"
        for word, usual in {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}.items()
        if constant(o.settings[word]) != usual
    )
    return o.fill(f"{function}(x, weight{bias}{words})", "conv")


def _layer_norm(o: Operands) -> Code:
    _, weight, bias = o.tensors
    scale = next((i for i in (1, 2) if o.tensors[i] is not None and not o.optional[i]), None)
    if scale is None and any(o.tensors[i] is not None and o.ranks[i] != 1 for i in (1, 2)):
        raise Cannot("the axes that are normalised are not the same in every use")
    shape = py("x.shape[-1:]", x=_tensor(o, 0)) if scale is None else py("x.shape", x=_tensor(o, scale))
    none = literal(None)
    return py(
        "F.layer_norm(x, shape, weight, bias, eps)",
        x=_tensor(o, 0),
        shape=shape,
        weight=weight or none,
        bias=bias or none,
        eps=o.settings["eps"],
    )


def _embedding(o: Operands) -> Code:
    looked_up = o.ranks[1] == 2 and not o.numbers[0]
    return o.fill("F.embedding(ids, table)" if looked_up else "table[ids]", "embedding")


def _reshape(o: Operands) -> Code:
    return _called(_tensor(o, 0), "reshape", o.settings["shape"])


def _expand(o: Operands) -> Code:
    return _called(_tensor(o, 0), "expand", o.settings["shape"])


def _permute(o: Operands) -> Code:
    return _called(_tensor(o, 0), "permute", o.settings["order"])


def _called(x: Code, method: str, sizes: Code) -> Code:
    """`x.method(a, b)` of a list written out, `x.method(sizes)` of another."""
    items = list(sizes.elts) if isinstance(sizes, ast.Tuple | ast.List) and sizes.elts else [sizes]
    return ast.Call(ast.Attribute(x, method, ast.Load()), items, [])


def _concat(o: Operands) -> Code:
    parts = sequence([t for t in o.tensors if t is not None], ast.List)
    return py("torch.cat(parts, dim=axis)", parts=parts, axis=o.settings["axis"])


def _split(o: Operands) -> Code:
    return py("torch.split(x, sizes, dim=axis)", x=_tensor(o, 0), sizes=o.settings["sizes"], axis=o.settings["axis"])


def _slice(o: Operands) -> Code:
    start, stop, step = (o.settings[n] for n in ("start", "stop", "step"))
    part = ast.Slice(
        None if constant(start) == 0 else start,
        None if constant(stop) is None else stop,
        None if constant(step) == 1 else step,
    )
    return _indexed(o, part)


def _pick(o: Operands) -> Code:
    return _indexed(o, o.settings["index"])


def _indexed(o: Operands, part: ast.expr) -> Code:
    """`x[:, part]`, or from the end `x[..., part, :]`."""
    axis = constant(o.settings["axis"])
    if not isinstance(axis, int):
        raise Cannot("an axis that is not the same in every use cannot be sliced")
    whole = ast.Slice()
    parts = [*[whole] * axis, part] if axis >= 0 else [ast.Constant(...), part, *[whole] * (-1 - axis)]
    index = parts[0] if len(parts) == 1 else sequence(parts)
    return ast.Subscript(_tensor(o, 0), index, ast.Load())


def _arange(o: Operands) -> Code:
    return _made(o, "torch.arange(stop)", stop=o.settings["stop"])


def _full(o: Operands) -> Code:
    return _made(o, "torch.full(shape, value)", shape=o.settings["shape"], value=o.settings["value"])


_SPECIAL: dict[str, Callable[[Operands], Code]] = {
    "eq": _compared("==", "eq"),
    "ne": _compared("!=", "ne"),
    "min": _extreme("minimum", "max"),
    "max": _extreme("maximum", "min"),
    "where": _where,
    "sum": _reduction("sum"),
    "amax": _reduction("amax"),
    "linear": _linear,
    "expert_linear": _expert_linear,
    "conv": _conv,
    "layer_norm": _layer_norm,
    "embedding": _embedding,
    "reshape": _reshape,
    "expand": _expand,
    "permute": _permute,
    "concat": _concat,
    "split": _split,
    "slice": _slice,
    "pick": _pick,
    "arange": _arange,
    "full": _full,
}


def function_of(op: Op) -> Code | None:
    """The function of PyTorch that an operation is, if there is one."""
    same = _TEMPLATES.get(op.name) == f"torch.{op.name}(x)"
    return py(f"torch.{op.name}") if same else None


NUMBERS = {
    "neg": "-x",
    "abs": "abs(x)",
    **{n: f"math.{n}(x)" for n in ("exp", "log", "sqrt", "sin", "cos", "tanh", "erf", "floor")},
    "sigmoid": "1 / (1 + math.exp(-x))",
    "real": "float(x)",
    "int": "int(x)",
    "min": "min(a, b)",
    "max": "max(a, b)",
}
"""Operations on plain numbers."""
