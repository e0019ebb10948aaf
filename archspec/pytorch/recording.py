"""A stand-in for torch: it runs what a generated file does when it makes a model, and keeps shapes and no numbers.

So what a file makes can be compared with the spec where PyTorch is not installed, and at once for any size. It knows
what generated files use. Anything else is an error, so that nothing passes unchecked.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import math
import typing
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any

from archspec.ops import OPS
from archspec.pytorch.names import TAKEN_BY_MODULES
from archspec.pytorch.recorded import DType, Parameter, Tensor, applied, bool_, float32, float64, int64, sizes_of


def record(source: str) -> Module:
    """What `build()` of a generated file makes. Raises Exception of any class where the file does something else."""
    known = {name: getattr(builtins, name) for name in _BUILTINS} | {"__import__": _import}
    namespace: dict[str, Any] = {"__name__": "recorded", "__builtins__": known}
    exec(compile(source, "<generated>", "exec"), namespace)
    made = namespace["build"]()
    if not isinstance(made, Module):
        raise TypeError("build() makes no module")
    return made


# Modules --------------------------------------------------------------------------------------------------------------


class Module:
    """What `torch.nn.Module` keeps, and how it finds it."""

    def __init__(self) -> None:
        self.__dict__.update(_modules={}, _parameters={}, _buffers={})

    def __setattr__(self, name: str, value: Any) -> None:
        tables = self._tables()
        known = next((table for table in tables if name in table), None)
        table = tables[0] if isinstance(value, Module) else tables[1] if isinstance(value, Parameter) else known
        if table is None:
            self.__dict__[name] = value
            return
        if name in TAKEN_BY_MODULES or (value is not None and table is tables[1] and not isinstance(value, Parameter)):
            raise TypeError(f"cannot set {name}")
        for other in (*tables, self.__dict__):
            if other is not table:
                other.pop(name, None)
        table[name] = value

    def __getattr__(self, name: str) -> Any:
        for table in self._tables():
            if name in table:
                return table[name]
        raise AttributeError(name)

    def _tables(self) -> tuple[dict[str, Any], ...]:
        return tuple(self.__dict__[name] for name in ("_modules", "_parameters", "_buffers"))

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        self._register(self._tables()[1], name, param)

    def register_buffer(self, name: str, tensor: Tensor | None) -> None:
        self._register(self._tables()[2], name, tensor)

    def _register(self, table: dict[str, Any], name: str, value: Tensor | None) -> None:
        if "." in name or name in TAKEN_BY_MODULES or (hasattr(self, name) and name not in table):
            raise KeyError(name)
        table[name] = value

    def get_submodule(self, target: str) -> Module:
        return self._at(target, 0)

    def get_parameter(self, target: str) -> Parameter:
        return self._at(target, 1)

    def get_buffer(self, target: str) -> Tensor:
        return self._at(target, 2)

    def _at(self, target: str, which: int) -> Any:
        module, (*way, last) = self, target.split(".")
        if any(word in TAKEN_BY_MODULES for word in (*way, last)):
            raise AttributeError(target)
        for word in way:
            module = module._tables()[0][word]
        return module._tables()[which][last]

    def modules(self) -> Iterator[Module]:
        """This module and all inside, each once."""
        found: dict[int, Module] = {}
        waiting: list[Module] = [self]
        while waiting:
            module = waiting.pop()
            if id(module) not in found:
                found[id(module)] = module
                waiting += [m for m in module._tables()[0].values() if m is not None]
        return iter(found.values())

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        for module in self.modules():
            for parameter in module._tables()[1].values():
                if parameter is not None:
                    parameter.requires_grad_(requires_grad)
        return self

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        return self._named("", (1,))

    def state_dict(self, keep_vars: bool = False) -> dict[str, Any]:
        return dict(self._named("", (1, 2)))

    def _named(self, prefix: str, which: Sequence[int]) -> Iterator[tuple[str, Any]]:
        tables = self._tables()
        for i in which:
            yield from ((prefix + name, tensor) for name, tensor in tables[i].items() if tensor is not None)
        for name, module in tables[0].items():
            yield from module._named(f"{prefix}{name}.", which)


class ModuleList(Module):
    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> None:
        if not isinstance(module, Module):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("a list of modules has modules")
        self._modules[str(len(self))] = module

    def __len__(self) -> int:
        return len(self._modules)

    def __getitem__(self, index: int) -> Module:
        return self._modules[str(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        if str(index) not in self._modules:
            raise IndexError(index)
        self._modules[str(index)] = module


class ModuleDict(Module):
    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        if not isinstance(module, Module) or "." in key:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("a dictionary of modules has modules")
        self._modules[key] = module


class _Linear(Module):
    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = Parameter(Tensor((out_features, in_features)))
        self.register_parameter("bias", Parameter(Tensor((out_features,))) if bias else None)


class _Embedding(Module):
    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        super().__init__()
        self.weight = Parameter(Tensor((num_embeddings, embedding_dim)))


class _RMSNorm(Module):
    def __init__(self, normalized_shape: Any, eps: float | None = None) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(sizes_of(normalized_shape, 1)))


class _LayerNorm(_RMSNorm):
    def __init__(self, normalized_shape: Any, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__(normalized_shape)
        self.register_parameter("bias", Parameter(Tensor(self.weight.shape)) if bias else None)


def _convolution(rank: int) -> type[Module]:
    class Convolution(Module):
        def __init__(
            self,
            in_channels: int,
            out_channels: int,
            kernel_size: Any,
            stride: Any = 1,
            padding: Any = 0,
            dilation: Any = 1,
            groups: int = 1,
            bias: bool = True,
        ) -> None:
            super().__init__()
            if in_channels % groups or out_channels % groups:
                raise ValueError("channels must be divisible by groups")
            kernel = sizes_of(kernel_size, rank)
            if len(kernel) != rank:
                raise ValueError("the kernel has other axes")
            self.weight = Parameter(Tensor((out_channels, in_channels // groups, *kernel)))
            self.register_parameter("bias", Parameter(Tensor((out_channels,))) if bias else None)

    return Convolution


_LAYERS: dict[str, type[Module]] = {
    "nn.Linear": _Linear,
    "nn.Embedding": _Embedding,
    "nn.LayerNorm": _LayerNorm,
    "nn.RMSNorm": _RMSNorm,
    **{f"nn.Conv{rank}d": _convolution(rank) for rank in (1, 2, 3)},
}


# The names of torch ---------------------------------------------------------------------------------------------------


def _made(shape: Any, dtype: DType = float32, device: None = None) -> Tensor:
    return Tensor(sizes_of(shape, 1), dtype)


def _full(shape: Any, value: Any, dtype: DType | None = None, device: None = None) -> Tensor:
    kinds = {bool: bool_, int: int64, float: float32}
    return Tensor(shape, dtype or kinds[value.__class__])


def _arange(stop: int, dtype: DType = int64, device: None = None) -> Tensor:
    return Tensor((stop,), dtype)


def _sort(x: Tensor, dim: int, descending: bool, stable: bool) -> tuple[Tensor, Tensor]:
    return x.to(x.dtype), x.long()


def _same(x: Tensor, approximate: str = "none") -> Tensor:
    return x.to(x.dtype)


def _layer_norm(x: Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Tensor:
    return applied("layer_norm", x, weight, bias, eps=eps)


def _initial(least: int = 0) -> Callable[..., Tensor]:
    """A function that fills a tensor of at least so many axes."""

    def fill(x: Tensor, *numbers: float, **named: float) -> Tensor:
        if len(x.shape) < least:
            raise ValueError("a matrix is needed")
        return x

    return fill


def _of(op: str, positions: Sequence[str] = (), words: Mapping[str, str] = MappingProxyType({})) -> Callable[..., Any]:
    """A function of torch that is an operation of the language, whose operands are the parameters at `positions`, and
    under other `words`.
    """

    def function(*values: Any, **named: Any) -> Any:
        given = dict(zip(positions or [i.name for i in OPS[op].inputs], values, strict=False))
        given |= {words.get(word, word): value for word, value in named.items()}
        inputs = [given.pop(i.name, None) for i in OPS[op].inputs]
        return applied(op, *inputs, **given)

    return function


def _functions(module: str) -> dict[str, Callable[..., Any]]:
    """The functions of a module of torch that are operations by their form: `torch.cumsum(x, dim=axis)`."""
    found: dict[str, Callable[..., Any]] = {}
    for op in OPS.values():
        form = op.torch.form if op.torch is not None else ""
        match ast.parse(form, mode="eval").body if isinstance(form, str) and form else None:
            case ast.Call(ast.Attribute(ast.Name(name), function), values, words) if name == module:
                if all(isinstance(value, ast.Name) for value in (*values, *(w.value for w in words))):
                    positions = [value.id for value in values if isinstance(value, ast.Name)]
                    named = {str(w.arg): w.value.id for w in words if isinstance(w.value, ast.Name)}
                    found[function] = _of(op.name, positions, named)
            case _:
                pass
    return found


def _convolved(transposed: bool) -> Callable[..., Tensor]:
    def convolve(x: Tensor, weight: Tensor, bias: Tensor | None = None, **settings: Any) -> Tensor:
        return applied("conv", x, weight, bias, **settings, transposed=transposed)

    return convolve


_INITIAL = ("normal_", "zeros_", "ones_", "constant_", "trunc_normal_", "uniform_")
_nn = SimpleNamespace(
    Module=Module,
    ModuleList=ModuleList,
    ModuleDict=ModuleDict,
    Parameter=Parameter,
    **{name.removeprefix("nn."): layer for name, layer in _LAYERS.items()},
    init=SimpleNamespace(
        **{name: _initial() for name in _INITIAL},
        xavier_uniform_=_initial(2),
        kaiming_uniform_=_initial(2),
    ),
    functional=SimpleNamespace(
        **dict.fromkeys(("gelu", "relu", "silu"), _same),
        **_functions("F"),
        linear=_of("linear"),
        embedding=_of("embedding"),
        layer_norm=_layer_norm,
        scaled_dot_product_attention=lambda q, k, v, **_: Tensor((*q.shape[:-1], v.shape[-1]), q.dtype),  # pyright: ignore
        **{f"conv{rank}d": _convolved(False) for rank in (1, 2, 3)},
        **{f"conv_transpose{rank}d": _convolved(True) for rank in (1, 2, 3)},
    ),
)
_OTHERS = SimpleNamespace(
    Tensor=Tensor,
    nn=_nn,
    float32=float32,
    float64=float64,
    int64=int64,
    bool=bool_,
    contiguous_format=None,
    get_default_dtype=lambda: float32,
    promote_types=max,
    empty=_made,
    zeros=_made,
    full=_full,
    arange=_arange,
    sort=_sort,
    floor=_same,
    where=_of("where"),
    minimum=_of("min"),
    maximum=_of("max"),
    cat=lambda tensors, dim: applied("concat", *tensors, axis=dim),  # pyright: ignore
)
torch = SimpleNamespace(**_functions("torch") | vars(_OTHERS))
"""What generated files use of torch."""

_BUILTINS = frozenset(
    [
        "__build_class__",
        "abs",
        "bool",
        "dict",
        "enumerate",
        "float",
        "id",
        "int",
        "isinstance",
        "len",
        "list",
        "max",
        "min",
        "object",
        "range",
        "str",
        "super",
        "tuple",
        "zip",
        "AttributeError",
        "NotImplementedError",
        "ValueError",
    ]
)


_IMPORTED: dict[str, Any] = {
    "__future__": __future__,
    "collections.abc": abc,
    "math": math,
    "torch": torch,
    "torch.nn.functional": torch,
    "typing": typing,
}


def _import(name: str, *rest: Any) -> Any:
    """`import` as generated files use it."""
    return _IMPORTED[name]
