"""Steps of the code that the tests of hub cannot reach through public names."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import checkpoints
import pytest
import yaml
from paths import ROOT
from test_hub import safetensors

import archspec
from archspec.formats import hub as model_hub
from archspec.formats.checkpoints.hub import read_remote, read_remote_gguf
from archspec.formats.hub import is_id, split_gguf_path

TABLE = yaml.safe_load((Path(str(ROOT / "specs")) / "hub.yaml").read_text())


SMALL = {"model_type": "bert", "num_hidden_layers": 1, "vocab_size": 99}


def bert() -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.shape for tensor in archspec.load(SMALL).tensors}


def test_the_table_names_bundled_models() -> None:
    assert set(TABLE["bundled"].values()) <= set(archspec.models())
    assert all(is_id(name) and name.count("/") == 1 for name in TABLE["bundled"])
    assert all(full.endswith(f"/{name}") and is_id(full) for name, full in TABLE["owners"].items())
    for name, full in TABLE["owners"].items():  # a name has one meaning
        if name in archspec.models():
            assert TABLE["bundled"][full] == name


@pytest.mark.parametrize(
    "name", ["../a", "a/../b", "a//b", "/a/b", "a/b/c", "a--b/c", "a/b\0", "a/.b", "a/" + "b" * 95, "a/b.arch", "é/b"]
)
def test_what_is_no_name(name: str) -> None:
    assert not is_id(name)
    assert is_id("a/" + "b" * 94)
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load(name)
    assert caught.value.diagnostics[0].code in ("missing-file", "unreadable", "unknown-model")


@pytest.mark.parametrize("path", ["a/b", "a/b/../c.gguf", "a/b//c.gguf", "a/b/.c.gguf", "/a/b/c.gguf", "a/b/c.bin"])
def test_what_is_no_gguf_file_of_the_hub(path: str) -> None:
    assert split_gguf_path(path) is None
    assert [split_gguf_path(f"a/b/{'c' * n}.gguf") is None for n in (250, 251)] == [False, True]


class Files:
    """Files of the hub, which are asked for as far as they are read."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.asked: list[int] = []

    def read_start(self, id: str, file: str, length: int = model_hub.DEFAULT_START_BYTES) -> model_hub.FileStart:
        assert id == "me/tiny"
        self.asked.append(length)
        return model_hub.FileStart(self.files[file][:length], len(self.files[file]))


def test_a_long_header_takes_a_second_request(monkeypatch: pytest.MonkeyPatch) -> None:
    long, short = safetensors(bert(), "x" * 100_000), safetensors(bert())
    for data, count in ((short, 1), (long, 2)):
        files = Files({"model.safetensors": data})
        monkeypatch.setattr(model_hub, "read_start", files.read_start)
        found = read_remote("me/tiny")
        assert {entry.name: entry.shape for entry in found.entries} == bert()
        assert len(files.asked) == count


def test_a_file_of_many_words_is_asked_for_in_growing_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"tokenizer.ggml.tokens": [f"word {i}" for i in range(20_000)]}
    data = checkpoints.gguf({"output_norm.weight": (32,)}, {"general.architecture": "llama"} | words)
    files = Files({"tiny.gguf": data + bytes(2**20)})
    monkeypatch.setattr(model_hub, "read_start", files.read_start)
    found = read_remote_gguf("me/tiny", "tiny.gguf")
    assert [entry.shape for entry in found.entries] == [(32,)]
    assert files.asked == [2**16, 2**18, 2**20]
    files = Files({"tiny.gguf": checkpoints.gguf({"output_norm.weight": (32,)}, {"general.architecture": "llama"})})
    monkeypatch.setattr(model_hub, "read_start", files.read_start)
    assert len(read_remote_gguf("me/tiny", "tiny.gguf").entries) == 1
    assert files.asked == [2**16]


def test_no_more_is_read_than_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a server that sends more than what it is asked for."""
    sent: list[bytes] = []

    def parts() -> Iterator[bytes]:
        for _ in range(10):
            sent.append(b"x" * 10)
            yield sent[-1]

    def stream(*given: str, **settings: Any) -> Any:
        asked.append((*given, settings))
        return nullcontext(answer)

    asked: list[Any] = []
    answer = SimpleNamespace(headers={"content-length": "100"}, iter_bytes=parts)
    library = SimpleNamespace(
        utils=SimpleNamespace(build_hf_headers=dict, hf_raise_for_status=lambda answer: None),
        hf_hub_url=lambda id, file: f"{id}/{file}",
        get_session=lambda: SimpleNamespace(stream=stream),
    )
    monkeypatch.setattr(model_hub, "_import_library", lambda: library)
    assert model_hub.read_start("me/tiny", "model.safetensors", 25) == (b"x" * 25, 100)
    assert len(sent) == 3
    headers = {"Range": "bytes=0-24", "Accept-Encoding": "identity"}
    settings = {
        "headers": headers,
        "timeout": model_hub.TIMEOUT_SECONDS,
        "follow_redirects": True,
    }  # files are elsewhere
    assert asked == [("GET", "me/tiny/model.safetensors", settings)]
