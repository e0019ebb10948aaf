"""What a user names as a model, and where it is. No other module asks what was named.

kind             named by                                                         read from
"bundled"        the name of a bundled model, also as one of the hub              the bundled file
"spec"           the path of an `.arch` file, perhaps with the name of a model    the file
"configuration"  a path, a directory, a name on the hub, data, an object          the file, or `text`
"checkpoint"     a path, or a directory with a checkpoint and no configuration    headers: a table, no computation
"adapter"        the configuration of a LoRA adapter, as for configurations       the file
"stream"         standard input or a pipe, with a spec or a configuration         the stream, once
"directory"      a directory with none of these                                   nothing
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeGuard

from archspec.core import resources
from archspec.core.diagnostics import ArchError, Diagnostic, make_error, suggest
from archspec.core.record import Record
from archspec.core.reports.text import listed
from archspec.formats.configs.configuration import (
    ADAPTER_FILE,
    CONFIG_FILE,
    MAX_CONFIGURATION_BYTES,
    Configuration,
    configuration_json,
    is_configuration_data,
)
from archspec.pipeline.index import bundled_file, family_models, models, simplify
from archspec.pipeline.streams import is_stream, stream_label

if TYPE_CHECKING:
    from archspec.formats.configs.configuration import ConfigurationData

    SpecLike: TypeAlias = str | os.PathLike[str] | Configuration | ConfigurationData

Kind: TypeAlias = Literal["bundled", "spec", "configuration", "checkpoint", "adapter", "stream", "directory"]

CHECKPOINTS = (".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt", ".pth", ".ckpt", ".gguf")
"""Extensions of checkpoints, of which there are tables but no models."""


class Location(Record):
    """What a user named as a model.

    `name` is what was named, for messages, and `label` what diagnostics call the file at `path`; `text` are contents
    that are not in a file. `model` is the name of one of several models in the file. `type`, `ignore` and `strict` are
    those of a `Configuration`. `root` is the directory from which a spec may import, by default that of its file.
    `is_stable` is whether the path will mean the same file again.
    """

    kind: Kind
    name: str
    label: str
    path: str = ""
    text: str | None = None
    model: str | None = None
    type: str | None = None
    ignore: tuple[str, ...] = ()
    strict: bool = False
    root: str | None = None
    is_stable: bool = True

    @property
    def omissions(self) -> tuple[Diagnostic, ...]:
        """A warning for each file beside a configuration whose parameters its model does not include."""
        if self.kind != "configuration" or self.text is not None:
            return ()
        from archspec.formats.configs.companions import find_omissions  # imported late: only configurations need it

        return tuple(find_omissions(self.path))

    @property
    def key(self) -> str:
        """A key that identifies the file: its real path, or for a configuration, whose model is named after it, its
        absolute path.
        """
        return os.path.abspath(self.path) if self.kind == "configuration" else os.path.realpath(self.path)


def locate(spec: SpecLike | Location) -> Location:
    """Find what a SPEC names. A Location is returned unchanged.

    Raises ArchError for a name that is unknown, also on the hub, for a configuration that is not valid data, and for
    an object that names no model.
    """
    if isinstance(spec, Location):
        return spec
    if isinstance(spec, Configuration):
        return locate(spec.source)._replace(type=spec.type, ignore=tuple(spec.ignore), strict=spec.strict)
    if not isinstance(spec, str | os.PathLike):
        if not is_configuration_data(spec):
            message = f"expected a model, found an object of type {type(spec).__name__}"
            help = "pass a model, a name, a path or the data of a `config.json`; of an adapter, its base model"
            raise make_error("usage", message, help=help)
        return configuration_location(configuration_json(spec))
    text = os.fspath(spec)
    if not isinstance(spec, str) and split_spec(text)[0] in (None, "-"):
        text = os.path.join(os.curdir, text)  # a path object always names a file
    path, model = split_spec(text)
    return _locate_word(text) if path is None else _locate_path(path, model)


def configuration_location(text: str) -> Location:
    """Return the location of a configuration without a file."""
    label = "<configuration>"
    return Location("configuration", label, label, text=text)


def is_spec(value: object) -> TypeGuard[SpecLike]:
    """Whether a value names a model, rather than being one."""
    return isinstance(value, str | os.PathLike | Configuration) or is_configuration_data(value)


def split_spec(text: str) -> tuple[str | None, str | None]:
    """Return the path ("-" is standard input) and the model's name in a SPEC: `name`, `path.arch:name`, `dir/file`."""
    if text == "-" or text.endswith((".arch", ".json", *CHECKPOINTS)):
        return text, None
    if text.startswith("-:"):
        return "-", text[2:].strip()
    head, separator, model = text.partition(".arch:")
    if separator:
        return head + ".arch", model
    return (text, None) if "/" in text or os.sep in text else (None, text)


def locate_bundled(name: str) -> Location:
    """Return the location of a bundled model. Raises ArchError if there is none with this name."""
    location = _locate_bundled(name, name)
    if location is None:
        raise _unknown_model_error(name)
    return location


def _locate_bundled(name: str, model: str) -> Location | None:
    path = bundled_file(model)
    return None if path is None else Location("bundled", name, path, path, model=model)


