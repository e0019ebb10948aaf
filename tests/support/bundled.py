"""The bundled models that tests go through: everyday a few that use every operation and kind of tensor between them,
except those of experts; with `-m slow` the others, of which those that differ in their sizes only are left out.
"""

from itertools import product

import pytest

import archspec

EVERYDAY = (
    "albert-base-v2",
    "apertus-8b",
    "bart-base",
    "bert-base-uncased",
    "clip-vit-base-patch32",
    "conv-bert-base",
    "deberta-v3-base",
    "esm2_t6_8M-mlm",
    "fnet-base",
    "gpt2",
    "llama-3.2-1b",
    "longformer-base-4096",
    "modernbert-base",
    "poolformer-s12",
    "resnet-18",
    "swin-tiny",
    "t5-small",
    "transformer-seq2seq",
    "wav2vec2-base",
)

SLOW = frozenset(EVERYDAY) | {
    *("bloom-560m", "distilbert-base-uncased", "electra-small-discriminator-pretraining"),
    *("falcon-7b", "gemma-3-1b", "gpt-oss-20b", "mamba-130m", "mixtral-8x7b", "modernbert-base-mlm"),
    *("mpnet-base-mlm", "nomic-embed-text-v1.5", "opt-350m", "phi-3-mini-4k", "qwen3-0.6b", "roberta-base-mlm"),
    *("siglip-base-patch16-224", "vit-base-patch16-224", "whisper-tiny", "wav2vec2-base-960h-ctc"),
}
"""The bundled models of the slow tests; the rest is for `-m exhaustive`."""

SIZES_ONLY = {
    "bart-large": "bart-base",
    "bert-base-chinese": "bert-base-uncased",
    "bert-base-multilingual-cased": "bert-base-uncased",
    "bert-large-uncased": "bert-base-uncased",
    "camembert-base": "roberta-base",
    "clip-vit-large-patch14": "clip-vit-base-patch32",
    "electra-base-discriminator": "bert-base-uncased-nopooler",
    "gemma-2-9b": "gemma-2-2b",
    "gpt2-large": "gpt2",
    "gpt2-medium": "gpt2",
    "gpt2-xl": "gpt2",
    "llama-3.1-405b": "llama-3.1-8b",
    "llama-3.1-70b": "llama-3.1-8b",
    "modernbert-large": "modernbert-base",
    "modernbert-large-mlm": "modernbert-base-mlm",
    "nllb-200-distilled-600M": "m2m100_418M",
    "roberta-large": "roberta-base",
    "t5-base": "t5-small",
    "transformer-base": "transformer-seq2seq",
    "whisper-base": "whisper-tiny",
    "whisper-large-v3": "whisper-tiny",
    "xlm-roberta-base": "roberta-base",
}
"""Bundled models that differ from another one in nothing but its sizes."""


def each(*others: object) -> list[object]:
    """The parameters of a test of the bundled models, and of others."""
    names = [name for name in archspec.models() if name not in SIZES_ONLY]
    return [*[n if n in EVERYDAY else pytest.param(n, marks=pytest.mark.slow) for n in names], *others]


def pairs() -> list[object]:
    """The parameters of a test of pairs of models: each everyday one with itself and with the next one; then all pairs
    of these, and each of the others with the next one and with an everyday one.
    """
    others = [name for name in archspec.models() if name not in EVERYDAY and name not in SIZES_ONLY]
    further = [*zip(others, [*others[1:], others[0]], strict=True), *product(EVERYDAY, repeat=2)]
    further += [(name, EVERYDAY[i % len(EVERYDAY)]) for i, name in enumerate(others)]
    everyday = [*zip(EVERYDAY, EVERYDAY, strict=True), *zip(EVERYDAY, [*EVERYDAY[1:], EVERYDAY[0]], strict=True)]
    return [pytest.param(everyday, id="everyday"), pytest.param(further, id="others", marks=pytest.mark.slow)]


def groups() -> list[object]:
    """The parameters of a test that goes through the models of a group at once: the everyday ones, and all."""
    return [pytest.param(EVERYDAY, id="everyday"), pytest.param(archspec.models(), id="all", marks=pytest.mark.slow)]
