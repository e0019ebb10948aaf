"""Modules of `transformers` are lifted to what the bundled specs of their families compute.

`lift_bundled.yaml` has the published configurations in `tests/data/configs`, each for a family or for a kind of models
in one. Their modules are made small, with sizes that are different, or, if the bundled spec has one hyperparameter for
several fields, with those equal that are equal in the published one (`shared`). Some have other `fields`, so that a
small model is possible, or both have the same inputs, and are `without` older names of fields; those that are
`unrolled` keep all layers and lists of sizes. `with` are hyperparameters of the bundled spec for how modules store
their tensors, and `ratios` are fields that it has in place of sizes. An entry says what does not hold:

- `differs`: the bundled spec has another normal form, for this reason;
- `refused`: the module is not lifted.
"""

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from paths import DATA
from small import live_names

import archspec
from archspec import Model, Polynomial, Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.pipeline.model import get_compilation

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from archspec import equivalent
from archspec.ir.normal.deep_stack import run_with_deep_stack
from archspec.ir.normal.origins import LocationIndex
from archspec.pytorch.lift.api import lift_subject
from archspec.pytorch.lift.sources.architecture import Architecture, subject_of
from archspec.pytorch.lift.sources.configuration import architecture_from
from archspec.pytorch.lift.sources.proposals import CHOICES
from archspec.pytorch.lift.sources.variations import unrolled
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.prove.sides import model_outputs

CONFIGS: dict[str, dict[str, Any]] = yaml.safe_load((DATA / "lift_bundled.yaml").read_text())
OFTEN = {"distilbert-base-uncased-mlm", "gpt2-medium", "vit-base-patch16-224"}
"""The configurations of the slow tests; the others are for `-m exhaustive`."""


def test_every_bundled_family_is_in_the_list() -> None:
    folder = DATA / "configs"
    types = {name: json.loads((folder / f"{name}.json").read_text())["model_type"] for name in CONFIGS}
    assert {*types.values()} == {json.loads(path.read_text())["model_type"] for path in folder.glob("*.json")}


