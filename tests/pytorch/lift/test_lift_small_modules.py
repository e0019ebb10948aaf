"""Lifting: what small modules could hide, such as sizes that are equal, and layers that are not there."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec.pytorch.lift.sizes.sizes import SizeDependenceError
from archspec.pytorch.lift.sources.architecture import Architecture, build_small_module, reals_of, subject_of
from archspec.pytorch.lift.sources.fields import Fields
from archspec.pytorch.lift.sources.lifting import lift_or_replace, lift_source
from archspec.pytorch.lift.sources.proposals import PROPOSALS, SHALLOW
from archspec.pytorch.lift.sources.shrinking import merge_fields, shrink_fields
from archspec.pytorch.lift.sources.subjects import source_of_architecture
from archspec.pytorch.lift.sources.variations import has_actual_heads, with_separate_sizes

nn: Any = torch.nn


class Chain(nn.Module):
    """Linear layers with these widths, and what is applied to the output of some."""

    def __init__(self, widths: list[int], functions: dict[int, Callable[[Any], Any]] | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, other) for width, other in pairwise(widths)])
        self.functions = functions or {}

    def forward(self, x: Any) -> Any:
        for turn, layer in enumerate(self.layers):
            x = self.functions.get(turn, torch.tanh)(layer(x))
        return x


def architecture(fields: Fields, build: Callable[[Any], Any]) -> Architecture:
    def inputs(module: Any, turn: int) -> Iterator[dict[str, Any]]:
        yield {"x": torch.ones((3, 2)[turn], (5, 8)[turn], module.layers[0].in_features)}

    return Architecture("Chain", fields, lambda changed: build({**fields, **changed}), inputs)


# Sizes ----------------------------------------------------------------------------------------------------------------

HEADS: Fields = {"hidden_size": 192, "num_attention_heads": 3, "qk_rope_head_dim": 64, "v_head_dim": 64, "head_dim": 64}


def joined(fields: Any) -> Any:
    """A module in which two of three sizes that are equal have to be."""
    if fields["head_dim"] != fields["qk_rope_head_dim"]:
        raise ValueError("unequal sizes")
    sizes = [fields["num_attention_heads"] * fields[name] for name in ("qk_rope_head_dim", "v_head_dim", "head_dim")]
    return Chain([fields["hidden_size"], *sizes])


def test_sizes_that_need_not_be_equal_differ_in_small_modules() -> None:
    made = architecture(HEADS, joined)
    changed, first = with_separate_sizes(made)
    assert first.proposal.separate == ("v_head_dim",)
    assert changed.proposals == [first.proposal, *PROPOSALS]
    for turn in (0, 1):
        fields = build_small_module(changed, turn).fields
        assert fields["qk_rope_head_dim"] == fields["head_dim"] != fields["v_head_dim"]
    distinct = replace(made, build=lambda fields: Chain([fields["hidden_size"], fields["head_dim"]]))
    assert build_small_module(distinct, 0).proposal.is_distinct and with_separate_sizes(distinct)[0] is distinct


def test_sizes_stay_equal_where_modules_with_others_take_fewer_inputs() -> None:
    class Masked(Chain):
        def forward(self, x: Any, mask: Any = None) -> Any:
            if mask is None:
                return super().forward(x)
            return super().forward(x) * (self.layers[0](x) + self.layers[1].weight.sum(0)) * mask

    def inputs(module: Any, turn: int) -> Iterator[dict[str, Any]]:
        x = torch.ones((3, 2)[turn], (5, 8)[turn], module.layers[0].in_features)
        yield {"x": x, "mask": x[..., :1]}
        yield {"x": x}

    def build(fields: Any) -> Any:
        sizes = [layer.out_features for layer in joined(fields).layers]
        return Masked([fields["hidden_size"], *sizes[1:]])

    made = replace(architecture(HEADS, build), inputs=inputs)
    _, first = with_separate_sizes(made)
    assert first.proposal.separate == () and [*first.subject.inputs] == ["x", "mask"]


def test_no_others_are_tried_for_modules_of_the_actual_sizes() -> None:
    shallow = replace(architecture(HEADS, joined), proposals=[SHALLOW])
    assert with_separate_sizes(shallow)[0] is shallow


def test_sizes_of_both_small_modules_differ() -> None:
    """A size stays with another one if only the first small module can do without that."""

    def picky(fields: Any) -> Any:
        if fields["v_head_dim"] != fields["head_dim"] > 8:
            raise ValueError("unequal sizes")
        return joined(fields)

    _, first = with_separate_sizes(architecture(HEADS, picky))
    assert first.proposal.separate == () and first.fields["v_head_dim"] == first.fields["head_dim"]


def test_the_second_small_module_may_follow_another_proposal() -> None:
    def picky(fields: Any) -> Any:
        if fields["hidden_size"] == 192:
            raise ValueError("an odd width")
        return joined(fields)

    made = architecture(HEADS, picky)
    assert build_small_module(made, 0).proposal.unit == 8 and build_small_module(made, 1).proposal.unit == 32
    changed, first = with_separate_sizes(made)
    second: Any = build_small_module(changed, 1, first.fields).fields
    assert first.proposal.separate and second["v_head_dim"] != second["head_dim"]


def test_groups_of_heads_may_be_separate() -> None:
    fields: Fields = {"hidden_size": 192, "num_attention_heads": 12, "num_key_value_heads": 12}
    proposal = next(item for item in PROPOSALS if not item.is_distinct and item.unit)
    choices = architecture(fields, Chain).choices[0]
    assert shrink_fields(fields, proposal, choices)["num_key_value_heads"] == 6
    assert (
        shrink_fields(fields, proposal._replace(separate=("num_key_value_heads",)), choices)["num_key_value_heads"] == 2
    )


def test_a_spec_has_a_hyperparameter_for_each_size() -> None:
    spec = lift_or_replace(source_of_architecture(architecture(HEADS, joined)))
    model = archspec.loads(spec, v_head_dim=24)
    assert archspec.equivalent(model, joined({**HEADS, "v_head_dim": 24}).eval())


PARTS: Fields = {
    name: {"model_type": name, "hidden_size": 192, "num_attention_heads": 12}
    for name in ("text_config", "image_config")
}


def matched(fields: Any) -> Any:
    """A module of two parts, the widths of which have to be equal, unlike their numbers of heads."""
    parts: list[Any] = [merge_fields(PARTS, fields)[name] for name in PARTS]
    if parts[0]["hidden_size"] != parts[1]["hidden_size"]:
        raise ValueError("unequal widths")
    return Chain([parts[0]["hidden_size"], *[2 * part["num_attention_heads"] for part in parts]])


def test_a_width_that_is_named_after_another_part_need_not_be_the_width_of_that() -> None:
    part = {"model_type": "audio", "output_dim": 192}
    fields: Fields = {"hidden_size": 192, "num_attention_heads": 12, "audio_config": part}

    def build(changed: Any) -> Any:
        return Chain([changed["hidden_size"], changed["audio_config"]["output_dim"]])

    made = architecture(fields, build)
    assert build_small_module(made, 0).fields["audio_config"] == {
        "output_dim": build_small_module(made, 0).fields["hidden_size"]
    }
    _, first = with_separate_sizes(made)
    assert first.fields["audio_config"] != {"output_dim": first.fields["hidden_size"]}


def test_sizes_of_parts_that_need_not_be_equal() -> None:
    made = architecture(PARTS, matched)
    assert with_separate_sizes(made)[1].proposal.separate == ("text_num_attention_heads",)
    spec = lift_or_replace(source_of_architecture(made))
    model = archspec.loads(spec, image_num_attention_heads=5)
    changed = {"num_attention_heads": 5}
    assert archspec.equivalent(model, matched({**PARTS, "image_config": {**PARTS["image_config"], **changed}}).eval())


def test_a_number_for_only_two_sizes_is_found_out_by_a_third() -> None:
    """Also where inputs are real, and the third module is compared in float64."""

    def doubling(fields: Any) -> Any:
        width = fields["hidden_size"]
        return Chain([width, width], {0: lambda x: x * (2.0 if width % 48 == 0 else 3.0)})

    made = architecture({"hidden_size": 192, "num_attention_heads": 3}, doubling)
    assert not {build_small_module(made, turn).fields["hidden_size"] for turn in (0, 1)} & {64}
    spec = lift_or_replace(source_of_architecture(made))
    assert "* 2.0" in spec and not archspec.loads(spec).hyperparameters


FACTORY = """
from torch import nn

