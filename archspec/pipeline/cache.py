"""A cache of plain data in the user's cache directory, with entries that are valid while their inputs are unchanged.

An entry is a checksum followed by JSON. It records its kind and key, the state of this package and of Python, and the
contents of every file read. If the directory cannot be used, nothing is cached and no error is reported.
"""

from __future__ import annotations

import os
import sys
from zlib import crc32

from archspec.core.resources import grammar_path, package_path

MAX_ENTRIES = 512
MAX_ENTRY_BYTES = 64 * 2**20

EXCLUDED_PACKAGES = frozenset(["analysis", "app", "codegen", "drawing", "pytorch"])
"""Packages that compilation does not use: entries stay valid when they change."""

_state: str | None = None


def read(kind: str, key: str) -> object:
    """Return the data cached for a key, or None without a valid entry."""
    directory = _directory()
    if directory is None:
        return None
    path = _path(directory, kind, key)
    try:
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
                return None
            if status.st_size > MAX_ENTRY_BYTES:
                return None
            checksum, _, body = file.read(MAX_ENTRY_BYTES).partition(b"\n")
        if checksum != b"%08x" % crc32(body):
            return None
        from json import loads

        entry = loads(body)
        if entry["is"] != [kind, key, _package_fingerprint()]:
            return None
        if not all(has_contents(path, text.encode()) for path, text in entry["files"]):
            return None
        return entry["data"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def write(kind: str, key: str, data: object, files: dict[str, bytes] | None = None) -> None:
    """Cache data for a key; it stays valid while `files` (contents by path) are unchanged."""
    directory = _directory()
    if directory is None:
        return
    from json import dumps

    try:
        texts = [[path, content.decode()] for path, content in (files or {}).items()]
        body = dumps(
            {"is": [kind, key, _package_fingerprint()], "files": texts, "data": data}, separators=(",", ":")
        ).encode()
        if len(body) + 9 > MAX_ENTRY_BYTES:
            return
        os.makedirs(directory, mode=0o700, exist_ok=True)
        _evict(directory)
        path = _path(directory, kind, key)
        temporary = f"{path}.{os.getpid()}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(handle, "wb") as file:
                file.write(b"%08x\n" % crc32(body) + body)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
    except (OSError, ValueError, TypeError):
        return


def has_contents(path: object, expected: bytes) -> bool:
    """Whether a path is a regular file with these contents. A file of another size is not read."""
    try:
        if not isinstance(path, str) or not os.path.isfile(path):  # reading a pipe would block
            return False
        with open(path, "rb") as file:
            return os.fstat(file.fileno()).st_size == len(expected) and file.read(len(expected) + 1) == expected
    except (OSError, ValueError):
        return False


def _path(directory: str, kind: str, key: str) -> str:
    data = key.encode("utf-8", "surrogatepass")
    return os.path.join(directory, f"{kind}-{crc32(data):08x}-{len(data):x}.json")


def _directory() -> str | None:
    """Return the cache directory, or None if there is none or it is not private to this user."""
    base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else None)
    if not base or not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    directory = os.path.join(base, "archspec-dsl")
    try:
        status = os.stat(directory)
    except OSError:
        return directory if os.path.isabs(directory) else None
    if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o077):
        return None
    return directory


def _evict(directory: str) -> None:
    """Remove the older half of the entries if there are too many."""
    names = os.listdir(directory)
    if len(names) < MAX_ENTRIES:
        return
    paths = sorted((os.path.join(directory, n) for n in names), key=lambda p: os.stat(p).st_mtime)
    for path in paths[: len(paths) // 2]:
        os.unlink(path)


def _package_fingerprint() -> str:
    """Return a fingerprint of the files on disk that affect entries, and of the Python version."""
    global _state
    if _state is None:
        root = package_path()
        grammar = os.stat(grammar_path())
        marks = [("", grammar.st_size, grammar.st_mtime_ns)]
        folders = [root]
        while folders:
            for entry in os.scandir(folders.pop()):
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    marks.append((entry.path, status.st_size, status.st_mtime_ns))
                elif "." not in entry.name and entry.name not in EXCLUDED_PACKAGES and entry.name != "__pycache__":
                    folders.append(entry.path)
        _state = f"{crc32(repr((sys.version, root, sorted(marks))).encode()):08x}"
    return _state
