"""A stand-in for torch: it runs what a generated file does when it makes a model, and keeps shapes and no numbers.

So what a file makes can be compared with the spec where PyTorch is not installed, and at once for any size. It knows
what generated files use. Anything else is an error, so that nothing passes unchecked.
"""

from __future__ import annotations
import __future__

import builtins
import math
import typing
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from archspec.ops import OPS
from archspec.pytorch.names import TAKEN_BY_MODULES
from archspec.pytorch.recorded import (
    FUNCTIONS,
    OF_NUMBERS,
    DType,
    Parameter,
    Tensor,
    applied,
    bool_,
    float32,
    float64,
    int64,
    sizes_of,
)


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
        self.__dict__.update(_modules={}, _parameters={}, _buffers={}, _unstored=set())

    def __setattr__(self, name: str, value: object) -> None:
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

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        self._register(self._tables()[2], name, tensor)
        if not persistent:
            self.__dict__["_unstored"].add(name)

    def _register(self, table: dict[str, Any], name: str, value: Tensor | None) -> None:
        if "." in name or name in TAKEN_BY_MODULES or (hasattr(self, name) and name not in table):
            raise KeyError(name)
        table[name] = value

    def get_submodule(self, target: str) -> Module:
        return self._at(target, 0)

    def get_parameter(self, target: str) -> Tensor:
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

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        return self._named("", (1,))

    def state_dict(self, keep_vars: bool = False) -> dict[str, Tensor]:
        return dict(self._named("", (1, 2)))

    def _named(self, prefix: str, which: Sequence[int]) -> Iterator[tuple[str, Tensor]]:
        tables = self._tables()
        for i in which:
            unstored: set[str] = self.__dict__["_unstored"]
            present = ((name, tensor) for name, tensor in tables[i].items() if name not in unstored)
            yield from ((prefix + name, tensor) for name, tensor in present if tensor is not None)
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


Shapes = dict[str, tuple[int, ...] | None]


def _layer(shapes: Callable[..., Shapes]) -> type[Module]:
    """A module of torch.nn with parameters of these shapes, given what it is made with; None for one that is absent."""

    class Layer(Module):
        def __init__(self, *values: object, **named: object) -> None:
            super().__init__()
            for name, shape in shapes(*values, **named).items():
                self.register_parameter(name, Parameter(Tensor(shape)) if shape is not None else None)

    return Layer


def _linear(in_features: int, out_features: int, bias: bool = True) -> Shapes:
    return {"weight": (out_features, in_features), "bias": (out_features,) if bias else None}


def _embedding(num_embeddings: int, embedding_dim: int) -> Shapes:
    return {"weight": (num_embeddings, embedding_dim)}


def _rms_norm(normalized_shape: object, eps: float | None = None) -> Shapes:
    return {"weight": sizes_of(normalized_shape, 1)}


def _layer_norm(normalized_shape: object, eps: float = 1e-5, bias: bool = True) -> Shapes:
    shape = sizes_of(normalized_shape, 1)
    return {"weight": shape, "bias": shape if bias else None}


def _group_norm(num_groups: int, num_channels: int, eps: float = 1e-5) -> Shapes:
    if num_channels % num_groups:
        raise ValueError("channels must be divisible by groups")
    return {"weight": (num_channels,), "bias": (num_channels,)}


class _BatchNorm(Module):
    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        for name in ("weight", "bias"):
            self.register_parameter(name, Parameter(Tensor((num_features,))))
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, Tensor((num_features,)))
        self.register_buffer("num_batches_tracked", Tensor((), int64))


