"""The models that tests go through everyday stand for all bundled ones."""

from collections.abc import Iterable

import pytest
from bundled import EVERYDAY

import archspec
from archspec.ir.module import Body
from archspec.pipeline.model import get_compilation

LARGE = {"expert_linear", "stack", "topk", "one_hot", "amax", "detach", "role state_space", "role quantizer"}
LARGE |= {"role convolution"}


@pytest.mark.slow
def test_the_everyday_models_use_what_any_bundled_model_uses() -> None:
    """Except those of experts, state spaces, codecs and detectors: their models are large, or have many parts."""
    assert features(archspec.models()) - LARGE <= features(EVERYDAY)


def features(names: Iterable[str]) -> set[str]:
    """The operations of models, and the roles and kinds of their tensors."""
    found: set[str] = set()
    for name in names:
        model = archspec.load(name)
        found |= operations(get_compilation(model).body, set())
        found |= {f"role {tensor.role}" for tensor in model.tensors}
        found |= {
            "tied" if tensor.tied_to else "trainable" if tensor.trainable else "frozen" for tensor in model.tensors
        }
        found |= {"buffer"} if model.buffers else set()
    return found


def operations(body: Body, seen: set[Body]) -> set[str]:
    if body in seen:
        return set()
    seen.add(body)
    own = {call.type for call in body.calls if call.body is None}
    return own.union(*[operations(call.body, seen) for call in body.calls if call.body is not None])
