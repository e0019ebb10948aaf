"""Names as the hub has them: bundled models, the local cache, and a server that behaves as the hub does."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import checkpoints
import pytest
from hub_server import COMMIT, Hub, serving
from paths import ROOT
from small import load_table

import archspec

SMALL = {"model_type": "bert", "num_hidden_layers": 1, "vocab_size": 99}
TOTAL = 8_150_784


def safetensors(shapes: dict[str, tuple[int, ...]], more: str = "") -> bytes:
    header: dict[str, Any] = {"__metadata__": {"made by": "a test" + more}}
    end = 0
    for name, shape in shapes.items():
        size = 4
        for n in shape:
            size *= n
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(end)


GGUF_LAYER = {"attn_q": (32, 32), "attn_k": (16, 32), "attn_v": (16, 32), "attn_output": (32, 32), "attn_norm": (32,)}
GGUF_LAYER |= {"ffn_gate": (48, 32), "ffn_up": (48, 32), "ffn_down": (32, 48), "ffn_norm": (32,)}


def bert() -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.shape for tensor in archspec.load(SMALL).tensors}


# The table ------------------------------------------------------------------------------------------------------------


def test_a_name_on_the_hub_is_the_bundled_model() -> None:
    for name in ("google-bert/bert-base-uncased", "bert-base-uncased"):
        assert load_table(name)[0] == load_table("bert-base-uncased")[0]
        assert archspec.load(name, layers=2).name == "bert-base-uncased"


def test_another_owner_is_not_the_bundled_model() -> None:
    with pytest.raises(archspec.ArchError, match="unknown model `somebody/bert-base-uncased`"):
        archspec.load("somebody/bert-base-uncased")


def test_a_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "google-bert" / "bert-base-uncased").mkdir(parents=True)
    (tmp_path / "google-bert" / "bert-base-uncased" / "config.json").write_text(json.dumps(SMALL))
    monkeypatch.chdir(tmp_path)
    assert archspec.load("google-bert/bert-base-uncased").params.total == TOTAL


# The local cache ------------------------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def fill(cache: Path, id: str, files: dict[str, bytes], commit: str = COMMIT) -> Path:
    folder = cache / f"models--{id.replace('/', '--')}"
    snapshot = folder / "snapshots" / commit
    for path in (folder / "refs", folder / "blobs", snapshot):
        path.mkdir(parents=True, exist_ok=True)
    (folder / "refs" / "main").write_text(commit)
    for name, data in files.items():
        (folder / "blobs" / f"{commit}-{name}").write_bytes(data)
        (snapshot / name).unlink(missing_ok=True)
        (snapshot / name).symlink_to(folder / "blobs" / f"{commit}-{name}")
    return folder


def test_a_model_of_the_cache(cache: Path) -> None:
    fill(cache, "me/tiny", {"config.json": json.dumps(SMALL).encode()})
    before = sorted((path, path.lstat().st_mtime_ns) for path in cache.rglob("*"))
    model = archspec.load("me/tiny")
    assert (model.name, model.params.total) == ("tiny", TOTAL)
    assert archspec.import_config("me/tiny").startswith("# BertModel, from config.json.\n")
    assert load_table("me/tiny")[0].params.total == TOTAL
    assert sorted((path, path.lstat().st_mtime_ns) for path in cache.rglob("*")) == before


def test_a_newer_commit_is_seen(cache: Path) -> None:
    for layers, commit in ((1, "a" * 40), (2, "b" * 40), (1, "a" * 40)):
        fill(cache, "me/tiny", {"config.json": json.dumps(SMALL | {"num_hidden_layers": layers}).encode()}, commit)
        for total in (load_table("me/tiny")[0].params.total, archspec.load("me/tiny").params.total):
            assert total == TOTAL + (layers - 1) * 7_087_872


def test_the_oldest_names_have_no_owner(cache: Path) -> None:
    fill(cache, "google-bert/bert-base-cased", {"config.json": json.dumps(SMALL).encode()})
    fill(cache, "t5-large", {"config.json": json.dumps({"model_type": "t5", "num_layers": 1}).encode()})
    assert archspec.load("bert-base-cased").name == "bert-base-cased"
    assert archspec.load("t5-large").name == "t5-large"
    with pytest.raises(archspec.ArchError, match="did you mean"):
        archspec.load("bert-base-case")


@pytest.mark.parametrize("commit", ["", "..", "../../../outside", "A" * 40, "a" * 41, "\xff"])
def test_a_reference_stays_in_the_cache(commit: str, cache: Path) -> None:
    folder = fill(cache, "me/tiny", {"config.json": json.dumps(SMALL).encode()})
    (cache.parent / "outside").mkdir()
    (cache.parent / "outside" / "config.json").write_text(json.dumps(SMALL))
    (folder / "refs" / "main").write_bytes(commit.encode("latin-1"))
    with pytest.raises(archspec.ArchError, match="not in the local cache"):
        archspec.load("me/tiny")


def test_a_checkpoint_of_the_cache(cache: Path) -> None:
    fill(cache, "me/tiny", {"config.json": json.dumps(SMALL).encode(), "model.safetensors": safetensors(bert())})
    found = archspec.verify("me/tiny", "me/tiny")
    assert found.is_exact and found.checkpoint == "me/tiny"


def test_a_gguf_file_of_the_cache(cache: Path) -> None:
    fill(cache, "me/tiny", {"q.gguf": checkpoints.gguf({"token_embd.weight": (9, 4)}, {})})
    assert load_table("me/tiny/q.gguf")[0].params.total == 36
    with pytest.raises(archspec.ArchError, match=r"unknown checkpoint `me/tiny/other\.gguf`") as caught:
        archspec.verify("bert-base-uncased", "me/tiny/other.gguf")
    assert "not in the local cache" in str(caught.value)


def refusal() -> tuple[str | None, list[str]]:
    """The help and the notes for a model that is nowhere."""
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load("me/none")
    (found,) = caught.value.diagnostics
    assert found.code == "unknown-model"
    return found.help, [note.text for note in found.notes]


def test_the_error_says_what_was_tried(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    help, notes = refusal()
    assert notes == [
        "neither a file nor a bundled model: `me/none`",
        f"not in the local cache of the hub: {cache}",
        "not from the hub (https://huggingface.co): the package huggingface_hub is not installed",
    ]
    assert help == "run `pip install 'archspec-dsl[hub]'`"


def test_names_of_files_begin_with_a_dot(cache: Path) -> None:
    pytest.importorskip("huggingface_hub")
    help, notes = refusal()
    assert help == "to name a file or directory, write `./me/none`"
    assert len(notes) > 2 and "not installed" not in notes[2]


def test_an_audit_reads_no_hub(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(cache, "me/tiny", {"config.json": json.dumps(SMALL).encode()})
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text("title: t\nlines:\n  - {name: n, spec: me/tiny, says: 8150784, select: '*'}\n")
    with pytest.raises(archspec.ArchError) as caught:
        archspec.audit("a.yaml")
    assert "hub" not in str(caught.value)


# The hub --------------------------------------------------------------------------------------------------------------


# Reading, without a network -------------------------------------------------------------------------------------------


@pytest.fixture
def hub() -> Iterator[Hub]:
    pytest.importorskip("huggingface_hub")
    with serving(Hub()) as hub:
        hub.models["me/tiny"] = {"config.json": json.dumps(SMALL).encode()}
        yield hub


def run(hub: Hub, home: Path, *command: str) -> tuple[int, str]:
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0", "NO_PROXY": "*"}
    environment |= {"PYTHONPATH": str(ROOT), "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "archspec", *command], env=environment, capture_output=True, text=True, timeout=120
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_configuration_of_the_hub(hub: Hub, tmp_path: Path) -> None:
    for command in (["count"], ["import"], ["count"]):
        status, said = run(hub, tmp_path, *command, "me/tiny")
        assert status == 0 and re.search("^(tiny|# BertModel)", said)
    assert len([path for method, path, _ in hub.requests if method == "GET" and path.endswith("config.json")]) == 1


@pytest.mark.slow
def test_what_the_hub_does_not_have(hub: Hub, tmp_path: Path) -> None:
    hub.gated.add("me/gated")
    hub.models["me/empty"] = {}
    hub.models["me/large"] = {"config.json": b" " * (5 * 2**20)}
    for name, reason in {
        "me/none": "no public model has this name",
        "me/gated": "the model is gated",
        "me/empty": "the model has no file config.json",
        "me/large": "config.json exceeds the size limit of 4,096 KiB",
    }.items():
        status, said = run(hub, tmp_path, "count", name)
        assert status == 2 and f"not from the hub ({hub.url}): {reason}" in said
    assert hub.sent < 2**20
    hub.url = "http://127.0.0.1:9"
    status, said = run(hub, tmp_path, "count", "me/tiny")
    assert status == 2 and "the server cannot be reached" in said


@pytest.mark.slow
def test_only_the_header_of_a_checkpoint_is_read(hub: Hub, tmp_path: Path) -> None:
    hub.models["me/tiny"]["model.safetensors"] = safetensors(bert())
    assert run(hub, tmp_path, "verify", "me/tiny", "me/tiny")[0] == 0
    ranges = [asked for _, path, asked in hub.requests if path.startswith("storage")]
    assert ranges == ["bytes=0-65535"] and hub.sent < 100_000
    hub.models["me/tiny"]["model.safetensors"] = safetensors(bert(), "x" * 100_000)  # a header of several requests
    status, said = run(hub, tmp_path, "verify", "me/tiny", "me/tiny")
    assert (status, "me/tiny exactly matches tiny" in said) == (0, True)
    hub.has_ranges = False
    assert run(hub, tmp_path, "verify", "me/tiny", "me/tiny")[0] == 0


@pytest.mark.slow
def test_shards_on_the_hub(hub: Hub, tmp_path: Path) -> None:
    tensors = list(bert().items())
    files = {
        "model-00001-of-00002.safetensors": dict(tensors[:9]),
        "model-00002-of-00002.safetensors": dict(tensors[9:]),
    }
    index = {"weight_map": {name: file for file, part in files.items() for name in part}}
    hub.models["me/tiny"] |= {file: safetensors(part) for file, part in files.items()}
    hub.models["me/tiny"]["model.safetensors.index.json"] = json.dumps(index).encode()
    assert run(hub, tmp_path, "verify", "me/tiny", "me/tiny")[0] == 0
    index["weight_map"][tensors[0][0]] = "../../etc/passwd"
    hub.models["me/tiny"]["model.safetensors.index.json"] = json.dumps(index).encode()
    status, said = run(hub, tmp_path / "new", "verify", "me/tiny", "me/tiny")
    assert status == 2 and "not a file in the directory" in said


@pytest.mark.slow
def test_gguf_files_on_the_hub(hub: Hub, tmp_path: Path) -> None:
    shapes = {f"blk.0.{name}.weight": shape for name, shape in GGUF_LAYER.items()}
    shapes |= {"token_embd.weight": (64, 32), "output_norm.weight": (32,), "output.weight": (64, 32)}
    spec = ["llama-3.1-8b", *(f"--set={each}" for each in ("vocab=64", "hidden=32", "layers=1", "heads=4", "ffn=48"))]
    spec += ["--set=groups=2", "--set=size=8"]
    words = {"tokenizer.ggml.tokens": [f"word {i}" for i in range(20_000)]}
    large = checkpoints.gguf(shapes, {"general.architecture": "llama"} | words) + bytes(2**22)
    hub.models["me/tiny-GGUF"] = {"tiny-Q8_0.gguf": large, "README.md": b""}
    for name in ("me/tiny-GGUF", "me/tiny-GGUF/tiny-Q8_0.gguf"):
        hub.requests.clear()
        status, said = run(hub, tmp_path, "verify", spec[0], name, *spec[1:])
        assert (status, "me/tiny-GGUF/tiny-Q8_0.gguf exactly matches llama-3.1-8b" in said) == (0, True), said
        ranges = [asked for _, path, asked in hub.requests if path.startswith("storage")]
        assert ranges == ["bytes=0-65535", "bytes=0-262143", "bytes=0-1048575"]
    assert run(hub, tmp_path, "count", "me/tiny-GGUF/tiny-Q8_0.gguf", "--depth", "1")[0] == 0
    hub.has_ranges = False
    assert run(hub, tmp_path, "verify", spec[0], "me/tiny-GGUF", *spec[1:])[0] == 0
    hub.models["me/tiny-GGUF"]["other.gguf"] = large[:1000]
    status, said = run(hub, tmp_path, "verify", spec[0], "me/tiny-GGUF", *spec[1:])
    assert status == 2 and "2 GGUF files in me/tiny-GGUF" in said
    assert "name one: me/tiny-GGUF/other.gguf, me/tiny-GGUF/tiny-Q8_0.gguf" in said
    status, said = run(hub, tmp_path, "verify", spec[0], "me/tiny-GGUF/other.gguf", *spec[1:])
    assert status == 2 and "file is truncated" in said
    status, said = run(hub, tmp_path, "verify", spec[0], "me/tiny-GGUF/none.gguf", *spec[1:])
    assert status == 2 and "the model has no file none.gguf" in said
    status, said = run(hub, tmp_path, "verify", spec[0], "me/none/none.gguf", *spec[1:])
    assert status == 2 and "no public model has this name" in said


@pytest.mark.slow
def test_parts_of_a_gguf_file_on_the_hub(hub: Hub, tmp_path: Path) -> None:
    layer = {f"blk.0.{name}.weight": shape for name, shape in GGUF_LAYER.items()}
    outer = {"token_embd.weight": (64, 32), "output_norm.weight": (32,)}
    files = {
        f"sub/m-0000{i + 1}-of-00002.gguf": checkpoints.gguf(part, {"split.no": i, "split.count": 2})
        for i, part in enumerate((layer, outer))
    }
    hub.models["me/parts"] = {**files}
    status, said = run(hub, tmp_path, "count", "me/parts/sub/m-00002-of-00002.gguf", "--depth", "0")
    assert status == 0 and "in 11 tensors" in said
    del hub.models["me/parts"]["sub/m-00002-of-00002.gguf"]
    status, said = run(hub, tmp_path, "count", "me/parts/sub/m-00001-of-00002.gguf")
    assert status == 2 and "the model has no file sub/m-00002-of-00002.gguf" in said


@pytest.mark.slow
def test_a_checkpoint_that_is_not_what_it_says(hub: Hub, tmp_path: Path) -> None:
    whole = safetensors(bert())
    for data, said in {
        b"": "too short",
        whole[:-4]: "truncated",
        (10**9).to_bytes(8, "little") + whole[8:]: "exceeds the limit",
        b"<!DOCTYPE html>" + b" " * 70_000: "not a safetensors file",
    }.items():
        hub.models["me/tiny"]["model.safetensors"] = data
        status, text = run(hub, tmp_path, "verify", "bert-base-uncased", "me/tiny")
        assert status == 2 and said in text, text
    del hub.models["me/tiny"]["model.safetensors"]
    status, text = run(hub, tmp_path, "verify", "bert-base-uncased", "me/tiny")
    assert status == 2 and "the model has neither model.safetensors nor" in text
