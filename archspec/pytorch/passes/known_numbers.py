"""Numbers that a module keeps as tensors: results of them and of sizes are sizes, not data.

`torch.export` takes what a module reads of a tensor for data. A buffer without axes that checkpoints do not store, and
that no call changes, is one number. Numbers are computed exactly, where PyTorch rounds quotients to float32, which
shows at sizes above 2 ** 24.

    # before                                   # after
    n = self.stride * x.shape[0]               n = 3 * sym_size(x, 0)
    zeros([item(n)])                           zeros([n])                    known_number_mode
    x * 6                                      x * sym_size(x, 0)            symbolic_len, of `x * len(x)`
    attention(is_causal=sym_size(x, 1) > 1)    attention(is_causal=True)     symbolic_flags

The convolutions of some audio codecs keep their strides as tensors.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, NamedTuple, cast

from archspec.core.record import is_tuple
from archspec.pytorch.passes.intercepting import Function, intercept_mode
from archspec.pytorch.values.arguments import UntranslatableError, is_list

if TYPE_CHECKING:
    import torch
    from torch import SymInt, nn


# Lengths of tensors as sizes: `len(x)` is always a number, and would be fixed in the exported program.


@contextmanager
def symbolic_len(module: nn.Module) -> Generator[None]:
    """Let `len` return the size of the first axis of a tensor in the files that the classes of a module are from."""
    changed = [names for names in namespaces(module) if "len" not in names]
    for file in changed:
        file["len"] = _length
    try:
        yield
    finally:
        for file in changed:
            del file["len"]


def namespaces(module: nn.Module) -> list[dict[str, object]]:
    """Return the global names of the files that the classes of a module are from, except for those of PyTorch.

    A file that a user names is not imported as a module.
    """
    kinds = {kind for part in module.modules() for kind in type(part).__mro__}
    found: list[dict[str, object]] = [getattr(vars(kind).get("forward"), "__globals__", {}) for kind in kinds]
    found += [vars(sys.modules[kind.__module__]) for kind in kinds if kind.__module__ in sys.modules]
    own = {id(names): (str(names.get("__name__", "")), names) for names in found}  # a file may have the name of another
    named = sorted(own.values(), key=lambda item: item[0])
    return [names for name, names in named if name.partition(".")[0] not in ("", "builtins", "torch")]


def _length(item: Sized | torch.Tensor) -> int:
    import torch

    return item.shape[0] if isinstance(item, torch.Tensor) and item.dim() else builtins.len(item)


# Flags that depend on lengths: PyTorch takes only those that are known.


@contextmanager
def symbolic_flags(module: nn.Module) -> Generator[None]:
    """Let attention be causal by a condition on sizes, as in `is_causal=x.shape[1] > 1`: the program is for sizes that
    decide it as those of the example do.
    """
    from torch.nn import functional

    attention = cast("Function", functional.scaled_dot_product_attention)
    own = cast("dict[str, object]", vars(functional))

    def called(*args: object, **named: object) -> object:
        return attention(*map(_flag, args), **{name: _flag(item) for name, item in named.items()})

    places = [
        (names, name) for names in (own, *namespaces(module)) for name, value in names.items() if value is attention
    ]
    for names, name in places:
        names[name] = called
    try:
        yield
    finally:
        for names, name in places:
            names[name] = attention


def _flag(item: object) -> object:
    """Return a condition on sizes as a boolean; anything else as it is."""
    import torch

    return bool(item) if isinstance(item, torch.SymBool) else item


SIZE_FUNCTIONS = {"arange", "zeros", "ones", "full"}
"""Functions that take sizes, which may be given as tensors."""

TENSOR_SIZE_FUNCTIONS = {"pad", "view", "reshape", "expand", "narrow"}
"""Functions that take a tensor, and sizes."""

READING = {"item", "__int__", "__index__"}
"""Methods that return the number of a tensor."""

CONVERTING = {"to", "long", "int", "float", "clone"}
"""Methods that return a tensor with the same number, if its type has it."""


class Quotient(NamedTuple):
    """An integer or fraction, whose numerator may depend on the sizes of inputs."""

    above: int | SymInt
    below: int = 1

    def plus(self, other: Quotient) -> Quotient:
        """Return the sum."""
        if self.below == other.below:
            return Quotient(self.above + other.above, self.below)
        return Quotient(self.above * other.below + other.above * self.below, self.below * other.below)

    def minus(self, other: Quotient) -> Quotient:
        """Return the difference."""
        return self.plus(other.negative())

    def subtract_from(self, other: Quotient) -> Quotient:
        """Return `other - self`."""
        return other.minus(self)

    def negative(self) -> Quotient:
        """Return minus the number."""
        return Quotient(-self.above, self.below)

    def times(self, other: Quotient) -> Quotient:
        """Return the product."""
        return Quotient(self.above * other.above, self.below * other.below)

    def over(self, other: Quotient) -> Quotient | None:
        """Return the quotient; None if the other one depends on sizes, or is not above 0."""
        if not isinstance(other.above, int) or other.above <= 0:
            return None
        if isinstance(self.above, int) and self.above % other.above == 0:
            return Quotient(self.above // other.above * other.below, self.below)
        return Quotient(self.above * other.below, self.below * other.above)

    def floor(self) -> Quotient:
        """Return the floor."""
        return self if self.below == 1 else Quotient(self.above // self.below)

    def ceil(self) -> Quotient:
        """Return the ceiling."""
        return self if self.below == 1 else Quotient((self.above + self.below - 1) // self.below)

    def floor_over(self, other: Quotient) -> Quotient | None:
        """Return the largest integer that is not above the quotient."""
        found = self.over(other)
        return None if found is None else found.floor()


RULES: dict[str, Callable[..., Quotient | None]] = {
    **dict.fromkeys(["add", "__add__", "__radd__"], Quotient.plus),
    **dict.fromkeys(["sub", "__sub__"], Quotient.minus),
    **dict.fromkeys(["mul", "__mul__", "__rmul__"], Quotient.times),
    **dict.fromkeys(["div", "true_divide", "__truediv__"], Quotient.over),
    **dict.fromkeys(["floor_divide", "__floordiv__"], Quotient.floor_over),
    "__rsub__": Quotient.subtract_from,
    "neg": Quotient.negative,
    "ceil": Quotient.ceil,
    "floor": Quotient.floor,
}
"""What functions compute of numbers."""


def known_number_mode(module: nn.Module) -> AbstractContextManager[object]:
    """Return the mode in which the numbers are known that a module has as buffers, and what is computed of them."""
    stored = module.state_dict(keep_vars=True)
    numbers = {
        name: int(buffer)
        for name, buffer in module.named_buffers()
        if name not in stored and _is_integer(buffer) and buffer.device.type != "meta"
    }
    return intercept_mode(_KnownNumberMode(module, numbers).call)


class _KnownNumberMode:
    """The numbers of a module while it runs, by tensor."""

    def __init__(self, module: nn.Module, numbers: Mapping[str, int]) -> None:
        self._module = module
        self._numbers = numbers
        self._known: dict[int, tuple[torch.Tensor, Quotient | None]] = {}

    def call(self, func: Function, args: Sequence[object], named: Mapping[str, object]) -> object:
        """Call a function of PyTorch with numbers for tensors that are known, and note its result."""
        import torch

        if not self._numbers:
            return func(*args, **named)
        name = getattr(func, "__name__", "")
        if name in READING and len(args) == 1:
            found = self._integer(args[0])
            return func(*args) if found is None else found
        if name == "__getitem__":
            return func(args[0], self._bounds(args[1]))
        if name in SIZE_FUNCTIONS | TENSOR_SIZE_FUNCTIONS:
            first = list(args[: name in TENSOR_SIZE_FUNCTIONS])
            return func(*first, *[self._sizes(item) for item in args[len(first) :]], **named)
        if _is_change(name) or named.get("out") is not None:
            self._check_change(named.get("out", args[0] if args else None))
        result = func(*args, **named)
        found = self._computed(name, args, named)
        if (
            found is not None
            and isinstance(result, torch.Tensor)
            and result.dtype in (torch.int32, torch.int64, torch.float32, torch.float64)
        ):
            self._known[id(result)] = result, found
        return result

    def _computed(self, name: str, args: Sequence[object], named: Mapping[str, object]) -> Quotient | None:
        """Return the number that a function returns; None if it is not known."""

        import torch

        if name in CONVERTING:
            found = self._number(args[0])
            return None if found is None or found.below != 1 else found
        if name not in RULES or named or not any(isinstance(item, torch.Tensor) for item in args):
            return None
        numbers = [self._number(item) for item in args]
        return None if any(number is None for number in numbers) else RULES[name](*numbers)

    def _number(self, item: object) -> Quotient | None:
        import torch

        if isinstance(item, int | torch.SymInt) and not isinstance(item, bool):
            return Quotient(item)
        if not isinstance(item, torch.Tensor):
            return None
        if id(item) not in self._known and _is_integer(item):
            name = next((name for name, buffer in self._module.named_buffers() if buffer is item), "")
            number = self._numbers.get(name)
            self._known[id(item)] = item, None if number is None else Quotient(number)
        return self._known.get(id(item), (item, None))[1]

    def _integer(self, item: object) -> int | SymInt | None:
        found = self._number(item)
        return None if found is None or found.below != 1 else found.above

    def _sizes(self, item: object) -> object:
        """Return an argument in which sizes that are tensors are numbers."""
        if is_list(item):
            return tuple([self._sizes(part) for part in item])
        found = self._integer(item)
        return item if found is None else found

    def _bounds(self, item: object) -> object:
        """Return an index in which the bounds of slices are numbers."""
        if is_tuple(item):
            return tuple([self._bounds(part) for part in item])
        if isinstance(item, slice):
            bounds = cast("slice[object, object, object]", item)
            return slice(*[self._sizes(part) for part in (bounds.start, bounds.stop, bounds.step)])
        return item

    def _check_change(self, changed: object) -> None:
        import torch

        for buffer in self._module.buffers():
            self._number(buffer)
        for tensor, number in [*self._known.values()]:
            if number is not None and isinstance(changed, torch.Tensor) and _shares(changed, tensor):
                raise UntranslatableError("it changes a number in place")


def _is_change(name: str) -> bool:
    """Whether a function with this name changes its first argument."""
    return bool(re.fullmatch(r"\w*[^_]_|__setitem__|__i(add|sub|mul|truediv|floordiv|mod|pow|and|or|xor)__", name))


def _shares(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.untyped_storage()._cdata == second.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]


def _is_integer(tensor: torch.Tensor) -> bool:
    import torch

    return tensor.dim() == 0 and tensor.dtype in (torch.int32, torch.int64)
