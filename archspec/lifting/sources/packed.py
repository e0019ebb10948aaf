"""Towers that take the patches of all images in one sequence: they are lifted for a single image.

Such a tower reads from a tensor where its images end, and computes positions from their heights and widths: no graph
can be exported of either. Without the grid, the patches are of one image, and their positions are inputs.
"""

from __future__ import annotations

import inspect
from types import MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn

_BOUNDS = "get_vision_attention_seqlens"
_POSITIONS = {
    "get_vision_position_ids": ("position_ids",),
    "get_vision_interpolation_indices_and_weights": ("interp_indices", "interp_weights"),
}
"""What a tower can be given in place of the grid, by the function that computes it."""


class _Whole:
    """The bounds of the only sequence: the differences of neighboring ones are its length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __getitem__(self, _: Any) -> _Whole:
        return self

    def __sub__(self, _: Any) -> _Whole:
        return self

    def tolist(self) -> list[int]:
        return [self.length]


def with_one_image(module: nn.Module) -> nn.Module:
    """Have a tower that takes packed patches take those of one image, in the groups that are merged, with positions.

    Other modules stay as they are.
    """
    called = inspect.unwrap(type(module).forward).__code__.co_names
    named = [*inspect.signature(module.forward).parameters]
    if _BOUNDS not in called or named[1:2] != ["grid_thw"] or "get_vision_window_index" in called:
        return module
    original: Any = type(module).forward
    given = [name for function, names in _POSITIONS.items() if function in called for name in names]

    def of_one_image(self: nn.Module, **inputs: torch.Tensor) -> Any:
        flat = {name: value.flatten(0, 1) for name, value in inputs.items()}
        patches = flat.pop(named[0])
        return original(self, patches, None, cu_seqlens=_Whole(patches.shape[0]), **flat)

    keywords = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in (named[0], *given)]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    of_one_image.__signature__ = inspect.Signature([own, *keywords])  # pyright: ignore[reportFunctionMemberAccess]
    module.forward = MethodType(of_one_image, module)
    return module


def takes_one_image(module: nn.Module) -> bool:
    """Whether a module is a tower that takes the patches of one image."""
    return getattr(module.forward, "__name__", "") == "of_one_image"


def patches(module: nn.Module, groups: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Return the patches of one image, in so many groups, and what says where they are."""
    import torch

    config: Any = module.config
    channels = getattr(config, "in_channels", None) or getattr(config, "num_channels", 3)
    size = channels * config.patch_size**2 * getattr(config, "temporal_patch_size", 1)
    shape = groups, config.spatial_merge_size**2
    places = getattr(config, "num_position_embeddings", 4)
    found = {
        "position_ids": torch.randint(0, 9, (*shape, 2), generator=generator),
        "interp_indices": torch.randint(0, places, (*shape, 4), generator=generator),
        "interp_weights": torch.rand((*shape, 4), generator=generator),
    }
    content, *given = inspect.signature(module.forward).parameters
    return {content: torch.randn((*shape, size), generator=generator)} | {name: found[name] for name in given}
