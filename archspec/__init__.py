"""archspec: exact parameter counts, graphs and costs of architectures that are written in a small language.

    model = archspec.load("path/to/spec.arch", layers=6)
    model.params.total
    model.graph()

`__init__.pyi` lists what is exported. A name is imported when it is first used, so that importing the package is fast.
"""

from __future__ import annotations

import os

__version__ = "0.1.0"
__distribution__ = "archspec-dsl"


def __getattr__(name: str) -> object:
    from importlib import import_module

    exported = _exports()
    if name == "__all__":
        value = sorted({*exported, "__version__"})
    elif name in exported:
        value = getattr(import_module(exported[name]), name)
    else:
        raise AttributeError(f"module 'archspec' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_exports()})


def _exports() -> dict[str, str]:
    """The module of each exported name, from the lines `from MODULE import NAME as NAME` of the stub."""
    with open(os.path.join(os.path.dirname(__file__), "__init__.pyi"), encoding="utf-8") as stub:
        lines = [line.split() for line in stub]
    return {words[-1]: words[1] for words in lines if words[:1] == ["from"]}


def _is_beside_other_project() -> bool:
    """Return whether the unrelated distribution `archspec`, which has files of the same names, is in this folder."""
    try:
        names = os.listdir(os.path.dirname(os.path.dirname(__file__)))
    except OSError:  # not imported from a folder
        return False
    return "archspec-" in "".join(names) and any(
        name.startswith("archspec-") and name.endswith(".dist-info") for name in names
    )


if _is_beside_other_project():
    from warnings import warn

    from archspec_dsl import conflict_text

    warn(conflict_text(), stacklevel=2)
