"""Tensors that have a shape and an element type, and no numbers: what the stand-in for torch computes with.

Their operators and methods, and the functions in FUNCTIONS, are operations of the language, by the form that these have
in PyTorch: `x.reshape(*shape)`. The rule of an operation says what comes out.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from archspec.ir.module import Type
from archspec.ir.ops import OPS, Op


class DType(NamedTuple):
    """An element type: what the language calls it, and its width."""

    kind: str
    bits: int


float32, float64, int64, bool_ = DType("real", 32), DType("real", 64), DType("int", 64), DType("bool", 8)
_WIDEST = {"int": int64, "bool": bool_}
OF_NUMBERS: dict[type, DType] = {bool: bool_, int: int64, float: float32}


class Tensor:
    """A shape and an element type."""

    requires_grad = False

    def __init__(self, shape: Iterable[int], dtype: DType = float32) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.device = None
        if any(size.__class__ is not int or size < 0 for size in self.shape):
            raise TypeError(f"no shape: {self.shape}")

    def numel(self) -> int:
        return math.prod(self.shape)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        if not isinstance(requires_grad, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"requires_grad_() takes a bool, not {type(requires_grad).__name__}")
        if requires_grad and self.dtype.kind != "real":
            raise RuntimeError("only reals can be trained")
        self.requires_grad = requires_grad
        return self

    def to(self, dtype: DType) -> Tensor:
        return Tensor(self.shape, dtype)

    def long(self) -> Tensor:
        return Tensor(self.shape, int64)

    def detach(self) -> Tensor:
        return self

    def clone(self, memory_format: None = None) -> Tensor:
        return Tensor(self.shape, self.dtype)

    def expand(self, *shape: int) -> Tensor:
        new = len(shape) - len(self.shape)
        sizes = [self.shape[i - new] if size == -1 and i >= new else size for i, size in enumerate(shape)]
        return cast("Tensor", applied(OPS["expand"], [self], {"shape": tuple(sizes)}))

    def squeeze(self, axis: int) -> Tensor:
        return self[(*[slice(None)] * (axis % len(self.shape)), 0)] if self.shape[axis] == 1 else self

    def unsqueeze(self, axis: int) -> Tensor:
        shape = list(self.shape)
        shape.insert(axis if axis >= 0 else axis + len(shape) + 1, 1)
        return Tensor(shape, self.dtype)

    def flatten(self, first: int, last: int) -> Tensor:
        first, last = (axis % len(self.shape) for axis in (first, last))
        return Tensor(
            (*self.shape[:first], math.prod(self.shape[first : last + 1]), *self.shape[last + 1 :]), self.dtype
        )

    def unflatten(self, axis: int, sizes: tuple[int, ...]) -> Tensor:
        axis %= len(self.shape)
        known = math.prod([size for size in sizes if size != -1])
        parts = [self.shape[axis] // known if size == -1 else size for size in sizes]
        if math.prod(parts) != self.shape[axis]:
            raise RuntimeError(f"{self.shape[axis]} is no product of {sizes}")
        return Tensor((*self.shape[:axis], *parts, *self.shape[axis + 1 :]), self.dtype)

    def clamp(self, min: object = None, max: object = None) -> Tensor:
        op, bound = ("max", min) if min is not None else ("min", max)
        return cast("Tensor", applied(OPS[op], [self, bound], {}))

    def new_full(self, size: Iterable[int], fill_value: float) -> Tensor:
        return Tensor(size, self.dtype)

    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        settings = {"axis": dim, "start": start, "stop": start + length, "step": 1}
        return cast("Tensor", applied(OPS["slice"], [self], settings))

    def __getitem__(self, key: object) -> Tensor:
        parts = cast("tuple[object, ...]", key) if isinstance(key, tuple) else (key,)
        if isinstance(key, Tensor):
            return Tensor((*key.shape, *self.shape[1:]), self.dtype)
        if ... in parts:
            at, whole = parts.index(...), len(self.shape) - (len(parts) - 1 - parts.count(None))
            parts = (*parts[:at], *[slice(None)] * whole, *parts[at + 1 :])
        shape: list[int] = []
        left = list(self.shape)
        for part in parts:
            match part:
                case None:
                    shape.append(1)
                case slice():
                    shape.append(len(range(*part.indices(left.pop(0)))))
                case int():
                    size = left.pop(0)
                    if not -size <= part < size:
                        raise IndexError(part)
                case _:
                    raise TypeError(f"no index: {part}")
        return Tensor((*shape, *left), self.dtype)


class Parameter(Tensor):
    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        super().__init__(data.shape, data.dtype)
        self.requires_grad_(requires_grad)


def sizes_of(value: object, rank: int) -> tuple[int, ...]:
    """A tuple or list of sizes as a tuple, or one size for each of `rank` axes."""
    return tuple(cast("Sequence[int]", value)) if isinstance(value, tuple | list) else (cast("int", value),) * rank


# Operations -----------------------------------------------------------------------------------------------------------

Function = Callable[..., Tensor | tuple[Tensor, ...]]

_OTHER_FORMS = (
    ("eq", "a == b"),
    ("ne", "a != b"),
    ("eq", "a.eq(b)"),
    ("ne", "a.ne(b)"),
    ("min", "torch.minimum(a, b)"),
    ("max", "torch.maximum(a, b)"),
    ("where", "torch.where(condition, a, b)"),
    ("sum", "x.sum(axis, keepdim=keep)"),
    ("amax", "x.amax(axis, keepdim=keep)"),
    ("argmax", "x.argmax(axis, keepdim=keep)"),
    ("group_norm", "F.group_norm(x, groups, weight, bias, eps)"),
    *[("max_pool", f"F.max_pool{n}d(x, kernel, stride=stride, padding=padding)") for n in (1, 2, 3)],
    *[("mean_pool", f"F.avg_pool{n}d(x, kernel, stride=stride, padding=padding)") for n in (1, 2, 3)],
    ("linear", "F.linear(x, weight, bias)"),
    ("embedding", "F.embedding(ids, table)"),
)
"""Forms that operations have for some operands; the first of a name is tried first."""


def applied(op: Op, operands: Sequence[object], settings: Mapping[str, object]) -> Tensor | tuple[Tensor, ...]:
    """The results of an operation."""
    types = [Type(v.shape, v.dtype.kind) if isinstance(v, Tensor) else _number_type(v) for v in operands]
    results = [
        Tensor(cast("tuple[int, ...]", t.shape), _dtype(t.dtype, operands)) for t in op.rule(types, dict(settings))
    ]
    return results[0] if len(results) == 1 and not op.has_several else tuple(results)


def _number_type(value: object) -> Type | None:
    return None if value is None else Type((), OF_NUMBERS[value.__class__].kind)


def _dtype(kind: str, operands: Sequence[object]) -> DType:
    """The element type of a result: of reals the widest that goes in, where tensors with axes go first."""
    if kind != "real":
        return _WIDEST[kind]
    reals = [v for v in operands if isinstance(v, Tensor) and v.dtype.kind == "real"]
    return max([v.dtype for v in reals if v.shape] or [v.dtype for v in reals] or [float32])


def _function(op: Op, order: Sequence[str], words: Mapping[str, str]) -> Function:
    """An operation as a function of the operands `order`, of which `*sizes` takes all that are left, and of `words`."""
    usual = {a.name: a.default for a in op.attributes}

    def function(*values: object, **named: object) -> Tensor | tuple[Tensor, ...]:
        given = {words[word]: value for word, value in named.items()}
        for i, (word, value) in enumerate(zip(order, values, strict=False)):
            sizes = tuple(values[i:]) if len(values) > i + 1 else sizes_of(value, 1)
            given[word.lstrip("*")] = sizes if word.startswith("*") else value
        if len(values) > len(order) and not order[-1].startswith("*"):
            raise TypeError("too many operands")
        operands = [given.pop(i.name, None) for i in op.inputs]
        if op.inputs and op.inputs[-1].variadic:
            operands = list(cast("Sequence[object]", operands[-1]))
        return applied(op, operands, usual | given)

    return function


_METHODS = {
    "Mult": "mul",
    "Div": "truediv",
    "BitAnd": "and",
    "BitOr": "or",
    "NotEq": "ne",
    "LtE": "le",
    "GtE": "ge",
    "USub": "neg",
}
"""Operators in `ast` that Python's methods have other names for."""


