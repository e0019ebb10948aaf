"""Modes of modules: attributes that choose what they compute, which a call must not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from torch import nn


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
