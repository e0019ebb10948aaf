"""Small modules of an architecture, for which toys stand here: how they are found, and what is known of them."""

import math
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from archspec import ArchError
from archspec.app.cli.run import lift as lift_command
from archspec.pytorch.lift.sources import configuration
from archspec.pytorch.lift.sources.architecture import (
    Architecture,
    are_alike,
    numbers_of,
    ordered,
    parts_of,
    subject_of,
    with_number,
)
from archspec.pytorch.lift.sources.proposals import SHALLOW
from archspec.pytorch.lift.sources.variations import (
    resize_and_relayer,
    separate_part_sizes,
    uncropped,
    unrolled,
    with_fewer_layers,
    with_fewer_parameters,
    with_longer,
    with_more_heads,
)
from archspec.pytorch.run.calling import call_exception
from archspec.testing import main

nn = torch.nn
FIELDS: dict[str, object] = {
    "model_type": "toy",
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "vocab_size": 30000,
    "use_bias": True,
    "sigmoid": 2,
    "not a name": 3,
    "names": ["a"],
    "text_config": {"model_type": "text", "hidden_size": 512, "inner_config": {"model_type": "inner", "rank": 3}},
    "layer_kinds": {"full": {"span": 4, "name": "f"}, "local": {"span": 4, "name": "f"}},
    "layer_others": {"full": {"span": 4}, "local": {"span": 5}},
    "rope": {"mrope_section": [8, 12]},
}


class Toy(nn.Module):
    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        self.fields = fields
        self.layers = nn.ModuleList(
            [nn.Linear(fields["hidden_size"], fields["hidden_size"]) for _ in range(fields["num_hidden_layers"])]
        )

    def forward(self, x: Any, mask: Any = None) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x if mask is None else x * mask


def inputs_of(module: Any, turn: int) -> Iterator[dict[str, Any]]:
    sizes = (2, 7) if turn else (3, 5)
    yield {"mask": torch.ones(sizes), "x": torch.ones(*sizes, module.fields["hidden_size"])}
    yield {"x": torch.ones(*sizes, module.fields["hidden_size"])}


def toy(build: Any = Toy, inputs: Any = inputs_of, **changed: object) -> Architecture:
    return Architecture("Toy", {**FIELDS, **changed}, build, inputs)


def test_numbers_have_the_names_of_their_parts() -> None:
    assert numbers_of(FIELDS) == {
        "model_type": "toy",
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "vocab_size": 30000,
        "use_bias": True,
        "sigmoid_": 2,
        "text_model_type": "text",
        "text_hidden_size": 512,
        "text_inner_model_type": "inner",
        "text_inner_rank": 3,
        "layer_kinds_span": 4,
        "mrope_section_0": 8,
        "mrope_section_1": 12,
    }
    assert parts_of(FIELDS) == ["text_", "text_inner_"]


def test_one_number_is_replaced_where_it_is() -> None:
    assert with_number(FIELDS, "sigmoid_", 5) == {**FIELDS, "sigmoid": 5}
    inner = with_number(FIELDS, "text_inner_rank", 5)["text_config"]
    assert inner == {"model_type": "text", "hidden_size": 512, "inner_config": {"model_type": "inner", "rank": 5}}
    assert with_number(FIELDS, "other", 5) == FIELDS


def test_inputs_are_in_the_order_of_the_signature() -> None:
    module = Toy({"hidden_size": 4, "num_hidden_layers": 1})
    assert [*ordered(module, {"mask": torch.ones(1), "x": torch.ones(1)})] == ["x", "mask"]
    assert call_exception(module, {"x": torch.ones(2, 4)}) is None
    assert isinstance(call_exception(module, {"x": torch.ones(2, 5)}), RuntimeError)
    x, other = torch.ones(2, 3), torch.ones(4, 5)
    assert are_alike({"x": x}, {"x": other})
    assert not are_alike({"x": x}, {"y": other}) and not are_alike({"x": x}, {"x": other[0]})


def test_small_modules_of_an_architecture() -> None:
    subject = subject_of(toy())
    assert (subject.name, [*subject.inputs], subject.parts) == ("Toy", ["x"], ["text_", "text_inner_"])
    assert subject.actual is not None and subject.actual["hidden_size"] == 768
    hidden, layers = subject.numbers["hidden_size"], subject.numbers["num_hidden_layers"]
    assert isinstance(hidden, int) and hidden < 768 and layers == 3
    assert subject.inputs["x"].shape == (3, 5, hidden)
    assert subject.other_inputs is not None and subject.other_inputs["x"].shape == (2, 7, hidden)
    assert subject.second is not None and subject.third is not None and subject.deep is not None
    second, third = subject.second(), subject.third([*subject.numbers])
    assert third is not None
    assert len({hidden, second.numbers["hidden_size"], third.numbers["hidden_size"]}) == 3
    assert [second.numbers["num_hidden_layers"], third.numbers["num_hidden_layers"]] == [4, 5]
    assert not subject.has_patterns
    for differs in (False, True):
        deep = subject.deep(differs)
        assert deep is not None and deep.numbers["num_hidden_layers"] == 12
    assert subject.changed is not None
    changed = subject.changed("num_hidden_layers", 2)
    assert (
        changed is not None and len([*changed.module.parameters()]) == 4 and changed.numbers["num_hidden_layers"] == 2
    )
    assert changed.numbers["hidden_size"] == hidden
    assert subject.changed("hidden_size", -1) is None


