"""Pictures of small models: the specs under `tests/golden/pictures`, as `graph --to svg` draws them."""

from collections.abc import Callable

import pytest
from paths import GOLDEN

from archspec import testing

PICTURES = {
    "plan": "plan.arch --level op",
    "plan-whole": "plan.arch --depth 0 --color bytes --batch 2 --seq 8 --dim keys=3",
    "streams": "streams.arch --level op",
    "streams-flops": "streams.arch --color flops --batch 2 --seq 8",
    "streams-params": "streams.arch --depth 1 --no-fold --color params --dark",
    "streams-whole": "streams.arch --depth 0",
    "marks-op": "marks.arch --level op",
    "marks-block": "marks.arch --depth 1",
    "sides-op": "sides.arch:sides --level op",
    "sides-1": "sides.arch:sides --depth 1",
    "sides-2": "sides.arch:sides --depth 2",
    "columns-2": "sides.arch:columns --depth 2",
    "labels": "labels.arch --depth 1",
    "repeats-1": "repeats.arch --depth 1",
    "opened": "opened.arch",
    "opened-all": "opened.arch --open",
    "repeats-2": "repeats.arch --depth 2",
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(name: str, golden: Callable[[str, str], None]) -> None:
    spec, *options = PICTURES[name].split()
    result = testing.run("graph", f"{GOLDEN}/pictures/{spec}", "--to", "svg", *options)
    assert result.status == 0, result.errors
    golden(f"pictures/{name}.svg", result.output)
