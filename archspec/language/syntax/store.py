"""Conversion of syntax trees to and from plain data for JSON.

A node is a list: the index of its class, then its fields. Loading validates every field.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import le
from typing import Any, TypeGuard, get_args

from archspec.core.record import from_values, is_tuple
from archspec.language.syntax import tree
from archspec.language.syntax.tree import File, SyntaxNode

_Row = list[Any]  # the fields of a node
_Rows = list[list[_Row]]  # the nodes of each class
_NodeReader = Callable[[object, _Rows], object]

_CLASSES: list[type[SyntaxNode]] = [c for c in vars(tree).values() if isinstance(c, type) and SyntaxNode in c.__bases__]
_CLASS_INDICES: dict[type, int] = {c: number for number, c in enumerate(_CLASSES)}
_ATOMS: dict[str, type] = {"int": int, "str": str, "bool": bool, "float": float, "None": type(None)}
_TYPES: set[object] = {"", "int", "bool"}
_MODIFIERS: set[object] = {(), ("frozen",), ("unused",), ("frozen", "unused"), ("unused", "frozen")}
_BINARY_OPERATORS: set[object] = {
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "in",
    "not in",
    "and",
    "or",
}
_CHOICES: dict[tuple[type, str], set[object]] = {
    (tree.Unary, "operator"): {"-", "not"},
    (tree.Binary, "operator"): _BINARY_OPERATORS,
    (tree.Step, "operator"): {"", "+", "-", "*", "/"},
    (tree.ModuleDeclaration, "modifiers"): _MODIFIERS,
    (tree.TensorDeclaration, "modifiers"): _MODIFIERS,
    (tree.TensorDeclaration, "kind"): {"param", "buffer", "const"},
    (tree.TensorDeclaration, "type"): _TYPES,
    (tree.SignatureEntry, "type"): _TYPES,
    (tree.Output, "type"): _TYPES,
    (tree.Definition, "kind"): {"fn", "layer", "block"},
}


def dump(file: File) -> object:
    """Convert `file` to plain data."""
    return _to_plain(file)


def load(data: object) -> File:
    """Convert plain data from `dump` to a tree. Raises only ValueError, for invalid data."""
    rows: _Rows = [[] for _ in _CLASSES]
    try:
        file = _READ_FILE(data, rows)
        assert isinstance(file, File)
        for number, class_rows in enumerate(rows):
            if class_rows:
                _check_fields(number, class_rows, file.end)
    except (ArithmeticError, AttributeError, LookupError, TypeError, RecursionError) as error:
        raise ValueError("invalid syntax tree") from error
    return file


def _to_plain(value: object) -> object:
    if isinstance(value, SyntaxNode):
        number = _CLASS_INDICES[type(value)]
        row = [number, *value]
        for index, _ in _FIELD_READERS[number]:
            row[index + 1] = _to_plain(row[index + 1])
        return row
    return list(map(_to_plain, value)) if is_tuple(value) else value


def _check_fields(number: int, rows: list[_Row], end: int) -> None:
    """Check the plain fields of nodes of one class. Raises ValueError or TypeError."""
    columns = list(zip(*rows, strict=True))
    starts, ends = columns[0], columns[1]
    is_valid = len(columns) == len(_ANNOTATIONS[number])
    for index, types in _FIELD_TYPES[number]:
        is_valid = is_valid and types.issuperset(map(type, columns[index]))
    for index, choices in _FIELD_CHOICES[number]:
        is_valid = is_valid and choices.issuperset(columns[index])
    if not is_valid or min(starts) < 0 or max(ends) > end or not all(map(le, starts, ends)):
        raise ValueError(f"invalid {_CLASSES[number].__name__} nodes")


# Readers, created from the annotations of the classes -----------------------------------------------------------------


def _create_node_reader(names: list[str]) -> _NodeReader:
    """Create a reader for nodes of the named classes."""
    optional = "None" in names
    numbers = {number for name in names if name != "None" for number in _class_indices(name)}

    def read(data: object, rows: _Rows) -> object:
        if data is None and optional:
            return None
        if not _is_list(data) or data[0] not in numbers:
            raise ValueError("invalid syntax tree")
        number: int = data[0]
        row = data[1:]
        for index, field in _FIELD_READERS[number]:
            row[index] = field(row[index], rows)
        rows[number].append(row)
        return from_values(_CLASSES[number], row)  # `_check_fields` compares its length with the fields of the class

    return read


def _create_list_reader(read: _NodeReader) -> _NodeReader:
    def read_all(data: object, rows: _Rows) -> object:
        if not _is_list(data):
            raise ValueError("invalid syntax tree")
        return tuple([read(item, rows) for item in data])

    return read_all


def _is_list(data: object) -> TypeGuard[_Row]:
    return type(data) is list


def _read_string(data: object, rows: _Rows) -> object:
    if type(data) is not str:
        raise ValueError("invalid syntax tree")
    return data


def _class_indices(name: str) -> list[int]:
    named = getattr(tree, name)
    members = [named] if isinstance(named, type) else [getattr(m, "__forward_arg__", m) for m in get_args(named)]
    return [_CLASS_INDICES[getattr(tree, m) if isinstance(m, str) else m] for m in members]


def _create_reader(annotation: str) -> _NodeReader | None:
    """Create the reader for a field; None for plain data."""
    if annotation.startswith("tuple["):
        item = annotation.removeprefix("tuple[").removesuffix(", ...]")
        return _create_list_reader(_read_string if item == "str" else _create_node_reader([item]))
    names = annotation.split(" | ")
    return None if set(names) <= set(_ATOMS) else _create_node_reader(names)


_ANNOTATIONS: list[list[str]] = [["int", "int", *vars(c).get("__annotations__", {}).values()] for c in _CLASSES]
_READERS = {text: _create_reader(text) for text in {a for annotations in _ANNOTATIONS for a in annotations}}
_FIELD_READERS: list[list[tuple[int, _NodeReader]]] = [
    [(i, read) for i, a in enumerate(annotations) if (read := _READERS[a]) is not None] for annotations in _ANNOTATIONS
]
_FIELD_TYPES: list[list[tuple[int, set[type]]]] = [
    [(i, {_ATOMS[n] for n in a.split(" | ")}) for i, a in enumerate(annotations) if _READERS[a] is None]
    for annotations in _ANNOTATIONS
]
_FIELD_CHOICES: list[list[tuple[int, set[object]]]] = [
    [(i, _CHOICES[c, name]) for i, name in enumerate(c.__match_args__) if (c, name) in _CHOICES] for c in _CLASSES
]
_READ_FILE = _create_node_reader(["File"])
