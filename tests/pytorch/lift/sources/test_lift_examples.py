"""Small configurations and inputs of classes of `transformers`, and models of collections, as `lift` chooses them."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from archspec import ArchError
from archspec.pytorch.lift.sources import configuration, file, inputs
from archspec.pytorch.lift.sources.examples import SIZES, examples
from archspec.pytorch.lift.sources.fields import shows_rule
from archspec.pytorch.lift.sources.file import subject_of_collection
from archspec.pytorch.lift.sources.inputs import parse_input
from archspec.pytorch.lift.sources.proposals import CHOICES, PROPOSALS
from archspec.pytorch.lift.sources.shrinking import shrink_fields

nn = torch.nn

# Configurations -------------------------------------------------------------------------------------------------------


def both(fields: dict[str, Any], proposal: int = 0, **changed: Any) -> list[dict[str, Any]]:
    """The fields of the first and of the second small configuration."""
    return [shrink_fields(fields, PROPOSALS[proposal], choices._replace(**changed)) for choices in CHOICES[:2]]


@pytest.mark.parametrize(
    ("image", "patch", "proposal", "sizes"),
    [
        (224, 16, 0, [(20, 5), (24, 4)]),
        (16, 16, 0, [(20, 5), (24, 4)]),
        (225, 16, 0, [(225, 16)] * 2),
        (224, 0, 0, [(224, 0)] * 2),
        ([224, 224], 16, 0, [([224, 224], 16)] * 2),
        (224, [16, 16], 0, [(224, [16, 16])] * 2),
        (224, 16, 2, [(224, 16)] * 2),
    ],
)
def test_images_are_cropped_to_small_patches(image: Any, patch: Any, proposal: int, sizes: list[Any]) -> None:
    found = both({"image_size": image, "patch_size": patch}, proposal)
    assert [(own["image_size"], own["patch_size"]) for own in found] == sizes


PARTS: dict[str, Any] = {
    "hidden_size": 512,
    "text_config": {
        "model_type": "text",
        "hidden_size": 768,
        "out_hidden_size": 512,
        "encoder_dim": 768,
        "other_dim": 512,
    },
    "vision_config": {"model_type": "vision", "hidden_size": 512, "conv_groups": 768, "text_hidden_size": 1024},
}


def test_widths_of_other_parts_are_those_that_have_their_value() -> None:
    for found in both(PARTS):
        text, vision = found["text_config"], found["vision_config"]
        assert found["hidden_size"] == text["out_hidden_size"] == vision["hidden_size"]
        assert text["hidden_size"] == text["encoder_dim"] == vision["conv_groups"]
        assert len({text["hidden_size"], text["other_dim"], vision["text_hidden_size"], vision["hidden_size"]}) == 4
    for found in both(PARTS, are_apart=True):
        text, vision = found["text_config"], found["vision_config"]
        assert found["hidden_size"] == text["out_hidden_size"] != vision["hidden_size"]
        assert text["hidden_size"] == text["encoder_dim"] == vision["conv_groups"]


def test_sizes_in_lists_are_divided_as_others_are() -> None:
    fields = {"model_type": "a", "hidden_size": 256, "hidden_sizes": [256, [512], 100, "auto"], "num_heads": 4}
    found = both(fields, next(turn for turn, proposal in enumerate(PROPOSALS) if proposal.is_scaled))
    assert [own["hidden_size"] for own in found] == [32, 64]
    assert [own["hidden_sizes"] for own in found] == [[32, [64], 100, "auto"], [64, [128], 25, "auto"]]


@pytest.mark.parametrize(
    ("place", "few"),
    [
        (12, 4),
        (13, 4),
        (5, 2),
        (1, 1),
        (0, 0),
        (-1, -1),
        ("last", "last"),
        (None, None),
        ([3, 6, -1, "last", 12, 11], [1, 2, -1, "last", 3]),
    ],
)
def test_places_of_layers_are_among_few(place: Any, few: Any) -> None:
    assert both({"num_hidden_layers": 12, "first_k_dense_replace": place})[0]["first_k_dense_replace"] == few


def test_few_layers_end_as_all_do() -> None:
    fields = {"num_hidden_layers": 12, "layer_types": ["a", *["b", "c"] * 5, "b"]}
    proposal = next(turn for turn, proposal in enumerate(PROPOSALS) if proposal.ends_alike)
    assert [own["num_hidden_layers"] for own in both(fields)] == [6, 7]
    assert [own["num_hidden_layers"] for own in both(fields, proposal)] == [6, 8]
    fields = {"num_hidden_layers": 7, "layer_types": ["a", *["b", "c"] * 3]}
    assert [own["num_hidden_layers"] for own in both(fields, proposal)] == [6, 7]


@pytest.mark.parametrize(
    ("kinds", "shown"),
    [
        (["a", "b", "a", "a", "a"], [False, False, False, True]),
        (["a", "b", "c"] * 2, [True] * 4),
        (["a", "b", "b", "a", "b", "a", "a"], [True] * 4),
        (["a", "b"] * 3, [False, True, True, True]),
    ],
)
def test_few_layers_show_the_rule_of_all(kinds: list[str], shown: list[bool]) -> None:
    assert [shows_rule(kinds, few) for few in range(2, 6)] == shown


class Configuration(SimpleNamespace):
    model_type = "outer"

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Configuration":
        return cls(**fields, inner=SimpleNamespace(model_type="inner"), other=SimpleNamespace())

    def to_dict(self) -> dict[str, Any]:
        return {"vocab_size": self.vocab_size}


def raised(problem: Exception) -> Any:
    raise problem


class Model(nn.Module):
    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.config = config


def test_configurations_inside_are_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Any = ModuleType("transformers")
    found.CONFIG_MAPPING, found.MODEL_MAPPING = {"outer": Configuration}, {Configuration: Model}
    found.logging = SimpleNamespace(set_verbosity_error=lambda: None)
    monkeypatch.setitem(sys.modules, "transformers", found)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    module: Any = configuration.architecture_from({"model_type": "outer", "vocab_size": 50}).build({})
    inner = module.config.inner
    assert (inner.use_cache, inner.use_pretrained_backbone, inner._experts_implementation) == (
        False,
        False,
        "batched_mm",
    )
    assert inner._attn_implementation == module.config._attn_implementation and vars(module.config.other) == {}
    for problem, message in ((ValueError("a\nb"), "ValueError: a"), (KeyError(), "KeyError: ")):
        monkeypatch.setattr(Configuration, "from_dict", lambda fields, problem=problem: raised(problem))
        with pytest.raises(ArchError, match=rf"invalid configuration: {message}$"):
            configuration.architecture_from({"model_type": "outer"})
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ArchError) as caught:
        configuration.architecture_from({"model_type": "outer"})
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("missing-package", "transformers is required but not installed")
    assert diagnostic.help == "run `pip install transformers`"


# Inputs ---------------------------------------------------------------------------------------------------------------


def shapes(forward: Any, turn: int = 0, **config: Any) -> list[dict[str, tuple[int, ...]]]:
    """The shapes of the inputs that are tried for a module with this `forward`."""
    owner = type("Owner", (nn.Module,), {"forward": forward, "config": SimpleNamespace(**config)})
    return [{name: tuple(value.shape) for name, value in given.items()} for given in examples(owner(), SIZES[turn])]


def test_boxes_and_steps_have_their_sizes() -> None:
    def boxes(self: Any, input_ids: Any, bbox: Any = None) -> Any: ...

    def steps(self: Any, states: Any, actions: Any, rewards: Any, returns_to_go: Any, timesteps: Any) -> Any: ...

    assert shapes(boxes)[0] == {"input_ids": (3, 11), "bbox": (3, 11, 4)}
    named = {"states": (2, 14, 17), "actions": (2, 14, 5), "rewards": (2, 14, 1), "returns_to_go": (2, 14, 1)}
    assert shapes(steps, 1, state_dim=17, act_dim=5)[0] == {**named, "timesteps": (2, 14)}
    assert shapes(steps, 1)[0]["states"] == (2, 14, 1)


def test_the_second_inputs_have_other_sizes() -> None:
    def speech(self: Any, input_features: Any, decoder_input_ids: Any = None) -> Any: ...

    def waves(self: Any, input_values: Any) -> Any: ...

    assert shapes(speech, 0)[0] == {"input_features": (3, 80, 80), "decoder_input_ids": (3, 7)}
    assert shapes(speech, 1)[0] == {"input_features": (2, 80, 104), "decoder_input_ids": (2, 9)}
    assert shapes(waves, 1)[:3] == [
        {"input_values": (2, 3200)},
        {"input_values": (2, 1, 3200)},
        {"input_values": (2, 3840)},
    ]


def test_images_are_tried_without_a_mask_first() -> None:
    def masked(self: Any, pixel_values: Any, attention_mask: Any = None) -> Any: ...

    found = shapes(masked, image_size=40)
    assert [[*own] for own in found[:3]] == [["pixel_values"]] * 2 + [["pixel_values", "attention_mask"]]
    assert found[2] == {"pixel_values": (3, 3, 40, 40), "attention_mask": (3, 11)}


def test_times_are_numbers_of_steps() -> None:
    class Steps(nn.Module):
        config = SimpleNamespace(max_ep_len=5)

        def forward(self, states: Any, actions: Any, rewards: Any, returns_to_go: Any, timesteps: Any) -> Any: ...

    found = next(examples(Steps(), SIZES[0]))
    assert {name for name, value in found.items() if not value.is_floating_point()} == {"timesteps"}
    assert int(found["timesteps"].max()) == 4 and int(found["timesteps"].min()) == 0


def test_sounds_are_samples_with_a_mask() -> None:
    def forward(self: Any, input_values: Any, attention_mask: Any = None) -> Any: ...

    found = shapes(forward)
    assert found[0] == {"input_values": (3, 2400)} and found[1] == {"input_values": (3, 1, 2400)}
    assert {"input_values": (3, 5760)} in found and {"input_values": (3, 80, 80)} in found


def test_several_streams_of_tokens_are_tried_after_one() -> None:
    def forward(self: Any, input_ids: Any) -> Any: ...

    assert [own["input_ids"] for own in shapes(forward, num_codebooks=4)] == [(3, 11), (3, 4, 11), (3, 11, 5)]
    assert [own["input_ids"] for own in shapes(forward)] == [(3, 11), (3, 7, 11)]


def test_masks_of_sounds_are_tried_without_tokens_if_they_are_of_samples() -> None:
    def features(self: Any, input_features: Any, attention_mask: Any = None, decoder_input_ids: Any = None) -> Any: ...

    def samples(self: Any, input_values: Any, attention_mask: Any = None, decoder_input_ids: Any = None) -> Any: ...

    def both(self: Any, input_values: Any, attention_mask: Any = None, input_ids: Any = None) -> Any: ...

    assert [[*shapes(forward)[0]][1:] for forward in (features, samples, both)] == [
        ["attention_mask", "decoder_input_ids"],
        ["decoder_input_ids"],
        ["attention_mask", "input_ids"],
    ]


def test_sound_as_an_image() -> None:
    def forward(self: Any, input_features: Any) -> Any: ...

    found = [own["input_features"] for own in shapes(forward, spec_size=64, num_mel_bins=16)]
    assert found[:4] == [(3, 16, 80), (3, 80, 16), (3, 80, 16), (3, 1, 256, 16)]
    assert (3, 1, 256, 16) not in [own["input_features"] for own in shapes(forward, num_mel_bins=16)]


def images(self: Any, pixel_values: Any) -> Any: ...


def videos(self: Any, pixel_values_videos: Any) -> Any: ...


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [(3, 3, 96, 96), (3, 4, 3, 96, 96)]),
        *[({name: 5}, [(3, 5, 96, 96), (3, 4, 5, 96, 96)]) for name in ("num_channels", "in_channels", "in_chans")],
        ({"num_input_channels": 5}, [(3, 5, 96, 96), (3, 4, 5, 96, 96)]),
        *[({name: 40}, [(3, 3, 40, 40), (3, 4, 3, 40, 40)]) for name in ("image_size", "img_size", "input_size")],
        ({"image_size": [20, 30]}, [(3, 3, 20, 30), (3, 4, 3, 20, 30)]),
        ({"image_size": [40, 20]}, [(3, 3, 40, 20), (3, 4, 3, 40, 20), (3, 3, 20, 20)]),
        ({"num_queries": 9}, [(3, 3, 96, 96), (3, 4, 3, 96, 96), (3, 3, 160, 160), (3, 3, 288, 288)]),
        ({"num_queries": 9, "image_size": 40}, [(3, 3, 40, 40), (3, 4, 3, 40, 40)]),
        ({"num_frames": 6}, [(3, 6, 3, 96, 96), (3, 3, 96, 96)]),
        ({"frames_per_clip": 6}, [(3, 3, 96, 96), (3, 6, 3, 96, 96)]),
    ],
)
def test_images_have_the_sizes_of_a_configuration(fields: dict[str, Any], expected: list[Any]) -> None:
    assert [own["pixel_values"] for own in shapes(images, **fields)] == expected
    still, moving = sorted(expected[:2], key=len)
    assert [own["pixel_values_videos"] for own in shapes(videos, **fields)] == [moving, still]


@pytest.mark.parametrize("name", ["num_mel_bins", "feature_size", "n_mels", "input_feat_per_channel",
                                  "feature_projection_input_dim", "input_dim"])  # fmt: skip
def test_sounds_have_as_many_bins_as_a_configuration(name: str) -> None:
    def forward(self: Any, input_features: Any) -> Any: ...

    found = [own["input_features"] for own in shapes(forward, **{name: 16})]
    assert found[:4] == [(3, 16, 80), (3, 80, 16), (3, 80, 16), (3, 2400)]
    longest = [own["input_features"] for own in shapes(forward, **{name: 16}, max_length=50)]
    assert longest[:3] == [(3, 16, 50), (3, 80, 16), (3, 50, 16)]
    twice = [own["input_features"] for own in shapes(forward, **{name: 16}, max_source_positions=50)]
    assert twice[:3] == [(3, 16, 100), (3, 80, 16), (3, 100, 16)]


def test_the_last_sequence_is_padded() -> None:
    class Masked(nn.Module):
        config = SimpleNamespace()

        def forward(self, input_ids: Any, attention_mask: Any = None) -> Any: ...

    found = next(examples(Masked(), SIZES[0]))["attention_mask"]
    assert found.tolist() == [[1] * 11, [1] * 11, [1] * 7 + [0] * 4]


@pytest.mark.parametrize(("types", "most"), [(1, 1), (2, 2), (5, 2), (None, 2)])
def test_types_of_tokens_are_at_most_two(types: int | None, most: int) -> None:
    class Typed(nn.Module):
        config = SimpleNamespace(type_vocab_size=types)

        def forward(self, input_ids: Any, token_type_ids: Any = None) -> Any: ...

    found = next(examples(Typed(), SIZES[0]))["token_type_ids"]
    assert found.shape == (3, 11) and int(found.max()) == most - 1


class Looked(nn.Module):
    """A table that one input is looked up in."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5, 3)

    def forward(self, ids: Any, flags: Any, mask: Any, x: Any) -> Any:
        return self.words(ids) * flags[..., None] * mask[..., None] + x