def test_patterns_of_layers_are_known() -> None:
    assert subject_of(toy(sliding_window_pattern=6)).has_patterns
    assert subject_of(toy(global_indexes=[2, 5])).has_patterns


def test_there_is_no_deeper_module_without_more_layers() -> None:
    few = subject_of(toy(num_hidden_layers=1))
    assert few.deep is not None and few.deep(True) is None


def test_modules_of_the_actual_sizes_are_only_deeper_where_layers_differ() -> None:
    few = subject_of(replace(toy(), proposals=[SHALLOW]))
    assert few.deep is not None and few.deep(False) is None
    deep = few.deep(True)
    assert deep is not None and deep.numbers["num_hidden_layers"] == 12


def test_values_are_random_but_the_same_each_time() -> None:
    one, other = [next(subject_of(toy()).module.parameters()) for _ in range(2)]
    assert torch.equal(one, other)


def test_a_module_is_not_in_training() -> None:
    assert not subject_of(toy()).module.training


def test_a_class_may_only_take_the_sizes_of_some_proposal() -> None:
    class Even(Toy):
        def __init__(self, fields: dict[str, Any]) -> None:
            if fields["hidden_size"] % 32:
                raise ValueError("no multiple of 32")
            super().__init__(fields)

    hidden = subject_of(toy(Even)).numbers["hidden_size"]
    assert isinstance(hidden, int) and hidden % 32 == 0 and hidden < 768


def test_small_modules_that_keep_the_sizes_have_few_numbers() -> None:
    subject = subject_of(with_fewer_layers(toy()))
    assert subject.numbers == {"num_hidden_layers": 3}
    assert subject.inputs["x"].shape[-1] == 768


def test_a_configuration_settles_fields() -> None:
    class Settled(Toy):
        def __init__(self, fields: dict[str, Any]) -> None:
            super().__init__(fields)
            self.config = SimpleNamespace(to_dict=lambda: {"derived": 3 * fields["hidden_size"]})

    numbers = subject_of(toy(Settled)).numbers
    assert numbers["derived"] == 3 * numbers["hidden_size"]  # type: ignore[operator]


def test_places_for_the_queries_of_the_actual_module() -> None:
    class Choosing(Toy):
        def forward(self, x: Any, mask: Any = None) -> Any:
            if x.shape[1] < self.fields["num_queries"]:
                raise ValueError("too few places")
            return super().forward(x)

    def images(module: Any, turn: int) -> Iterator[dict[str, Any]]:
        for places in (5, 60, 300):
            yield {"x": torch.ones(3 - turn, places + turn, module.fields["hidden_size"])}

    assert subject_of(toy(Choosing, images, num_queries=200)).inputs["x"].shape[1] == 300


def refused(architecture: Architecture) -> str:
    with pytest.raises(ArchError) as caught:
        subject_of(architecture)
    return str(caught.value)


def test_modules_that_cannot_be_built_or_run() -> None:
    def broken(_: Any) -> Any:
        raise ValueError("first line\n  second line")

    def none(_: Any, __: int) -> Iterator[dict[str, Any]]:
        return iter(())

    class Switching(Toy):
        def forward(self, x: Any, mask: Any = None) -> Any:
            self.layers[0].__class__ = nn.Bilinear
            return x

    class Failing(Toy):
        def forward(self, x: Any, mask: Any = None) -> Any:
            raise KeyError("no x")

    reason = "cannot build and run a small `Toy`: ValueError: first line second line"
    assert reason in refused(toy(broken))
    with pytest.raises(ArchError, match=f"{reason}$"):
        toy(broken).actual()
    assert "no inputs are known for `x`, `mask`" in refused(toy(inputs=none))
    assert "a call changes its attribute `layers.0`" in refused(toy(Switching))
    assert "KeyError: 'no x'" in refused(toy(Failing))
    assert next(toy().actual().parameters()).is_meta


# Variations -----------------------------------------------------------------------------------------------------------


def test_variations_of_an_architecture() -> None:
    usual = toy()
    assert [choices.are_apart for choices in separate_part_sizes(usual).choices] == [True] * 3
    assert separate_part_sizes(usual).choices[1].heads == (16, 8, 32) and separate_part_sizes(usual).choices[
        0
    ].heads == (6, 4, 12)
    assert with_more_heads(usual) is None
    more = with_more_heads(toy(num_key_value_heads=24))
    assert more is not None and more.choices[0].heads == (12, 8, 24)
    assert with_more_heads(toy(num_key_value_heads=12)) is None
    assert [choices.layers for choices in resize_and_relayer(usual).choices] == [(5, 3, 4), (7, 3, 5), ()]
    light = with_fewer_parameters(usual)
    assert light is not None and (light.choices[1].scale, light.choices[1].width) == (2, 5)
    assert with_fewer_parameters(light) is None and with_fewer_parameters(with_fewer_layers(usual)) is None
    every = unrolled(usual)
    assert every is not None and [choices.layers for choices in every.choices] == [()] * 3
    assert unrolled(toy(num_hidden_layers=80)) is not None and unrolled(toy(num_hidden_layers=81)) is None
    assert uncropped(usual) is None
    whole = uncropped(toy(image_size=224))
    assert whole is not None and whole.proposals and not any(item.is_cropped for item in whole.proposals)


