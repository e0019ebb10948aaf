"""Files beside a `config.json` that add parameters to its model (adapters, and modules of sentence-transformers) or
determine its sizes (GGUF files).

The model of the configuration does not include these files, so each command that reads it warns about them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from shlex import quote
from typing import cast

from archspec.core.diagnostics import ArchError, Diagnostic, Report, Source, decode, read_bytes
from archspec.formats.configs.configuration import ADAPTER_FILE, CONFIG_FILE, MAX_CONFIGURATION_BYTES
from archspec.formats.strict_json import read_json

MODULES_FILE = "modules.json"

_MODULES_WITHOUT_PARAMETERS = frozenset(["Pooling", "Normalize", "Dropout"])
_ACTIVATIONS_WITHOUT_PARAMETERS = frozenset(["Identity", "Tanh", "ReLU", "GELU", "SiLU", "Sigmoid", "LeakyReLU", "ELU"])


def find_omissions(path: str) -> list[Diagnostic]:
    """Return a warning for each file beside a `config.json` whose parameters its model does not include."""
    folder, name = os.path.split(path)
    if name != CONFIG_FILE:
        return []
    adapter, modules = os.path.join(folder, ADAPTER_FILE), os.path.join(folder, MODULES_FILE)
    warnings = [_adapter_warning(path, adapter)] if os.path.isfile(adapter) else []
    warnings += _iter_module_warnings(folder, modules) if os.path.isfile(modules) else []
    return [*warnings, *_iter_gguf_warnings(folder, path)]


def _warning(message: str, help: str) -> Diagnostic:
    return Diagnostic("not-included", message, help=help, severity="warning")


def _adapter_warning(path: str, adapter: str) -> Diagnostic:
    help = f"count the model with the adapter: `archspec count {quote(adapter)} --base {quote(path)}`"
    return _warning(f"the adapter of {adapter} is not included: {CONFIG_FILE} describes the model without it", help)


def _iter_module_warnings(folder: str, path: str) -> Iterator[Diagnostic]:
    """Yield a warning for each module of sentence-transformers that may have parameters, except the model itself."""
    modules = _read_data(path)
    if not isinstance(modules, list):
        yield _warning(f"the modules of {path} are not included: it is not a list of modules", _MODULES_HELP)
        return
    for module in cast("list[object]", modules):
        fields = cast("dict[str, object]", module) if isinstance(module, dict) else {}
        subfolder, type = str(fields.get("path", "")), str(fields.get("type", "unknown"))
        class_name = type.rpartition(".")[2]
        if fields.get("path") == "" or class_name in _MODULES_WITHOUT_PARAMETERS:
            continue
        params = _count_dense(folder, subfolder) if class_name == "Dense" else None
        number = "" if params is None else f", {params:,} parameters"
        yield _warning(f"module `{subfolder or type}` of {path} is not included: {class_name}{number}", _MODULES_HELP)


def _iter_gguf_warnings(folder: str, path: str) -> Iterator[Diagnostic]:
    """Yield a warning if the sizes of a model are only in a GGUF file: its configuration has none."""
    names = [name for _, _, names in islice(os.walk(folder or os.curdir), 1) for name in names]
    files = sorted(name for name in names if name.endswith(".gguf"))
    if files and not any(type(value) in (int, dict) for value in _read_fields(path).values()):
        help = f"count the tensors of the file: `archspec count {quote(os.path.join(folder, files[0]))}`"
        message = f"the sizes of {files[0]} are not included: {CONFIG_FILE} has none, so they are the defaults"
        yield _warning(message, help)


_MODULES_HELP = f"only the model of {CONFIG_FILE} is read; add the parameters of the module to its total"


def _count_dense(folder: str, subfolder: str) -> int | None:
    """Return the number of parameters of a linear layer; None if its configuration does not determine it."""
    if subfolder != os.path.basename(subfolder):
        return None  # only directories beside the file are read
    fields = _read_fields(os.path.join(folder, subfolder, CONFIG_FILE))
    inputs, outputs, bias = fields.get("in_features"), fields.get("out_features"), fields.get("bias", True)
    activation = str(fields.get("activation_function", "Tanh")).rpartition(".")[2]
    if not isinstance(inputs, int) or not isinstance(outputs, int) or not isinstance(bias, bool):
        return None
    if inputs < 1 or outputs < 1 or activation not in _ACTIVATIONS_WITHOUT_PARAMETERS:
        return None
    return (inputs + bias) * outputs


def _read_fields(path: str) -> dict[str, object]:
    """Return the members of a JSON object; none if the file cannot be read."""
    data = _read_data(path)
    return cast("dict[str, object]", data) if isinstance(data, dict) else {}


def _read_data(path: str) -> object:
    """Return the data of a JSON file; None if it cannot be read."""
    report = Report()
    data = read_bytes(path, path, report, max_bytes=MAX_CONFIGURATION_BYTES)
    text = decode(data, path, report, max_bytes=MAX_CONFIGURATION_BYTES) if data is not None else None
    try:
        return read_json(Source(path, text)).data() if text is not None else None
    except ArchError:
        return None
