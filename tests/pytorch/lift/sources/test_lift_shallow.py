"""Lifting: modules of the actual sizes with fewer layers, whose parameters have no values."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensor

import archspec
from archspec.pytorch.lift.sources.architecture import Architecture
from archspec.pytorch.lift.sources.fields import shows_rule
from archspec.pytorch.lift.sources.inputs import build_uninitialized
from archspec.pytorch.lift.sources.lifting import lift_or_replace
from archspec.pytorch.lift.sources.proposals import CHOICES, PROPOSALS
from archspec.pytorch.lift.sources.shrinking import shrink_fields
from archspec.pytorch.lift.sources.subjects import source_of_architecture
from archspec.pytorch.lift.sources.variations import shrinks_lists
from archspec.pytorch.run.calling import call_module

nn = torch.nn
FIELDS = {"hidden_size": 64, "intermediate_size": 200, "num_hidden_layers": 5, "vocab_size": 100}


class Layer(nn.Module):
    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.up, self.down = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x: Any) -> Any:
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Decoder(nn.Module):
    """The inner size is one that no expression of the fields has."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        hidden, inner = fields["hidden_size"], fields["intermediate_size"] ** 3 % 97 + 30
        self.words = nn.Embedding(fields["vocab_size"], hidden)
        self.layers = nn.ModuleList([Layer(hidden, inner) for _ in range(fields["num_hidden_layers"])])
        self.head = nn.Linear(hidden, fields["vocab_size"], bias=False)
        self.head.weight = self.words.weight
        self.register_buffer("scale", torch.tensor(2.0), persistent=False)

    def forward(self, ids: Any) -> Any:
        x = self.words(ids) * self.scale
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Picky(Decoder):
    """A module that is only built with the actual sizes."""

    def __init__(self, fields: dict[str, Any]) -> None:
        if fields["hidden_size"] != FIELDS["hidden_size"]:
            raise ValueError("the size has to be 64")
        super().__init__(fields)


class Heads(nn.Module):
    """A projection with twice as many groups as the configuration has, each for several heads."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        self.heads, self.groups = fields["num_attention_heads"], 2 * fields["num_key_value_heads"]
        self.words = nn.Embedding(fields["vocab_size"], fields["hidden_size"])
        self.wide = nn.Linear(fields["hidden_size"], self.groups * fields["head_dim"])
        self.narrow = nn.Linear(self.heads * fields["head_dim"], fields["hidden_size"])

    def forward(self, ids: Any) -> Any:
        x = self.words(ids)
        y = self.wide(x).unflatten(-1, (self.groups, -1)).transpose(1, 2)
        if self.groups < self.heads:
            y = y.repeat_interleave(self.heads // self.groups, 1)
        return self.narrow(y.transpose(1, 2).flatten(2))


class Uneven(Decoder):
    """A module with another layer at two places that are at no regular distance."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.kinds = fields["layer_types"]

    def forward(self, ids: Any) -> Any:
        x = self.words(ids)
        for kind, layer in zip(self.kinds, self.layers, strict=True):
            x = layer(x) if kind == "plain" else layer(x.flip(1))
        return self.head(x)


def architecture(owner: type) -> Architecture:
    def inputs(module: Any, turn: int) -> Iterator[dict[str, Any]]:
        yield {"ids": torch.zeros(((3, 11), (2, 14))[turn], dtype=torch.long)}

    return Architecture(owner.__name__, dict(FIELDS), lambda fields: owner({**FIELDS, **fields}), inputs)


@pytest.mark.slow
@pytest.mark.parametrize("owner", [Decoder, Picky])
def test_sizes_that_no_small_module_explains_are_numbers(owner: type) -> None:
    text = lift_or_replace(source_of_architecture(architecture(owner)))
    assert "num_hidden_layers = 5" in text
    assert "Linear(64, 52)" in text
    assert archspec.equivalent(archspec.loads(text), owner(FIELDS).eval()).verdict in ("equal", "outputs equal")
    deeper, others = archspec.loads(text, num_hidden_layers=7), {**FIELDS, "num_hidden_layers": 7}
    assert archspec.equivalent(deeper, owner(others).eval()).verdict in (
        "equal",
        "outputs equal",
    )


