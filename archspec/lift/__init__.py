"""Turn a PyTorch module into a readable spec."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """This package. Importing a part of it makes it `archspec.lift`, which is a function, so it can be called like that."""

    def __call__(self, *args: Any) -> str:
        from archspec.lift.api import lift

        return lift(*args)


sys.modules[__name__].__class__ = _Package
