"""Configurations against the live models of `transformers`: the same tensors, and the same outputs in float64.

Random small configurations of every family, written by `save_pretrained`.
"""

from pathlib import Path
from typing import Any

import pytest
from drawn_configs import (
    DRAWS,
    TYPES,
    Drawn,
    draw_inputs,
    state_of,
    torch,
)
from small import live_names

import archspec

pytestmark = pytest.mark.slow

torch.set_num_threads(1)  # the models are tiny

CONFIGURATIONS, EACH = 25, 3
CASES = [
    pytest.param(type, seed, marks=pytest.mark.exhaustive if seed >= EACH else ())
    for type in TYPES
    for seed in range(CONFIGURATIONS)
]


def table(tensors: list[tuple[str, tuple[int, ...], Any, bool]]) -> dict[str, tuple[tuple[int, ...], list[str], bool]]:
    """For each name its shape, all names of its tensor, and whether that is trained."""
    groups: dict[Any, list[str]] = {}
    for name, _, same, _ in tensors:
        groups.setdefault(same, []).append(name)
    return {name: (shape, sorted(groups[same]), trainable) for name, shape, same, trainable in tensors}


def test_every_known_type_is_drawn() -> None:
    assert set(DRAWS) == set(TYPES)


@pytest.mark.parametrize(("type", "seed"), CASES)
def test_tensors_and_outputs_are_those_of_the_live_model(type: str, seed: int, tmp_path: Path) -> None:
    drawn = Drawn(type, seed, tmp_path)
    torch.manual_seed(seed)
    live = drawn.live(drawn.config).double().eval()
    model = drawn.load()
    names = live_names(model)
    named = live.named_parameters(remove_duplicate=False)
    theirs = table([(name, tuple(tensor.shape), id(tensor), tensor.requires_grad) for name, tensor in named])
    ours = [(names[t.name], t.shape, names[t.tied_to or t.name], t.trainable) for t in model.tensors]
    assert table(ours) == theirs
    assert model.params.total == sum(p.numel() for p in live.parameters())
    state = live.state_dict()
    stored = {name: tuple(tensor.shape) for name, tensor in live.named_buffers() if name in state}
    assert {names[b.name]: b.shape for b in model.buffers} == stored

    module = archspec.to_torch(model).double().eval()
    with torch.no_grad():
        for tensor in live.parameters():
            tensor.normal_(0.0, 0.3)
        module.load_state_dict(state_of(model, live))
        inputs = draw_inputs(drawn, [*model.inputs])
        found, expected = module(**inputs)._asdict(), live(**inputs)
    assert found
    for name, value in found.items():
        assert value.dtype == torch.float64
        assert value.shape == expected[name].shape
        assert (value - expected[name]).abs().max() <= 1e-6 * max(1.0, float(value.abs().max())), name
