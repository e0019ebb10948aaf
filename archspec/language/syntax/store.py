"""Conversion of syntax trees to and from plain data for JSON.

A node is a list: the number of its class, then its fields. Loading validates every field.
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
_NUMBERS: dict[type, int] = {c: number for number, c in enumerate(_CLASSES)}
_ATOMS: dict[str, type] = {"int": int, "str": str, "bool": bool, "float": float, "None": type(None)}
_TYPES: set[object] = {"", "int", "bool"}
_MODIFIERS: set[object] = {(), ("frozen",), ("unused",), ("frozen", "unused"), ("unused", "frozen")}
_BINARY: set[object] = {
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
    (tree.Binary, "operator"): _BINARY,
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
    return _plain(file)


def load(data: object) -> File:
    """Convert plain data from `dump` to a tree. Raises only ValueError, for invalid data."""
    rows: _Rows = [[] for _ in _CLASSES]
    try:
        file = _FILE(data, rows)
        assert isinstance(file, File)
        for number, found in enumerate(rows):
            if found:
                _check(number, found, file.end)
    except (ArithmeticError, AttributeError, LookupError, TypeError, RecursionError) as error:
        raise ValueError("invalid syntax tree") from error
    return file


def _plain(value: object) -> object:
    if isinstance(value, SyntaxNode):
        number = _NUMBERS[type(value)]
        row = [number, *value]
        for index, _ in _FIELDS[number]:
            row[index + 1] = _plain(row[index + 1])
        return row
    return list(map(_plain, value)) if is_tuple(value) else value


def _check(number: int, rows: list[_Row], end: int) -> None:
    """Raise ValueError or TypeError unless the plain fields of these nodes have the types in their class."""
    columns = list(zip(*rows, strict=True))
    starts, ends = columns[0], columns[1]
    sound = len(columns) == len(_ANNOTATIONS[number])
    for index, types in _TYPES_OF[number]:
        sound = sound and types.issuperset(map(type, columns[index]))
    for index, choices in _CHOICES_OF[number]:
        sound = sound and choices.issuperset(columns[index])
    if not sound or min(starts) < 0 or max(ends) > end or not all(map(le, starts, ends)):
        raise ValueError(f"invalid {_CLASSES[number].__name__} nodes")


# Readers, created from the annotations of the classes -----------------------------------------------------------------


def _node_reader(names: list[str]) -> _NodeReader:
    """Return a reader of nodes of the named classes."""
    optional = "None" in names
    numbers = {number for name in names if name != "None" for number in _numbers(name)}

    def read(data: object, rows: _Rows) -> object:
        if data is None and optional:
            return None
        if not _is_list(data) or data[0] not in numbers:
            raise ValueError("invalid syntax tree")
        number: int = data[0]
        row = data[1:]
        for index, field in _FIELDS[number]:
            row[index] = field(row[index], rows)
        rows[number].append(row)
        return from_values(_CLASSES[number], row)  # `_check` compares its length with the fields of the class

    return read


def _list_reader(read: _NodeReader) -> _NodeReader:
    def read_all(data: object, rows: _Rows) -> object:
        if not _is_list(data):
            raise ValueError("invalid syntax tree")
        return tuple([read(item, rows) for item in data])

    return read_all


def _is_list(data: object) -> TypeGuard[_Row]:
    return type(data) is list


def _word(data: object, rows: _Rows) -> object:
    if type(data) is not str:
        raise ValueError("invalid syntax tree")
    return data


def _numbers(name: str) -> list[int]:
    named = getattr(tree, name)
    members = [named] if isinstance(named, type) else [getattr(m, "__forward_arg__", m) for m in get_args(named)]
    return [_NUMBERS[getattr(tree, m) if isinstance(m, str) else m] for m in members]


def _reader(annotation: str) -> _NodeReader | None:
    """Return the reader for a field, or None for plain data."""
    if annotation.startswith("tuple["):
        item = annotation.removeprefix("tuple[").removesuffix(", ...]")
        return _list_reader(_word if item == "str" else _node_reader([item]))
    names = annotation.split(" | ")
    return None if set(names) <= set(_ATOMS) else _node_reader(names)


_ANNOTATIONS: list[list[str]] = [["int", "int", *vars(c).get("__annotations__", {}).values()] for c in _CLASSES]
_READERS = {text: _reader(text) for text in {a for annotations in _ANNOTATIONS for a in annotations}}
_FIELDS: list[list[tuple[int, _NodeReader]]] = [
    [(i, read) for i, a in enumerate(annotations) if (read := _READERS[a]) is not None] for annotations in _ANNOTATIONS
]
_TYPES_OF: list[list[tuple[int, set[type]]]] = [
    [(i, {_ATOMS[n] for n in a.split(" | ")}) for i, a in enumerate(annotations) if _READERS[a] is None]
    for annotations in _ANNOTATIONS
]
_CHOICES_OF: list[list[tuple[int, set[object]]]] = [
    [(i, _CHOICES[c, name]) for i, name in enumerate(c.__match_args__) if (c, name) in _CHOICES] for c in _CLASSES
]
_FILE = _node_reader(["File"])
