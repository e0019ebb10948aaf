"""Writes the fields that configuration classes read: `python -m archspec.formats.configs.generate`.

The source of the installed `transformers` is parsed, not imported. A name is listed if the class may read it, so there
are more names than fields: a field that is not listed cannot have an effect.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec

from archspec.core import resources
from archspec.formats.configs.facts import CLASSES_FILE
from archspec.formats.configs.family import known_types

_UNREAD_PREFIXES = (
    *("tokenization_", "processing_", "image_processing_", "feature_extraction_", "video_processing_"),
    *("convert_", "modular_", "trainer", "training_args", "testing_", "dummy_", "__init__"),
)
_UNREAD_FOLDERS = ("pipelines", "cli", "data", "exporters", "decision")
_READERS = ("getattr", "hasattr", "setattr", "delattr")


def classes_text() -> str:
    """Return the contents of the file: the model types, names in shared code, and names of each supported type."""
    spec = find_spec("transformers")
    assert spec is not None and spec.origin is not None, "transformers is not installed"
    root = os.path.dirname(spec.origin)
    models = os.path.join(root, "models")
    configurations = _read_configurations(models)
    shared = set[str]()
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - {"models", *_UNREAD_FOLDERS})
        for file in files:
            shared |= _read_names(os.path.join(folder, file), is_shared=True)
    shared |= _read_folder(os.path.join(models, "auto"), models)
    types: dict[str, dict[str, list[str]]] = {}
    for type in known_types(resources.specs_root()):
        if type in configurations:
            folder = configurations[type]
            names = _read_folder(folder, models)
            types[type] = {"classes": sorted(_read_classes(folder)), "fields": sorted(names - shared)}
    rows = [f"{json.dumps(type)}: {json.dumps(entry)}" for type, entry in types.items()]
    facts = {
        "transformers": json.dumps(version("transformers")),
        "model_types": json.dumps(sorted(configurations)),
        "shared": json.dumps(sorted(shared)),
        "types": "{\n  " + ",\n  ".join(rows) + "\n }",
    }
    return "{" + ",\n ".join(f'"{name}": {text}' for name, text in facts.items()) + "}\n"


def _read_configurations(models: str) -> dict[str, str]:
    """Return the folder of each model type, by the `model_type` of its configuration class."""
    folders: dict[str, str] = {}
    for name in sorted(os.listdir(models)):
        folder = os.path.join(models, name)
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if not file.startswith("configuration_"):
                continue
            for node in ast.walk(_parse(os.path.join(folder, file))):
                match node:
                    case (
                        ast.Assign(targets=[ast.Name(id="model_type")], value=ast.Constant(value=str(type)))
                        | ast.AnnAssign(target=ast.Name(id="model_type"), value=ast.Constant(value=str(type)))
                    ):
                        folders[type] = folder
                    case _:
                        pass
    return folders


def _read_folder(folder: str, models: str) -> set[str]:
    """Return the names in the folder of a model, and in those from which it imports."""
    names = set[str]()
    pending, seen = [folder], set[str]()
    while pending:
        folder = pending.pop()
        if folder in seen:
            continue
        seen.add(folder)
        for file in sorted(os.listdir(folder)):
            path = os.path.join(folder, file)
            names |= _read_names(path)
            if file.endswith(".py") and not file.startswith(_UNREAD_PREFIXES):
                imported = [os.path.join(models, name) for name in _iter_imported_models(path)]
                pending += [path for path in imported if os.path.isdir(path)]
    return names


def _iter_imported_models(path: str) -> Iterator[str]:
    """Yield the names of the models from which a file of a model imports."""
    for node in ast.walk(_parse(path)):
        if isinstance(node, ast.ImportFrom) and node.level >= 2 and node.module is not None:
            names = node.module.split(".")
            yield names[0] if node.level == 2 else names[1] if names[0] == "models" and len(names) > 1 else ""


def _read_classes(folder: str) -> set[str]:
    """Return the names that the files of models in a folder export."""
    names = set[str]()
    for file in os.listdir(folder):
        for node in _parse(os.path.join(folder, file)).body if file.startswith("modeling_") else ():
            match node:
                case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=items)):
                    names |= {str(item.value) for item in items if isinstance(item, ast.Constant)}
                case _:
                    pass
    return names


def _read_names(path: str, *, is_shared: bool = False) -> set[str]:
    """Return the names that a file may read from a configuration."""
    file = os.path.basename(path)
    if not file.endswith(".py") or file.startswith(_UNREAD_PREFIXES):
        return set()
    is_configuration = file.startswith(("configuration_", "modeling_rope_utils"))
    names = {*(_iter_configuration_names(path) if is_configuration else _iter_read_names(path))}
    if is_shared:  # shared code also has lists of the names of fields
        strings = (node.value for node in ast.walk(_parse(path)) if isinstance(node, ast.Constant))
        names.update(name for name in strings if isinstance(name, str))
    return {name for name in names if name.isidentifier()}


def _iter_configuration_names(path: str) -> Iterator[str]:
    """Yield all names in a file of configuration classes: fields, methods, attributes and strings."""
    for node in ast.walk(_parse(path)):
        match node:
            case ast.Constant(value=str(name)) | ast.Attribute(attr=name) | ast.Name(id=name):
                yield name
            case ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield name
            case _:
                pass


def _iter_read_names(path: str) -> Iterator[str]:
    """Yield the names that are read from objects and dictionaries called `config`, and those read by a string."""
    for node in ast.walk(_parse(path)):
        match node:
            case ast.Attribute(value=value, attr=name) if _is_configuration(value):
                yield name
            case ast.Subscript(value=value, slice=ast.Constant(value=str(name))) if _is_configuration(value):
                yield name
            case ast.Call(func=function, args=arguments) if _is_reader(function):
                yield from [a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            case _:
                pass


def _is_reader(function: ast.expr) -> bool:
    """Whether a function may read a field by its name: `getattr`, or a method of a configuration."""
    match function:
        case ast.Name(id=name):
            return name in _READERS
        case ast.Attribute(value=value):
            return _is_configuration(value)
        case _:
            return False


def _is_configuration(node: ast.expr) -> bool:
    """Whether an expression may be a configuration, judged by its name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return "config" in name.lower() or "cfg" in name.lower()
        case ast.Call(func=function):
            return _is_configuration(function)
        case _:
            return False


@cache
def _parse(path: str) -> ast.Module:
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read())


def write_classes() -> None:
    """Write the file beside the mappings of configurations."""
    path = os.path.join(resources.specs_root(), "configs", CLASSES_FILE)
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(classes_text())


if __name__ == "__main__":
    write_classes()
