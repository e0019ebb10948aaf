"""Checkpoints on the hub, whose files are those of a dictionary: what is requested, and what is read of it."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archspec import ArchError
from archspec.formats import hub
from archspec.formats.checkpoints import hub as checkpoint_hub
from archspec.formats.checkpoints import safetensors as safetensors_headers
from archspec.formats.checkpoints.quantized import unpack_quantized
from archspec.formats.hub import FileStart, HubFileNotFoundError, HubUnavailableError


def safetensors(*names: str, padding: int = 0) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"pad": "x" * padding}}
    for i, name in enumerate(names):
        header[name] = {"dtype": "F32", "shape": [2], "data_offsets": [8 * i, 8 * i + 8]}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(8 * len(names))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    found: dict[str, bytes] = {}

    def read_start(id: str, file: str, length: int = 64) -> FileStart:
        assert id == "owner/net"
        if file not in found:
            raise HubFileNotFoundError(f"the model has no file {file}")
        return FileStart(found[file][:length], len(found[file]))

    def download(id: str, file: str, max_bytes: int) -> str:
        assert id == "owner/net"
        if file not in found:
            raise HubFileNotFoundError(f"the model has no file {file}")
        (tmp_path / file).write_bytes(found[file])
        return str(tmp_path / file)

    monkeypatch.setattr(hub, "read_start", read_start)
    monkeypatch.setattr(hub, "download", download)
    monkeypatch.setattr(hub, "list_files", lambda id: sorted(found))
    return found


def names() -> list[str]:
    return [entry.name for entry in checkpoint_hub.read_remote("owner/net").entries]


def test_one_file_is_read_first(files: dict[str, bytes]) -> None:
    files[checkpoint_hub.DEFAULT_FILE] = safetensors("a", "b", padding=500)
    files["other.gguf"] = b""
    assert names() == ["a", "b"]
    found = checkpoint_hub.read_remote("owner/net")
    assert found.label == "owner/net" and found.entries[1].file == "owner/net/model.safetensors"


def test_how_much_of_a_file_is_requested(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[int | None] = []
    read_start: Any = hub.read_start

    def recorded(id: str, file: str, *length: int) -> FileStart:
        requests.append(length[0] if length else None)
        return read_start(id, file, *length)

    def said(largest: int = 1000) -> str:
        requests.clear()
        monkeypatch.setattr(safetensors_headers, "MAX_HEADER_BYTES", largest)
        with pytest.raises(ArchError) as found:
            checkpoint_hub.read_remote("owner/net")
        return found.value.diagnostics[0].message.partition(": ")[2]

    monkeypatch.setattr(hub, "read_start", recorded)
    files[checkpoint_hub.DEFAULT_FILE] = whole = safetensors("a", padding=500)
    length = int.from_bytes(whole[:8], "little")
    monkeypatch.setattr(safetensors_headers, "MAX_HEADER_BYTES", length)
    assert names() == ["a"] and requests == [None, 8 + length]
    files[checkpoint_hub.DEFAULT_FILE] = whole[:-8]  # without the values of the tensor
    assert said() == "file is truncated: expected 8 bytes of tensors, found 0" and requests == [None, 8 + length]
    files[checkpoint_hub.DEFAULT_FILE] = whole[:-9]
    assert said() == f"file is truncated: expected a header of {length:,} bytes, but the file has {8 + length - 1:,}"
    assert requests == [None]
    files[checkpoint_hub.DEFAULT_FILE] = whole
    assert said(length - 1).endswith(f"header of {length:,} bytes exceeds the limit of {length - 1:,}")
    assert requests == [None]
    files[checkpoint_hub.DEFAULT_FILE] = (56).to_bytes(8, "little") + safetensors()[8:].ljust(56)
    requests.clear()
    assert names() == [] and requests == [None]  # the first request has all of the header


def test_shards_are_those_of_an_index(files: dict[str, bytes]) -> None:
    files["one.safetensors"], files["two.safetensors"] = safetensors("a"), safetensors("b", "c")
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors", "c": "two.safetensors"}}
    files[checkpoint_hub.DEFAULT_INDEX] = json.dumps(index).encode()
    found = checkpoint_hub.read_remote("owner/net")
    assert found.label == "owner/net" and sorted(names()) == ["a", "b", "c"]


def test_gguf_files_are_named_if_they_are_several(files: dict[str, bytes]) -> None:
    def refusal() -> tuple[str, str, str | None]:
        with pytest.raises(ArchError) as found:
            checkpoint_hub.read_remote("owner/net")
        (only,) = found.value.diagnostics
        return only.code, only.message, only.help

    reason = "the model has neither model.safetensors nor model.safetensors.index.json nor a GGUF file"
    with pytest.raises(ArchError, match=reason):
        checkpoint_hub.read_remote("owner/net")
    for name in "abcd":
        files[f"{name}.gguf"] = b""
    shown = ", ".join(f"owner/net/{name}.gguf" for name in "abcd")
    assert refusal() == ("usage", "4 GGUF files in owner/net", f"name one: {shown}")
    files["e.gguf"] = b""
    assert refusal() == ("usage", "5 GGUF files in owner/net", f"name one: {shown}, ...")
    for name in "cde":
        del files[f"{name}.gguf"]
    assert refusal()[1:] == ("2 GGUF files in owner/net", "name one: owner/net/a.gguf, owner/net/b.gguf")
    del files["b.gguf"]
    assert refusal() == (
        "bad-checkpoint",
        "owner/net/a.gguf: file is truncated: the header does not end within its 0 bytes",
        None,
    )


def test_the_configuration_of_an_adapter_is_downloaded(
    files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "find_snapshot", lambda id: None)
    assert hub.find_adapter_config("owner/net", 9) is None
    files["adapter_config.json"] = b"{}"
    path = hub.find_adapter_config("owner/net", 9)
    assert path is not None and Path(path).name == "adapter_config.json"
    files["config.json"] = b"{}"
    assert hub.find_adapter_config("owner/net", 9) is None

    def offline(*_: object) -> str:
        raise HubUnavailableError("the server cannot be reached")

    monkeypatch.setattr(hub, "download", offline)
    assert hub.find_adapter_config("owner/net", 9) is None


class Gated(Exception):
    pass


class Missing(Exception):
    pass


class NoEntry(Exception):
    pass


class NoLocalEntry(NoEntry):
    pass


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is used of `huggingface_hub`."""
    calls: list[object] = []
    made = SimpleNamespace(
        calls=calls,
        size=2048,
        problem=None,
        constants=SimpleNamespace(HF_HUB_OFFLINE=False),
        utils=SimpleNamespace(disable_progress_bars=lambda: calls.append("bars")),
        logging=SimpleNamespace(set_verbosity_error=lambda: calls.append("errors")),
        errors=SimpleNamespace(
            GatedRepoError=Gated,
            RepositoryNotFoundError=Missing,
            EntryNotFoundError=NoEntry,
            LocalEntryNotFoundError=NoLocalEntry,
        ),
        hf_hub_url=lambda id, file: f"url of {id}/{file}",
        hf_hub_download=lambda id, file: f"path of {id}/{file}",
    )

    def metadata(url: str, timeout: float) -> Any:
        calls.append((url, timeout))
        if made.problem is not None:
            raise made.problem
        return SimpleNamespace(size=made.size)

    made.get_hf_file_metadata = metadata
    made.listed = lambda id: [f"{id}/b", f"{id}/a"] if not made.problem else 1 / 0
    made.HfApi = lambda: SimpleNamespace(list_repo_files=made.listed)
    modules = {"": made, ".constants": made.constants, ".utils": made.utils, ".utils.logging": made.logging}
    modules[".errors"] = made.errors
    monkeypatch.setattr(hub, "import_module", lambda name: modules[name.removeprefix("huggingface_hub")])
    return made


