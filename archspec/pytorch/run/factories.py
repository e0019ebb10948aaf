"""PyTorch modules from Python files: `FILE.py[:factory]`."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING

from archspec.core.diagnostics import ArchError, closest_match, make_error
from archspec.core.optional import import_torch

if TYPE_CHECKING:
    from torch import nn

DEFAULT = "build"

MAX_SUGGESTIONS = 3


def load_module(text: str) -> nn.Module:
    """Run a Python file, and return the module that its factory makes: a function or class that takes no arguments.

    `text` is the path of the file, with `:NAME` for a factory other than `build`. Raises ArchError if there is no such
    file or factory, or if running either fails.
    """
    return call_factory(*load_factory(text, "--module FILE.py:factory"))


def load_factory(text: str, written: str) -> tuple[str, str, Callable[..., nn.Module]]:
    """Run a Python file, and return its path, and the name and the value of its factory.

    `written` is how users write `text`. Raises ArchError if there is no such file or factory, or if running it fails.
    """
    import_torch()
    path, name = _divided(text)
    if not os.path.isfile(path):
        raise make_error("usage", f"there is no file `{path}`", help=f"write it as `{written}`")
    spec = spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if spec is None or spec.loader is None:
        raise make_error("usage", f"`{path}` is not a Python file", help=f"write it as `{written}`")
    loaded = module_from_spec(spec)
    with _beside(path):
        try:
            spec.loader.exec_module(loaded)
        except Exception as problem:  # user code may raise anything
            raise _failed(path, problem) from problem
    factory = getattr(loaded, name, None)
    if factory is None:
        help = _factories(path, name, loaded) or f"write `{written}`"
        raise make_error("usage", f"`{path}` defines no `{name}`", help=help)
    return path, name, factory


def _factories(path: str, name: str, loaded: ModuleType) -> str | None:
    """Suggest the function or class of a file with a similar name, or else the last ones that it defines itself."""
    callables = {known: value for known, value in vars(loaded).items() if callable(value)}
    near = closest_match(name, [*callables])
    if near is not None:
        return f"did you mean `{path}:{near}`?"
    own = [known for known, value in callables.items() if getattr(value, "__module__", None) == loaded.__name__]
    suggested = ", ".join([f"`{path}:{known}`" for known in own[-MAX_SUGGESTIONS:]])
    return f"name a function or class of the file: {suggested}" if own else None


def call_factory(path: str, name: str, factory: Callable[..., object]) -> nn.Module:
    """Return the module that a factory makes, in evaluation mode. Raises ArchError if it makes none."""
    import_torch()
    import torch

    required = [f"`{known}`" for known in _required(factory)]
    if required:
        help = "give its parameters default values, or name a function that calls it with some"
        raise make_error("usage", f"`{name}` in `{path}` cannot be called without {', '.join(required)}", help=help)
    with _beside(path):
        try:
            made = factory() if callable(factory) else None
            if isinstance(made, torch.nn.Module):
                made.eval()
        except Exception as problem:  # user code may raise anything
            raise _failed(path, problem) from problem
    if not isinstance(made, torch.nn.Module):
        raise make_error(
            "usage", f"`{name}` in `{path}` does not return a torch.nn.Module", help="call it without arguments"
        )
    return made


def parameters_of(factory: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a factory by name; none of what cannot be called, or does not say which it has."""
    try:
        return dict(inspect.signature(factory).parameters)
    except (TypeError, ValueError):
        return {}


def _required(factory: Callable[..., object]) -> list[str]:
    """Return the names of the parameters of a factory that have no default values."""
    varying = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    parameters = parameters_of(factory).items()
    return [name for name, item in parameters if item.default is item.empty and item.kind not in varying]


@contextmanager
def _beside(path: str) -> Generator[None]:
    """Let the modules in the directory of a file be imported."""
    directory = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, directory)
    try:
        yield
    finally:
        sys.path.remove(directory)


def _failed(path: str, problem: Exception) -> ArchError:
    return make_error("usage", f"running `{path}` fails: {type(problem).__name__}: {problem}")


def _divided(text: str) -> tuple[str, str]:
    path, colon, name = text.rpartition(":")
    return (path, name) if colon and name.isidentifier() else (text, DEFAULT)