def test_inputs_have_values_that_they_may_have() -> None:
    texts = "ids=int[batch,seq]", "flags=int[batch,seq]", "mask=bool[batch,seq]", "x=real[batch,seq,3]"
    declared = [parse_input(text) for text in texts]
    shapes = [
        [tuple(given["ids"].shape) for given in inputs.examples(Looked(), declared, turn, are_long)]
        for turn in (0, 1)
        for are_long in (False, True)
    ]
    assert shapes == [[(4, 7), (2, 4), (4, 42)], [(4, 42)], [(6, 8), (3, 5), (6, 43)], [(6, 43)]]
    (given, *_) = inputs.examples(Looked(), declared, 0)
    assert {name: value.dtype for name, value in given.items()} == {
        "ids": torch.long, "flags": torch.long, "mask": torch.bool, "x": torch.float32
    }  # fmt: skip
    assert given["ids"].unique().tolist() == [0, 1, 2, 3, 4]
    for name in ("flags", "mask"):
        assert given[name].unique().tolist() == [0, 1]
        for turn in (0, 1):
            assert all(bool(own[name][..., 0].all()) for own in inputs.examples(Looked(), declared, turn))
    (single,) = [next(inputs.examples(Looked(), [parse_input("n=int[]")], 0))["n"]]
    assert single.shape == () and int(single) in (0, 1)


