"""Example inputs of the classes of `transformers`, by the names that their arguments have in all of them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from archspec.equivalence.calls.values import listed
from archspec.lifting.sources.packed import patches, takes_one_image

if TYPE_CHECKING:
    import torch
    from torch import nn


class Sizes(NamedTuple):
    """The sizes of inputs that callers choose."""

    batch: int
    length: int
    target: int
    frames: int
    samples: int


SIZES = (Sizes(3, 11, 7, 80, 2400), Sizes(2, 14, 9, 104, 3200))
"""Two of each, which differ from each other and from sizes of small configurations."""

_TOKENS = ("input_ids", "decoder_input_ids")
_OPTIONAL = ("attention_mask", "token_type_ids", "bbox")
_CONTENTS = ("pixel_values", "pixel_values_videos", "input_features", "input_values")
_STEPS = ("states", "actions", "rewards", "returns_to_go", "timesteps")
_MOST_SHAPES = 3
"""Tokens have so many shapes in one class or another: first they are tried as one sequence for each item."""

_BLOCK = 1920
"""The number of samples of which some models take a multiple."""

_BINS = (
    "num_mel_bins",
    "feature_size",
    "n_mels",
    "input_feat_per_channel",
    "feature_projection_input_dim",
    "input_dim",
)


def examples(module: nn.Module, sizes: Sizes) -> Iterator[dict[str, torch.Tensor]]:
    """Yield inputs to try, the most complete first. The last sequence is padded."""
    import torch

    config: Any = getattr(module, "config", None)
    names = list(inspect.signature(module.forward).parameters)
    generator = torch.Generator().manual_seed(sizes.batch)
    if takes_one_image(module):
        yield patches(module, sizes.length, generator)
        return
    tokens = [name for name in _TOKENS if name in names]
    optional = [name for name in _OPTIONAL if name in names and tokens]
    contents = [name for name in _CONTENTS if name in names]
    choices = [(*tokens, *optional, *contents), (*tokens, *optional), (*tokens, "attention_mask"), (*contents, *tokens),
               (*contents, "attention_mask"), tuple(contents), *[(name,) for name in (*contents, *tokens)],
               (*_STEPS, "attention_mask")]  # fmt: skip
    for shape, chosen in product(range(_MOST_SHAPES), dict.fromkeys(choices)):
        given = [name for name in names if name in chosen]
        shapes = {name: _shapes(name, config, sizes) for name in given}
        varied = [len(shapes[name]) for name in given if name in _CONTENTS]
        others = [len(shapes[name]) for name in given if name not in _CONTENTS]
        if given in ([], ["attention_mask"]) or (shape and max(others, default=1) <= shape):
            continue
        for turn in range(max(varied, default=1)):
            places = {name: turn if name in _CONTENTS else shape for name in given}
            yield {
                name: _drawn(name, shapes[name][min(place, len(shapes[name]) - 1)], config, generator)
                for name, place in places.items()
            }


def _shapes(name: str, config: Any, sizes: Sizes) -> list[tuple[int, ...]]:
    """Return the shapes that an argument of this name has, in one class or another."""
    match name:
        case "decoder_input_ids":
            return [(sizes.batch, sizes.target)]
        case "bbox":
            return [(sizes.batch, sizes.length, 4)]
        case "states" | "actions" | "rewards" | "returns_to_go":
            size = _field(config, "state_dim") if name == "states" else _field(config, "act_dim")
            return [(sizes.batch, sizes.length, size if name in ("states", "actions") else 1)]
        case "pixel_values" | "pixel_values_videos":
            image = _field(config, "image_size", "img_size", "input_size") or 64
            height, width = listed(image) * (1 if isinstance(image, list | tuple) else 2)
            channels = _field(config, "num_channels", "in_channels", "in_chans", "num_input_channels") or 3
            channels = channels if isinstance(channels, int) else 3
            frames = _field(config, "num_frames", "frames_per_clip") or 4
            still, moving = (sizes.batch, channels, height, width), (sizes.batch, frames, channels, height, width)
            return [moving, still] if name.endswith("videos") or _field(config, "num_frames") else [still, moving]
        case "input_features" | "input_values":
            mel = _field(config, *_BINS) or 80
            frames = _field(config, "max_length", "max_source_positions") or sizes.frames
            frames = 2 * frames if _field(config, "max_source_positions") else frames
            options = [(sizes.batch, mel, frames), (sizes.batch, frames, mel), (sizes.batch, sizes.frames, mel)]
            counts = sizes.samples, _BLOCK * sizes.batch
            waves = [shape for count in counts for shape in ((sizes.batch, count), (sizes.batch, 1, count))]
            return options + waves if name == "input_features" else waves + options
        case _ if isinstance(streams := _field(config, "num_codebooks"), int):
            streamed = [(sizes.batch, streams, sizes.length), (sizes.batch, sizes.length, streams + 1)]
            return [(sizes.batch, sizes.length), *streamed]
        case _:
            return [(sizes.batch, sizes.length), (sizes.batch, sizes.target, sizes.length)]


def _drawn(name: str, shape: tuple[int, ...], config: Any, generator: torch.Generator) -> torch.Tensor:
    import torch

    if name in (*_CONTENTS, *_STEPS) and name != "timesteps":
        return torch.randn(shape, generator=generator)
    if name == "attention_mask":
        mask = torch.ones(shape, dtype=torch.long)
        mask[-1, ..., -shape[-1] // 3 :] = 0
        return mask
    if name == "token_type_ids":
        most = min(_field(config, "type_vocab_size") or 2, 2)
    else:
        most = _field(config, "max_ep_len" if name == "timesteps" else "vocab_size") or 32
    return torch.randint(0, most, shape, generator=generator)


def _field(config: Any, *names: str) -> Any:
    """Return the first of these fields that a configuration has, or that one inside of it has."""
    scopes: list[Any] = [config, *inner_configurations(config)]
    for scope in scopes:
        for name in names:
            value: Any = getattr(scope, name, None)
            if value.__class__ in (int, list, tuple) and value:
                return value
    return None


def inner_configurations(config: Any) -> list[Any]:
    """Return the configurations inside of one."""
    fields: dict[str, Any] = getattr(config, "__dict__", {})
    return [value for value in fields.values() if hasattr(value, "model_type")]