def _functions(op: Op, form: str) -> Iterator[tuple[str, str, Function]]:
    """The functions and methods that a form calls: what has them, their names, and what they do."""
    match ast.parse(form, mode="eval").body:
        case ast.Call(ast.Attribute(ast.Name(owner), name), values, keywords) if all(k.arg for k in keywords):
            order = [ast.unparse(value) for value in values]
            words = {str(k.arg): ast.unparse(k.value) for k in keywords}
            is_function = owner in ("torch", "F")
            yield owner if is_function else "", name, _function(op, order if is_function else [owner, *order], words)
        case ast.BinOp(op=operator) | ast.Compare(ops=[operator]) | ast.UnaryOp(op=operator):
            kind = operator.__class__.__name__
            name = _METHODS.get(kind, kind.lower())
            order = [i.name for i in op.inputs]
            yield "", f"__{name}__", _function(op, order, {})
            yield "", f"__r{name}__", _function(op, order[::-1], {})
        case _:
            pass


FUNCTIONS: dict[str, dict[str, Function]] = {"torch": {}, "F": {}}
"""The functions of torch and of torch.nn.functional, by name."""

_WRITTEN = frozenset(vars(Tensor))
_OWN_FORMS = [(op.name, op.torch.form) for op in OPS.values() if op.torch is not None]
for _op, _form in (*_OTHER_FORMS, *_OWN_FORMS):
    for _owner, _name, _made in _functions(OPS[_op], _form) if isinstance(_form, str) else ():
        if _owner:
            FUNCTIONS[_owner].setdefault(_name, _made)
        elif _name not in _WRITTEN:
            setattr(Tensor, _name, _made)


def _stack(tensors: Sequence[Tensor], dim: int) -> Tensor:
    (shape,) = {tensor.shape for tensor in tensors}
    at = dim % (len(shape) + 1)
    return Tensor((*shape[:at], len(tensors), *shape[at:]), tensors[0].dtype)


FUNCTIONS["torch"]["stack"] = _stack


def _einsum(equation: str, *tensors: Tensor) -> Tensor:
    left, _, right = equation.partition("->")
    outer: tuple[int, ...] = ()
    sizes: dict[str, int] = {}
    for term, tensor in zip(left.split(","), tensors, strict=True):
        before, dots, after = term.partition("...")
        end = len(tensor.shape) - len(after)
        outer = max(outer, tensor.shape[len(before) : end] if dots else (), key=len)
        sizes |= zip(before + after, tensor.shape[: len(before)] + tensor.shape[end:], strict=True)
    parts = [str(part) for part in re.findall(r"\.\.\.|.", right)]
    shape = [size for part in parts for size in (outer if part == "..." else (sizes[part],))]
    return Tensor(tuple(shape), tensors[0].dtype)


FUNCTIONS["torch"]["einsum"] = _einsum
