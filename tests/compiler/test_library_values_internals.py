"""Steps of the code that the tests of library values cannot reach through public names."""

from collections.abc import Sequence

import pytest
from bundled import groups
from paths import SPECS

import archspec
from archspec.ir.module import Body
from archspec.pipeline.model import get_compilation

EXAMPLES = SPECS / "std" / "examples.arch"


def body_of(spec: str) -> Body:
    return get_compilation(archspec.load(spec)).body


def idle(body: Body, seen: set[Body]) -> list[str]:
    """Places of applications in a body, however deep, whose results nothing uses."""
    if body in seen:
        return []
    seen.add(body)
    operands = [*(o for call in body.calls for _, o in call.inputs), *(o for _, o in body.outputs)]
    used = {operand for operand in operands if isinstance(operand, int)}
    found: list[str] = []
    for call in body.calls:
        results = range(call.first, call.first + sum(type is not None for type in call.outputs))
        is_idle = not used.intersection(results) and call.type != "detach"  # which computes nothing
        found += [] if not is_idle else [f"{call.type} at {call.span}"]
        found += idle(call.body, seen) if call.body is not None else []
    return found


UNUSED = "no_scaling at specs/text/deepseek_v4.arch"
"""Rotations for a kind of layers that the model does not have."""


@pytest.mark.parametrize("models", groups())
def test_nothing_is_computed_in_vain(models: Sequence[str]) -> None:
    examples = [f"{EXAMPLES}:{name}" for name in ("small-decoder", "small-vision", "small-speech")]
    seen: set[Body] = set()
    places = [place for spec in [*models, *examples] for place in idle(body_of(spec), seen)]
    assert [place for place in places if not place.startswith(UNUSED)] == []
