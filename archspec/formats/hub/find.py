"""The files of a model on the hub: in the local cache, or on the hub."""

from __future__ import annotations

import os
from contextlib import suppress

from archspec.core.diagnostics import ArchError, Note, install_hint, make_error
from archspec.formats.hub import local, remote


def config(id: str, largest: int) -> str:
    """Return the path of the `config.json` of a model. Raises ArchError, which states what was tried."""
    path = cached_config(id)
    if path is not None:
        return path
    try:
        return remote.download(id, "config.json", largest)
    except remote.HubUnavailableError as reason:
        raise not_found(id, f"{reason}") from None


def adapter_config(id: str, largest: int) -> str | None:
    """Return the path of the `adapter_config.json` of a model without a `config.json`; None if it is not such a one."""
    if local.snapshot(id) is not None:
        is_model = local.cached(id, "config.json") is not None
        return None if is_model else local.cached(id, "adapter_config.json")
    try:
        remote.download(id, "config.json", largest)
    except remote.HubFileNotFoundError:
        with suppress(remote.HubUnavailableError):
            return remote.download(id, "adapter_config.json", largest)
    except remote.HubUnavailableError:
        pass
    return None


def cached_config(*ids: str) -> str | None:
    """Return the path of the `config.json` of the first of some models that is in the local cache; None without one."""
    return next((path for id in ids if (path := local.cached(id, "config.json")) is not None), None)


def not_found(id: str, reason: str, what: str = "model") -> ArchError:
    """Return the error for a model that is neither a file, nor bundled, nor to be had from the hub."""
    notes = (
        Note(f"no file or directory `{id}`" if what != "model" else f"neither a file nor a bundled model: `{id}`"),
        Note(f"not in the local cache of the hub: {local.directory()}"),
        Note(f"not from the hub ({os.environ.get('HF_ENDPOINT', 'https://huggingface.co')}): {reason}"),
    )
    help = install_hint("hub") if "not installed" in reason else f"to name a file or directory, write `./{id}`"
    return make_error("unknown-model", f"unknown {what} `{id}`", notes=notes, help=help)
