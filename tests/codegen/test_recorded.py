"""The PyTorch modules compute what the real models compute: recorded weights in, recorded outputs out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from recorded import PARTS, SEQUENCES, WHOLE, Case, Record, applications, hidden_states, load, record, recorded_names
from reference import Array

import archspec

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow


def built(case: Case, expected: Record, dtype: Any) -> Any:
    """The module with the recorded weights; every name of its state must be among them, or tied to one."""
    model = load(case)
    module = archspec.to_torch(model).to(dtype)
    names, tied = recorded_names(case, model), expected.meta["tied"]
    state = module.state_dict()
    given = {name: expected.weights[tied.get(names[name], names[name])] for name in state}
    module.load_state_dict({name: torch.tensor(value, dtype=state[name].dtype) for name, value in given.items()})
    return module.eval()


def run(case: Case, expected: Record, dtype: Any) -> dict[str, Array]:
    """The outputs by name, and hidden states from hooks on the modules whose outputs they are."""
    module = built(case, expected, dtype)
    trace: dict[str, tuple[Array]] = {}
    hooks: list[Any] = []

    def keep(name: str) -> Callable[[Any, Any, Any], None]:
        def hook(module: Any, given: Any, output: Any) -> None:
            again = sum(key.partition("@")[0] == name for key in trace) + 1
            trace[name if again == 1 else f"{name}@{again}"] = (output.numpy(),)

        return hook

    for name in {part.partition("@")[0] for state in applications(case).values() for part in state.split(" + ")}:
        hooks.append(module.get_submodule(name).register_forward_hook(keep(name)))
    inputs = {"token_type_ids": np.zeros_like(next(iter(expected.inputs.values()))), **expected.inputs}
    known = load(case).inputs
    with torch.no_grad():
        given = {name: torch.tensor(value) for name, value in inputs.items() if name in known}
        outputs = module(**{name: x.to(dtype) if x.is_floating_point() else x for name, x in given.items()})
    for hook in hooks:
        hook.remove()
    return {name: value.numpy() for name, value in outputs._asdict().items()} | hidden_states(case, trace)


@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_every_recorded_output_in_float32(case: Case) -> None:
    expected = record(case.family)
    found = expected.differences(run(case, expected, torch.float32))
    assert set(found) == set(expected.outputs)
    assert max(found.values()) <= 3 * expected.meta["f64_max_abs_diff"]


@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_in_float64_the_difference_is_that_of_the_record(case: Case) -> None:
    expected = record(case.family)
    found = expected.differences(run(case, expected, torch.float64))
    assert set(found) == set(expected.outputs)
    assert expected.is_scale(max(found.values()), max(case.rounding, 1e-9))


@pytest.mark.parametrize("case", PARTS, ids=str)
def test_models_without_the_recorded_heads(case: Case) -> None:
    expected = record(case.family)
    outputs = run(case, expected, torch.float64)
    found = expected.differences({name: v for name, v in outputs.items() if name in expected.outputs})
    assert sum("hidden_" in name and name[-1].isdigit() for name in found) == len(case.states) + len(case.decoder)
    assert max(found.values()) <= 3 * expected.meta["f64_max_abs_diff"]


@pytest.mark.parametrize("case", [case for case in SEQUENCES if not case.decoder], ids=str)
def test_padding_does_not_matter_even_where_a_token_sees_nothing_else(case: Case) -> None:
    """With a window, a token deep in the padding sees no key at all; nothing of it may reach the others."""
    expected = record(case.family)
    module = built(case, expected, torch.float64)
    row = {name: torch.tensor(value[:1, :8]) for name, value in expected.inputs.items()}
    padded = {name: torch.nn.functional.pad(value, (0, 10)) for name, value in row.items()}
    padded["input_ids"][:, 8:] = load(case).hyperparameters.get("padding") or 0
    with torch.no_grad():
        alone, together = module(**row), module(**padded)
    for one, other in zip(alone, together, strict=True):
        compared = other[:, :8] if other.shape[1:2] == (18,) else other
        assert torch.allclose(one, compared, rtol=0, atol=1e-12)
