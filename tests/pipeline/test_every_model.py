"""Every bundled model can be counted, drawn, costed and built.

Its tensors are compared with those of other software: a recorded table (`test_oracle.py`), or here the live model of
`transformers`.
"""

import json
import re
from typing import Any

import pytest
import yaml
from paths import DATA, ORACLE
from small import live_form, live_names

import archspec
from archspec.testing import main

RECORDED = {path.stem for path in (ORACLE / "tensors").glob("*.json")}
LIVE: dict[str, dict[str, Any]] = yaml.safe_load((DATA / "live_classes.yaml").read_text())

RESIZED = {
    **dict.fromkeys(("transformer-base", "transformer-big"), "transformer-seq2seq"),
    **dict.fromkeys(("mt5-small", "mt5-base"), "t5-v1_1-base"),
    "umt5-base": "umt5-small",
}
"""Those that `transformers` does not have as published, and a recorded one that differs in its sizes only."""


def patterns(model: archspec.Model) -> set[str]:
    """The names of tensors, with `*` for the indices of layers."""
    return {re.sub(r"\b\d+\b", "*", tensor.name) for tensor in model.tensors}


def test_every_model_has_an_oracle() -> None:
    assert {*RECORDED, *LIVE, *RESIZED} == set(archspec.models())
    assert not RECORDED & {*LIVE, *RESIZED}
    for name, recorded in RESIZED.items():
        ours, other = map(archspec.load, (name, recorded))
        assert ours.hyperparameters.keys() == other.hyperparameters.keys()
        assert patterns(ours) == patterns(other)


@pytest.mark.slow
@pytest.mark.parametrize("name", archspec.models())
def test_every_model_is_counted_drawn_costed_and_built(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    params = archspec.load(name).params.total
    for command, found in (
        (["count", name], f"{params:,} parameters"),
        (["graph", name, "--fold", "--to", "svg"], "</svg>"),
        (["graph", name, "--fold", "--to", "json"], '"nodes"'),
        (["cost", name], "FLOPs"),
        (["build", name], "def build("),
    ):
        assert main(command) == 0, command
        assert found in capsys.readouterr().out, command


@pytest.mark.slow
@pytest.mark.parametrize("name", LIVE)
def test_tensors_are_those_of_the_live_model(name: str) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    kind, fields = LIVE[name]["class"], LIVE[name].get("fields", {})
    live_class, fields = getattr(transformers, kind), dict(fields)
    options = {"add_pooling_layer": fields.pop("add_pooling_layer")} if "add_pooling_layer" in fields else {}
    file = fields.pop("configuration", None)
    if file is not None:
        fields |= json.loads((DATA / "configs" / f"{file}.json").read_text())
    with torch.device("meta"):
        live = live_class(live_class.config_class(**fields), **options)
    model = archspec.load(name, **live_form(name))
    names = live_names(model)
    first: dict[int, str] = {}
    theirs: dict[str, tuple[tuple[int, ...], str, bool]] = {}
    for address, tensor in live.named_parameters(remove_duplicate=False):
        theirs[address] = tuple(tensor.shape), first.setdefault(id(tensor), address), tensor.requires_grad
    tied = {names[tensor.name]: names[tensor.tied_to or tensor.name] for tensor in model.tensors}
    alike = {address: min(other for other in tied if tied[other] == tied[address]) for address in tied}
    counted = {address: min(other for other in theirs if theirs[other][1] == theirs[address][1]) for address in theirs}
    assert alike == counted
    ours = {names[tensor.name]: (tensor.shape, tensor.trainable) for tensor in model.tensors}
    assert ours == {address: (shape, trained) for address, (shape, _, trained) in theirs.items()}
    assert model.params.total == sum(tensor.numel() for tensor in live.parameters())
    state = live.state_dict()
    stored = {address: tuple(buffer.shape) for address, buffer in live.named_buffers() if address in state}
    assert {names[buffer.name]: buffer.shape for buffer in model.buffers} == stored
