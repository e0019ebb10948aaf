"""Sources of `lift`: inputs as users write them, small configurations, files, configurations and collections."""

import json
import sys
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archspec import ArchError
from archspec.pytorch.lift.sources.fields import has_patterns, has_sections
from archspec.pytorch.lift.sources.file import subject_of_collection
from archspec.pytorch.lift.sources.inputs import InputDeclaration, parse_input
from archspec.pytorch.lift.sources.proposals import CHOICES, OTHER_STEPS, PROPOSALS
from archspec.pytorch.lift.sources.shrinking import hidden_changes, merge_fields, shrink_fields, without_shrunk_lists
from archspec.testing import main

BERT: dict[str, Any] = {
    "model_type": "bert",
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "pad_token_id": 0,
    "eos_token_id": 30000,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
}
MIXTURE: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "n_routed_experts": 256,
    "n_group": 8,
    "topk_group": 4,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
}


def test_inputs_are_parsed() -> None:
    assert parse_input("ids=int[batch, seq]") == InputDeclaration("ids", "int", ("batch", "seq"))
    assert parse_input(" x = real[batch,3,224]") == InputDeclaration("x", "real", ("batch", 3, 224))
    assert parse_input("flag=bool[]") == InputDeclaration("flag", "bool", ())


SHOWN = [
    ["net.py", "--input", "ids=int[batch"],
    ["net.py", "--input", "ids=string[batch,seq]"],
    ["net.py", "--input", "ids=int[batch,0]"],
    ["net.py", "--input", "ids=int[batch,]"],
]


def test_errors_of_inputs(capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]) -> None:
    pytest.importorskip("torch")
    said: list[str] = []
    for arguments in SHOWN:
        assert main(["lift", *arguments]) == 2
        said.append(f"$ archspec lift {' '.join(arguments)}\n{capsys.readouterr().err}")
    golden("lift/inputs.txt", "\n".join(said))


def test_without_pytorch_the_package_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert main(["lift", "net.py"]) == 2
    assert "PyTorch is required but not installed" in capsys.readouterr().err