def _locate_word(name: str) -> Location:
    location = _locate_bundled(name, name) or _locate_on_hub(name, None, may_download=False)
    return location or locate_bundled(name)


def _unknown_model_error(name: str) -> ArchError:
    family = family_models(name)
    if family:
        message = f"`{name}` is a family of bundled models, not a model"
        help = f"name one, as in `archspec count {family[0]}`: {listed([f'`{model}`' for model in family])}"
        return make_error("unknown-model", message, help=help)
    longer = [f"`{model}`" for model in models() if simplify(name) and simplify(model).startswith(simplify(name))]
    near = _sizes_help(name)
    if near is None and len(longer) > MAX_SUGGESTIONS:
        near = f"the names of {len(longer)} bundled models begin with it: run `archspec list {name}`"
    elif near is None:
        near = f"did you mean {listed(longer, 'or')}?" if longer else suggest(name, models())
    if near is None and os.path.exists(name):
        near = f"to name a file or directory, write `./{name}`"
    help = near or "run `archspec list` to show bundled models; to name a file, use a path with `/` or ending in .arch"
    return make_error("unknown-model", f"unknown bundled model `{name}`", help=help)


_SIZE = re.compile(r"(?:^|(?<=[_-]))([LHA])-?(\d+)(?=$|[_-])")
_SIZE_NAMES = {"L": "layers", "H": "hidden", "A": "heads"}


def _sizes_help(name: str) -> str | None:
    """Return help for a name that states its layers and its width, as in `bert_uncased_L-6_H-384_A-12`."""
    sizes: dict[str, str] = dict(_SIZE.findall(name))
    if not {"L", "H"} <= sizes.keys():  # `L-14` alone may be a large model with patches of 14
        return None
    stated = " ".join(f"--set {_SIZE_NAMES[letter]}={size}" for letter, size in sizes.items())
    return f"use a bundled model of its family with the sizes in its name, `{stated}`, and those that it omits (`ffn`)"


MAX_SUGGESTIONS = 6
"""The maximum number of models that are suggested for the beginning of their names."""


def _locate_path(path: str, model: str | None) -> Location:
    name = path if model is None else f"{path}:{model}"
    if "\0" in path:
        raise make_error("missing-file", "invalid file name: it contains a NUL byte")
    if is_stream(path):
        return Location("stream", name, stream_label(path), path, model=model)
    kinds: dict[str, Kind] = {CONFIG_FILE: "configuration", ADAPTER_FILE: "adapter"}
    for file, kind in kinds.items():
        inside = os.path.join(path, file)
        if os.path.isfile(inside):
            return Location(kind, name, inside, inside, model=model)
    on_hub = None if os.path.lexists(path) else _locate_on_hub(path, model)
    return on_hub or Location(_kind_of_path(path), name, path, path, model=model)


def _kind_of_path(path: str) -> Kind:
    """Return the kind of a path that is no directory with a configuration."""
    if path.endswith(".json") and (os.path.basename(path) == ADAPTER_FILE or _contains(path, b'"peft_type"')):
        return "adapter"
    if path.endswith(CHECKPOINTS):
        return "checkpoint"
    if os.path.isdir(path) and not path.endswith(".arch"):
        return "checkpoint" if any(name.endswith(CHECKPOINTS) for name in _names_in(path)) else "directory"
    return "configuration" if path.endswith(".json") else "spec"


def _names_in(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def find_configurations(directory: str) -> list[str]:
    """Return the paths of the configurations of models in a directory, and one level below it."""
    paths: list[str] = []
    for folder, folders, names in os.walk(directory):
        if folder != directory:
            folders.clear()
        paths += [os.path.join(folder, name) for name in names if name == CONFIG_FILE or folder == directory]
    return sorted([path for path in paths if path.endswith(".json") and _contains(path, b'"model_type"')])


def _contains(path: str, field: bytes) -> bool:
    """Whether a regular file has a field that all configurations of one type of file have."""
    if not os.path.isfile(path):
        return False  # opening a pipe would wait
    try:
        with open(path, "rb") as file:
            return field in file.read(MAX_CONFIGURATION_BYTES)
    except OSError:
        return False


def _locate_on_hub(name: str, model: str | None, *, may_download: bool = True) -> Location | None:
    """Return the location of a name of the hub; None for other names, and for those that may not be downloaded.

    Raises ArchError for a name of the hub (`owner/name`) that cannot be found.
    """
    from archspec.formats import hub

    specs = resources.specs_root()
    if not hub.is_id(name):
        return None
    if may_download and hub.find_bundled_name(name, specs) is None:
        path = hub.find_adapter_config(name, MAX_CONFIGURATION_BYTES)
        if path is not None:
            return Location("adapter", name, f"{name}/{ADAPTER_FILE}", path, is_stable=False)
    id = hub.find_full_id(name, specs)
    bundled = hub.find_bundled_name(id, specs)
    if bundled is not None:
        return _locate_bundled(name, bundled)
    path = hub.find_config(id, MAX_CONFIGURATION_BYTES) if may_download else hub.find_cached_config(id, name)
    if path is None:
        return None
    return Location("configuration", name, f"{id}/{CONFIG_FILE}", path, model=model, is_stable=False)
