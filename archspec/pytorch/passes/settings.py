"""Settings of a module that say how it computes, not what, and for which it cannot be exported.

    # before                                          # after
    outputs, cache = model(ids)                       outputs = model(ids)                  use_cache
    histc(experts); grouped_mm(x, weight, ends)       bmm(x, weight[experts])               _experts_implementation

Models of `transformers` return the keys and values of a call for later ones unless they are told not to. They multiply
the tokens of each expert at once, which sorts them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

EXPORTED: Mapping[str, object] = {"use_cache": False, "_experts_implementation": "batched_mm"}
"""The values that these settings of a configuration have while a module is exported."""


def use_exported_settings(module: nn.Module) -> bool:
    """Give the configurations of a module the settings to be exported with. Return whether it had others."""
    others = [(config, name) for config, name, value in _settings(module) if value != EXPORTED[name]]
    for config, name in others:
        setattr(config, name, EXPORTED[name])
    return bool(others)


@contextmanager
def restore_settings(module: nn.Module) -> Generator[None]:
    """Give the configurations of a module the settings again that they had before."""
    before = [*_settings(module)]
    try:
        yield
    finally:
        for config, name, value in before:
            setattr(config, name, value)


def _settings(module: nn.Module) -> Iterator[tuple[object, str, object]]:
    """Yield the configurations of a module with the names and values of the settings that they have."""
    for config in _configurations(module):
        values = [(name, getattr(config, name, None)) for name in EXPORTED]
        yield from [(config, name, value) for name, value in values if value is not None]


def _configurations(module: nn.Module) -> Iterator[object]:
    """Yield the configurations of a module and its parts, and those inside of them."""
    seen = set[int]()
    pending: list[object] = [getattr(part, "config", None) for part in module.modules()]
    while pending:
        config = pending.pop()
        if hasattr(config, "model_type") and id(config) not in seen:
            seen.add(id(config))
            yield config
            pending += vars(config).values()