def test_small_files_are_downloaded(library: Any) -> None:
    assert hub.download("owner/net", "config.json", 2048) == "path of owner/net/config.json"
    assert library.calls == ["bars", "errors", ("url of owner/net/config.json", hub.TIMEOUT_SECONDS)]
    for size in (2049, None):
        library.size = size
        with pytest.raises(HubUnavailableError, match=r"^config.json exceeds the size limit of 2 KiB$"):
            hub.download("owner/net", "config.json", 2048)
    assert hub.list_files("owner/net") == ["owner/net/a", "owner/net/b"]


@pytest.mark.parametrize(
    ("problem", "kind", "reason"),
    [
        (
            Gated(),
            HubUnavailableError,
            "the model is gated: request access on its page and log in with `hf auth login`",
        ),
        (Missing(), HubUnavailableError, "no public model has this name"),
        (NoEntry(), HubFileNotFoundError, "the model has no file config.json"),
        (NoLocalEntry(), HubUnavailableError, "the server cannot be reached (NoLocalEntry)"),
        (OSError(), HubUnavailableError, "the server cannot be reached (OSError)"),
    ],
)
def test_reasons(library: Any, problem: Exception, kind: type[Exception], reason: str) -> None:
    library.problem = problem
    with pytest.raises(HubUnavailableError) as found:
        hub.download("owner/net", "config.json", 2048)
    assert type(found.value) is kind and str(found.value) == reason


def test_other_reasons(library: Any) -> None:
    problem = OSError()
    problem.response = SimpleNamespace(status_code=503)  # type: ignore[attr-defined]
    library.problem = problem
    with pytest.raises(HubUnavailableError, match=r"^the server answered with status 503 \(OSError\)$"):
        hub.download("owner/net", "config.json", 2048)
    with pytest.raises(HubUnavailableError, match=r"^the server cannot be reached \(ZeroDivisionError\)$"):
        hub.list_files("owner/net")
    library.constants.HF_HUB_OFFLINE = True
    with pytest.raises(HubUnavailableError, match=r"^HF_HUB_OFFLINE is set$"):
        hub.list_files("owner/net")


def test_the_directory_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME")
    for name in variables:
        monkeypatch.setenv(name, f"/of/{name}")
    monkeypatch.setenv("HOME", "/home/me")
    found: list[str] = []
    for name in variables:
        found.append(hub.cache_directory())
        monkeypatch.delenv(name)
    assert found[:2] == ["/of/HF_HUB_CACHE", "/of/HUGGINGFACE_HUB_CACHE"]
    assert found[2:] == ["/of/HF_HOME/hub", "/of/XDG_CACHE_HOME/huggingface/hub"]
    assert hub.cache_directory() == "/home/me/.cache/huggingface/hub"


def test_shapes_that_are_elements_are_not_requested(files: dict[str, bytes]) -> None:
    sizes = {"a.weight": 1024, "a.weight.absmax": 128, "a.weight.quant_state.bitsandbytes__nf4": 80}
    header: dict[str, Any] = {}
    start = 0
    for name, size in sizes.items():
        dtype, shape = ("F32", [size // 4]) if name.endswith("absmax") else ("U8", [size])
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, start + size]}
        start += size
    text = json.dumps(header).encode()
    files[checkpoint_hub.DEFAULT_FILE] = len(text).to_bytes(8, "little") + text + bytes(start)
    found = unpack_quantized(checkpoint_hub.read_remote("owner/net"))
    assert [(entry.name, entry.shape) for entry in found.entries] == [("a.weight", (2048,))]
    assert found.flat_names == {"a.weight"}
    assert "the shapes of 1 quantized tensor cannot be read, only element counts" in found.notes
