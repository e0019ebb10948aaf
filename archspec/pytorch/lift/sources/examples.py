"""Example inputs of the classes of `transformers`, by the names that their arguments have in all of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from archspec.core.diagnostics import make_error
from archspec.pytorch.lift.sources.fields import Fields
from archspec.pytorch.lift.sources.packed import patches, takes_one_image
from archspec.pytorch.run.calling import MAX_INPUTS
from archspec.pytorch.values.arguments import as_list

if TYPE_CHECKING:
    import torch
    from torch import nn


class Configuration(Protocol):
    """What configurations of `transformers` have."""

    model_type: str
    use_cache: bool
    use_pretrained_backbone: bool

    def to_dict(self) -> Fields: ...


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
_PICTURES, _SOUNDS = ("pixel_values", "pixel_values_videos"), ("input_features", "input_values")
_CONTENTS = (*_PICTURES, *_SOUNDS)
_MEDIA = {
    "images": re.compile(r"(\w+_)?pixel_values(_\w+)?|flattened_patches|image_patches"),
    "sound": re.compile(r"(\w+_)?input_(features|values)|audio_values"),
}
"""The arguments of any class that are images or sound."""

_STEPS = ("states", "actions", "rewards", "returns_to_go", "timesteps")
_IDS, _MASK = "_input_ids", "_attention_mask"
"""How the arguments of further parts end, such as `qformer_input_ids`."""

_IMAGES = ("_pixel_values", "_masks")
"""How those of further images and of masks over images end."""

_MAX_SHAPES = 3
"""Tokens have so many shapes in one class or another: first they are tried as one sequence for each item."""

_BLOCK = 1920
"""The number of samples of which some models take a multiple."""

_IMAGE = 96
"""The side of an image where no field has it: over the strides of 32 or 16 of most models, no number of heads."""

_LARGER_IMAGES = (160, 288)
"""The sides of larger ones, for models that choose their queries among the places in an image."""

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

    config = getattr(module, "config", None)
    arguments = inspect.signature(module.forward).parameters
    names = list(arguments)
    generator = torch.Generator().manual_seed(sizes.batch)
    if takes_one_image(module):
        yield from patches(module, sizes.length, generator)
        return
    tokens = [name for name in _TOKENS if name in names]
    of_sound = "input_values" in names and "input_ids" not in names  # its mask is one of samples
    optional = [name for name in _OPTIONAL if name in names and tokens and not of_sound]
    contents = [name for name in _CONTENTS if name in names]
    required = _required(arguments)
    choices = [(*tokens, *optional, *contents), (*tokens, *optional), (*tokens, "attention_mask"), (*contents, *tokens),
               (*contents, "attention_mask"), tuple(contents), *[(name,) for name in (*contents, *tokens)],
               (*_STEPS, "attention_mask")]  # fmt: skip
    given_by_choice = [tuple([name for name in names if name in chosen or name in required]) for chosen in choices]
    for shape, given in product(range(_MAX_SHAPES), dict.fromkeys(given_by_choice)):
        shapes = {name: _documented(module, name, _shapes(name, config, sizes), config) for name in given}
        varied = [len(shapes[name]) for name in given if _is_content(name)]
        others = [len(shapes[name]) for name in given if not _is_content(name)]
        if not {*given} - {"attention_mask"} or (shape and max(others, default=1) <= shape):
            continue
        for turn in range(max(varied, default=1)):
            places = {name: turn if _is_content(name) else shape for name in given}
            yield {
                name: _drawn(name, shapes[name][min(place, len(shapes[name]) - 1)], config, generator)
                for name, place in places.items()
            }


def _required(arguments: Mapping[str, inspect.Parameter]) -> list[str]:
    """Return the arguments of further parts, such as `qformer_input_ids`, that have to be given, and their masks."""
    known = (*_TOKENS, *_CONTENTS)
    found = [
        name
        for name, argument in arguments.items()
        if argument.default is argument.empty and name not in known and name.endswith((_IDS, *_IMAGES))
    ]
    masks = [name.removesuffix(_IDS) + _MASK for name in found if name.endswith(_IDS)]
    return [*found, *[name for name in masks if name in arguments]]


def _documented(module: nn.Module, name: str, shapes: list[tuple[int, ...]], config: object) -> list[tuple[int, ...]]:
    """Return the shapes of an argument, those first whose axes are in the order that its class documents: for sounds,
    most of which are written with the features of each frame as the last axis.
    """
    found = re.search(rf"\b{name} \([^\n]*?of shape `\(([^)]*)\)`", inspect.getdoc(module.forward) or "")
    axes = [word.strip() for word in found[1].split(",")] if found else []
    if name not in _SOUNDS or not axes or re.search("mel|bins|bands|feature", axes[-1]) is None:
        return shapes
    features = _number(config, *_BINS) or 80
    return sorted(shapes, key=lambda shape: len(shape) != len(axes) or shape[-1] != features)


def left_out(module: nn.Module, given: Collection[str]) -> list[str]:
    """Return the images and sounds that a module takes, and is not given."""
    names = [name for name in inspect.signature(module.forward).parameters if name not in given]
    return [name for name in names if any(pattern.fullmatch(name) for pattern in _MEDIA.values())]


def check_contents(name: str, module: nn.Module, given: Collection[str]) -> None:
    """Refuse a module that takes images or sound, and is given none of either."""
    for medium, pattern in _MEDIA.items():
        missing = [item for item in left_out(module, given) if pattern.fullmatch(item)]
        if missing and not any(map(pattern.fullmatch, given)):
            listed = ", ".join([f"`{item}`" for item in missing])
            reason = f"it also takes {medium} ({listed}), of which no example is known that it accepts"
            raise make_error("lift", f"cannot lift `{name}`: {reason}")


def _is_content(name: str) -> bool:
    return name in _CONTENTS or name.endswith(_IMAGES)


def _shapes(name: str, config: object, sizes: Sizes) -> list[tuple[int, ...]]:
    """Return the shapes that an argument of this name has, in one class or another."""
    match name:
        case "decoder_input_ids":
            streams = _number(getattr(config, "decoder_config", None), "num_channels")  # of tokens for each position
            return [(sizes.batch, sizes.target, *([streams] if streams is not None else []))]
        case _ if name.endswith((_IDS, _MASK)):
            return [(sizes.batch, sizes.target)]
        case "bbox":
            return [(sizes.batch, sizes.length, 4)]
        case "states" | "actions" | "rewards" | "returns_to_go":
            size = _number(config, "state_dim" if name == "states" else "act_dim")
            return [(sizes.batch, sizes.length, size if size is not None and name in ("states", "actions") else 1)]
        case "input_features" | "input_values":
            return _shapes_of_sound(name, config, sizes)
        case _ if _is_content(name):
            return _shapes_of_images(name, config, sizes)
        case _ if (streams := _number(config, "num_codebooks")) is not None:
            streamed = [(sizes.batch, streams, sizes.length), (sizes.batch, sizes.length, streams + 1)]
            return [(sizes.batch, sizes.length), *streamed]
        case _:
            return [(sizes.batch, sizes.length), (sizes.batch, sizes.target, sizes.length)]


def _shapes_of_images(name: str, config: object, sizes: Sizes) -> list[tuple[int, ...]]:
    image = _field(config, "image_size", "img_size", "input_size") or _IMAGE
    height, width = as_list(image) * (1 if isinstance(image, list | tuple) else 2)
    channels = _number(config, "num_channels", "in_channels", "in_chans", "num_input_channels") or 3
    frames = _number(config, "num_frames", "frames_per_clip") or 4
    still, moving = (sizes.batch, channels, height, width), (sizes.batch, frames, channels, height, width)
    sides = [width] if height == 2 * width else []
    sides += _LARGER_IMAGES if (height, width) == (_IMAGE, _IMAGE) and _field(config, "num_queries") else []
    others = [(sizes.batch, channels, side, side) for side in sides]
    return [moving, still] if name.endswith("videos") or _field(config, "num_frames") else [still, moving, *others]


def _shapes_of_sound(name: str, config: object, sizes: Sizes) -> list[tuple[int, ...]]:
    mel = _number(config, *_BINS) or 80
    frames = _number(config, "max_length", "max_source_positions") or sizes.frames
    frames = 2 * frames if _field(config, "max_source_positions") else frames
    options: list[tuple[int, ...]] = [(sizes.batch, mel, frames)]
    options += [(sizes.batch, count, mel) for count in (sizes.frames, frames)]
    square = _number(config, "spec_size")
    if square is not None:  # an image that is as high as wide, of several pieces of the sound
        options.append((sizes.batch, 1, square * (square // mel), mel))
    counts = sizes.samples, _BLOCK * sizes.batch
    waves = [shape for count in counts for shape in ((sizes.batch, count), (sizes.batch, 1, count))]
    return options + waves if name == "input_features" else waves + options


def _drawn(name: str, shape: tuple[int, ...], config: object, generator: torch.Generator) -> torch.Tensor:
    import torch

    if _is_content(name) or (name in _STEPS and name != "timesteps"):
        is_large = prod(shape) > MAX_INPUTS
        return torch.zeros(shape) if is_large else torch.randn(shape, generator=generator)
    if name.endswith("attention_mask"):
        mask = torch.ones(shape, dtype=torch.long)
        mask[-1, ..., -shape[-1] // 3 :] = 0
        return mask
    if name == "token_type_ids":
        most = min(_number(config, "type_vocab_size") or 2, 2)
    else:
        part = getattr(config, name.removesuffix(_IDS) + "_config", config)
        most = _number(part, "max_ep_len" if name == "timesteps" else "vocab_size") or 32
    return torch.randint(0, most, shape, generator=generator)


def _number(config: object, *names: str) -> int | None:
    """Return the first of these fields that a configuration has, or that one inside of it has, if it is a number."""
    found = _field(config, *names)
    return found if isinstance(found, int) else None


def _field(config: object, *names: str) -> int | Sequence[int] | None:
    """Return the first of these fields that a configuration has, or that one inside of it has."""
    for scope in (config, *inner_configurations(config)):
        for name in names:
            value = getattr(scope, name, None)
            if value.__class__ in (int, list, tuple) and value:
                return value
    return None


def inner_configurations(config: object) -> list[Configuration]:
    """Return the configurations inside of one."""
    fields: dict[str, object] = getattr(config, "__dict__", {})
    return [cast("Configuration", value) for value in fields.values() if hasattr(value, "model_type")]
