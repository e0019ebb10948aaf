"""Tensors that have a shape and an element type, and no numbers: what the stand-in for torch computes with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

from archspec.ir import Type
from archspec.ops import OPS


class DType(NamedTuple):
    """An element type: what the language calls it, and its width."""

    kind: str
    bits: int


float32, float64, int64, bool_ = DType("real", 32), DType("real", 64), DType("int", 64), DType("bool", 8)
_WIDEST = {"int": int64, "bool": bool_}


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
        if requires_grad and self.dtype.kind != "real":
            raise RuntimeError("only reals can be trained")
        self.requires_grad = requires_grad
        return self

    def to(self, dtype: DType) -> Tensor:
        return Tensor(self.shape, dtype)

    def long(self) -> Tensor:
        return Tensor(self.shape, int64)

    def clone(self, memory_format: None = None) -> Tensor:
        return Tensor(self.shape, self.dtype)

    def reshape(self, *shape: Any) -> Tensor:
        return applied("reshape", self, shape=_listed(shape))

    def expand(self, *shape: Any) -> Tensor:
        return applied("expand", self, shape=_listed(shape))

    def permute(self, *order: Any) -> Tensor:
        return applied("permute", self, order=_listed(order))

    def transpose(self, a: int, b: int) -> Tensor:
        return applied("transpose", self, a=a, b=b)

    def sum(self, axis: Any, keepdim: bool = False) -> Tensor:
        return applied("sum", self, axis=axis, keep=keepdim)

    def amax(self, axis: Any, keepdim: bool = False) -> Tensor:
        return applied("amax", self, axis=axis, keep=keepdim)

    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        return applied("slice", self, axis=dim, start=start, stop=start + length)

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        return applied("max", self, min) if max is None else applied("min", self, max)

    def eq(self, other: Any) -> Tensor:
        return applied("eq", self, other)

    def ne(self, other: Any) -> Tensor:
        return applied("ne", self, other)

    def __getitem__(self, key: Any) -> Tensor:
        parts = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
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


def _listed(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """`reshape(a, b)` and `reshape((a, b))` alike."""
    return sizes if len(sizes) != 1 else sizes_of(sizes[0], 1)


def sizes_of(value: Any, rank: int) -> tuple[int, ...]:
    """A tuple or list of sizes as a tuple, or one size for each of `rank` axes."""
    return tuple(cast("Sequence[int]", value)) if isinstance(value, tuple | list) else (value,) * rank


def applied(op: str, *values: Any, **settings: Any) -> Any:
    """An operation of the language: its rule says what comes out."""
    types = [Type(v.shape, v.dtype.kind) if isinstance(v, Tensor) else _number_type(v) for v in values]
    results = [Tensor(cast("Any", t.shape), _dtype(t.dtype, values)) for t in OPS[op].rule(types, settings)]
    return results[0] if len(results) == 1 and not OPS[op].has_several else tuple(results)


def _number_type(value: Any) -> Type | None:
    if value is None:
        return None
    kinds = {bool: "bool", int: "int", float: "real"}
    return Type((), kinds[value.__class__])


def _dtype(kind: str, values: Sequence[Any]) -> DType:
    """The element type of a result: of reals the widest that goes in, where tensors with axes go first."""
    if kind != "real":
        return _WIDEST[kind]
    reals = [v for v in values if isinstance(v, Tensor) and v.dtype.kind == "real"]
    return max([v.dtype for v in reals if v.shape] or [v.dtype for v in reals] or [float32])


def _operator(op: str, turned: bool = False) -> Callable[[Tensor, Any], Tensor]:
    def operator(self: Tensor, other: Any) -> Tensor:
        return applied(op, other, self) if turned else applied(op, self, other)

    return operator


for _name in ("add", "sub", "mul", "floordiv", "mod", "pow", "and", "or"):
    setattr(Tensor, f"__{_name}__", _operator(_name))
    setattr(Tensor, f"__r{_name}__", _operator(_name, turned=True))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_name}__", _operator(_name))
Tensor.__truediv__, Tensor.__rtruediv__ = _operator("div"), _operator("div", turned=True)  # pyright: ignore
Tensor.__matmul__ = _operator("matmul")  # pyright: ignore
Tensor.__neg__ = lambda self: applied("neg", self)  # pyright: ignore
Tensor.__invert__ = lambda self: applied("not", self)  # pyright: ignore


class Parameter(Tensor):
    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        super().__init__(data.shape, data.dtype)
        self.requires_grad_(requires_grad)