def test_longer_inputs_of_the_same_kind() -> None:
    def inputs(_: Any, turn: int) -> Iterator[dict[str, Any]]:
        yield from ({"x": torch.ones(3, size)} for size in (5, 4, 8, 5, 9))
        yield {"y": torch.ones(3, 20)}

    longer = with_longer(toy(inputs=inputs), {"x": torch.ones(3, 5)})
    assert [given["x"].shape[1] for given in longer.inputs(Toy({"hidden_size": 1, "num_hidden_layers": 0}), 0)] == [
        8,
        9,
    ]


# Configurations of transformers ---------------------------------------------------------------------------------------


class Settings(SimpleNamespace):
    model_type = "toy"

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Settings":
        if fields.get("hidden_size") == 0:
            raise ValueError("no width\nmore of it")
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_experts_implementation":
            raise AttributeError(name)
        super().__setattr__(name, value)


class Model(nn.Module):
    """A model that knows no `sdpa`."""

    def __init__(self, config: Settings) -> None:
        super().__init__()
        if config._attn_implementation == "sdpa":
            raise ValueError("not supported")
        self.config = config
        self.table = nn.Embedding(config.vocab_size, config.hidden_size)

    def forward(self, input_ids: Any, attention_mask: Any = None) -> Any:
        return self.table(input_ids)


class Head(Model):
    pass


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stand-in for `transformers`, which takes seconds to be imported."""
    found: Any = ModuleType("transformers")
    found.__version__ = "0.1"
    found.CONFIG_MAPPING = {"toy": Settings, "bare": Other}
    found.MODEL_MAPPING = {Settings: (Model, Head)}
    found.Head, found.version = Head, 3
    found.logging = SimpleNamespace(set_verbosity_error=lambda: None)
    monkeypatch.setitem(sys.modules, "transformers", found)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    return found


class Other(Settings):
    model_type = "bare"


SMALL = {"model_type": "toy", "vocab_size": 50, "hidden_size": 16}


@pytest.mark.usefixtures("transformers")
@pytest.mark.parametrize(
    ("architectures", "name"), [(None, "Model"), (["Head"], "Head"), (["Missing", "version", "Head"], "Head")]
)
def test_the_class_of_a_configuration(architectures: Any, name: str) -> None:
    found = configuration.architecture_from({**SMALL, "architectures": architectures})
    assert found.name == name and found.fields["use_cache"] is False and found.fields["hidden_size"] == 16
    module: Any = found.build({"hidden_size": 8})
    assert module.table.weight.shape == (50, 8)
    assert module.config._attn_implementation == "eager" and module.config.use_pretrained_backbone is False
    first, other = (next(found.inputs(module, turn)) for turn in (0, 1))
    assert first["input_ids"].shape == (3, 11) and other["attention_mask"].shape == (2, 14)


@pytest.mark.usefixtures("transformers")
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "missing `model_type` in the configuration"),
        ({"model_type": "tea"}, "transformers 0.1 has no model type `tea`"),
        ({"model_type": "bare"}, "transformers 0.1 has no model for `bare`"),
        ({**SMALL, "hidden_size": 0}, "invalid configuration: ValueError: no width$"),
    ],
)
def test_configurations_that_are_not_known(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ArchError) as caught:
        configuration.architecture_from(fields)
    assert re.search(reason, str(caught.value).splitlines()[0])


@pytest.mark.usefixtures("transformers")
def test_files_of_configurations(tmp_path: Any) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "toy", "vocab_size": 50, "hidden_size": 16}')
    assert configuration.is_configuration(str(tmp_path)) and configuration.is_configuration("other.json")
    assert not configuration.is_configuration(str(tmp_path / "other"))
    for text in (str(path), str(tmp_path)):
        assert configuration.architecture_of(text).fields["vocab_size"] == 50
    path.write_text('{"model_type": "toy", "vocab_size": 50, "limits": [0.0, {"__float__": "Infinity"}, -Infinity]}')
    assert configuration.architecture_of(str(path)).fields["limits"] == [0.0, math.inf, -math.inf]
    path.write_text("[1]")
    with pytest.raises(ArchError, match="expected an object in"):
        configuration.architecture_of(str(path))
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ArchError):
        configuration.architecture_of(str(path))


def test_modules_beside_a_configuration_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lift_command, "lift_with_notes", lambda *_: ("lifted", ()))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "modules.json").write_text('[{"path": "1_LSTM", "type": "own.LSTM"}]')
    for source in (tmp_path, tmp_path / "config.json"):
        assert main(["lift", str(source)]) == 0
        assert capsys.readouterr().err.startswith("warning[not-included]: module `1_LSTM` of ")
