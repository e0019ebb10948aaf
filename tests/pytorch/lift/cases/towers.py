"""Towers for packed patches of all images are lifted for a single image."""

from importlib import import_module
from typing import Any

import torch
from torch import nn


def vision() -> Any:
    return import_module("transformers.vision_utils")


class Tower(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.proj = nn.Linear(12, config.width)


class Centred(Tower):
    """A tower that reads where images end, and the positions of patches."""

    def forward(self, hidden_states: Any, grid_thw: Any, **kwargs: Any) -> Any:
        positions = vision().get_vision_position_ids(grid_thw, 2, kwargs=kwargs)
        bounds, _ = vision().get_vision_attention_seqlens(grid_thw, self.config, kwargs=kwargs)
        parts = torch.split(self.proj(hidden_states), (bounds[1:] - bounds[:-1]).tolist())
        return torch.cat([part - part.mean(0) for part in parts]) * positions.sum(1, keepdim=True)


class InWindows(Tower):
    """A tower that attends in windows, and to all of the image."""

    is_causal = False

    def attention(self, x: Any, bounds: Any) -> Any:
        functions = import_module("transformers.modeling_utils").ALL_ATTENTION_FUNCTIONS
        heads = x.unflatten(-1, (4, 2)).transpose(0, 1)[None]
        call = functions.get(self.config._attn_implementation)
        heads = heads, heads[:, :2], heads[:, 2:]
        return call(self, *heads, None, scaling=0.5, is_causal=self.is_causal, cu_seq_lens_q=bounds)[0].flatten(2)[0]

    def forward(self, hidden_states: Any, grid_thw: Any, **kwargs: Any) -> Any:
        bounds, _ = vision().get_vision_attention_seqlens(grid_thw, self.config, kwargs=kwargs)
        order, windows = vision().get_vision_window_index(grid_thw, 2, 8, 2, kwargs=kwargs)
        x = self.proj(hidden_states).unflatten(0, (-1, 4))[order].flatten(0, 1)
        return self.attention(self.attention(x, windows), bounds)


class Causal(InWindows):
    is_causal = True


class Interpolating(Tower):
    """A tower that interpolates a table of positions."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.table = nn.Embedding(config.num_position_embeddings, config.width)

    def forward(self, pixels: Any, image_grid_thw: Any, **kwargs: Any) -> Any:
        utils = vision()
        at, weights = utils.get_vision_interpolation_indices_and_weights(image_grid_thw, 4, 2, kwargs=kwargs)
        return self.proj(pixels) + (self.table(at) * weights[..., None]).sum(1)


class Counting(Tower):
    """A tower that counts the patches of each image, and reads its height and width."""

    def forward(self, hidden_states: Any, grid_thw: Any, **kwargs: Any) -> Any:
        vision().get_vision_attention_seqlens(grid_thw, self.config, kwargs=kwargs)
        (count,) = (grid_thw.prod(-1) + 3).tolist()
        twos = torch.repeat_interleave(torch.full((1,), 2.0), grid_thw.prod(-1))
        ((_, height, width),) = [[*map(int, sizes)] for sizes in grid_thw]
        return self.proj((hidden_states + twos[:, None]) * count + height - 2 * width)


class Rows(Tower):
    """A tower that interpolates positions for the height and width of an image."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.positions = nn.Parameter(torch.randn(1, 12, 5, 5))
        self.merge = nn.Conv2d(12, 8, 2, stride=2)

    def forward(self, hidden_states: Any, grid_thw: Any, **kwargs: Any) -> Any:
        bounds, _ = vision().get_vision_attention_seqlens(grid_thw, self.config, kwargs=kwargs)
        images = []
        pieces = torch.split(hidden_states, (bounds[1:] - bounds[:-1]).tolist())
        for (_, height, width), piece in zip(grid_thw.tolist(), pieces, strict=True):
            torch._check(height > 3)
            torch._check(width > 3)
            place = nn.functional.interpolate(self.positions, (height, width), mode="bilinear")
            image = piece.T.reshape(1, 12, height, width) + place
            images.append(self.merge(image).flatten(2).transpose(1, 2))
        return torch.cat(images, dim=1)


class Plain(Tower):
    """A tower that is given a grid and does not read it."""

    def forward(self, hidden_states: Any, grid_thw: Any = None) -> Any:
        return self.proj(hidden_states)


FIELDS = {"in_channels": 3, "patch_size": 2, "spatial_merge_size": 2, "width": 8}

SOURCES = {
    "positions of patches": (Centred, FIELDS),
    "attention in windows": (InWindows, FIELDS),
    "causal attention": (Causal, FIELDS),
    "interpolated positions": (Interpolating, {**FIELDS, "num_position_embeddings": 16}),
    "the number of patches": (Counting, FIELDS),
    "the height and width of an image": (Rows, FIELDS),
    "a grid that is not read": (Plain, FIELDS),
}
