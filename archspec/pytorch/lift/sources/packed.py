"""Towers that take the patches of all images in one sequence: they are lifted for a single image.

Such a tower reads from a tensor where its images end, and computes positions from their heights and widths: no graph
can be exported of either. For one image, the patches are counted by their own axes, and what depends on their places in
it is an input.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import torch
    from torch import nn

_BOUNDS = "get_vision_attention_seqlens"
_POSITIONS = {
    "get_vision_position_ids": ("position_ids",),
    "get_vision_interpolation_indices_and_weights": ("interp_indices", "interp_weights"),
    "get_vision_window_index": ("window_index", "cu_window_seqlens"),
}
"""What a tower can be given in place of the grid, by the function that computes it."""

_IN_WINDOWS = "flash_attention_in_windows"
"""The name of an attention that is given the bounds of windows as a tensor, as one with `flash` in its name is."""


_IMPLEMENTATION = "_attn_implementation"
"""The field that names the attention of a model."""


class _Functions(Protocol):
    """Where `transformers` looks up attention by its name."""

    def register(self, key: str, value: Callable[..., object]) -> None: ...


class _Config(Protocol):
    """Fields of the configuration of a tower."""

    patch_size: int
    spatial_merge_size: int


class _Count:
    """A tensor with a number for each image, where there is one image: also of where it ends."""

    shape = (1,)

    def __init__(self, number: int) -> None:
        self._number = number

    def _same(self, *_: object, **__: object) -> _Count:
        return self

    __getitem__ = __mul__ = __sub__ = cpu = cumsum = prod = to = _same

    def __add__(self, more: int) -> _Count:
        return _Count(self._number + more)

    def tolist(self) -> Sequence[object]:
        return [self._number]

    @classmethod
    def __torch_function__(
        cls, call: Callable[..., object], _: object, args: Sequence[object] = (), keywords: object = None
    ) -> object:
        import torch

        if call is torch.repeat_interleave and isinstance(args[0], torch.Tensor):
            return args[0].expand(cast("Sequence[int]", cast("_Count", args[1]).tolist()))
        return args[0] if call in (torch.repeat_interleave, torch.nn.functional.pad) else NotImplemented


class _Grid(_Count):
    """The frames, height and width of the only image."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__(height * width)
        self._sizes = (1, height, width)

    def _product(self, *_: object, **__: object) -> _Count:
        return _Count(self._number)

    __getitem__ = prod = _product

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter([self._sizes])

    def tolist(self) -> Sequence[object]:
        return [self._sizes]


def with_one_image(module: nn.Module) -> nn.Module:
    """Have a tower that takes packed patches take those of one image: in the groups that are merged, with their
    positions, or as rows of the image if it computes these from its height and width.

    Other modules stay as they are.
    """
    called = {name for part in module.modules() for name in inspect.unwrap(type(part).forward).__code__.co_names}
    content, *others = [*inspect.signature(module.forward).parameters, ""]
    given = [name for function, names in _POSITIONS.items() if function in called for name in names]
    if others[0] not in ("grid_thw", "image_grid_thw") or not (given or _BOUNDS in called):
        return module
    original = type(module).forward
    lengths = _attending_in_windows(module) if "window_index" in given else {}

    def of_one_image(self: nn.Module, **inputs: torch.Tensor) -> object:
        patches = inputs.pop(content)
        flat = {name: value.flatten(0, 1) if value.dim() > 1 else value for name, value in inputs.items()}
        grid = _Count(next(iter(flat.values())).shape[0]) if flat else _Grid(*patches.shape[:2])
        return original(self, patches.flatten(0, 1) if patches.dim() == 3 else patches, grid, **lengths, **flat)

    keywords = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in (content, *given)]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    of_one_image.__signature__ = inspect.Signature([own, *keywords])  # pyright: ignore[reportFunctionMemberAccess]
    module.forward = MethodType(of_one_image, module)
    return module


def _attending_in_windows(module: nn.Module) -> dict[str, int]:
    """Have the layers of a tower attend to the window of each patch, which is a mask. Return further arguments for it:
    the lengths of the longest windows, which are not read.
    """
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    cast("_Functions", ALL_ATTENTION_FUNCTIONS).register(_IN_WINDOWS, _in_windows)
    setattr(module.config, _IMPLEMENTATION, _IN_WINDOWS)
    return {"max_seqlen": 0, "max_window_seqlen": 0}


def _in_windows(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    is_causal: bool,
    cu_seq_lens_q: torch.Tensor | _Count,
    **_: object,
) -> tuple[torch.Tensor, None]:
    """Return the attention of patches to those of the same window, or to all of the image."""
    import torch

    if is_causal:
        raise ValueError("patches attend to earlier ones only")
    mask = attention_mask
    if isinstance(cu_seq_lens_q, torch.Tensor):
        window = (torch.arange(query.shape[2])[:, None] >= cu_seq_lens_q).sum(-1)
        mask = window[:, None] == window
    attend = torch.nn.functional.scaled_dot_product_attention
    found = attend(query, key, value, mask, scale=scaling, enable_gqa=True)
    return found.transpose(1, 2), None


def takes_one_image(module: nn.Module) -> bool:
    """Whether a module is a tower that takes the patches of one image."""
    return getattr(module.forward, "__name__", "") == "of_one_image"


def patches(module: nn.Module, groups: int, generator: torch.Generator) -> Iterator[dict[str, torch.Tensor]]:
    """Yield patches of one image, in so many groups, and their positions."""
    import torch

    config = cast("_Config", module.config)
    channels = getattr(config, "in_channels", None) or getattr(config, "num_channels", 3)
    size = channels * config.patch_size**2 * getattr(config, "temporal_patch_size", 1)
    merged, side = config.spatial_merge_size, config.spatial_merge_size * config.patch_size
    shape = groups, merged**2
    places = getattr(config, "num_position_embeddings", 4)
    found = {
        "position_ids": torch.randint(0, 9, (*shape, 2), generator=generator),
        "interp_indices": torch.randint(0, places, (*shape, 4), generator=generator),
        "interp_weights": torch.rand((*shape, 4), generator=generator),
        "window_index": torch.randperm(groups, generator=generator),
        "cu_window_seqlens": torch.arange(groups // 2 + 2) * merged**2,
    }
    content, *given = inspect.signature(module.forward).parameters
    contents = [(*shape, size), (groups, side, side, channels)]
    if not given:
        contents = [(merged * groups, merged * (groups + 2), size)]
    for content_shape in contents:
        yield {content: torch.randn(content_shape, generator=generator)} | {name: found[name] for name in given}
