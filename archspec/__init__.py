"""archspec: architectures written down once, in a small language; their exact parameters, their graphs, their reasons.

    model = archspec.load("path/to/spec.arch", layers=6)
    model.params.total
    model.graph()

What is exported is imported at first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from archspec.audits import audit
    from archspec.functions.compare import compare
    from archspec.functions.cost import cost
    from archspec.functions.diff import diff
    from archspec.functions.explain import explain
    from archspec.functions.formula import Formula, formula
    from archspec.functions.verify import verify
    from archspec.model import Model
    from archspec.pipeline import import_config, load, models
    from archspec.pytorch.build import to_torch
    from archspec.scaffolds import scaffold
    from archspec.source import ArchError

__all__ = [
    "ArchError",
    "Formula",
    "Model",
    "__version__",
    "audit",
    "compare",
    "cost",
    "diff",
    "explain",
    "formula",
    "import_config",
    "load",
    "models",
    "scaffold",
    "to_torch",
    "verify",
]

__version__ = "0.1.0"

if not TYPE_CHECKING:  # a checker shall report names that do not exist
    _HOMES = {
        "ArchError": "source",
        "Formula": "functions.formula",
        "Model": "model",
        "audit": "audits",
        "compare": "functions.compare",
        "cost": "functions.cost",
        "diff": "functions.diff",
        "explain": "functions.explain",
        "formula": "functions.formula",
        "import_config": "pipeline",
        "load": "pipeline",
        "models": "pipeline",
        "scaffold": "scaffolds",
        "to_torch": "pytorch.build",
        "verify": "functions.verify",
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module 'archspec' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"archspec.{_HOMES[name]}"), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
