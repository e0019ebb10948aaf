"""Steps of the code that the tests of checkpoint files cannot reach through public names."""

from pathlib import Path

import pytest
from checkpoints import SHAPES, shapes, write

from archspec.formats.checkpoints import checkpoint


def test_a_model_that_is_not_in_the_cache_is_read_from_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "snapshot"
    folder.mkdir()
    monkeypatch.setattr(checkpoint, "find_snapshot", lambda id: str(folder))
    monkeypatch.setattr(checkpoint, "read_remote", lambda id: f"remote {id}")
    assert checkpoint._read_hub("some/model") == "remote some/model"
    write(folder / "model.safetensors", SHAPES)
    found = checkpoint._read_hub("some/model")
    assert found.label == "some/model" and shapes(found) == SHAPES
    monkeypatch.setattr(checkpoint, "find_snapshot", lambda id: None)
    assert checkpoint._read_hub("some/model") == "remote some/model"
