"""The variants of docs/variants.md: each compiles with its count, and its module computes what the reference does."""

import re
from typing import Any

import pytest
import torch_compare
from documented import PAGES
from examples import blocks
from paths import FAMILIES

import archspec

TEXTS = [block.text for block in blocks(PAGES["docs/variants.md"].read_text()) if block.kind == "arch"]
VARIANTS = {name: text for text in TEXTS for name in re.findall(r'^model "(.+?)"', text, re.MULTILINE)}

SMALL: dict[str, Any] = {
    "vocab": 40, "words": 40, "hidden": 16, "factor": 8, "layers": 4, "decoder_layers": 3, "heads": 4, "groups": 2,
    "size": 4, "ffn": 12, "inner": 12, "positions": 12, "window": 3, "image": 8, "patch": 4, "labels": 3,
    "text_hidden": 16, "vision_hidden": 24, "projection": 8,
}  # fmt: skip
"""Sizes that replace those of a variant, as far as it has these hyperparameters and they are not `none`."""

SMALLER: dict[str, dict[str, Any]] = {
    "clip-nope": {"image": 64},
    "convnext-rms-norm": {"widths": [4, 6], "depths": [1, 2]},
    "convnextv2-plain": {"widths": [4, 6], "depths": [1, 2]},
    "deberta-gated": {"buckets": 4},
    "deepseek-v3-softmax": {
        "q_rank": 8, "kv_rank": 8, "nope_size": 4, "rope_size": 4, "value_size": 4, "expert_ffn": 8, "experts": 8,
        "expert_groups": 4, "best_groups": 2, "best": 2, "dense_layers": 1,
    },
    "gpt-oss-dense": {"experts": 4, "chosen": 2},
    "gpt-neox-rms-norm": {"rotated": 0.5},
    "gptj-nope": {"rotated": 2},
    "longformer-gated": {"windows": [4]},
    "mamba-layer-norm": {"states": 4, "rank": 2},
    "nomicbert-nope": {"multiple": 1},
    "poolformer-plain": {"widths": [4, 6], "depths": [1, 2], "kernels": [3, 3], "strides": [2, 2], "paddings": [1, 1]},
    "regnet-basic": {"widths": [4, 8], "depths": [1, 2], "embedding": 4},
    "resnet-wide-basic": {"widths": [4, 8], "depths": [1, 2], "embedding": 4},
    "siglip2-rms-norm": {"text_hidden": 24, "patch": 2},
    "siglip-rms-norm": {"image": 32, "text_hidden": 24},
    "swin-rms-norm": {"depths": [1, 2], "heads": [2, 4], "image": 8, "patch": 2, "window": 2},
    "whisper-key-bias": {"frames": 4, "bins": 8},
    "wav2vec2-nope": {"widths": [8, 8], "kernels": [2, 2], "strides": [2, 1], "position_groups": 4},
}  # fmt: skip


def test_most_families_have_a_variant() -> None:
    families = {path.stem for path in FAMILIES}
    varied: set[str] = set()
    for text in TEXTS:
        imports = re.findall(r"^import (\w+) +\{(.+?)\}", text, re.MULTILINE | re.DOTALL)
        origin = {name.strip(): family for family, names in imports for name in names.split(",")}
        models = re.findall(r'^model ".+?"\s*=\s*(\w+)', text, re.MULTILINE)
        varied |= {origin[name] for name in models if name in origin}
    assert varied <= families and len(varied) >= 46


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_has_its_count_and_runs(name: str) -> None:
    hyperparameters = archspec.loads(VARIANTS[name], name).hyperparameters  # which checks what is expected
    sizes = {word: size for word, size in SMALL.items() if hyperparameters.get(word) is not None}
    small = archspec.loads(VARIANTS[name], name, **{**sizes, **SMALLER.get(name, {})})
    pytest.importorskip("torch")
    torch_compare.agrees(small, within=1e-9)
