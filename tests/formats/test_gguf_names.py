"""The names of tensors in GGUF files, in the lists of families, against those of llama.cpp (package `gguf`)."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from paths import ROOT

import archspec
from archspec.formats.configs.names import find_gguf_names
from archspec.pipeline.model import get_compilation

ARCHITECTURES = {
    "bert-base-uncased": "BERT",
    "bert-base-uncased-pretraining": "BERT",
    "bloom-560m": "BLOOM",
    "camembert-base": "BERT",
    "deepseek-v3": "DEEPSEEK2",
    "distilbert-base-uncased": "BERT",
    "distilbert-base-uncased-mlm": "BERT",
    "eurobert-210m": "EUROBERT",
    "falcon-7b": "FALCON",
    "falcon-mamba-7b": "MAMBA",
    "gemma-2-2b": "GEMMA2",
    "gemma-3-1b": "GEMMA3",
    "gpt-j-6B": "GPTJ",
    "gpt-neox-20b": "GPTNEOX",
    "gpt-oss-20b": "GPT_OSS",
    "gpt2": "GPT2",
    "granite-3.1-2b": "GRANITE",
    "jamba-v0.1": "JAMBA",
    "lfm2-1.2b": "LFM2",
    "llama-3.1-8b": "LLAMA",
    "llama-4-scout-text": "LLAMA4",
    "mamba-130m": "MAMBA",
    "mistral-7b-v0.1": "LLAMA",
    "mixtral-8x7b": "LLAMA",
    "modernbert-base": "MODERN_BERT",
    "nomic-embed-text-v1.5": "NOMIC_BERT",
    "olmo-2-7b": "OLMO2",
    "olmo-3-7b": "OLMO2",
    "phi-3-mini-4k": "PHI3",
    "qwen2-0.5b": "QWEN2",
    "qwen3-0.6b": "QWEN3",
    "qwen3.5-9b-text": "QWEN35",
    "qwen3-30b-a3b": "QWEN3MOE",
    "qwen3-next-80b-a3b": "QWEN3NEXT",
    "roberta-base": "BERT",
    "smollm3-3b": "SMOLLM3",
    "starcoder2-3b": "STARCODER2",
    "t5-small": "T5",
    "t5-v1_1-base": "T5",
    "xlm-roberta-base": "BERT",
}
CLASSES = {
    "BertForSequenceClassification": "BERT",
    "BloomModel": "BLOOM",
    "DistilBertForSequenceClassification": "BERT",
    "Gemma3TextModel": "GEMMA3",
    "LlamaModel": "LLAMA",
    "ModernBertForSequenceClassification": "MODERN_BERT",
    "RobertaForSequenceClassification": "BERT",
    "XLMRobertaForSequenceClassification": "BERT",
}
"""Classes of `transformers`; labels of heads have names."""

DROPPED = re.compile(r"pooler\.|cls\.|(en|de)coder\.embed_tokens\.|lm_head\.|vocab_")
"""What the conversion leaves out, also because another name of the tensor is stored."""


PREFIXES = {"BERT": ("bert.", "roberta.", "distilbert."), "MODERN_BERT": ("model.",), "EUROBERT": ("model.",)}
"""What the conversion of an architecture removes first."""


def without_prefix(name: str, architecture: str) -> str:
    return next((name[len(each) :] for each in PREFIXES.get(architecture, ()) if name.startswith(each)), name)


def before_mapping(name: str) -> Iterator[str]:
    """The names that llama.cpp's conversion gives a tensor before it looks them up."""
    name = re.sub(r"^classifier\.(weight|bias)", r"classifier.out_proj.\1", name)  # if the labels have names
    name = name.replace("e_score_correction_bias", "e_score_correction.bias")
    name = re.sub(r"(mlp|feed_forward|block_sparse_moe)\.experts\.\d+\.", r"\1.experts.", name)
    name = re.sub(r"^transformer\.(h\.\d+\.self_attention|h\.\d+\.post_attention|word_embeddings_)", r"\1", name)
    name = re.sub(r"model\.(layers\.\d+)\.block_sparse_moe\.experts\.(w\d)", r"\1.feed_forward.experts.\2", name)
    if name.endswith(("sinks", "experts.down_proj", "experts.gate_up_proj")):
        name += ".weight"
    name = name.replace("proj_bias", "proj.bias").replace("dt_bias", "dt_proj.bias")
    if "experts.gate_up_proj" in name:
        yield name.replace("gate_up_proj", "gate_proj")
        yield name.replace("gate_up_proj", "up_proj")
    elif "kv_b_proj" in name:
        yield name.replace("kv_b_proj", "k_b_proj")
        yield name.replace("kv_b_proj", "v_b_proj")
    else:
        yield name


class Anything:
    """A file that has every name."""

    def __contains__(self, name: object) -> bool:
        return True


@pytest.mark.slow  # which needs a package that nothing else does
@pytest.mark.parametrize("case", (ARCHITECTURES | CLASSES).items(), ids=ARCHITECTURES | CLASSES)
def test_names_are_those_of_llama_cpp(case: tuple[str, str]) -> None:
    gguf: Any = pytest.importorskip("gguf")
    model, architecture = case
    loaded = archspec.load(model if model in ARCHITECTURES else {"architectures": [model]})
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[architecture], 200)
    (family, *_) = find_gguf_names(get_compilation(loaded).compiled.module.type, str(ROOT / "specs"))
    tensors = [*loaded.tensors, *loaded.buffers]
    assert tensors
    taken: set[tuple[str, int | None]] = set()
    for name in [tensor.name for tensor in tensors]:
        place = family.locate(name, Anything())
        assert taken.isdisjoint([(each, place.stack_index) for each in place.names]), name
        taken.update((each, place.stack_index) for each in place.names)
        ours = [without_prefix(each, architecture) for each in place.names]
        given = without_prefix(name, architecture)
        theirs = [names.get_name(each, try_suffixes=(".weight", ".bias")) for each in before_mapping(given)]
        assert ours == theirs or (DROPPED.match(given) and (not ours or theirs == [None])), name
