"""The Hugging Face hub: names of models and files, the local cache, and downloads with `huggingface_hub`."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from archspec.core.diagnostics import ArchError, Note, install_hint, make_error
from archspec.formats.configs.configuration import ADAPTER_FILE, CONFIG_FILE


def find_config(id: str, max_bytes: int) -> str:
    """Return the path of the `config.json` of a model, from the local cache or else downloaded.

    Raises ArchError, whose notes list where the file was searched.
    """
    path = find_cached_config(id)
    if path is not None:
        return path
    try:
        return download(id, CONFIG_FILE, max_bytes)
    except HubUnavailableError as reason:
        raise not_found_error(id, f"{reason}") from None


def find_adapter_config(id: str, max_bytes: int) -> str | None:
    """Return the path of the `adapter_config.json` of an adapter; None for a model, which has a `config.json`."""
    if find_snapshot(id) is not None:
        is_model = find_cached_file(id, CONFIG_FILE) is not None
        return None if is_model else find_cached_file(id, ADAPTER_FILE)
    try:
        download(id, CONFIG_FILE, max_bytes)
    except HubFileNotFoundError:
        with suppress(HubUnavailableError):
            return download(id, ADAPTER_FILE, max_bytes)
    except HubUnavailableError:
        pass
    return None


def find_cached_config(*ids: str) -> str | None:
    """Return the path of the first `config.json` in the local cache among models with these ids, or None."""
    return next((path for id in ids if (path := find_cached_file(id, CONFIG_FILE)) is not None), None)


def not_found_error(id: str, reason: str, noun: str = "model") -> ArchError:
    """Return the error to raise for a model or checkpoint that is neither a file, nor bundled, nor on the hub."""
    notes = (
        Note(f"no file or directory `{id}`" if noun != "model" else f"neither a file nor a bundled model: `{id}`"),
        Note(f"not in the local cache of the hub: {cache_directory()}"),
        Note(f"not from the hub ({os.environ.get('HF_ENDPOINT', 'https://huggingface.co')}): {reason}"),
    )
    help = install_hint("hub") if "not installed" in reason else f"to name a file or directory, write `./{id}`"
    return make_error("unknown-model", f"unknown {noun} `{id}`", notes=notes, help=help)


# Names ----------------------------------------------------------------------------------------------------------------

MAX_ID_LENGTH = 96
MAX_FILE_LENGTH = 255

_ID = re.compile(r"\w(?:[\w.-]*\w)?(?:/\w(?:[\w.-]*\w)?)?", re.ASCII)
_GGUF_FILE = re.compile(r"(?:\w[\w.-]*/)*\w[\w.-]*\.gguf", re.ASCII)
_EXTENSIONS = (".arch", ".json", ".yaml", ".py", ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf")


def is_id(name: str) -> bool:
    """Whether a name is valid for a model on the hub: `owner/name`, or `name` for the oldest models."""
    fits = len(name) <= MAX_ID_LENGTH and _ID.fullmatch(name) is not None
    return fits and "--" not in name and ".." not in name and not name.endswith(_EXTENSIONS)


def split_gguf_path(path: str) -> tuple[str, str] | None:
    """Split `owner/name/FILE.gguf` into the id of a model on the hub and the name of its file; None for other paths."""
    owner, _, name_and_file = path.partition("/")
    name, _, file = name_and_file.partition("/")
    fits = is_id(f"{owner}/{name}") and _GGUF_FILE.fullmatch(file) is not None and ".." not in file
    return (f"{owner}/{name}", file) if fits and len(file) <= MAX_FILE_LENGTH else None


def find_bundled_name(id: str, specs: str) -> str | None:
    """Return the name of the bundled model with this id, from the table `specs/hub.yaml`."""
    return _load_table(specs)["bundled"].get(id)


def find_full_id(id: str, specs: str) -> str:
    """Return the id with the owner of one of the oldest models, which the hub also accepts without; else the id."""
    return _load_table(specs)["owners"].get(id, id)


def _load_table(specs: str) -> dict[str, dict[str, str]]:
    import yaml

    with open(os.path.join(specs, "hub.yaml"), "rb") as file:
        return yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


# The local cache, in the layout of `huggingface_hub`; it is only read -------------------------------------------------

_COMMIT = re.compile(r"[0-9a-f]{40}")


def cache_directory() -> str:
    """Return the directory of the cache, which need not exist."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return os.path.expanduser(os.environ[variable])
    if os.environ.get("HF_HOME"):
        return os.path.join(os.path.expanduser(os.environ["HF_HOME"]), "hub")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    return os.path.join(os.path.expanduser(base), "huggingface", "hub")


