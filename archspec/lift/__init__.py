"""Turn a PyTorch module into a readable spec."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """This package. Once a part of it is imported, it is `archspec.lift`, so it can be called like that function."""

    def __call__(self, *args: Any) -> str:
        return import_module("archspec.lift.api").lift(*args)


sys.modules[__name__].__class__ = _Package
