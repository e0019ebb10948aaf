"""Files on the hub, by way of `huggingface_hub`: small ones as a whole, of others the first bytes."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import NamedTuple

SECONDS = 10.0
"""The limit on waiting for an answer."""

FIRST_BYTES = 2**16


class HubUnavailableError(Exception):
    """Raised with the reason for which a file cannot be had."""


class HubFileNotFoundError(HubUnavailableError):
    """Raised if the model has no such file."""


class Start(NamedTuple):
    """The first bytes of a file, and the size of all of it."""

    data: bytes
    size: int


def download(id: str, file: str, largest: int) -> str:
    """Download a file, unless it is larger than a limit, to the local cache; return its path. Raises Unavailable."""
    hub = _library()
    try:
        size = hub.get_hf_file_metadata(hub.hf_hub_url(id, file), timeout=SECONDS).size
        if size is None or size > largest:
            raise HubUnavailableError(f"{file} exceeds the size limit of {largest // 1024:,} KiB")
        return hub.hf_hub_download(id, file)
    except HubUnavailableError:
        raise
    except Exception as problem:  # of many classes, of the library and of those that it uses
        raise _reason(problem, file) from None


def start_of(id: str, file: str, length: int = FIRST_BYTES) -> Start:
    """Read the first bytes of a file by a range request. Raises Unavailable."""
    hub = _library()
    headers = {**hub.utils.build_hf_headers(), "Range": f"bytes=0-{length - 1}", "Accept-Encoding": "identity"}
    try:
        url = hub.hf_hub_url(id, file)
        with hub.get_session().stream("GET", url, headers=headers, timeout=SECONDS, follow_redirects=True) as answer:
            hub.utils.hf_raise_for_status(answer)
            total = answer.headers.get("content-range", "").rpartition("/")[2] or answer.headers.get("content-length")
            data = b""
            for part in answer.iter_bytes():
                data += part
                if len(data) >= length:  # also if the server does not support ranges
                    break
            return Start(data[:length], int(total))
    except Exception as problem:
        raise _reason(problem, file) from None


def files(id: str) -> list[str]:
    """Return the names of the files of a model. Raises Unavailable."""
    hub = _library()
    try:
        return sorted(hub.HfApi().list_repo_files(id))
    except Exception as problem:
        raise _reason(problem, "") from None


def _library() -> ModuleType:
    """Import `huggingface_hub`. Raises Unavailable without it, and where the environment says to stay offline."""
    try:
        hub = import_module("huggingface_hub")
        constants = import_module("huggingface_hub.constants")
        utils = import_module("huggingface_hub.utils")
        logging = import_module("huggingface_hub.utils.logging")
    except ImportError:
        raise HubUnavailableError("the package huggingface_hub is not installed") from None
    if constants.HF_HUB_OFFLINE:
        raise HubUnavailableError("HF_HUB_OFFLINE is set")
    utils.disable_progress_bars()
    logging.set_verbosity_error()
    return hub


def _reason(problem: Exception, file: str) -> HubUnavailableError:
    """Return the reason in one clause."""
    errors = import_module("huggingface_hub.errors")
    if isinstance(problem, errors.GatedRepoError):
        return HubUnavailableError("the model is gated: request access on its page and log in with `hf auth login`")
    if isinstance(problem, errors.RepositoryNotFoundError):
        return HubUnavailableError("it has no public model of this name")
    if isinstance(problem, errors.EntryNotFoundError) and not isinstance(problem, errors.LocalEntryNotFoundError):
        return HubFileNotFoundError(f"the model has no file {file}")
    status = getattr(getattr(problem, "response", None), "status_code", None)
    what = f"it answered with status {status}" if status is not None else "it cannot be reached"
    return HubUnavailableError(f"{what} ({problem.__class__.__name__})")
