"""Modules of `transformers` are lifted to what the bundled specs of their families compute."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from small import live_names

import archspec
from archspec.model import Model, internals
from archspec.normal.arrays import Array, Arrays

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from lifted import CONFIGS, subject  # noqa: E402

from archspec.equivalence.places import Places  # noqa: E402
from archspec.equivalence.sides import outputs_of  # noqa: E402
from archspec.equivalence.stack import deeply  # noqa: E402
from archspec.lifting.api import lift_subject  # noqa: E402

OFTEN = {"distilbert", "gpt2", "vit"}
"""The families of the slow tests; the others are for `-m exhaustive`."""

PROVEN = [name for name in CONFIGS if name != "t5"]  # which hides scores by a number instead of leaving them out


def forms(arrays: Arrays, model: Model, names: Mapping[str, str]) -> dict[str, Array]:
    """The outputs of a model in normal form, with other names of its tensors."""
    stored = arrays.stored

    def renamed(kind: str, name: Any, shape: Any, dtype: str) -> Array:
        return stored(kind, names[name] if kind == "tensor" else name, shape, dtype)

    arrays.stored = renamed  # pyright: ignore[reportAttributeAccessIssue]
    body = internals(model).body
    found = dict(zip(body.named_outputs(), outputs_of(arrays, body, Places(arrays)), strict=True))
    arrays.stored = stored  # pyright: ignore[reportAttributeAccessIssue]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in OFTEN else pytest.mark.exhaustive) for n in PROVEN])
def test_the_normal_form_is_that_of_the_bundled_spec(name: str, tmp_path: Path) -> None:
    given = subject(name)
    module: Any = given.module
    module.config.architectures = [type(module).__name__]
    module.config.save_pretrained(tmp_path)
    bundled = archspec.load(str(tmp_path / "config.json"))
    for inputs in (given.inputs, given.other_inputs):
        assert isinstance(inputs, dict)
        for missing in bundled.inputs.keys() - inputs.keys():
            like = inputs["decoder_input_ids" if missing.startswith("decoder_") else "input_ids"]
            inputs[missing] = torch.ones_like(like) if missing.endswith("mask") else torch.zeros_like(like)
    text = lift_subject(given)
    lifted = archspec.loads(text)
    assert lifted.inputs == bundled.inputs
    arrays = Arrays()
    ours = deeply(lambda: forms(arrays, lifted, {tensor.name: tensor.name for tensor in lifted.tensors}))
    theirs = deeply(lambda: forms(arrays, bundled, live_names(bundled)))
    assert theirs and {output: ours[output] for output in theirs} == theirs
