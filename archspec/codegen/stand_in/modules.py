"""Modules as a stand-in for torch keeps them (see `recording.py`): their tables of tensors, without computations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from archspec.codegen.stand_in.tensors import Parameter, Tensor, int64, sizes_of

RESERVED_MODULE_NAMES = frozenset(
    {
        "T_destination",
        "add_module",
        "apply",
        "bfloat16",
        "buffers",
        "call_super_init",
        "children",
        "compile",
        "cpu",
        "cuda",
        "double",
        "dump_patches",
        "eval",
        "extra_repr",
        "float",
        "forward",
        "get_buffer",
        "get_extra_state",
        "get_parameter",
        "get_submodule",
        "half",
        "ipu",
        "load_state_dict",
        "modules",
        "mtia",
        "named_buffers",
        "named_children",
        "named_modules",
        "named_parameters",
        "parameters",
        "register_backward_hook",
        "register_buffer",
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
        "register_load_state_dict_post_hook",
        "register_load_state_dict_pre_hook",
        "register_module",
        "register_parameter",
        "register_state_dict_post_hook",
        "register_state_dict_pre_hook",
        "requires_grad_",
        "set_extra_state",
        "set_submodule",
        "share_memory",
        "state_dict",
        "to",
        "to_empty",
        "train",
        "training",
        "type",
        "xpu",
        "zero_grad",
    }
)
"""Attributes that every `torch.nn.Module` has."""


class Module:
    """What `torch.nn.Module` keeps, and how it finds it."""

    _modules: dict[str, Module | None]
    _parameters: dict[str, Tensor | None]
    _buffers: dict[str, Tensor | None]
    _unstored: set[str]

    def __init__(self) -> None:
        self.__dict__.update(_modules={}, _parameters={}, _buffers={}, _unstored=set())

    def __setattr__(self, name: str, value: object) -> None:
        tables = self._tables()
        known = next((table for table in tables if name in table), None)
        table = tables[0] if isinstance(value, Module) else tables[1] if isinstance(value, Parameter) else known
        if table is None:
            self.__dict__[name] = value
            return
        if name in RESERVED_MODULE_NAMES or (
            value is not None and table is tables[1] and not isinstance(value, Parameter)
        ):
            raise TypeError(f"cannot set {name}")
        for other in (*tables, self.__dict__):
            if other is not table:
                other.pop(name, None)
        table[name] = value

    def __getattr__(self, name: str) -> object:
        for table in self._tables():
            if name in table:
                return table[name]
        raise AttributeError(name)

    def _tables(self) -> tuple[dict[str, object], ...]:
        return tuple(self.__dict__[name] for name in ("_modules", "_parameters", "_buffers"))

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        self._register(self._parameters, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        self._register(self._buffers, name, tensor)
        if not persistent:
            self._unstored.add(name)

    def _register(self, table: dict[str, Tensor | None], name: str, value: Tensor | None) -> None:
        if "." in name or name in RESERVED_MODULE_NAMES or (hasattr(self, name) and name not in table):
            raise KeyError(name)
        table[name] = value

    def get_submodule(self, target: str) -> Module | None:
        module, name = self._owner(target)
        return module._modules[name]

    def get_parameter(self, target: str) -> Tensor | None:
        module, name = self._owner(target)
        return module._parameters[name]

    def get_buffer(self, target: str) -> Tensor | None:
        module, name = self._owner(target)
        return module._buffers[name]

    def _owner(self, target: str) -> tuple[Module, str]:
        """The module that has what an address leads to, and its name there."""
        module, (*way, last) = self, target.split(".")
        if any(word in RESERVED_MODULE_NAMES for word in (*way, last)):
            raise AttributeError(target)
        for word in way:
            inner = module._modules[word]
            if inner is None:
                raise AttributeError(target)
            module = inner
        return module, last

    def modules(self) -> Iterator[Module]:
        """This module and all inside, each once."""
        found: dict[int, Module] = {}
        waiting: list[Module] = [self]
        while waiting:
            module = waiting.pop()
            if id(module) not in found:
                found[id(module)] = module
                waiting += [m for m in module._modules.values() if m is not None]
        return iter(found.values())

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        for module in self.modules():
            for parameter in module._parameters.values():
                if parameter is not None:
                    parameter.requires_grad_(requires_grad)
        return self

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        return self._named("", has_buffers=False)

    def state_dict(self, keep_vars: bool = False) -> dict[str, Tensor]:
        return dict(self._named("", has_buffers=True))

    def _named(self, prefix: str, has_buffers: bool) -> Iterator[tuple[str, Tensor]]:
        for table in (self._parameters, self._buffers) if has_buffers else (self._parameters,):
            present = ((name, tensor) for name, tensor in table.items() if name not in self._unstored)
            yield from ((prefix + name, tensor) for name, tensor in present if tensor is not None)
        for name, module in self._modules.items():
            if module is not None:
                yield from module._named(f"{prefix}{name}.", has_buffers)


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

    def __getitem__(self, index: int) -> Module | None:
        return self._modules[str(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        if str(index) not in self._modules:
            raise IndexError(index)
        self._modules[str(index)] = module


class ModuleDict(Module):
    def __getitem__(self, key: str) -> Module | None:
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


LAYERS = {
    "nn.Linear": _layer(_linear),
    "nn.Embedding": _layer(_embedding),
    "nn.LayerNorm": _layer(_layer_norm),
    "nn.RMSNorm": _layer(_rms_norm),
    "nn.GroupNorm": _layer(_group_norm),
    **{f"nn.BatchNorm{rank}d": _BatchNorm for rank in (1, 2, 3)},
    **{f"nn.Conv{rank}d": _layer(partial(_convolution, rank, False)) for rank in (1, 2, 3)},
    **{f"nn.ConvTranspose{rank}d": _layer(partial(_convolution, rank, True)) for rank in (1, 2, 3)},
}
