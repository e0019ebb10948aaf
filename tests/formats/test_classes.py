"""Every model class of `transformers` for the known model types has a definition, or is listed here with the reason."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from families import TYPES, mapping

pytestmark = pytest.mark.slow

MAPS = "returns the feature maps that its configuration chooses; a block has a fixed number of outputs"
BACKBONES = ("Beit", "ConvNext", "ConvNextV2", "Dinov2", "Dinov2WithRegisters", "DINOv3ConvNext", "DINOv3ViT", "ResNet")
UNSUPPORTED = {
    **{f"{name}Backbone": MAPS for name in (*BACKBONES, "Swin", "Swinv2")},
    "BeitForSemanticSegmentation": "pools images to sizes that do not divide theirs, and reads layers of its choice",
    "Data2VecVisionForSemanticSegmentation": "the same",
    "VideoMAEForPreTraining": "encodes as many patches as its input says",
    **dict.fromkeys(
        (
            *("AyaVisionModel", "Gemma3Model", "Idefics3Model", "InternVLModel", "LlavaModel", "LlavaNextModel"),
            *("Mistral3Model", "Qwen2AudioModel", "Qwen2VLModel", "Qwen2_5_VLModel", "Qwen3VLModel", "SmolVLMModel"),
            *("Qwen3VLMoeModel", "Qwen3_5Model", "Qwen3_5MoeModel", "Glm4vModel", "Glm4vMoeModel", "MllamaModel"),
            *(
                "Qwen2_5OmniThinkerModel",
                "Qwen3OmniMoeThinkerModel",
                "Phi4MultimodalModel",
                "AriaModel",
                "VoxtralModel",
            ),
            *(
                "DeepseekOcr2Model",
                "Gemma4Model",
                "GotOcr2Model",
                "Lfm2VlModel",
                "LlavaOnevisionModel",
                "PaliGemmaModel",
            ),
            *("BlipModel", "Blip2Model", "DeepseekV4Model", "KyutaiSpeechToTextModel", "MoshiModel", "T5Gemma2Model"),
            *("CsmBackboneModel", "T5GemmaEncoderModel"),
        ),
        "has no head; published models have one",
    ),
    **dict.fromkeys(
        ("Gemma3ForSequenceClassification", "Qwen3_5ForSequenceClassification", "Qwen3_5ForTokenClassification"),
        "classifies texts with images",
    ),
    **dict.fromkeys(
        ("T5Gemma2ForSequenceClassification", "T5Gemma2ForTokenClassification"), "classifies texts with images"
    ),
    **dict.fromkeys(
        ("BlipForImageTextRetrieval", "BlipForQuestionAnswering", "Blip2ForImageTextRetrieval"),
        "adds masks of zeros and ones to scores, or has no outputs without labels",
    ),
    **dict.fromkeys(("Blip2TextModelWithProjection", "Blip2VisionModelWithProjection"), "the two halves of retrieval"),
    **dict.fromkeys(("DetrForSegmentation", "MobileNetV2ForSemanticSegmentation"), "segments; few hold one"),
    **dict.fromkeys(
        ("LEDForQuestionAnswering", "XLMForQuestionAnswering", "XLMForQuestionAnsweringSimple", "XLMForMultipleChoice"),
        "few hold one",
    ),
    **dict.fromkeys(
        ("XLNetForQuestionAnswering", "XLNetForQuestionAnsweringSimple", "XLNetForMultipleChoice"), "few hold one"
    ),
    **dict.fromkeys(
        ("SeamlessM4Tv2ForSpeechToSpeech", "SeamlessM4Tv2ForTextToSpeech"), "generates in its forward pass"
    ),
    "MoshiForCausalLM": "the same decoder as MoshiForConditionalGeneration's",
    "PatchTSTForPretraining": "chooses the patches that it hides at random",
    "OpenAIGPTDoubleHeadsModel": "has a second head, for choices",
    "EsmForProteinFolding": "ESMFold, another model, which contains ESM-2: it predicts coordinates by OpenFold",
    **dict.fromkeys(
        ("UniSpeechForPreTraining", "UniSpeechSatForPreTraining", "Wav2Vec2ConformerForPreTraining"),
        "as Wav2Vec2's",
    ),
    "Wav2Vec2ForPreTraining": "chooses among code vectors by Gumbel noise in training, which no operation adds",
}


OF_OTHERS = ("internlm3",)
"""Types whose classes are those of another type."""


def classes(type: str) -> Iterator[str]:
    """The public classes that compute something, and are made from the configuration class of a type."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    config = transformers.CONFIG_MAPPING[type]
    package = import_module(config.__module__.rpartition(".")[0])
    assert package.__file__ is not None
    for path in sorted(Path(package.__file__).parent.glob("modeling_*.py")):
        for name, found in vars(import_module(f"{package.__name__}.{path.stem}")).items():
            if getattr(transformers, name, None) is not found or getattr(found, "config_class", None) is not config:
                continue
            if issubclass(found, transformers.PreTrainedModel) and found.forward is not torch.nn.Module.forward:
                yield name


def test_every_class_is_known_or_has_a_reason() -> None:
    missing: set[str] = set()
    for type in TYPES:
        known = mapping(type).architectures
        found = [*classes(type)]
        assert found or type in OF_OTHERS, type
        missing |= {name for name in found if name not in known}
    assert missing == set(UNSUPPORTED)
