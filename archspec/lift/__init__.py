"""Turn a PyTorch module into a readable spec."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """This package. Once a part of it is imported, it is `archspec.lift`, so it can be called like that function."""

    def __call__(self, *args: Any) -> str:
        from archspec.lift.api import lift

        return lift(*args)


sys.modules[__name__].__class__ = _Package
