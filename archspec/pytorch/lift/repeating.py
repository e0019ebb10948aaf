"""Calls of a module, which may not change what later ones compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from archspec.pytorch.calls.values import UntranslatableError, is_list
from archspec.pytorch.lift.calling import call_keeping_changes
from archspec.pytorch.patches.intercepting import restore_attributes
from archspec.pytorch.prove.numeric import FLOAT32_TOLERANCE, flat

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
    after = modes_of(module)
    return next((name for name in {**before, **after} if before.get(name) != after.get(name)), None)


def check_repeatable(
    module: nn.Module, inputs: Mapping[str, torch.Tensor], others: Mapping[str, torch.Tensor] | None
) -> None:
    """Raise Untranslatable if a call of a module changes what the next one computes, as a count of calls does.

    What a module keeps of a call, such as a table, is the same after a second one with equal inputs.
    """
    with restore_attributes(module):
        _check(module, inputs, others)


def _check(module: nn.Module, inputs: Mapping[str, torch.Tensor], others: Mapping[str, torch.Tensor] | None) -> None:
    modes = modes_of(module)
    first = _outputs(module, inputs)
    if others is not None:
        _outputs(module, others)
    again = _outputs(module, inputs)
    before = _attributes(module)
    last = _outputs(module, inputs)
    after = _attributes(module)
    changed = changed_mode(modes, module) or next(
        (name for name in {**before, **after} if not _is_same(before.get(name), after.get(name))), None
    )
    if changed is not None:
        raise UntranslatableError(f"a call changes its attribute `{changed}`")
    if not all(_is_close(*pair) for found in (again, last) for pair in zip(first, found, strict=True)):
        raise UntranslatableError("it is stateful: a call changes what the next call computes")


def _outputs(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    return flat(call_keeping_changes(module, {name: tensor.clone() for name, tensor in inputs.items()}))


def _attributes(module: nn.Module) -> dict[str, object]:
    """Return copies of the attributes of the parts of a module, except for the tensors that they store."""
    from torch import nn

    common = vars(nn.Module()).keys()
    parts = cast("Iterable[tuple[str, nn.Module]]", module.named_modules())
    return {
        f"{path}.{name}" if path else name: _copied(value)
        for path, part in parts
        for name, value in vars(part).items()
        if name not in common
    }


def _copied(value: object) -> object:
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if is_list(value):
        return [_copied(item) for item in value]
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in cast("dict[object, object]", value).items()}
    return value


def _is_same(value: object, other: object) -> bool:
    """Whether two values are equal; so are two objects that have no simple type."""
    import torch

    if isinstance(value, torch.Tensor) or isinstance(other, torch.Tensor):
        return isinstance(value, torch.Tensor) and isinstance(other, torch.Tensor) and _is_close(value, other)
    if is_list(value) and is_list(other):
        return len(value) == len(other) and all(_is_same(*pair) for pair in zip(value, other, strict=True))
    if isinstance(value, dict) and isinstance(other, dict):
        items = cast("dict[object, object]", value), cast("dict[object, object]", other)
        return items[0].keys() == items[1].keys() and all(_is_same(items[0][key], items[1][key]) for key in items[0])
    if isinstance(value, bool | int | float | str | None) and isinstance(other, bool | int | float | str | None):
        return value == other or (value != value and other != other)
    return True


def _is_close(value: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are equal up to rounding, or have no values."""
    from torch._subclasses import FakeTensor

    if (value.shape, value.dtype, value.device) != (other.shape, other.dtype, other.device):
        return False
    if isinstance(value, FakeTensor) or value.is_meta:
        return True
    if not value.numel() or not (value.is_floating_point() or value.is_complex()):
        return bool((value == other).all())
    scale = max(1.0, float(other.abs().nan_to_num(0.0, 0.0, 0.0).max()))
    return bool(
        (
            (value == other) | ((value - other).abs() <= FLOAT32_TOLERANCE * scale) | (value.isnan() & other.isnan())
        ).all()
    )
