"""Names of models on the Hugging Face hub, and those that are bundled here."""

from __future__ import annotations

import os
import re

MAX_ID_LENGTH = 96
MAX_FILE_LENGTH = 255

_ID = re.compile(r"\w(?:[\w.-]*\w)?(?:/\w(?:[\w.-]*\w)?)?", re.ASCII)
_FILE = re.compile(r"(?:\w[\w.-]*/)*\w[\w.-]*\.gguf", re.ASCII)
_FILES = (".arch", ".json", ".yaml", ".py", ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf")


def is_id(name: str) -> bool:
    """Whether a name can be that of a model on the hub: `owner/name`, or `name` alone for the oldest ones."""
    fits = len(name) <= MAX_ID_LENGTH and _ID.fullmatch(name) is not None
    return fits and "--" not in name and ".." not in name and not name.endswith(_FILES)


def gguf_file(path: str) -> tuple[str, str] | None:
    """Return the id of a model on the hub and one of its files, for `owner/name/FILE.gguf`; None for other paths."""
    owner, _, rest = path.partition("/")
    name, _, file = rest.partition("/")
    fits = is_id(f"{owner}/{name}") and _FILE.fullmatch(file) is not None and ".." not in file
    return (f"{owner}/{name}", file) if fits and len(file) <= MAX_FILE_LENGTH else None


def bundled_name(id: str, specs: str) -> str | None:
    """Return the bundled model with an id on the hub, by the table `specs/hub.yaml`."""
    return _table(specs)["bundled"].get(id)


def full_id(id: str, specs: str) -> str:
    """Return the id of one of the oldest models with its owner, without which the hub knows it too; others as is."""
    return _table(specs)["owners"].get(id, id)


def _table(specs: str) -> dict[str, dict[str, str]]:
    import yaml

    with open(os.path.join(specs, "hub.yaml"), "rb") as file:
        return yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
