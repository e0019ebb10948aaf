"""The local cache of the hub, as `huggingface_hub` lays it out. It is only read."""

from __future__ import annotations

import os
import re

_COMMIT = re.compile(r"[0-9a-f]{40}")


def directory() -> str:
    """Return the directory of the cache, whether it exists or not."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return os.path.expanduser(os.environ[variable])
    if os.environ.get("HF_HOME"):
        return os.path.join(os.path.expanduser(os.environ["HF_HOME"]), "hub")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    return os.path.join(os.path.expanduser(base), "huggingface", "hub")


def snapshot(id: str) -> str | None:
    """Return the directory with the files of the main branch of a model; None if it is not in the cache."""
    folder = os.path.join(directory(), f"models--{id.replace('/', '--')}")
    try:
        with open(os.path.join(folder, "refs", "main"), encoding="ascii") as file:
            commit = file.read(64).strip()
    except (OSError, ValueError):
        return None
    path = os.path.join(folder, "snapshots", commit)
    return path if _COMMIT.fullmatch(commit) and os.path.isdir(path) else None


def cached(id: str, file: str) -> str | None:
    """Return the path of a file of a model in the cache; None if it is not there."""
    found = snapshot(id)
    path = os.path.join(found, file) if found is not None else None
    return path if path is not None and os.path.isfile(path) else None