def _convolution(
    rank: int,
    transposed: bool,
    in_channels: int,
    out_channels: int,
    kernel_size: object,
    stride: object = 1,
    padding: object = 0,
    dilation: object = 1,
    groups: int = 1,
    bias: bool = True,
) -> Shapes:
    kernel = sizes_of(kernel_size, rank)
    if in_channels % groups or out_channels % groups or len(kernel) != rank:
        raise ValueError("these sizes do not fit together")
    first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
    weight = (first, second // groups, *kernel)
    return {"weight": weight, "bias": (out_channels,) if bias else None}


_LAYERS = {
    "nn.Linear": _layer(_linear),
    "nn.Embedding": _layer(_embedding),
    "nn.LayerNorm": _layer(_layer_norm),
    "nn.RMSNorm": _layer(_rms_norm),
    "nn.GroupNorm": _layer(_group_norm),
    **{f"nn.BatchNorm{rank}d": _BatchNorm for rank in (1, 2, 3)},
    **{f"nn.Conv{rank}d": _layer(partial(_convolution, rank, False)) for rank in (1, 2, 3)},
    **{f"nn.ConvTranspose{rank}d": _layer(partial(_convolution, rank, True)) for rank in (1, 2, 3)},
}


# The names of torch ---------------------------------------------------------------------------------------------------


def _made(shape: object, dtype: DType = float32, device: None = None) -> Tensor:
    return Tensor(sizes_of(shape, 1), dtype)


def _full(shape: object, value: object, dtype: DType | None = None, device: None = None) -> Tensor:
    return Tensor(sizes_of(shape, 1), dtype or OF_NUMBERS[value.__class__])


def _tensor(values: object, dtype: DType | None = None, device: None = None) -> Tensor:
    if not isinstance(values, tuple):
        return Tensor((), dtype or OF_NUMBERS[values.__class__])
    parts = [_tensor(item, dtype) for item in cast("tuple[object, ...]", values)]
    return Tensor((len(parts), *parts[0].shape), max(part.dtype for part in parts))


def _arange(stop: int, dtype: DType = int64, device: None = None) -> Tensor:
    return Tensor((stop,), dtype)


def _sort(x: Tensor, dim: int, descending: bool, stable: bool) -> tuple[Tensor, Tensor]:
    return x.to(x.dtype), x.long()


def _same(x: Tensor, approximate: str = "none") -> Tensor:
    return x.to(x.dtype)


def _pad(x: Tensor, pad: Sequence[int], value: object = None) -> Tensor:
    filled = (False if x.dtype == bool_ else 0) if value is None else value
    for i in range(0, len(pad), 2):
        settings = {"axis": -1 - i // 2, "before": pad[i], "after": pad[i + 1], "value": filled}
        x = cast("Tensor", applied(OPS["pad"], [x], settings))
    return x


def _transformed(x: Tensor, dim: object) -> SimpleNamespace:
    return SimpleNamespace(real=applied(OPS["fft"], [x], {"axis": dim}))


def _normalized(x: Tensor, shape: object, weight: object, bias: object, eps: float) -> object:
    return applied(OPS["layer_norm"], [x, weight, bias], {"eps": eps})


def _initial(least: int = 0) -> Callable[..., Tensor]:
    """A function that fills a tensor of at least so many axes."""

    def fill(x: Tensor, *numbers: float, **named: float) -> Tensor:
        if len(x.shape) < least:
            raise ValueError("a matrix is needed")
        return x

    return fill


def _convolution_over(rank: int, transposed: bool) -> Callable[..., object]:
    def convolve(x: Tensor, weight: Tensor, bias: Tensor | None = None, **settings: object) -> object:
        if len(x.shape) != rank + 2:
            raise TypeError("the input has other axes")
        usual = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "transposed": transposed}
        return applied(OPS["conv"], [x, weight, bias], {**usual, **settings})

    return convolve


class _FInfo(NamedTuple):
    """The limits of an element type."""

    dtype: DType
    min: float = -1.0


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
        **FUNCTIONS["F"],
        layer_norm=_normalized,
        pad=_pad,
        dropout=lambda x, rate, training: _same(x),  # pyright: ignore
        scaled_dot_product_attention=lambda q, k, v, **_: Tensor((*q.shape[:-1], v.shape[-1]), q.dtype),  # pyright: ignore
        **{f"conv{rank}d": _convolution_over(rank, transposed=False) for rank in (1, 2, 3)},
        **{f"conv_transpose{rank}d": _convolution_over(rank, transposed=True) for rank in (1, 2, 3)},
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
    tensor=_tensor,
    finfo=_FInfo,
    arange=_arange,
    sort=_sort,
    floor=_same,
    fft=SimpleNamespace(fftn=_transformed),
)
torch = SimpleNamespace(**FUNCTIONS["torch"] | vars(_OTHERS))
"""What generated files use of torch."""

_BUILTINS = [
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

_IMPORTED: dict[str, object] = {
    "__future__": __future__,
    "collections.abc": abc,
    "functools": SimpleNamespace(partial=partial),
    "math": math,
    "torch": torch,
    "torch.nn.functional": torch,
    "typing": typing,
}


def _import(name: str, *rest: object) -> object:
    """`import` as generated files use it."""
    return _IMPORTED[name]
