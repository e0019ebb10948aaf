"""What a person names a model by."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from archspec.configuration import Configuration, is_data, text_of
from archspec.record import Record

if TYPE_CHECKING:
    from archspec.configuration import ConfigurationData

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
        return name or CONFIGURATION


CONFIGURATION = "<configuration>"
"""What diagnostics call a configuration without a file."""


def read_spec(given: SpecLike) -> Spec:
    """Take apart what a user names a model by. Raises ArchError for a configuration that is not valid data."""
    if isinstance(given, Configuration):
        return read_spec(given.source)._replace(type=given.type, ignore=tuple(given.ignore))
    if isinstance(given, str | os.PathLike):
        return parse_spec(written(given))
    assert is_data(given)
    return Spec(None, None, text=text_of(given))


def is_spec(given: object) -> TypeGuard[SpecLike]:
    """Whether a value names a model, rather than being one."""
    return isinstance(given, str | os.PathLike | Configuration) or is_data(given)


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


def written(spec: str | os.PathLike[str]) -> str:
    """A SPEC as text; a path object names a file, whatever it is called."""
    text = os.fspath(spec)
    is_path = isinstance(spec, str) or parse_spec(text).path not in (None, "-")
    return text if is_path else os.path.join(os.curdir, text)


def place(path: str) -> str:
    """What tells a file from others; what a configuration describes is called after its path, links not followed."""
    return os.path.abspath(path) if path.endswith(".json") else os.path.realpath(path)
