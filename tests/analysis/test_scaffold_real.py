"""Scaffolds of checkpoints that transformers writes: each compiles, is the checkpoint exactly, and is short."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from checkpoints import read
from paths import DATA

import archspec
from archspec import testing

pytestmark = pytest.mark.slow
torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

MODELS: dict[str, dict[str, Any]] = yaml.safe_load((DATA / "scaffolds.yaml").read_text())


@pytest.mark.parametrize("name", MODELS)
def test_what_transformers_writes(tmp_path: Path, name: str) -> None:
    config, options, most = (MODELS[name][key] for key in ("config", "options", "most"))
    torch.manual_seed(0)
    theirs = getattr(transformers, name)(getattr(transformers, config)(**options))
    theirs.save_pretrained(tmp_path)
    found = proven(tmp_path, tmp_path / "model.safetensors", most)
    assert archspec.scaffold(tmp_path).split("\n")[1:] == found.split("\n")[1:]
    torch.save(theirs.state_dict(), tmp_path / "all.bin")
    proven(tmp_path, tmp_path / "all.bin", most)
    model = archspec.load(str(tmp_path / "scaffold.arch"))
    buffers = {n: b for n, b in theirs.named_buffers() if n in theirs.state_dict() and b.is_floating_point()}
    unknown = sum(b.numel() for name, b in buffers.items() if ".running_" not in name)  # a file does not tell
    assert model.params.total == theirs.num_parameters() + unknown


def proven(folder: Path, path: Path, most: int) -> str:
    text = archspec.scaffold(path)
    spec = folder / "scaffold.arch"
    spec.write_text(text)
    assert testing.check(str(spec)) == []
    assert archspec.verify(str(spec), path).is_exact
    model = archspec.load(str(spec))
    ours = {t.name: t.shape for t in model.tensors} | {b.name: b.shape for b in model.buffers}
    assert ours == {entry.name: entry.shape for entry in read(str(path)).entries}
    assert text.count("\n") <= most
    return text
