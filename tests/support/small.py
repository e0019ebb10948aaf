"""Small specs for tests: compiling a text, and what to ask of the result."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

import archspec
from archspec import Diagnostic, Model
from archspec.core.resources import specs_root
from archspec.formats.configs.names import Names, find_names
from archspec.pipeline.model import get_compilation
from archspec.pipeline.tables import load_table as load_table

DENSE = """
layer Dense(n, m = n, bias = true)(x [..., n]) -> [..., m] {
  weight: param [m, n]
  bias:   param [m] if bias
  return linear(x, .weight, .bias)
}
"""
SCALE = """
layer Scale(n)(x [..., n]) -> [..., n] {
  weight: param [n]
  return x * .weight
}
"""


def complete(text: str) -> str:
    """Return a text with a model. If it has none, the last layer or block is one, with its defaults."""
    if "\nmodel " in text:
        return text
    last = [line.split()[1] for line in text.splitlines() if line.startswith(("layer ", "block "))][-1]
    return f'{text}\nmodel "it" = {last.partition("(")[0]}()\n'


def load(text: str, **overrides: Any) -> Model:
    """Compile a text, as `complete` returns it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spec.arch"
        path.write_text(complete(text), encoding="utf-8")
        return archspec.load(str(path), **overrides)


def findings(text: str, **overrides: Any) -> list[Diagnostic]:
    """What is wrong with a text."""
    with pytest.raises(archspec.ArchError) as caught:
        load(text, **overrides)
    return caught.value.diagnostics


def codes(text: str, **overrides: Any) -> list[str]:
    """The codes of what is wrong with a text."""
    return [diagnostic.code for diagnostic in findings(text, **overrides)]


def shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """The parameters, in program order."""
    return {tensor.name: tensor.shape for tensor in model.tensors}


def layers(model: Model) -> list[str]:
    """The applications of layers, in program order."""
    return [node for node, data in model.graph().nodes(data=True) if data["kind"] == "layer"]


def operations(model: Model, level: str = "layer") -> list[str]:
    """The functions and operations applied, in program order."""
    return [data["type"] for _, data in model.graph(level).nodes(data=True) if data["kind"] in ("op", "fn")]


def output(model: Model, name: str = "output") -> list[str]:
    """The shape of an output, sizes as text."""
    return [str(size) for size in model.outputs[name].shape]


def live_form(spec: Any, **overrides: Any) -> dict[str, Any]:
    """Overrides with which a model has the tensors of the live one, which may join or divide those of checkpoints."""
    joined = archspec.load(spec, **overrides).hyperparameters.get("joined")
    return overrides if joined is None else {**overrides, "joined": not joined}


def live_names(model: Model) -> dict[str, str]:
    """The names of tensors and buffers, and those in the live model of `transformers`, by the list of the family."""
    family = [*find_names(get_compilation(model).compiled.module.type, specs_root()), Names(())][0]
    found = {stored.name: family.live(stored.name) for stored in (*model.tensors, *model.buffers)}
    assert len(set(found.values())) == len(found)
    return found