class Pair:
    """A small module of a family to lift, and the bundled spec with its configuration."""

    def __init__(self, name: str, folder: Path) -> None:
        entry = CONFIGS[name]
        path = DATA / "configs" / f"{name}.json"
        whole = architecture_from({**json.loads(path.read_text()), **entry.get("fields", {})})
        proposals = [proposal for proposal in whole.proposals if not (entry.get("shared") and proposal.is_distinct)]
        small = replace(whole, proposals=proposals)
        self.architecture: Architecture = (unrolled(small) or small) if entry.get("unrolled") else small
        given = subject_of(self.architecture)
        self.folder, self.entry = folder, entry
        self.bundled = self._bundled(given, "first")
        second = given.second
        assert second is not None
        self.subject = replace(_with_inputs(given, self.bundled), second=lambda: self._other(second()), actual=None)

    def _other(self, given: Subject) -> Subject:
        return _with_inputs(given, self._bundled(given, "second"))

    def _bundled(self, given: Subject, name: str) -> Model:
        """Return the bundled spec with the configuration of a module."""
        module: Any = given.module
        module.config.architectures = [type(module).__name__]
        module.config.save_pretrained(self.folder)
        path = (self.folder / "config.json").rename(self.folder / f"{name}.json")
        added = {"use_pretrained_backbone", *self.entry.get("without", ())}
        fields: dict[str, Any] = json.loads(path.read_text())
        ratios = {ratio: fields[a] // fields[b] for ratio, (a, b) in self.entry.get("ratios", {}).items()}
        path.write_text(json.dumps(_without({**fields, **ratios}, added)))
        return archspec.load(str(path), **self.entry.get("with", {}))


def _with_inputs(given: Subject, bundled: Model) -> Subject:
    """Return a subject with all inputs that the bundled spec has and `forward` takes, and no others."""
    taken = inspect.signature(given.module.forward).parameters
    types = {name: type for name, type in bundled.inputs.items() if name in taken}
    inputs, others = (
        _completed(_resized(item, types), types) if item is not None else None
        for item in (given.inputs, given.other_inputs)
    )
    assert inputs is not None
    return replace(given, inputs=inputs, other_inputs=others)


def _resized(inputs: Mapping[str, Any], types: Mapping[str, Type]) -> dict[str, Any]:
    """Return inputs in which dimensions that differ have sizes that differ."""
    sizes: dict[Any, int] = {}
    found = dict(inputs)
    for name, type in types.items():
        for axis, size in enumerate(type.shape if name in inputs else ()):
            number = inputs[name].shape[axis]
            if isinstance(size, Polynomial) and size.symbol and size not in sizes:
                sizes[size] = next(other for other in count(number) if other not in sizes.values())
            if size in sizes:
                found[name] = found[name].index_select(axis, torch.arange(sizes[size]) % number)
    return found


def _completed(inputs: Mapping[str, Any], types: Mapping[str, Type]) -> dict[str, Any]:
    """Return inputs of these types: those that are there, and others with zeros, or with ones for masks of tokens."""
    sizes: dict[Any, int] = {}
    for name, value in inputs.items():
        if name in types:
            sizes |= dict(zip(types[name].shape, value.shape, strict=True))
    found: dict[str, Any] = {}
    for name, type in types.items():
        shape: list[Any] = [sizes.get(size, size) for size in type.shape]
        if name in inputs:
            found[name] = inputs[name]
        elif type.dtype != "real" and all(isinstance(size, int) for size in shape):
            number = 1 if name.endswith("mask") else 0
            found[name] = torch.full(shape, number) if type.dtype == "int" else torch.zeros(shape, dtype=torch.bool)
    return found


def _without(fields: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """Return the fields of a configuration, and of those inside of it, without some."""
    kept = {name: value for name, value in fields.items() if name not in names}
    return {name: _without(value, names) if isinstance(value, dict) else value for name, value in kept.items()}


def forms(arrays: Arrays, model: Model, names: Mapping[str, str]) -> dict[str, Array]:
    """The outputs of a model in normal form, with other names of its tensors."""
    stored = arrays.stored

    def renamed(kind: str, name: Any, shape: Any, dtype: str) -> Array:
        return stored(kind, names[name] if kind == "tensor" else name, shape, dtype)

    arrays.stored = renamed  # pyright: ignore[reportAttributeAccessIssue]
    body = get_compilation(model).body
    found = dict(zip(body.named_outputs(), model_outputs(arrays, body, LocationIndex(arrays)), strict=True))
    arrays.stored = stored  # pyright: ignore[reportAttributeAccessIssue]
    return found


def same_form(text: str, bundled: Model) -> bool:
    """Whether a spec has the outputs of a bundled one in normal form. Its dimensions are given the names of those."""
    lifted = archspec.loads(text)
    for name, type in lifted.inputs.items():
        for own, wanted in zip(type.shape, bundled.inputs[name].shape, strict=True):
            text = re.sub(rf"\b{own}\b", f"{wanted}", text) if isinstance(own, Polynomial) else text
    lifted = archspec.loads(text)
    arrays = Arrays()
    own = {tensor.name: tensor.name for tensor in (*lifted.tensors, *lifted.buffers)}
    ours = run_with_deep_stack(lambda: forms(arrays, lifted, own))
    theirs = run_with_deep_stack(lambda: forms(arrays, bundled, live_names(bundled)))
    return bool(theirs) and {output: ours.get(output) for output in theirs} == theirs


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in OFTEN else pytest.mark.exhaustive) for n in CONFIGS])
def test_a_lifted_module_is_the_bundled_spec(name: str, tmp_path: Path) -> None:
    entry = CONFIGS[name]
    if "refused" in entry:
        with pytest.raises(archspec.ArchError):
            lift_subject(Pair(name, tmp_path).subject)
        return
    pair = Pair(name, tmp_path)
    text = lift_subject(pair.subject)
    lifted = archspec.loads(text)
    assert same_form(text, pair.bundled) == ("differs" not in entry)
    assert not re.search(r"\b(part|n|tmp)[0-9]+\b", text)
    follows_its_hyperparameters(text, lifted, pair.architecture)


def follows_its_hyperparameters(text: str, lifted: Model, architecture: Architecture) -> None:
    """A spec with the numbers of a module of other sizes and with more layers is that module."""
    layers = (6, 7, 8) if architecture.choices[0].layers else ()
    deep = CHOICES[1]._replace(layers=layers, vocabulary=131, positions=76)
    module = subject_of(replace(architecture, choices=(deep, *architecture.choices[1:])))
    overrides: dict[str, Any] = {
        name: module.numbers[name] for name in lifted.hyperparameters if name in module.numbers
    }
    if len(overrides) == len(lifted.hyperparameters):  # all are fields
        found = equivalent(archspec.loads(text, **overrides), module.module)
        assert found.verdict != "different", found.reason  # "not proven" where tables are rounded to float32
