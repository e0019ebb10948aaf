"""What `build` writes for bundled models is lifted back to specs of the same models, which are not longer."""

import inspect
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from building import build
from paths import FAMILIES
from recorded import WHOLE

import archspec
from archspec import testing

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

ROUND_TRIPS: dict[str, set[str]] = {
    **{"bert": set(), "gpt2": set(), "llama": set(), "vit": set()},
    **{"bloom": set(), "gpt_neox": set(), "mixtral": set(), "opt": set(), "phi3": set(), "qwen3": set()},
    "falcon": {"norms"},  # nothing depends on it in the code
    "gemma2": {"period"},
    "roberta": {"types", "padding"},
}
"""The families, with the hyperparameters that a lifted spec does not follow."""

OFTEN = {"bert", "bloom", "gpt2", "llama", "mixtral", "vit"}
"""The families of the slow tests; the others are for `-m exhaustive`."""

MAX_RATIO = 1.2
"""Length of a lifted spec, relative to the definitions of the bundled one that the model uses."""


def definitions(text: str) -> dict[str, str]:
    """Return the definitions in a spec by name, without comments, indentation and empty lines."""
    lines = [line.strip() for line in text.splitlines()]
    code = "\n".join([line for line in lines if line and not line.startswith("#")])
    parts = re.split(r"^(?=(?:block|layer|fn|dim|model|import|export) )", code, flags=re.M)
    return {match[1]: part for part in parts if (match := re.match(r"(?:block|layer|fn) (\w+)", part))}


@pytest.mark.parametrize(
    "family", [pytest.param(name, marks=() if name in OFTEN else pytest.mark.exhaustive) for name in ROUND_TRIPS]
)
def test_code_of_a_spec_is_lifted_to_the_spec(family: str, tmp_path: Path) -> None:
    case = next(case for case in WHOLE if case.family == family)
    model = archspec.load(case.spec, **case.overrides)
    path, code = tmp_path / "small.py", build(case.spec, **case.overrides)
    path.write_text(code)
    root = type(runpy.run_path(str(path))["build"]())
    values: dict[str, Any] = {name: model.hyperparameters[name] for name in inspect.signature(root).parameters}
    arguments = ", ".join([f"{name}={name}" for name in values])
    defaults = ", ".join([f"{name}={value}" for name, value in values.items()])
    path.write_text(f"{code}\n\ndef small({defaults}):\n    return {root.__name__}({arguments}).eval()\n")
    inputs = [f"--input={name}={type.dtype}[{','.join(map(str, type.shape))}]" for name, type in model.inputs.items()]
    result = testing.run("lift", f"{path}:small", *inputs)
    assert not result.status, result.errors
    lifted = archspec.loads(result.output)
    assert archspec.equivalent(model, lifted)
    assert lifted.hyperparameters == {name: values[name] for name in values if name not in ROUND_TRIPS[family]}
    bundled = {name: text for file in FAMILIES for name, text in definitions(file.read_text()).items()}
    used = [text for name, text in bundled.items() if re.search(rf"^(class|def) {name}\b", code, re.M)]
    assert sum(map(len, definitions(result.output).values())) <= MAX_RATIO * sum(map(len, used))
