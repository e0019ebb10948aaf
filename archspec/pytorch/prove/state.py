"""The state of modules: calls of a module may not change what later ones compute.

Everything that is reachable from a module is compared before and after calls, and the outputs of calls one after the
other with those of copies that were never called.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, NamedTuple, cast

from archspec.pytorch.export.exporting import is_without_values, varied
from archspec.pytorch.prove.numeric import FLOAT32_TOLERANCE, flat
from archspec.pytorch.run.calling import call_keeping_changes, copy_module
from archspec.pytorch.values.arguments import UntranslatableError

if TYPE_CHECKING:
    import torch
    from torch import nn


# Modes of modules: attributes that choose what they compute, which a call must not change.


def modes_of(module: nn.Module) -> dict[str, object]:
    """Return the public texts and booleans that a module and its parts have, and the classes of the parts."""
    found: dict[str, object] = {}
    for path, part in cast("Iterable[tuple[str, nn.Module]]", module.named_modules()):
        found[path] = type(part)
        for name, value in vars(part).items():
            if isinstance(value, str | bool) and not name.startswith("_"):  # bookkeeping of a library, as of its hooks
                found[f"{path}.{name}" if path else name] = value
    return found


def changed_mode(before: Mapping[str, object], module: nn.Module) -> str | None:
    """Return the first mode of a module that is not what it was before."""
    return _first_change(before, modes_of(module))


def _first_change(before: Mapping[str, object], after: Mapping[str, object]) -> str | None:
    return next((name for name in {**before, **after} if before.get(name) != after.get(name)), None)


# Everything that is reachable from a module.

LIBRARIES = ("builtins", "collections", "enum", "functools", "torch", "typing")
"""Classes from these have no state of their own."""

SIMPLE = (bool, int, float, complex, str, bytes)
"""Classes of values that consist of nothing else."""

WITHOUT_STATE = (type, ModuleType, BuiltinFunctionType)
"""Classes of values whose state is not that of the module."""

CONTAINERS = ("_parameters", "_buffers", "_modules")
"""Attributes of a module whose items are attributes to users."""


class Snapshot:
    """What is reachable from a module: numbers, texts, checksums of tensors, and the classes of everything else.

    Items of lists, dicts and sets are reached, attributes of objects and their classes, and what functions close over;
    global variables are not. Unless it `has_values`, there are no checksums.
    """

    def __init__(self, module: nn.Module, has_values: bool = True) -> None:
        self._has_values = has_values
        self.values: dict[str, dict[str, object]] = {}
        """By attribute of the module or a part, the values by the path from there."""
        self.tensors: dict[str, torch.Tensor] = {}
        """The tensors that are no parameters or buffers, by attribute."""
        self.modules: list[ModuleType] = []
        self._seen: dict[int, object] = {}
        for path, part in cast("Iterable[tuple[str, nn.Module]]", module.named_modules()):
            self._seen[id(part)] = part
            for name, value in _attributes(part):
                self._add(f"{path}.{name}" if path else name, "", value)

    def stored(self, names: Iterable[str]) -> dict[str, object]:
        """Return the values of attributes that are tensors."""
        return {name: self.values[name] for name in names if name in self.values}

    def _add(self, attribute: str, path: str, value: object) -> None:
        import torch

        kind: type = type(value)
        found = self.values.setdefault(attribute, {})
        found[path] = kind
        if value is None or issubclass(kind, (*SIMPLE, Enum, itertools.count)):
            found[path] = kind, repr(value)
        if isinstance(value, ModuleType):
            self.modules.append(value)
        if value is None or id(value) in self._seen or issubclass(kind, (*SIMPLE, *WITHOUT_STATE)):
            return
        self._seen[id(value)] = value
        if isinstance(value, torch.Tensor):
            found[path] = _checksum(value) if self._has_values else None
            if not isinstance(value, torch.nn.Parameter):
                self.tensors.setdefault(attribute, value)
            return
        if issubclass(kind, dict):
            found[path] = kind, [*map(_key, cast("dict[object, object]", value))]
        for name, part in _parts(value):
            self._add(attribute, f"{path}.{name}", part)
        for base in kind.__mro__:
            if base.__module__.partition(".")[0] not in LIBRARIES and id(base) not in self._seen:
                self._seen[id(base)] = base
                for name, part in _class_attributes(base):
                    self._add(attribute, f"{base.__name__}.{name}", part)


def _attributes(part: nn.Module) -> Iterator[tuple[str, object]]:
    """Yield the attributes of a module, but those that are modules, and those of its classes."""
    own = vars(part)
    for name, value in own.items():
        if name not in CONTAINERS:
            yield name, value
    yield from cast("dict[str, object]", own["_parameters"]).items()
    yield from cast("dict[str, object]", own["_buffers"]).items()
    for kind in type(part).__mro__:
        if kind.__module__.partition(".")[0] not in LIBRARIES:
            yield from _class_attributes(kind)


def _class_attributes(kind: type) -> Iterator[tuple[str, object]]:
    for name, value in vars(kind).items():
        if not name.startswith("__") and not callable(value) and not hasattr(cast("object", type(value)), "__get__"):
            yield name, value


def _key(value: object) -> str:
    """Return a text for a key or an item of a set, which is the same each time."""
    kind: type = type(value)
    return repr(value) if value is None or issubclass(kind, (*SIMPLE, tuple)) else f"#{id(value)}"


def _parts(value: object) -> Iterable[tuple[str, object]]:
    """Return what an object consists of."""
    if isinstance(value, dict):
        return [(_key(key), item) for key, item in cast("dict[object, object]", value).items()]
    if isinstance(value, list | tuple):
        return [(str(place), item) for place, item in enumerate(cast("Iterable[object]", value))]
    if isinstance(value, set | frozenset):
        return [("", tuple(sorted(map(_key, cast("Iterable[object]", value)))))]
    if isinstance(value, MethodType):
        return [("self", value.__self__), ("function", value.__func__)]
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
        return [("closure", cells), ("defaults", value.__defaults__), ("named", value.__kwdefaults__), *_own(value)]
    return [*_own(value), *_reduced(value)]


def _is_filled(cell: object) -> bool:
    return hasattr(cell, "cell_contents")


def _own(value: object) -> list[tuple[str, object]]:
    """Return the attributes of an object, in its dict or in slots."""
    slots = [name for kind in type(value).__mro__ for name in _slots(kind) if hasattr(value, name)]
    own = cast("dict[str, object]", getattr(value, "__dict__", {}))
    return [*own.items(), *[(name, getattr(value, name)) for name in slots]]


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _reduced(value: object) -> list[tuple[str, object]]:
    """Return what an object that has more than attributes, such as an iterator or a deque, is made of again."""
    kind = type(value)
    if hasattr(value, "__dict__") and (kind.__reduce_ex__, kind.__reduce__) == (
        object.__reduce_ex__,
        object.__reduce__,
    ):
        return []
    try:
        made = value.__reduce_ex__(4)
    except Exception:  # of any class: it cannot be made again
        return []
    if isinstance(made, str):
        return []
    return [
        (str(place), list(cast("Iterator[object]", part)) if isinstance(part, Iterator) else part)
        for place, part in enumerate(made)
    ]


def _checksum(tensor: torch.Tensor) -> object:
    """Return the type of a tensor, and a checksum of its elements if it has any."""
    import torch

    kind = tensor.dtype, tuple(tensor.shape), tensor.device.type, tensor.requires_grad
    if is_without_values(tensor):
        return kind
    values = tensor.detach().cpu()
    values = (values if values.layout is torch.strided else values.to_dense()).resolve_conj().resolve_neg()
    return kind, zlib.crc32(cast("bytes", values.contiguous().reshape(-1).view(torch.uint8).numpy()))


# Calls one after the other.


class _Called(NamedTuple):
    """Inputs, and the outputs of a module for them that was not called before."""

    inputs: Mapping[str, torch.Tensor]
    outputs: list[torch.Tensor]


def check_repeatable(
    module: nn.Module, inputs: Mapping[str, torch.Tensor], others: Mapping[str, torch.Tensor] | None
) -> object:
    """Raise Untranslatable if a call of a module changes it, or what the next one computes, or if PyTorch computes
    something else in inference; return its outputs for the inputs.

    What a module makes once for each size that it is called with, such as a table, it may keep: after a call with the
    inputs and one with the `others`, calls with inputs of the same sizes change nothing, and their outputs are those of
    copies that were never called. Parameters and buffers are never changed.
    """
    start = Snapshot(module)

    def accepted(*choices: Mapping[str, torch.Tensor]) -> list[_Called]:
        """Return the first inputs that a copy can be called with, and its outputs."""
        for given in choices:
            copy = _copy(module, start)
            with suppress(Exception):  # of any class, as it comes from the module
                return [_Called(given, _outputs(copy, given))]
        return []

    rounds = accepted(others) if others is not None else []
    used = _copy(module, start)
    modes, stored = modes_of(used), [name for name, _ in (*module.named_parameters(), *module.named_buffers())]
    with without_nested_tensors(used):
        first = call_keeping_changes(used, _cloned(inputs))
    found = [_outputs(used, given) for given, _ in rounds]
    before = Snapshot(used)
    for given in (inputs, *[given for given, _ in rounds]):
        rounds += accepted(varied(given), varied(given, has_other_integers=False), given)
    found += [_outputs(used, given) for given, _ in rounds[len(found) :]]
    changed = (
        changed_mode(modes, used)
        or _first_change(start.stored(stored), before.stored(stored))
        or _first_change(before.values, Snapshot(used).values)
    )
    if changed is not None:
        raise UntranslatableError(f"a call changes its attribute `{changed}`")
    if not all(are_close(outputs, own) for own, (_, outputs) in zip(found, rounds, strict=True)):
        given, outputs = rounds[-1]
        if not are_close(outputs, _outputs(_copy(module, start), given)):
            raise UntranslatableError("it is random: calls of it with the same inputs differ")
        raise UntranslatableError("it is stateful: a call changes what the next call computes")
    return first


def _copy(module: nn.Module, snapshot: Snapshot) -> nn.Module:
    """Return a module with the same parameters, and copies of everything else."""
    memo: dict[int, object] = {id(part): part for part in (*module.parameters(), *snapshot.modules)}
    memo |= {id(part): part.detach().clone() for part in snapshot.tensors.values() if part.grad_fn is not None}
    try:
        return copy_module(module, memo)
    except Exception as problem:  # of any class, as it comes from the module
        raise UntranslatableError(f"it cannot be copied to see whether a call changes it: {problem}") from problem


def _cloned(inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in inputs.items()}


def _outputs(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in flat(call_keeping_changes(module, _cloned(inputs)))]


@contextmanager
def without_nested_tensors(module: nn.Module) -> Generator[None]:
    """Raise Untranslatable where an `nn.TransformerEncoder` is called for nested tensors in inference: its outputs are
    then 0 at padded places, where they are not while it is trained or exported.
    """
    import torch

    def check(part: nn.Module, args: tuple[object, ...], named: dict[str, object]) -> None:
        masks = dict(zip(("src", "mask", "src_key_padding_mask"), args, strict=False)) | named
        if masks.get("src_key_padding_mask") is not None and masks.get("mask") is None:
            raise UntranslatableError(
                "PyTorch uses nested tensors in inference, where the outputs of padded places are 0: make its "
                "`nn.TransformerEncoder` with `enable_nested_tensor=False`"
            )

    nested = [part for part in module.modules() if isinstance(part, torch.nn.TransformerEncoder)]
    nested = [part for part in nested if getattr(part, "use_nested_tensor", False)]
    nested = nested if torch.backends.mha.get_fastpath_enabled() else []
    handles = [part.register_forward_pre_hook(check, with_kwargs=True) for part in nested]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def are_close(values: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    """Whether the tensors of two lists are equal up to rounding, as far as they have values."""
    return len(values) == len(others) and all(_is_close(*pair) for pair in zip(values, others, strict=True))


def _is_close(value: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are equal up to rounding, or have no values."""
    if (value.shape, value.dtype, value.device) != (other.shape, other.dtype, other.device):
        return False
    if is_without_values(value):
        return True
    if not value.numel() or not (value.is_floating_point() or value.is_complex()):
        return bool((value == other).all())
    scale = max(1.0, float(other.abs().nan_to_num(0.0, 0.0, 0.0).max()))
    return bool(
        (
            (value == other) | ((value - other).abs() <= FLOAT32_TOLERANCE * scale) | (value.isnan() & other.isnan())
        ).all()
    )