# Collections ----------------------------------------------------------------------------------------------------------


def test_images_for_a_model_of_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, None]] = []

    def get_model(name: str, weights: None) -> Any:
        made.append((name, weights))
        return nn.Conv2d(3, 4, 3)

    package: Any = ModuleType("torchvision")
    package.models = ModuleType("torchvision.models")
    package.models.list_models, package.models.get_model = lambda: ["tiny", "inception_v3"], get_model
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.models", package.models)
    for name, side in (("tiny", 224), ("inception_v3", 299)):
        found = subject_of_collection(f"torchvision:{name}")
        assert made.pop() == (name, None) and found.name == name and not found.module.training
        assert found.inputs["input"].shape == (2, 3, side, side)
        assert found.other_inputs is not None and found.other_inputs["input"].shape == (3, 3, side, side)
    with pytest.raises(ArchError, match=r"error\[unknown-model\]: torchvision has no model `large`"):
        subject_of_collection("torchvision:large")
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    with pytest.raises(ArchError, match="torchvision is required but not installed"):
        subject_of_collection("torchvision:tiny")


def test_images_for_a_model_of_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    def create_model(name: str, pretrained: bool) -> Any:
        assert not pretrained
        module: Any = nn.Conv2d(3, 4, 3)
        if name == "wide":
            module.pretrained_cfg = {"input_size": (1, 40, 56)}
        return module

    package: Any = ModuleType("timm")
    package.list_models, package.create_model = lambda: ["tiny", "wide"], create_model
    monkeypatch.setitem(sys.modules, "timm", package)
    for name, sizes in (("tiny", (3, 224, 224)), ("wide", (1, 40, 56))):
        found = subject_of_collection(f"timm:{name}")
        assert found.name == name and found.inputs["input"].shape == (2, *sizes) and not found.module.training
        assert found.other_inputs is not None and found.other_inputs["input"].shape == (3, *sizes)
    with pytest.raises(ArchError, match=r"error\[unknown-model\]: timm has no model `large`"):
        subject_of_collection("timm:large")


