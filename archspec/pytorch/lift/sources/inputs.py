"""Inputs as users describe them, `--input NAME=dtype[batch,seq]`, and modules whose parameters have no values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, islice, product
from math import prod
from typing import TYPE_CHECKING, cast

from archspec.core.diagnostics import ArchError, make_error, suggest
from archspec.core.record import Record
from archspec.pytorch.passes.intercepting import Function, intercept_mode

if TYPE_CHECKING:
    import torch
    from torch import nn


_INPUT = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*([A-Za-z_]\w*)?\s*\[([^\[\]]*)\]\s*")
_DTYPES = {
    "real": "real",
    "float": "real",
    "float32": "real",
    "int": "int",
    "int64": "int",
    "long": "int",
    "bool": "bool",
}
"""The element types by their names here and in PyTorch."""


SHORT, USUAL, LONG = 2, 3, 40
"""The least size of inputs that may have any. Long ones are for modules that reduce them several times, as by strides.
"""

MAX_CHOICES = 8
"""So many ways in which sizes of inputs may follow fields are tried."""


MAX_RESERVED = 2**28
"""Memory for more elements may not be there, even if nothing is written to it."""


class InputDeclaration(Record):
    """An input: its name, its element type, and its sizes, which are numbers or the names of free ones."""

    name: str
    dtype: str
    sizes: tuple[int | str, ...]


def parse_input(text: str) -> InputDeclaration:
    """Return the input that an argument of `--input` describes. Raises ArchError."""
    found = _INPUT.fullmatch(text)
    if found is None:
        raise _invalid(text, "expected NAME=dtype[sizes]")
    name, dtype, inside = found[1], found[2] or "real", found[3]
    if dtype not in _DTYPES:
        raise _invalid(text, f"unknown element type `{dtype}`", "use `real`, `int` or `bool`")
    sizes: list[int | str] = []
    for part in inside.split(",") if inside.strip() else []:
        size = part.strip()
        if size.isdecimal() and int(size) > 0:
            sizes.append(int(size))
        elif size.isidentifier():
            sizes.append(size)
        else:
            raise _invalid(text, f"invalid size `{size}`")
    return InputDeclaration(name, _DTYPES[dtype], tuple(sizes))


def _invalid(text: str, problem: str, help: str = "write it as `--input x=real[batch,seq,64]`") -> ArchError:
    return make_error("usage", f"invalid --input `{text}`: {problem}", help=help)


def check_names(declared: Sequence[InputDeclaration], module: nn.Module) -> None:
    """Raise ArchError if `forward` of a module has no argument with the name of an input."""
    taken = [*inspect.signature(module.forward).parameters]
    for given in declared:
        if given.name not in taken:
            help = suggest(given.name, taken) or f"it has {', '.join([f'`{known}`' for known in taken])}"
            raise make_error("usage", f"`forward` of {type(module).__name__} has no argument `{given.name}`", help=help)


def inputs_following_fields(
    declared: Sequence[InputDeclaration], fields: Mapping[str, object], values: Mapping[str, object]
) -> Iterator[list[InputDeclaration]]:
    """Yield inputs with sizes for a module that has `values` for fields: those that have the name of a field are its
    value, and then numbers that are equal to a field are as well.
    """
    sizes = {name: value for name, value in values.items() if isinstance(value, int)}
    numbers = dict.fromkeys([size for item in declared for size in item.sizes if isinstance(size, int)])
    options = [[size, *[sizes[name] for name in sizes if fields.get(name) == size != sizes[name]]] for size in numbers]
    for chosen in islice(product(*options), MAX_CHOICES):
        followed = dict(zip(numbers, chosen, strict=True))
        known: dict[int | str, int] = {**followed, **sizes}
        shapes = [[known.get(size, size) for size in item.sizes] for item in declared]
        yield [
            InputDeclaration(item.name, item.dtype, tuple(shape)) for item, shape in zip(declared, shapes, strict=True)
        ]


def examples(
    module: nn.Module, declared: Sequence[InputDeclaration], turn: int, are_long: bool = False
) -> Iterator[dict[str, torch.Tensor]]:
    """Yield inputs to try, the first or the second time: with longer and with shorter free sizes, and with long ones,
    or only with these.

    Free sizes are different from each other and, but for the shorter ones, from all sizes of the module's tensors. The
    first axis of the first input, usually that of the batch, is never long. Integers are below the number
    of rows of the table that they are looked up in, others are 0 and 1, beginning with 1.
    """
    batch = next((name for item in declared for name in item.sizes[:1] if isinstance(name, str)), None)
    for start in (LONG,) if are_long else (USUAL, SHORT, LONG):
        sizes = _sizes(module, declared, turn, start)
        if batch is not None and start == LONG:
            sizes[batch] = _sizes(module, declared, turn, USUAL)[batch]
        bounds = _bounds(module, {item.name: _drawn(item, sizes, 0) for item in declared})
        yield {item.name: _drawn(item, sizes, turn + 1, bounds.get(item.name, 2)) for item in declared}


def _sizes(module: nn.Module, declared: Sequence[InputDeclaration], turn: int, start: int) -> dict[str, int]:
    taken = {size for tensor in module.state_dict().values() for size in tensor.shape} if start > SHORT else set[int]()
    names = dict.fromkeys(size for item in declared for size in item.sizes if isinstance(size, str))
    free = (size for size in count(start) if size not in taken)
    found = [next(free) for _ in range(2 * len(names))]
    return dict(zip(names, found[turn::2], strict=True))


def _drawn(item: InputDeclaration, sizes: dict[str, int], seed: int, bound: int = 2) -> torch.Tensor:
    import torch

    shape = [sizes[size] if isinstance(size, str) else size for size in item.sizes]
    generator = torch.Generator().manual_seed(seed)
    if item.dtype == "real":
        return torch.randn(shape, generator=generator)
    found = torch.randint(0, bound, shape, generator=generator)
    if bound == 2 and shape:
        found[..., 0] = 1
    return found.bool() if item.dtype == "bool" else found


def _bounds(module: nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, int]:
    """Return the numbers of rows of the tables in which inputs are looked up."""
    import torch

    found: dict[str, int] = {}
    places = {value.untyped_storage().data_ptr(): name for name, value in inputs.items() if value.dtype == torch.long}
    tables = [part for part in module.modules() if isinstance(part, torch.nn.Embedding)]
    if not places or not tables:
        return found

    def note(table: nn.Embedding, given: tuple[torch.Tensor, ...]) -> None:
        name = places.get(given[0].untyped_storage().data_ptr()) if given else None
        if name is not None:
            found[name] = min(found.get(name, table.num_embeddings), table.num_embeddings)

    hooks = [table.register_forward_pre_hook(note) for table in tables]
    try:
        with torch.no_grad():
            module(**inputs)
    except Exception:  # of any class: another attempt, or the module's own message, follows
        pass
    finally:
        for hook in hooks:
            hook.remove()
    return found


def build_on_meta(build: Callable[[], nn.Module]) -> nn.Module:
    """Return a module whose tensors have no values; if making it looks at some of them, one with unfilled parameters.

    Rates of stochastic depth are often made with `torch.linspace(...)`, and looked at.
    """
    import torch

    try:
        with torch.device("meta"):
            return build()
    except Exception:  # of any class, as it comes from the architecture
        return build_uninitialized(build)


def build_uninitialized(build: Callable[[], nn.Module]) -> nn.Module:
    """Return a module with uninitialized parameters, whose memory the operating system has not committed.

    The elements of very large ones share their memory. Its buffers have their values.
    """
    import torch

    with _without_values():
        module = build()
    made: dict[int, nn.Parameter] = {}
    for part in module.modules():
        for name, parameter in part._parameters.items():  # pyright: ignore[reportPrivateUsage]
            if parameter is not None and parameter.is_meta:
                if id(parameter) not in made:
                    is_large = parameter.numel() > MAX_RESERVED
                    empty = torch.empty((1,) if is_large else parameter.shape, dtype=parameter.dtype)
                    made[id(parameter)] = torch.nn.Parameter(empty.expand(parameter.shape), parameter.requires_grad)
                part._parameters[name] = made[id(parameter)]  # pyright: ignore[reportPrivateUsage]
    return module


@contextmanager
def _without_values() -> Generator[None]:
    """Move each parameter to the device `meta` as soon as a module gets it."""
    import torch

    register = torch.nn.Module.register_parameter

    def registered(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        if param is not None and not param.is_meta:
            param = torch.nn.Parameter(param.to("meta"), param.requires_grad)
        register(self, name, param)

    torch.nn.Module.register_parameter = registered
    try:
        with intercept_mode(_reserved):
            yield
    finally:
        torch.nn.Module.register_parameter = register


def _reserved(func: Function, args: Sequence[object], named: Mapping[str, object]) -> object:
    """Make very large tensors that have no values on the device `meta`, as there may be no memory for them."""
    import torch

    if func is torch.empty and named.get("device") is None and _count(args) > MAX_RESERVED:
        named = {**named, "device": "meta"}
    return func(*args, **named)


def _count(sizes: Sequence[object]) -> int:
    """Return the number of elements of a tensor; the sizes may be passed as one tuple."""
    return prod(cast("Sequence[int]", sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes))
