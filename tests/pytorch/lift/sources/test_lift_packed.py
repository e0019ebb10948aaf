"""Towers that take packed patches are lifted for one image: they compute of it what they compute of it in a grid."""

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
vision = pytest.importorskip("transformers.vision_utils")

from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils.generic import is_flash_attention_requested

from archspec.pytorch.lift.api import lift_subject
from archspec.pytorch.lift.sources.examples import SIZES, examples
from archspec.pytorch.lift.sources.packed import patches, takes_one_image, with_one_image
from archspec.pytorch.lift.subject import Subject


def configuration() -> SimpleNamespace:
    return SimpleNamespace(in_channels=3, patch_size=2, spatial_merge_size=2, _attn_implementation="sdpa")


def test_a_tower_of_packed_patches_takes_those_of_one_image() -> None:
    class Tower(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.config = configuration()
            self.proj = torch.nn.Linear(12, 8)

        def forward(self, hidden_states: Any, grid_thw: Any, **kwargs: Any) -> Any:
            positions = vision.get_vision_position_ids(grid_thw, 2, kwargs=kwargs)
            bounds, _ = vision.get_vision_attention_seqlens(grid_thw, self.config, kwargs=kwargs)
            parts = torch.split(self.proj(hidden_states), (bounds[1:] - bounds[:-1]).tolist())
            return torch.cat([part - part.mean(0) for part in parts]) * positions.sum(1, keepdim=True)

    class Other(torch.nn.Linear):
        def forward(self, x: Any, grid_thw: Any) -> Any: ...

    for plain in (torch.nn.Linear(2, 2), Other(2, 2)):
        assert with_one_image(plain) is plain and not takes_one_image(plain)
    tower = Tower().eval()
    grid = torch.tensor([[1, 4, 6]])
    pixels = torch.randn(24, 12)
    expected = tower(pixels, grid)
    positions = vision.get_vision_position_ids(grid, 2)
    alone = with_one_image(tower)
    assert takes_one_image(alone)
    found = alone(hidden_states=pixels.view(6, 4, 12), position_ids=positions.view(6, 4, 2))
    assert torch.equal(found, expected)
    (inputs, *_) = patches(alone, 5, torch.Generator())
    assert {name: tuple(value.shape) for name, value in inputs.items()} == {
        "hidden_states": (5, 4, 12),
        "position_ids": (5, 4, 2),
    }
    exported = torch.export.export(alone, (), inputs, strict=False)
    assert torch.allclose(exported.module()(**inputs), alone(**inputs))


def test_a_tower_that_attends_in_windows_is_given_them() -> None:
    class Tower(torch.nn.Module):
        is_causal = False

        def __init__(self) -> None:
            super().__init__()
            self.config = configuration()
            self.proj = torch.nn.Linear(12, 8)

        def attention(self, x: Any, bounds: Any) -> Any:
            heads = x.unflatten(-1, (4, 2)).transpose(0, 1)[None]
            heads = heads, heads[:, :2], heads[:, 2:]
            call = ALL_ATTENTION_FUNCTIONS.get(self.config._attn_implementation)
            if is_flash_attention_requested(self.config):
                found, _ = call(self, *heads, None, scaling=0.5, is_causal=self.is_causal, cu_seq_lens_q=bounds)
            else:
                parts = zip(*[part.split((bounds[1:] - bounds[:-1]).tolist(), dim=2) for part in heads], strict=True)
                grouped = [(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)) for q, k, v in parts]
                of_parts = [call(self, *part, None, scaling=0.5, is_causal=False)[0] for part in grouped]
                found = torch.cat(of_parts, dim=1)
            return found.flatten(2)[0]

        def forward(self, hidden_states: Any, grid_thw: Any, **kwargs: Any) -> Any:
            bounds, _ = vision.get_vision_attention_seqlens(grid_thw, self.config, kwargs=kwargs)
            order, windows = vision.get_vision_window_index(grid_thw, 2, 8, 2, kwargs=kwargs)
            x = self.proj(hidden_states).unflatten(0, (-1, 4))[order].flatten(0, 1)
            return self.attention(self.attention(x, windows), bounds)

    tower = Tower().eval()
    grid = torch.tensor([[1, 6, 8]])
    pixels = torch.randn(48, 12)
    expected = tower(pixels, grid)
    order, windows = vision.get_vision_window_index(grid, 2, 8, 2)
    alone = with_one_image(tower)
    found = alone(hidden_states=pixels.view(12, 4, 12), window_index=order, cu_window_seqlens=windows)
    assert len(windows) > 3 and torch.allclose(found, expected, atol=1e-6)
    (inputs, *_) = patches(alone, 5, torch.Generator())
    assert inputs["cu_window_seqlens"].tolist() == [0, 4, 8, 12]
    exported = torch.export.export(alone, (), inputs, strict=False)
    assert torch.allclose(exported.module()(**inputs), alone(**inputs))
    tower.is_causal = True
    with pytest.raises(ValueError, match=r"patches attend to earlier ones only$"):
        alone(**inputs)


