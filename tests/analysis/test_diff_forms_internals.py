"""Steps of the code that the tests of diff forms cannot reach through public names."""

import pytest
from small import load
from test_diff_forms import BASE, spelled

import archspec
from archspec.analysis.diff import normal_forms


@pytest.mark.parametrize("limit", ["MAX_EXPANDED", "MAX_EXPRESSIONS"])
def test_what_is_too_large_is_reported_as_before_and_said_so(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normal_forms, limit, 20)
    found = archspec.diff(BASE, load(spelled("a layer divided otherwise")))
    assert found.operations and found.stopped
    assert "not all operations could be compared by their normal forms: some listed operations may be equal" in str(
        found
    )
