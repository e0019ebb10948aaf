"""What is computed from weights alone is neither work of a forward pass nor an activation."""

from typing import Any

import pytest
from paths import read_spec

import archspec

NET = read_spec("cost_weights_net")
PLAIN = "linear(x, %s)"
BATCH, SEQ = 2, 5
MACS, BYTES = BATCH * SEQ * 4 * 6, BATCH * SEQ * 6 * 4
JOINED = "concat(axis = 0)(.a, .b)"


def test_weights_that_pytorch_saves_are_no_activations() -> None:
    pytest.importorskip("torch")

    def saved(weight: str) -> Any:
        activations = archspec.cost(archspec.loads(NET % (PLAIN % weight)), BATCH, SEQ, attention="math").activations
        assert activations is not None
        return activations.bytes

    assert saved(JOINED) == saved(f"exp({JOINED} * 3)") == BATCH * SEQ * 4 * 4
    assert saved(f"exp({JOINED} + sum(axis = [0, 1])(x))") == BATCH * SEQ * 4 * 4 + 6 * 4 * 4