def test_collections_that_do_not_fit_the_installed_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(name: str) -> Any:
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(file, "import_module", failing)
    with pytest.raises(ArchError) as caught:
        subject_of_collection("torchvision:tiny")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "missing-package"
    assert diagnostic.message == "torchvision cannot be imported: operator torchvision::nms does not exist"
    assert diagnostic.help == "install versions that belong together"


# Parameters without values --------------------------------------------------------------------------------------------


class Reserving(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        made = [torch.empty(5, 5), torch.empty((5, 5)), torch.empty(4, 6), torch.empty(5, 5, device="cpu")]
        self.devices = [tensor.device.type for tensor in made]
        self.large, self.listed, self.small, self.own = [nn.Parameter(tensor) for tensor in made]


def test_parameters_that_are_missing_stay_so() -> None:
    module = inputs.build_uninitialized(lambda: nn.Linear(3, 4, bias=False))
    assert module.bias is None and module.weight.shape == (4, 3) and not module.weight.is_meta


def test_large_tensors_are_not_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_RESERVED", 24)
    module: Any = inputs.build_uninitialized(Reserving)
    assert module.devices == ["meta", "meta", "cpu", "cpu"]
    sizes = [value.untyped_storage().nbytes() // 4 for value in module.parameters()]
    assert sizes == [1, 1, 24, 1] and module.large.shape == module.own.shape == (5, 5)