@pytest.mark.slow
def test_other_numbers_of_heads_are_tried() -> None:
    fields = {"num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 16, "hidden_size": 64, "vocab_size": 100}
    made = architecture(Heads)
    text = lift_or_replace(
        source_of_architecture(replace(made, fields=fields, build=lambda own: Heads({**fields, **own})))
    )
    assert "num_key_value_heads = 4" in text and "num_attention_heads = 16" in text
    others = {**fields, "num_attention_heads": 24, "num_key_value_heads": 3}
    other = archspec.loads(text, num_attention_heads=24, num_key_value_heads=3)
    assert archspec.equivalent(other, Heads(others).eval()).verdict in ("equal", "outputs equal")


@pytest.mark.slow
def test_layers_are_written_one_by_one_if_few_do_not_show_the_rule() -> None:
    kinds = ["plain", "turned", "plain", "turned", "plain", "plain", "turned"]
    fields = {**FIELDS, "num_hidden_layers": 7, "intermediate_size": 200, "layer_types": kinds}
    made = replace(architecture(Uneven), fields=fields, build=lambda own: Uneven({**fields, **own}))
    text = lift_or_replace(source_of_architecture(made))
    assert archspec.equivalent(archspec.loads(text), Uneven(fields).eval()).verdict in ("equal", "outputs equal")


@pytest.mark.slow
def test_a_large_module_takes_no_memory_and_is_not_run() -> None:
    fields = {**FIELDS, "hidden_size": 10_000, "vocab_size": 100_000}
    module = build_uninitialized(lambda: Decoder(fields))
    assert module.head.weight is module.words.weight
    assert module.scale == 2.0
    assert call_module(module, {"ids": torch.zeros(2, 7, dtype=torch.long)}).shape == (2, 7, 100_000)


class Experts(Decoder):
    """A module with a parameter for which there is no memory."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.experts = nn.Parameter(torch.empty(1000, 64, fields["expert_size"]))


@pytest.mark.slow
def test_the_largest_parameters_take_no_memory_at_all() -> None:
    experts = build_uninitialized(lambda: Experts({**FIELDS, "expert_size": 1_000_000})).experts
    assert experts.shape == (1000, 64, 1_000_000) and experts.untyped_storage().nbytes() == 4


class Masked(Decoder):
    """A module that looks at a mask if it has values."""

    def forward(self, ids: Any, mask: Any) -> Any:
        if not isinstance(mask, FakeTensor) and bool((mask == 1).all()):
            return super().forward(ids)
        return super().forward(ids) * mask[..., None]


@pytest.mark.slow
def test_a_large_module_that_looks_at_values_is_called_without_them() -> None:
    module = build_uninitialized(lambda: Masked({**FIELDS, "hidden_size": 10_000, "vocab_size": 100_000}))
    ids = torch.zeros(2, 7, dtype=torch.long)
    assert call_module(module, {"ids": ids, "mask": torch.ones_like(ids)}).shape == (2, 7, 100_000)


def test_layers_are_as_many_as_show_the_rule_of_all() -> None:
    kinds = ["full", *["full" if turn % 6 == 5 else "local" for turn in range(1, 48)]]
    ends = ["dense", *["sparse"] * 47]
    both = [*zip(kinds, ends, strict=True)]
    assert [few for few in range(6, 14) if shows_rule(both, few)] == [11, 12, 13]
    fields = {"num_hidden_layers": 48, "layer_types": kinds, "mlp_layer_types": ends}
    assert [shrink_fields(fields, PROPOSALS[0], choices)["num_hidden_layers"] for choices in CHOICES] == [8, 11, 48]
    assert shows_rule(["dense", "dense", "sparse", "sparse", "sparse"], 2)
    assert shows_rule(["local", "full"] * 9, 3) and not shows_rule(["local", "local", "full"] * 9, 3)


class Choosing(nn.Module):
    """As many queries as it has are chosen among the places in an image."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        self.count = fields["num_queries"]
        self.conv = nn.Conv2d(3, fields["hidden_size"], 2, stride=2)
        self.score = nn.Linear(fields["hidden_size"], 1)

    def forward(self, x: Any) -> Any:
        places = self.conv(x).flatten(2).transpose(1, 2)
        return places.gather(1, self.score(places).topk(self.count, 1).indices.expand(-1, -1, places.shape[2]))


@pytest.mark.slow
def test_images_have_places_for_all_queries() -> None:
    fields = {"hidden_size": 64, "num_queries": 300}

    def images(module: Any, turn: int) -> Iterator[dict[str, Any]]:
        for side in (24, 40):
            yield {"x": torch.zeros(3 - turn, 3, side, side)}

    made = Architecture("Choosing", fields, lambda changed: Choosing({**fields, **changed}), images)
    text = lift_or_replace(source_of_architecture(made))
    assert "(hidden_size = 64, num_queries = 300)(x [batch, 3, 40, 40])" in text


class Reading(nn.Module):
    """A module that reads a value of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(3_000_000, 8)

    def forward(self, ids: Any) -> Any:
        return self.table(ids) * (1.0 if int(ids.max()) < 9 else 2.0)


@pytest.mark.slow
def test_a_large_module_that_reads_values_is_run() -> None:
    ids = torch.zeros(2, 3, dtype=torch.long)
    assert call_module(Reading().eval(), {"ids": ids}).shape == (2, 3, 8)


class Scan(nn.Module):
    """A loop over tokens, with a parameter that is large in the second small module."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        hidden = fields["hidden_size"]
        self.words = nn.Embedding(fields["vocab_size"], hidden)
        self.experts = nn.Parameter(torch.randn(fields["num_experts"], 4 * hidden, hidden))

    def forward(self, ids: Any) -> Any:
        x = self.words(ids)
        state, states = torch.zeros_like(x[:, 0]), []
        for turn in range(x.shape[1]):
            state = torch.tanh(state + x[:, turn])
            states.append(state)
        return torch.nn.functional.linear(torch.stack(states, 1), self.experts.sum(0))


@pytest.mark.slow
def test_a_second_module_that_has_to_be_run_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"hidden_size": 512, "num_experts": 64, "vocab_size": 100}
    made = replace(architecture(Scan), fields=fields, build=lambda own: Scan({**fields, **own}))
    large = made.build(shrink_fields(fields, PROPOSALS[0], CHOICES[1]))
    monkeypatch.setattr(
        "archspec.pytorch.lift.check.MAX_ELEMENTS", sum(value.numel() for value in large.parameters()) - 1
    )
    text = lift_or_replace(source_of_architecture(made))
    assert "num_experts = 64" in text and "for t in 0..seq" in text


class Stages(Decoder):
    """A module whose further layers have the sizes of a list, if it is one with stages."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        sizes = fields["hidden_sizes"] if fields["has_stages"] else []
        self.stages = nn.ModuleList([nn.Linear(fields["hidden_size"], size) for size in sizes])
        self.first_size = sizes[0] if sizes else None


@pytest.mark.parametrize("has_stages", [True, False])
def test_lists_of_sizes_count_where_a_module_depends_on_them(has_stages: bool) -> None:
    fields = {**FIELDS, "hidden_sizes": [512, 512, 1500], "has_stages": has_stages}
    made = architecture(Stages)
    assert shrinks_lists(replace(made, fields=fields, build=lambda own: Stages({**fields, **own}))) == has_stages
