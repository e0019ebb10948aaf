"""Names of models, and the files that they stand for, which may be in a directory or on the hub."""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from archspec.core import resources
from archspec.core.diagnostics import make_error
from archspec.core.record import Record
from archspec.formats.configs.configuration import (
    MAX_CONFIGURATION_BYTES,
    Configuration,
    configuration_json,
    is_configuration_data,
)

if TYPE_CHECKING:
    from archspec.formats.configs.configuration import ConfigurationData

    SpecLike: TypeAlias = str | os.PathLike[str] | Configuration | ConfigurationData


class Spec(Record):
    """A SPEC taken apart: a bundled name, or the path of a file ("-" is standard input) and perhaps a model's name.

    `text` is that of a configuration without a file. `type` and `ignore` are those of a `Configuration`. `label` is
    what diagnostics call the file, if not by its path. `is_stable` is whether the path will mean the same file again.
    """

    path: str | None
    model: str | None
    text: str | None = None
    type: str | None = None
    ignore: tuple[str, ...] = ()
    label: str | None = None
    is_stable: bool = True

    def __str__(self) -> str:
        name = self.path if self.model is None else self.model if self.path is None else f"{self.path}:{self.model}"
        return name or CONFIGURATION_LABEL


CONFIGURATION_LABEL = "<configuration>"
"""What diagnostics call a configuration without a file."""


def read_spec(given: SpecLike) -> Spec:
    """Parse the argument that names a model. Raises ArchError for a configuration that is not valid data."""
    if isinstance(given, Configuration):
        return read_spec(given.source)._replace(type=given.type, ignore=tuple(given.ignore))
    if isinstance(given, str | os.PathLike):
        return parse_spec(spec_text(given))
    assert is_configuration_data(given)
    return Spec(None, None, text=configuration_json(given))


def is_spec(given: object) -> TypeGuard[SpecLike]:
    """Whether a value names a model, rather than being one."""
    return isinstance(given, str | os.PathLike | Configuration) or is_configuration_data(given)


CHECKPOINTS = (".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt", ".pth", ".ckpt", ".gguf")
"""Extensions of checkpoints, of which there are tables but no models."""


def parse_spec(spec: str) -> Spec:
    """Takes a SPEC apart: `name`, `path.arch`, `path.arch:model name`, `-`, `path.json`, `path.safetensors`."""
    if spec == "-" or spec.endswith((".arch", ".json", *CHECKPOINTS)):
        return Spec(spec, None)
    if spec.startswith("-:"):
        return Spec("-", spec[2:].strip())
    head, separator, model = spec.partition(".arch:")
    if separator:
        return Spec(head + ".arch", model)
    return Spec(spec, None) if "/" in spec or os.sep in spec else Spec(None, spec)


def spec_text(spec: str | os.PathLike[str]) -> str:
    """Return a SPEC as text; a path object always names a file."""
    text = os.fspath(spec)
    is_path = isinstance(spec, str) or parse_spec(text).path not in (None, "-")
    return text if is_path else os.path.join(os.curdir, text)


def file_key(path: str) -> str:
    """Return a key that identifies a file: its real path, or for a configuration its absolute path, because the model
    is named after it.
    """
    return os.path.abspath(path) if path.endswith(".json") else os.path.realpath(path)


CONFIG_FILE = "config.json"
ADAPTER_FILE = "adapter_config.json"


def adapter_path(spec: Spec) -> tuple[str, str] | None:
    """Return the path of the configuration of an adapter and what diagnostics call it; None for all other SPECs.

    A directory with a `config.json` is a model, even if an adapter is beside it.
    """
    path = spec.path
    if path is None or path == "-" or "\0" in path:
        return None
    if os.path.isdir(path):
        inside = os.path.join(path, ADAPTER_FILE)
        is_adapter = os.path.isfile(inside) and not os.path.isfile(os.path.join(path, CONFIG_FILE))
        return (inside, inside) if is_adapter else None
    if path.endswith(".json"):
        return (path, path) if os.path.basename(path) == ADAPTER_FILE or _is_adapter_config(path) else None
    return _hub_adapter(path) if not os.path.lexists(path) else None


def is_checkpoint(path: str) -> bool:
    """Whether a located path is that of a checkpoint, or of a directory with one and no configuration."""
    if path.endswith(CHECKPOINTS):
        return True
    try:
        return any(name.endswith(CHECKPOINTS) for name in os.listdir(path))
    except (OSError, ValueError):
        return False


def is_adapter(model: object) -> bool:
    """Whether what names a model names an adapter instead."""
    return is_spec(model) and adapter_path(read_spec(model)) is not None


def _is_adapter_config(path: str) -> bool:
    """Whether a regular file has the field that all configurations of adapters have."""
    if not os.path.isfile(path):
        return False  # opening a pipe would wait
    try:
        with open(path, "rb") as file:
            return b'"peft_type"' in file.read(MAX_CONFIGURATION_BYTES)
    except OSError:
        return False


def _hub_adapter(name: str) -> tuple[str, str] | None:
    """Return the adapter of the hub with a name that is not that of a model."""
    find, names = _hub()
    specs = resources.specs_root()
    if not names.is_id(name) or names.bundled_name(name, specs) is not None:
        return None
    path = find.adapter_config(name, MAX_CONFIGURATION_BYTES)
    return (path, f"{name}/{ADAPTER_FILE}") if path is not None else None


def locate(spec: Spec) -> Spec:
    """Return a SPEC with the path of its file: for a directory, its configuration; for a name of the hub, its copy.

    A name of the hub whose model is bundled becomes the bundled name. Any other SPEC is returned unchanged.

    Raises ArchError for a name of the hub (`owner/name`) that cannot be found.
    """
    path = spec.path
    if path is None or path == "-" or "\0" in path:
        return spec
    if os.path.isfile(config := os.path.join(path, CONFIG_FILE)):
        return spec._replace(path=config)
    if adapter_path(spec) is not None:
        help = "count or verify it; for all else, name its base model"
        raise make_error("usage", f"{path} is an adapter, not a model", help=help)
    return (_locate_on_hub(spec, path) if not os.path.lexists(path) else None) or spec


def locate_cached(spec: Spec) -> Spec | None:
    """Return the model of the hub with a name that is not bundled, if it is in the local cache; otherwise None."""
    name = spec.model or ""
    found = _locate_on_hub(spec, name, may_download=False) if "/" not in name else None
    return None if found == spec else found


def _locate_on_hub(spec: Spec, name: str, *, may_download: bool = True) -> Spec | None:
    find, names = _hub()
    specs = resources.specs_root()
    if not names.is_id(name):
        return None
    id = names.full_id(name, specs)
    found = names.bundled_name(id, specs)
    if found is not None:
        return spec._replace(path=None, model=found)
    path = find.cached_config(id, name) if not may_download else find.config(id, MAX_CONFIGURATION_BYTES)
    return (
        spec._replace(path=path, model=None, label=f"{id}/{CONFIG_FILE}", is_stable=False) if path is not None else None
    )


def _hub() -> tuple[ModuleType, ModuleType]:
    from archspec.formats.hub import find, names  # which few commands need

    return find, names