def find_snapshot(id: str) -> str | None:
    """Return the cached directory with the files of the main branch of a model; None if it is not cached."""
    folder = os.path.join(cache_directory(), f"models--{id.replace('/', '--')}")
    try:
        with open(os.path.join(folder, "refs", "main"), encoding="ascii") as file:
            commit = file.read(64).strip()
    except (OSError, ValueError):
        return None
    path = os.path.join(folder, "snapshots", commit)
    return path if _COMMIT.fullmatch(commit) and os.path.isdir(path) else None


def find_cached_file(id: str, file: str) -> str | None:
    """Return the path of a cached file of a model; None if it is not cached."""
    directory = find_snapshot(id)
    path = os.path.join(directory, file) if directory is not None else None
    return path if path is not None and os.path.isfile(path) else None


# Downloads: small files entirely, the first bytes of large ones -------------------------------------------------------

TIMEOUT_SECONDS = 10.0
DEFAULT_START_BYTES = 2**16


class HubUnavailableError(Exception):
    """Raised with the reason why a file is not available from the hub."""


class HubFileNotFoundError(HubUnavailableError):
    """Raised if the model has no such file."""


class FileStart(NamedTuple):
    """The first bytes of a file, and the size of the file."""

    data: bytes
    size: int


def download(id: str, file: str, max_bytes: int) -> str:
    """Download a file to the local cache, and return its path. Raises HubUnavailableError, also above `max_bytes`."""
    library = _import_library()
    try:
        size = library.get_hf_file_metadata(library.hf_hub_url(id, file), timeout=TIMEOUT_SECONDS).size
        if size is None or size > max_bytes:
            raise HubUnavailableError(f"{file} exceeds the size limit of {max_bytes // 1024:,} KiB")
        return library.hf_hub_download(id, file)
    except HubUnavailableError:
        raise
    except Exception as error:  # the library, and the libraries it uses, raise many classes
        raise _unavailable_error(error, file) from None


def read_start(id: str, file: str, length: int = DEFAULT_START_BYTES) -> FileStart:
    """Read the first `length` bytes of a file with a range request. Raises HubUnavailableError."""
    library = _import_library()
    headers = {**library.utils.build_hf_headers(), "Range": f"bytes=0-{length - 1}", "Accept-Encoding": "identity"}
    settings = {"headers": headers, "timeout": TIMEOUT_SECONDS, "follow_redirects": True}
    try:
        with library.get_session().stream("GET", library.hf_hub_url(id, file), **settings) as response:
            library.utils.hf_raise_for_status(response)
            total = response.headers.get("content-range", "").rpartition("/")[2]
            total = total or response.headers.get("content-length")
            data = b""
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) >= length:  # a server without range support sends the full file
                    break
            return FileStart(data[:length], int(total))
    except Exception as error:
        raise _unavailable_error(error, file) from None


def list_files(id: str) -> list[str]:
    """Return the sorted names of the files of a model. Raises HubUnavailableError."""
    library = _import_library()
    try:
        return sorted(library.HfApi().list_repo_files(id))
    except Exception as error:
        raise _unavailable_error(error, "") from None


def _import_library() -> ModuleType:
    """Import `huggingface_hub`. Raises HubUnavailableError if it is not installed or in offline mode."""
    try:
        library = import_module("huggingface_hub")
        constants = import_module("huggingface_hub.constants")
        utils = import_module("huggingface_hub.utils")
        logging = import_module("huggingface_hub.utils.logging")
    except ImportError:
        raise HubUnavailableError("the package huggingface_hub is not installed") from None
    if constants.HF_HUB_OFFLINE:
        raise HubUnavailableError("HF_HUB_OFFLINE is set")
    utils.disable_progress_bars()
    logging.set_verbosity_error()
    return library


def _unavailable_error(error: Exception, file: str) -> HubUnavailableError:
    """Return the error to raise for an error of the library, with its reason in one clause."""
    errors = import_module("huggingface_hub.errors")
    if isinstance(error, errors.GatedRepoError):
        return HubUnavailableError("the model is gated: request access on its page and log in with `hf auth login`")
    if isinstance(error, errors.RepositoryNotFoundError):
        return HubUnavailableError("no public model has this name")
    if isinstance(error, errors.EntryNotFoundError) and not isinstance(error, errors.LocalEntryNotFoundError):
        return HubFileNotFoundError(f"the model has no file {file}")
    status = getattr(getattr(error, "response", None), "status_code", None)
    fact = f"the server answered with status {status}" if status is not None else "the server cannot be reached"
    return HubUnavailableError(f"{fact} ({error.__class__.__name__})")
