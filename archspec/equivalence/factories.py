"""PyTorch modules from Python files: `FILE.py[:factory]`."""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any

from archspec.pytorch.build import torch_or_fail
from archspec.source import fail

if TYPE_CHECKING:
    from torch import nn

DEFAULT = "build"


def module_from(text: str) -> nn.Module:
    """Run a Python file, and return the module that its factory makes: a function or class that takes no arguments.

    `text` is the path of the file, with `:NAME` for a factory other than `build`. Raises ArchError if there is no such
    file or factory, or if running either fails.
    """
    torch = torch_or_fail()
    path, name = _divided(text)
    if not os.path.isfile(path):
        raise fail("usage", f"there is no file `{path}`", help="write it as `--module FILE.py:factory`")
    spec = spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if spec is None or spec.loader is None:
        raise fail("usage", f"`{path}` is not a Python file", help="write it as `--module FILE.py:factory`")
    loaded = module_from_spec(spec)
    directory = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, directory)
    try:
        spec.loader.exec_module(loaded)
        factory = getattr(loaded, name, None)
        made: Any = factory() if callable(factory) else None
    except Exception as problem:  # of any class, as it comes from the user's file
        raise fail("usage", f"running `{path}` fails: {type(problem).__name__}: {problem}") from problem
    finally:
        sys.path.remove(directory)
    if factory is None:
        raise fail("usage", f"`{path}` defines no `{name}`", help="name the factory: `--module FILE.py:factory`")
    if not isinstance(made, torch.nn.Module):
        raise fail("usage", f"`{name}` in `{path}` does not return a torch.nn.Module", help="call it without arguments")
    return made


def _divided(text: str) -> tuple[str, str]:
    path, colon, name = text.rpartition(":")
    return (path, name) if colon and name.isidentifier() else (text, DEFAULT)
