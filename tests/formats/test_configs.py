"""Configurations against the live models of `transformers`: the same tensors, and the same outputs in float64.

Random small configurations of every family, written by `save_pretrained`.
"""

from pathlib import Path

import pytest
from drawn_configs import TYPES, Drawn, torch
from live import Pair, compare_published
from recorded_families import records

pytestmark = pytest.mark.slow

torch.set_num_threads(1)  # the models are tiny

CONFIGURATIONS, EACH, RECORDED = 25, 3, records()
CASES = [
    pytest.param(type, seed, marks=pytest.mark.exhaustive if seed >= (1 if type in RECORDED else EACH) else ())
    for type in TYPES
    for seed in range(CONFIGURATIONS)
]


@pytest.mark.parametrize(("type", "seed"), CASES)
def test_tensors_and_outputs_are_those_of_the_live_model(type: str, seed: int, tmp_path: Path) -> None:
    pair = Pair(Drawn(type, seed, tmp_path), seed)
    pair.compare()
    compare_published(pair)