def test_sizes_of_small_configurations_are_distinct() -> None:
    both = [merge_fields(BERT, shrink_fields(BERT, PROPOSALS[0], choices)) for choices in CHOICES[:2]]
    names = [name for name in BERT if name.endswith(("size", "layers", "heads", "embeddings"))]
    assert len({(both[0][name], both[1][name]) for name in names}) == len(names)
    for found in both:
        assert found["hidden_size"] % found["num_attention_heads"] == 0
        assert found["type_vocab_size"] == 2 and found["pad_token_id"] == 0
        assert found["eos_token_id"] < found["vocab_size"]
    heads = [found["hidden_size"] // found["num_attention_heads"] for found in both]
    assert heads[0] != heads[1]


def test_two_small_configurations_differ_in_all_that_is_changed() -> None:
    for fields in (BERT, MIXTURE):
        first, second = (shrink_fields(fields, PROPOSALS[0], choices) for choices in CHOICES[:2])
        assert hidden_changes(fields, first, second) == []
        assert merge_fields(fields, first) != merge_fields(fields, second)
    assert hidden_changes({"n_group": 8, "size": 2}, {"n_group": 2}, {"n_group": 2}) == ["n_group"]


def test_few_positions_are_as_many_as_there_are_and_one_more() -> None:
    fields: dict[str, object] = {"model_type": "a", "right_max_position_embeddings": 8}
    values = [shrink_fields(fields, PROPOSALS[0], choices)["right_max_position_embeddings"] for choices in CHOICES[:2]]
    assert values == [8, 9]


def test_counts_of_experts_are_those_of_nothing_else() -> None:
    counts = ("n_routed_experts", "n_group", "topk_group", "num_experts_per_tok", "num_hidden_layers")
    first, second = [shrink_fields(MIXTURE, PROPOSALS[0], choices) for choices in CHOICES[:2]]
    pairs = [(first[name], second[name]) for name in counts]
    pairs.append((first["n_routed_experts"] // first["n_group"], second["n_routed_experts"] // second["n_group"]))
    assert len({*pairs}) == len(pairs)
    assert all(one % own["n_group"] == 0 for own in (first, second) for one in (own["n_routed_experts"],))


def test_one_proposal_keeps_all_proportions() -> None:
    fields = {"hidden_size": 1024, "num_heads": 32, "head_dim": 64, "rank_dim": 192, "num_hidden_layers": 8}
    scaled = next(proposal for proposal in PROPOSALS if proposal.is_scaled)
    first, second = (shrink_fields(fields, scaled, choices) for choices in CHOICES[:2])
    for found, divisor in ((first, 4), (second, 2)):
        assert [found["hidden_size"], found["head_dim"], found["rank_dim"]] == [
            1024 // divisor,
            64 // divisor,
            192 // divisor,
        ]
        assert 2 * found["hidden_size"] == found["num_heads"] * found["head_dim"]
    assert hidden_changes(fields, first, second) == []


def test_one_proposal_has_as_many_heads_of_keys_as_of_queries() -> None:
    """What joins the parts of a head that have positions and that have none needs them, and its sizes stay distinct."""
    sizes = {"head_dim": 128, "qk_rope_head_dim": 64, "rope_parameters": {"partial_rotary_factor": 0.5}}
    equal = next(proposal for proposal in PROPOSALS if proposal.has_equal_heads)
    for choices in CHOICES[:2]:
        found = shrink_fields(MIXTURE | sizes, equal, choices)
        assert found["num_key_value_heads"] == found["num_attention_heads"] < found["n_routed_experts"]
        assert 2 * found["qk_rope_head_dim"] == found["head_dim"]


def test_parts_have_other_numbers_of_heads_of_keys() -> None:
    inner = {"model_type": "depth", "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 1024}
    outer = {"model_type": "speech", "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 2048}
    found = [shrink_fields({"inner_config": inner, **outer}, PROPOSALS[0], choices) for choices in CHOICES[:2]]
    assert [(each["num_key_value_heads"], each["inner_config"]["num_key_value_heads"]) for each in found] == [
        (3, 2),
        (2, 4),
    ]
    assert all(each["num_attention_heads"] % each["num_key_value_heads"] == 0 for each in found)


def test_sizes_of_heads_are_no_sums_of_others() -> None:
    """Three sizes at even distances would be: the first and the last one are twice the one between."""
    heads = {"qk_rope_head_dim": 64, "v_head_dim": 256, "qk_nope_head_dim": 192}
    for choices in CHOICES[:2]:
        rope, value, nope = (shrink_fields(MIXTURE | heads, PROPOSALS[0], choices)[name] for name in heads)
        assert rope + nope != 2 * value


def test_widths_are_multiples_of_the_heads_in_lists() -> None:
    fields: dict[str, object] = {"model_type": "a", "embed_dim": 96, "num_heads": [3, 6, 12, 24]}
    widths = [shrink_fields(fields, PROPOSALS[0], choices)["embed_dim"] for choices in CHOICES[:2]]
    assert widths == [24, 72]


def test_other_sizes_do_not_add_up_alike() -> None:
    heads = ["rope_head_dim", "value_head_dim", "key_head_dim", "index_head_dim"]
    widths = ["inner_size", "lora_rank", "query_rank", "expert_size"]
    fields = dict.fromkeys([*heads, *widths], 2048)
    steps, head_steps = OTHER_STEPS
    other = CHOICES[1]._replace(steps=steps, head_steps=head_steps)
    first, second = [shrink_fields(fields, PROPOSALS[0], choices) for choices in (CHOICES[0], other)]
    sums = [*combinations(heads, 2), *product(heads, widths)]
    assert len({tuple(own[a] + own[b] for own in (first, second)) for a, b in sums}) == len(sums)
    rests = [tuple(own[a] - own[b] for own in (first, second)) for a, b in combinations(heads, 2)]
    assert len({*rests}) == len(rests) and all(a != b for a, b in rests)


def test_heads_have_the_share_of_rotary_positions_without_a_rest() -> None:
    for head, is_third in ((192, True), (1536, False)):  # 0.334 of 1536 is not a third of it
        fields = {"head_dim": head, "num_heads": 64, "rope_parameters": {"partial_rotary_factor": 0.334}}
        found = [shrink_fields(fields, PROPOSALS[0], choices)["head_dim"] for choices in CHOICES[:2]]
        assert all(size % 3 == 0 for size in found) == is_third


@pytest.mark.parametrize("choices", CHOICES[:2])
def test_small_heads_have_as_large_a_part_with_rotary_positions(choices: Any) -> None:
    fields = {"hidden_size": 4096, "num_attention_heads": 16, "rotary_dim": 64, "n_layer": 28}
    found = shrink_fields(fields, PROPOSALS[0], choices)
    assert found["rotary_dim"] * 4 == found["hidden_size"] // found["num_attention_heads"]


@pytest.mark.parametrize("part", [0.25, 0.4, 0.5, 0.8, 1.0])
def test_an_even_part_of_small_heads_has_rotary_positions(part: float) -> None:
    sizes = {"head_dim": 40, "rope_parameters": {"partial_rotary_factor": part}}
    for proposal, choices in product(PROPOSALS[:2], CHOICES[:2]):
        assert shrink_fields(MIXTURE | sizes, proposal, choices)["head_dim"] * part % 2 == 0


def test_the_third_configuration_has_all_layers() -> None:
    assert shrink_fields(BERT, PROPOSALS[0], CHOICES[2]) == shrink_fields(BERT, PROPOSALS[0], CHOICES[0]) | {
        "num_hidden_layers": 12
    }
    assert has_patterns(MIXTURE) and not has_patterns(BERT)
    assert has_patterns({"num_hidden_layers": 3, "layer_types": ["local", "full", "local"]})


def test_few_layers_are_of_all_kinds() -> None:
    kinds = ["local"] * 5 + ["full"] + ["local"] * 6
    fields = {"num_hidden_layers": 12, "layer_types": kinds}
    counts = [shrink_fields(fields, PROPOSALS[0], choices)["num_hidden_layers"] for choices in CHOICES]
    assert counts == [8, 9, 12]  # two or three more than have both kinds, so that the loop is seen to go on
    fields["layer_types"] = ["local", "full"] * 6
    assert [shrink_fields(fields, PROPOSALS[0], choices)["num_hidden_layers"] for choices in CHOICES] == [5, 6, 12]


def test_parts_with_layers_of_several_kinds_have_other_numbers_of_them() -> None:
    text, vision = [["window"] * 3 + ["full"]] * 2
    fields: dict[str, Any] = {
        "text_config": {"model_type": "text", "num_hidden_layers": 24, "layer_types": text * 6},
        "vision_config": {"model_type": "vision", "num_hidden_layers": 20, "layer_types": vision * 5},
    }
    found = [shrink_fields(fields, PROPOSALS[0], choices) for choices in CHOICES[:2]]
    counts = [[part["num_hidden_layers"] for part in both.values()] for both in found]
    assert counts == [[6, 10], [7, 11]]


def test_both_small_configurations_end_with_two_layers_of_a_kind() -> None:
    fields = {"num_hidden_layers": 6, "sliding_windows": [[16, 4], [16, 4], [16, 0], [16, 0], [16, 4], [16, 4]]}
    assert [shrink_fields(fields, PROPOSALS[0], choices)["num_hidden_layers"] for choices in CHOICES] == [6, 6, 6]


def test_lists_with_an_item_for_each_layer_are_shortened() -> None:
    fields = {"num_hidden_layers": 6, "layer_types": ["a", "b"] * 3, "depths": [2, 2, 6, 2], "eos_token_id": [1, 200]}
    found = shrink_fields(fields | {"vocab_size": 300}, PROPOSALS[0], CHOICES[0])
    assert found["layer_types"] == ["a", "b", "a", "b", "a"] and len(found["depths"]) == 4
    assert max(found["eos_token_id"]) < found["vocab_size"]


FILE = """
import torch

class Layer(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.up = torch.nn.Linear(hidden, hidden)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(self, x):
        return self.dropout(self.up(x).relu()) + x

class Net(torch.nn.Module):
    def __init__(self, vocab=50, hidden=16, layers=3):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab, hidden)
        self.layers = torch.nn.ModuleList([Layer(hidden) for _ in range(layers)])

    def forward(self, ids, mask=None):
        h = self.embedding(ids)
        for layer in self.layers:
            h = layer(h)
        return h

def build():
    return Net().eval()

def variant(vocab=50, hidden=16, layers=3):
    return Net(vocab, hidden, layers).eval()

def other():
    return 3

def broken():
    raise KeyError("x")
"""


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FILE)
    return tmp_path / "net.py"


WRONG = [
    ["missing.py"],
    ["net.py"],
    ["net.py:nothing"],
    ["net.py:other"],
    ["net.py:broken"],
    ["net.py", "--input", "idx=int[batch,seq]"],
    ["net.py", "--input", "ids=real[batch,seq]"],
    ["net.py:Net", "--input", "ids=int[batch,seq]"],
    ["nothing:resnet18"],
    ["config.json", "--input", "x=real[3]"],
    ["missing.json"],
    ["empty.json"],
    ["unknown.json"],
    ["list.json"],
]


@pytest.mark.slow
def test_errors_of_sources(net: Path, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]) -> None:
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    contents: dict[str, object] = {"config": BERT, "empty": {}, "unknown": {"model_type": "brt"}, "list": []}
    for name, content in contents.items():
        (net.parent / f"{name}.json").write_text(json.dumps(content))
    said: list[str] = []
    for arguments in WRONG:
        assert main(["lift", *arguments]) != 0
        said.append(f"$ archspec lift {' '.join(arguments)}\n{capsys.readouterr().err}")
    golden("lift/sources.txt", "\n".join(said).replace(transformers.__version__, "VERSION"))


def test_a_file_is_lifted(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["lift", "net.py", "--input", "ids=int[batch,seq]", "-o", "net.arch"]) == 0
    assert main(["lift", "net.py", "--input", "ids=int[batch,seq]", "-o", "net.arch"]) == 2
    assert main(["verify", "net.arch", "--module", "net.py"]) == 0
    assert capsys.readouterr().out.count("Equal: proven") == 1


def test_integers_among_arguments_are_hyperparameters(net: Path) -> None:
    torch = pytest.importorskip("torch")
    import archspec
    from archspec.pytorch.lift.sources.lifting import lift_source

    (net.parent / "net.arch").write_text(lift_source("net.py:variant", ["ids=int[batch,seq]"]))
    model = archspec.load("net.arch")
    assert dict(model.hyperparameters) == {"vocab": 50, "hidden": 16, "layers": 3}
    assert torch.nn.Embedding(50, 16).weight.numel() + 3 * (16 * 16 + 16) == model.params.total
    assert archspec.load("net.arch", layers=5, hidden=8).params.total == 50 * 8 + 5 * (8 * 8 + 8)


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["build", "variant"])
def test_free_sizes_of_inputs_have_the_names_that_users_give_them(net: Path, factory: str) -> None:
    pytest.importorskip("torch")
    from archspec.pytorch.lift.sources.lifting import lift_source

    text = lift_source(f"net.py:{factory}", ["ids=int[rows,in]"])
    assert "(ids int [rows, seq]) -> [rows, seq, " in text  # `in` cannot be a name


def test_images_for_a_model_of_timm_have_its_size_or_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")

    def collection(**config: Any) -> SimpleNamespace:
        module = torch.nn.Conv2d(3, 4, 3)
        module.pretrained_cfg = config
        return SimpleNamespace(list_models=lambda: ["tiny"], create_model=lambda name, pretrained: module)

    for config, shape in (({}, (2, 3, 224, 224)), ({"input_size": (1, 32, 48)}, (2, 1, 32, 48))):
        monkeypatch.setitem(sys.modules, "timm", collection(**config))
        assert [image.shape for image in subject_of_collection("timm:tiny").inputs.values()] == [shape]


@pytest.mark.parametrize("collection", ["timm", "torchvision"])
def test_collections_that_are_not_installed_are_named(collection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from archspec.pytorch.lift.sources.subjects import source_of

    monkeypatch.setitem(__import__("sys").modules, collection, None)
    with pytest.raises(ArchError, match=f"{collection} is required but not installed"):
        source_of(f"{collection}:resnet18")


def test_tokens_are_one_sequence_before_they_are_several() -> None:
    torch = pytest.importorskip("torch")
    from archspec.pytorch.lift.sources.examples import SIZES, examples

    class Reader(torch.nn.Module):
        def forward(self, input_ids: Any, input_features: Any = None, attention_mask: Any = None) -> Any: ...

    class Other(torch.nn.Module):
        def forward(self, x: Any, attention_mask: Any = None) -> Any: ...

    shapes = [{name: value.dim() for name, value in given.items()} for given in examples(Reader(), SIZES[0])]
    assert shapes[0] == {"input_ids": 2, "input_features": 3, "attention_mask": 2}
    assert shapes[-1] == {"input_ids": 3}
    dims = [given["input_ids"] for given in shapes if "input_ids" in given]
    assert dims == sorted(dims)
    assert [*examples(Other(), SIZES[0])] == []

    class Speaker(torch.nn.Module):
        config = SimpleNamespace(decoder_config=SimpleNamespace(num_channels=9))

        def forward(self, input_ids: Any, decoder_input_ids: Any = None) -> Any: ...

    first = next(examples(Speaker(), SIZES[0]))
    assert first["decoder_input_ids"].shape == (3, 7, 9)

    class Detector(torch.nn.Module):
        config = SimpleNamespace(num_queries=300)

        def forward(self, pixel_values: Any, labels: Any = None) -> Any: ...

    given = [image["pixel_values"].shape for image in examples(Detector(), SIZES[0])]
    assert given == [(3, 3, 96, 96), (3, 4, 3, 96, 96), (3, 3, 160, 160), (3, 3, 288, 288)]


def test_parts_that_need_inputs_get_them() -> None:
    torch = pytest.importorskip("torch")
    from archspec.pytorch.lift.sources.examples import SIZES, examples

    class Joined(torch.nn.Module):  # type: ignore[name-defined,misc]
        config = SimpleNamespace(
            vocab_size=50, image_size=(32, 16), guide_config=SimpleNamespace(model_type="bert", vocab_size=9)
        )

        def forward(
            self,
            pixel_values: Any,
            prompt_masks: Any,
            guide_input_ids: Any,
            guide_attention_mask: Any = None,
            input_ids: Any = None,
        ) -> None: ...

    found = [*examples(Joined(), SIZES[0])]
    assert all({"prompt_masks", "guide_input_ids", "guide_attention_mask"} <= {*inputs} for inputs in found)
    assert all(int(inputs["guide_input_ids"].max()) < 9 for inputs in found)
    assert all(inputs["guide_attention_mask"][-1, -1] == 0 for inputs in found)
    shapes = [{name: tuple(value.shape) for name, value in inputs.items()} for inputs in found]
    assert {"pixel_values": (3, 3, 32, 16), "prompt_masks": (3, 3, 32, 16)}.items() <= shapes[0].items()
    assert any(shape["pixel_values"] == shape["prompt_masks"] == (3, 3, 16, 16) for shape in shapes)


def test_lists_of_sizes_are_told_from_other_lists() -> None:
    def shrinks(fields: dict[str, Any]) -> bool:
        changed = shrink_fields(fields, PROPOSALS[0], CHOICES[0])
        return without_shrunk_lists(fields, changed) != changed

    stages = {"model_type": "resnet", "depths": [3, 4, 6, 3], "hidden_sizes": [256, 512, 1024, 2048]}
    assert shrinks(stages)
    assert shrinks({**BERT, "backbone_config": stages})
    assert not shrinks({**BERT, "layer_types": ["full"] * 12, "global_attn_indexes": [2, 5, 8, 11], "sizes": [1, 2]})


def test_rotary_positions_of_several_axes_have_sections() -> None:
    sections: dict[str, object] = {"rope_parameters": {"rope_theta": 10000.0, "mrope_section": [2, 3, 3]}}
    assert has_sections(sections) and has_sections({"text_config": {"model_type": "a", **sections}})
    assert not has_sections({"rope_parameters": {"rope_theta": 10000.0}})
