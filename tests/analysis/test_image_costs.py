"""`cost --image`: the tokens that an image makes, as the processors of transformers count them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import archspec
from archspec import testing

TOKENS = {
    "aya-vision-8b": [169, 2197, 2197, 1521],
    "idefics3-8b": [2873, 2197, 2197, 845],
    "internvl3-8b": [256, 3328, 3328, 2304],
    "llava-v1.6-mistral-7b": [1176, 2340, 2352, 870],
    "llava-onevision-7b": [1485, 4725, 4744, 1114],
    "mistral-small-3.1-24b": [9, 1036, 1036, 66],
    "qwen2-vl-7b": [9, 999, 999, 66],
    "qwen2.5-vl-7b": [9, 999, 999, 66],
    "qwen3-vl-8b": [64, 768, 768, 69],
    "qwen3.5-9b": [64, 768, 768, 69],
}
"""The tokens of images of 84 x 84, 1024 x 768, 768 x 1024 and 604 x 77 pixels."""
SIZES = [(84, 84), (768, 1024), (1024, 768), (77, 604)]


def placed(name: str, height: int, width: int) -> int:
    model = archspec.load(name, pixels=[height, width])
    result = archspec.cost(model, dims={"batch": 1, "images": 1})
    (number,) = result.placed
    assert isinstance(number, int)
    return number


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", TOKENS)
def test_an_image_makes_tokens(name: str) -> None:
    assert [placed(name, *size) for size in SIZES[1:3]] == TOKENS[name][1:3]


def test_the_option_states_the_size_of_an_image() -> None:
    result = testing.run("cost", "internvl3-8b", "--image", "1024x768", "--batch", "1", "--seq", "4096", "--depth", "0")
    assert "with pixels = [768, 1024], at batch = 1, seq = 4096, images = 1" in result.output
    assert "images or sounds take the places of 3,328 tokens\n" in result.output


def test_texts_that_are_too_short_are_named() -> None:
    result = testing.run("cost", "qwen2-vl-7b", "--image", "1024x768", "--batch", "2", "--seq", "64", "--depth", "0")
    assert "images or sounds take the places of 999 tokens, but the text has 128\n" in result.output


@pytest.mark.parametrize(
    ("arguments", "message", "help"),
    [
        (("llava-1.5-7b", "--image", "1024x768"), "has no hyperparameter `pixels`", "`--dim images=1`"),
        (("gpt2", "--image", "1024x768"), "has no hyperparameter `pixels`", ""),
        (("qwen2-vl-7b", "--image", "1024"), "expected the width and height of an image in pixels", "1024x768"),
        (("qwen2-vl-7b", "--image", "0x8"), "expected the width and height of an image in pixels", "1024x768"),
        (("qwen2-vl-7b", "--image", "8x8", "--set", "pixels=[9, 9]"), "both state the size of an image", ""),
    ],
)
def test_images_that_cannot_be_computed(arguments: tuple[str, ...], message: str, help: str) -> None:
    result = testing.run("cost", *arguments)
    assert result.status == 1 or result.status == 2
    assert message in result.errors and help in result.errors


# The processors of transformers ---------------------------------------------------------------------------------------


@cache
def processors() -> dict[str, Callable[[int, int], int]]:
    """The number of tokens of an image of a height and width by model; those that mark rows and tiles are left out."""
    transformers: Any = pytest.importorskip("transformers")
    pytest.importorskip("PIL")
    models = "transformers.models."
    pil = {
        name: getattr(pytest.importorskip(f"{models}{name}.image_processing_pil_{name}"), f"{class_}ImageProcessorPil")
        for name, class_ in (("got_ocr2", "GotOcr2"), ("idefics3", "Idefics3"), ("qwen2_vl", "Qwen2VL"))
    }
    pixtral: Any = pytest.importorskip(f"{models}pixtral.image_processing_pil_pixtral")
    numpy: Any = pytest.importorskip("numpy")

    def tiles(side: int, tokens: int) -> Callable[[int, int], int]:
        processor = pil["got_ocr2"](size={"height": side, "width": side}, crop_to_patches=True)
        return lambda h, w: tokens * processor.get_number_of_image_patches(h, w)

    def patches(least: int, most: int, patch: int) -> Callable[[int, int], int]:
        processor = pil["qwen2_vl"](size={"shortest_edge": least, "longest_edge": most}, patch_size=patch)
        return lambda h, w: processor.get_number_of_image_patches(h, w) // 4

    def edges(h: int, w: int) -> int:
        size = pixtral.get_resize_output_image_size(numpy.zeros((h, w, 3)), size=1540, patch_size=28)
        return size[0] // 28 * (size[1] // 28)

    splits = pil["idefics3"](size={"longest_edge": 4 * 364}, max_image_size={"longest_edge": 364})
    llava = object.__new__(transformers.LlavaNextProcessor)
    llava.patch_size, llava.num_additional_image_tokens = 14, 1
    llava.image_processor = transformers.LlavaNextImageProcessorPil()
    onevision = object.__new__(transformers.LlavaOnevisionProcessor)
    onevision.patch_size, onevision.vision_aspect_ratio, onevision.num_image_tokens = 14, "anyres_max_9", 729
    onevision.image_processor = transformers.LlavaOnevisionImageProcessorPil()
    return {
        "aya-vision-8b": tiles(364, 169),
        "idefics3-8b": lambda h, w: 169 * max(splits.get_number_of_image_patches(h, w)[0], 1),
        "internvl3-8b": tiles(448, 256),
        "llava-v1.6-mistral-7b": lambda h, w: llava._get_number_of_features(h, w, 336, 336) - 1,
        "llava-onevision-7b": lambda h, w: onevision._get_number_of_features(h, w, 384, 384),
        "mistral-small-3.1-24b": edges,
        "qwen2-vl-7b": patches(3136, 12845056, 14),
        "qwen2.5-vl-7b": patches(3136, 12845056, 14),
        "qwen3-vl-8b": patches(65536, 16777216, 16),
        "qwen3.5-9b": patches(65536, 16777216, 16),
    }


@pytest.mark.slow
def test_processors_make_these_tokens() -> None:
    assert {name: [count(*size) for size in SIZES] for name, count in processors().items()} == TOKENS
    for i, (name, count) in enumerate(processors().items()):
        sizes = [(1 + 37 * k % 1900, 1 + 91 * k % 2300) for k in range(40 + 6 * i, 46 + 6 * i)]
        assert [placed(name, *size) for size in sizes] == [count(*size) for size in sizes], name
