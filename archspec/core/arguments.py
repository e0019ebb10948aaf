"""Checks of the arguments of public functions, whose callers may pass any object."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, cast

from archspec.core.diagnostics import make_error

if TYPE_CHECKING:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

_DESCRIPTIONS = {
    "None": "None",
    "bool": "a boolean",
    "int": "an integer",
    "str": "a string",
    "os.PathLike": "a path",
    "Mapping": "a mapping",
    "Sequence": "a list",
    "Collection": "a list",
    "Model": "a compiled model",
    "Device": "a Device",
    "Table": "a table",
    "SelectionRule": "a SelectionRule",
    "nn.Module": "a module of PyTorch",
    "torch.Tensor": "a tensor",
}
"""Descriptions of the types that are checked. Arguments that may be of any other type are not."""


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that raises ArchError (`usage`) for an argument whose type is not the annotated one."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    named = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    variadic = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & 0x04 else None

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        surplus = [(variadic, value) for value in args[len(positional) :] if variadic is not None]
        keywords = [(name, value) for name, value in kwargs.items() if name in named]
        for name, value in (*zip(positional, args, strict=False), *surplus, *keywords):
            annotation = function.__annotations__.get(name or "")
            if annotation is not None and not _is_accepted(annotation, value):
                types = " or ".join([_DESCRIPTIONS[_split(option)[0]] for option in _options(annotation)])
                message = f"`{function.__name__}` expects {types} as `{name}`, found {value!r:.40}"
                raise make_error("usage", message)
        return function(*args, **kwargs)

    return checked


def _options(annotation: str) -> list[str]:
    """Return the types of a union."""
    return re.split(r" \| (?![^\[]*\])", annotation)


def _split(option: str) -> tuple[str, str]:
    """Return a type and its parameters."""
    base, _, parameters = option.partition("[")
    return base, parameters.removesuffix("]")


def _is_accepted(annotation: str, value: object) -> bool:
    return any(_is_option(*_split(option), value) for option in _options(annotation))


def _is_option(base: str, parameters: str, value: object) -> bool:
    match base:
        case "None":
            return value is None
        case "bool":
            return isinstance(value, bool)
        case "int":
            return hasattr(value, "__index__") and not isinstance(value, bool)
        case "str":
            return isinstance(value, str)
        case "os.PathLike":
            return isinstance(value, os.PathLike)
        case "Mapping":
            if not isinstance(value, Mapping):
                return False
            key, _, item = parameters.partition(", ")
            pairs = cast("Mapping[object, object]", value).items()
            return all(_is_accepted(key, name) and _is_accepted(item, entry) for name, entry in pairs)
        case "Sequence" | "Collection":
            if not isinstance(value, Sequence if base == "Sequence" else Collection) or isinstance(value, str | bytes):
                return False
            return all(_is_accepted(parameters, item) for item in cast("Collection[object]", value))
        case _:
            names = [kind.__name__ for kind in type(value).__mro__]  # classes that this module cannot import
            return base not in _DESCRIPTIONS or base.rpartition(".")[2] in names
