"""Generated modules of specs drawn at random are proven to be equal to them, or have equal outputs."""

from collections import Counter
from collections.abc import Iterator
from itertools import count, islice

import pytest
from small import load
from torch_attention import attention
from torch_programs import Program

import archspec
from archspec.pipeline.model import get_compilation

torch = pytest.importorskip("torch")

from archspec import equivalent

MOST = 150
"""The limit on the operations of a program, as `torch.export` takes about five milliseconds for each."""


def programs() -> Iterator[tuple[str, archspec.Model]]:
    for seed in count():
        try:
            model = load(Program(seed).text())
        except archspec.ArchError:
            continue  # what the drawn numbers come to is invalid
        if get_compilation(model).body.size <= MOST:
            yield f"Program({seed})", model


def attentions() -> Iterator[tuple[str, archspec.Model]]:
    for seed in count():
        yield f"attention({seed})", load(attention(seed))


def specs() -> Iterator[tuple[str, archspec.Model]]:
    """Two programs, and then a function that is attention or nearly, over and over."""
    drawn, near = programs(), attentions()
    while True:
        yield next(drawn)
        yield next(drawn)
        yield next(near)


def verdicts(first: int, last: int) -> Counter[str]:
    """Count the verdicts on specs; none is different, and what is not proven was refused by `torch.export`."""
    found = Counter[str]()
    for name, model in islice(specs(), first, last):
        compared = equivalent(model, archspec.to_torch(model))
        found[compared.verdict] += 1
        assert compared.verdict in ("equal", "outputs equal"), (name, compared)
        assert compared or "torch.export fails" in compared.reason, (name, compared)
    return found


@pytest.mark.slow
def test_random_specs_are_proven() -> None:
    assert verdicts(0, 24)["equal"] >= 22


@pytest.mark.slow
@pytest.mark.exhaustive
def test_300_random_specs_are_proven() -> None:
    assert verdicts(24, 300)["equal"] >= 255