def test_patches_have_the_sizes_and_places_of_a_configuration() -> None:
    class Tower(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            sizes = {"patch_size": 3, "spatial_merge_size": 4, "temporal_patch_size": 2, "num_position_embeddings": 16}
            self.config = SimpleNamespace(num_channels=5, **sizes)

        def forward(self, pixels: Any, image_grid_thw: Any, **kwargs: Any) -> Any:
            vision.get_vision_interpolation_indices_and_weights(image_grid_thw, 4, 2, kwargs=kwargs)

    found = [*patches(with_one_image(Tower()), 7, torch.Generator())]
    shapes = [{name: tuple(value.shape) for name, value in inputs.items()} for inputs in found]
    places = {"interp_indices": (7, 16, 4), "interp_weights": (7, 16, 4)}
    assert shapes == [{"pixels": (7, 16, 90), **places}, {"pixels": (7, 12, 12, 5), **places}]
    assert {*found[0]["interp_indices"].flatten().tolist()} == {*range(16)}


def test_a_tower_may_count_the_patches_of_the_image() -> None:
    class Tower(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.config = configuration()

        def forward(self, hidden_states: Any, grid_thw: Any, **kwargs: Any) -> Any:
            vision.get_vision_attention_seqlens(grid_thw, self.config, kwargs=kwargs)
            (count,) = (grid_thw.prod(-1) + 3).tolist()
            twos = torch.repeat_interleave(torch.full((1,), 2.0), grid_thw.prod(-1))
            ((_, height, width),) = [[*map(int, sizes)] for sizes in grid_thw]
            return (hidden_states + twos[:, None]) * count + height - 2 * width

    tower = Tower().eval()
    pixels = torch.randn(24, 12)
    expected = tower(pixels, torch.tensor([[1, 4, 6]]))
    alone = with_one_image(tower)
    assert torch.allclose(alone(hidden_states=pixels.view(4, 6, 12)), expected)
    (inputs,) = examples(alone, SIZES[0])
    assert {name: value.shape for name, value in inputs.items()} == {"hidden_states": (22, 26, 12)}


def test_a_tower_that_reads_the_size_of_an_image_takes_it_as_rows() -> None:
    class Tower(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.config = configuration()
            self.positions = torch.nn.Parameter(torch.randn(1, 12, 5, 5))
            self.merge = torch.nn.Conv2d(12, 8, 2, stride=2)
            self.out = torch.nn.Linear(8, 6)

        def forward(self, hidden_states: Any, grid_thw: Any, **kwargs: Any) -> Any:
            bounds, _ = vision.get_vision_attention_seqlens(grid_thw, self.config, kwargs=kwargs)
            found = []
            pieces = torch.split(hidden_states, (bounds[1:] - bounds[:-1]).tolist())
            for (_, height, width), piece in zip(grid_thw.tolist(), pieces, strict=True):
                torch._check(height > 3)
                torch._check(width > 3)
                place = torch.nn.functional.interpolate(self.positions, (height, width), mode="bilinear")
                image = piece.T.reshape(1, 12, height, width) + place
                found.append(self.out(self.merge(image).flatten(2).transpose(1, 2)))
            return torch.cat(found, dim=1)

    tower = Tower().eval()
    pixels = torch.randn(24, 12)
    expected = tower(pixels, torch.tensor([[1, 4, 6]]))
    alone = with_one_image(tower)
    assert torch.equal(alone(hidden_states=pixels.view(4, 6, 12)), expected)
    (first,), (second,) = patches(alone, 3, torch.Generator()), patches(alone, 5, torch.Generator())
    text = lift_subject(Subject(alone, first, second, None, {}, None, "Tower"))
    assert "hidden_states [batch, seq, 12]" in text