class Joined(nn.Module):
    def __init__(self, dim, heads, qk_head_dim, v_head_dim, head_dim):
        super().__init__()
        if qk_head_dim != head_dim:
            raise ValueError("unequal sizes")
        self.q = nn.Linear(dim, heads * qk_head_dim)
        self.v = nn.Linear(heads * qk_head_dim, heads * v_head_dim)
        self.o = nn.Linear(heads * v_head_dim, heads * head_dim)

    def forward(self, x):
        return self.o(self.v(self.q(x).tanh()).tanh())

def make(dim=192, heads=3, qk_head_dim=64, v_head_dim=64, head_dim=64):
    return Joined(dim, heads, qk_head_dim, v_head_dim, head_dim).eval()
"""


def test_arguments_of_a_factory_that_need_not_be_equal(tmp_path: Path) -> None:
    path = tmp_path / "joined.py"
    path.write_text(FACTORY)
    spec = lift_source(f"{path}:make", ["x=real[batch,192]"])
    model = archspec.loads(spec, v_head_dim=24)
    assert model.params.total == (192 * 192 + 192) + (192 * 72 + 72) + (72 * 192 + 192)


# Reals ----------------------------------------------------------------------------------------------------------------

NORMS: Fields = {"hidden_size": 192, "layer_norm_eps": 1e-5, "rms_norm_eps": 1e-5, "ratio": 2.0, "dropout_rate": 0.25}


class Norms(Chain):
    """Three norms with the same constant, of which two have it from a field each."""

    def __init__(self, fields: Any) -> None:
        hidden = fields["hidden_size"]
        super().__init__([hidden, int(fields["ratio"] * hidden), hidden])
        self.first = nn.LayerNorm(hidden, eps=fields["layer_norm_eps"])
        self.second = nn.LayerNorm(hidden, eps=fields["rms_norm_eps"])
        self.third = nn.LayerNorm(hidden, eps=1e-5)

    def forward(self, x: Any) -> Any:
        return self.third(self.second(super().forward(self.first(x))))


def test_reals_that_are_equal_by_accident_are_no_hyperparameter() -> None:
    spec = lift_or_replace(source_of_architecture(architecture(NORMS, Norms)))
    assert "first: LayerNorm(hidden_size, layer_norm_eps)" in " ".join(spec.split())
    assert "second: LayerNorm(hidden_size, rms_norm_eps)" in " ".join(spec.split())
    assert "third: LayerNorm(hidden_size, 1e-5)" in " ".join(spec.split())
    sizes = {"hidden_size": 24, "layer_norm_eps": 1e-3, "rms_norm_eps": 1e-2}
    assert archspec.equivalent(archspec.loads(spec, **sizes), Norms({**NORMS, **sizes}).eval())


def second_of(fields: Fields, build: Callable[[Any], Any]) -> Any:
    second = subject_of(architecture(fields, build)).second
    assert second is not None
    return second().numbers


def test_the_second_small_module_has_other_reals() -> None:
    assert reals_of({**NORMS, "scale": 1.0, "shift": 0.0}) == {
        name: value for name, value in NORMS.items() if isinstance(value, float)
    }
    numbers = second_of(NORMS, Norms)
    assert (numbers["layer_norm_eps"], numbers["rms_norm_eps"]) == pytest.approx((1.5e-5, 1.75e-5))
    assert (numbers["ratio"], numbers["dropout_rate"]) == (2.0, 0.5)


def test_the_second_small_module_has_the_usual_reals_if_it_needs_them() -> None:
    def building(fields: Any) -> Any:
        if not torch.empty(0).is_meta and fields["layer_norm_eps"] != 1e-5:
            raise ValueError("unknown")
        return Norms(fields)

    class Running(Norms):
        def forward(self, x: Any) -> Any:
            if self.first.eps != 1e-5:
                raise ValueError("unknown")
            return super().forward(x)

    for build in (building, Running):
        assert second_of(NORMS, build)["rms_norm_eps"] == 1e-5


def test_modules_that_are_others_with_other_reals_have_the_same() -> None:
    class Branching(Norms):
        def forward(self, x: Any) -> Any:
            return super().forward(x if self.first.eps == 1e-5 else x.relu())

    found = source_of_architecture(architecture(NORMS, Branching))
    same, *_ = found.others(SizeDependenceError())
    assert same().subject.second is not None and same().subject.second().numbers["rms_norm_eps"] == 1e-5
    assert archspec.loads(lift_or_replace(found)).hyperparameters["hidden_size"] == 192


# Heads ----------------------------------------------------------------------------------------------------------------

GROUPS: Fields = {"hidden_size": 256, "num_attention_heads": 64, "num_key_value_heads": 4}


def grouped(fields: Any) -> Any:
    """A module a part of which has twice as many groups of heads."""
    heads, groups = fields["num_attention_heads"], 2 * fields["num_key_value_heads"]
    if heads % groups:
        raise ValueError("no groups of equal size")
    return Chain([fields["hidden_size"], 3 * heads, 5 * groups])


def test_heads_are_hyperparameters_where_small_modules_need_more_of_them() -> None:
    made = architecture(GROUPS, grouped)
    assert has_actual_heads(source_of_architecture(replace(made, proposals=PROPOSALS[-1:])).subject)
    found = source_of_architecture(made)
    numbers = found.subject.numbers
    assert not has_actual_heads(found.subject)
    assert (numbers["num_attention_heads"], numbers["num_key_value_heads"]) == (12, 2)
    (instead,) = found.others(None)
    assert has_actual_heads(instead().subject) and instead().others(None)
    spec = lift_or_replace(found)
    sizes = {"hidden_size": 20, "num_attention_heads": 12, "num_key_value_heads": 3}
    assert archspec.equivalent(archspec.loads(spec, **sizes), grouped(sizes).eval())


@pytest.mark.parametrize("most", [12, 64])
def test_small_modules_have_the_actual_heads_if_they_need_these(most: int) -> None:
    def picky(fields: Any) -> Any:
        if fields["num_attention_heads"] < 64 or fields["num_attention_heads"] > most > 12:
            raise ValueError("few heads")
        return grouped(fields)

    found = source_of_architecture(architecture(GROUPS, picky))
    assert has_actual_heads(found.subject) and found.subject.numbers["num_attention_heads"] == 64


# Layers ---------------------------------------------------------------------------------------------------------------

DEEP: Fields = {"hidden_size": 192, "num_hidden_layers": 12}


def chain(fields: Any, places: Any) -> Any:
    widths = [fields["hidden_size"]] * (fields["num_hidden_layers"] + 1)
    return Chain(widths, dict.fromkeys(places, torch.relu))


def same(spec: str, make: Callable[[Any], Any], **sizes: int) -> bool:
    module = make({**DEEP, **sizes}).eval()
    return bool(archspec.equivalent(archspec.loads(spec, **sizes), module))


def test_a_layer_that_differs_beyond_those_of_small_modules() -> None:
    def build(fields: Any) -> Any:
        return chain(fields, [7])

    spec = lift_or_replace(source_of_architecture(architecture(DEEP, build)))
    assert "relu" in spec and same(spec, build, hidden_size=24)


def test_layers_that_a_configuration_lists() -> None:
    fields: Fields = {**DEEP, "full_attention_indexes": [3, 7, 11]}

    def build(changed: Any) -> Any:
        return chain(changed, changed.get("full_attention_indexes", [3, 7, 11]))

    spec = lift_or_replace(source_of_architecture(architecture(fields, build)))
    assert "layers[4 * i + 3]" in spec and same(spec, build, hidden_size=24)


def test_a_large_number_of_a_computation_follows_a_field() -> None:
    """The offsets of code books in a table, whose sizes are the same in both small modules."""
    fields: Fields = {"hidden_size": 192, "num_attention_heads": 12, "vocab_size": 4001, "codebook_vocab_size": 2049}

    class Codes(torch.nn.Module):
        def __init__(self, vocab_size: int, codebook_vocab_size: int, hidden_size: int, **rest: Any) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(vocab_size + 12 * codebook_vocab_size, hidden_size)
            self.register_buffer("offsets", vocab_size + codebook_vocab_size * torch.arange(12), persistent=False)

        def forward(self, ids: Any) -> Any:
            return self.embed(ids + self.offsets).sum(2)

    def inputs(module: Any, turn: int) -> Iterator[dict[str, Any]]:
        yield {"ids": torch.ones((3, 2)[turn], (5, 8)[turn], 12, dtype=torch.long)}

    made = Architecture("Codes", fields, lambda changed: Codes(**{**fields, **changed}), inputs)
    spec = lift_or_replace(source_of_architecture(made))
    model = archspec.loads(spec, codebook_vocab_size=1000)
    assert archspec.equivalent(model, Codes(4001, 1000, 192).eval())


def test_a_large_number_is_no_field_that_names_no_size() -> None:
    fields: Fields = {"hidden_size": 192, "num_attention_heads": 12, "vocab_size": 4001, "chunk": 300}

    class Tokens(torch.nn.Module):
        def __init__(self, vocab_size: int, hidden_size: int, **rest: Any) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(vocab_size, hidden_size)

        def forward(self, ids: Any) -> Any:
            return self.embed(torch.where(ids > 300, 0, ids))

    def inputs(module: Any, turn: int) -> Iterator[dict[str, Any]]:
        yield {"ids": torch.ones((3, 2)[turn], (5, 8)[turn], dtype=torch.long)}

    made = Architecture("Tokens", fields, lambda changed: Tokens(**{**fields, **changed}), inputs)
    spec = lift_or_replace(source_of_architecture(made))
    assert "300" in spec and "chunk" not in spec
