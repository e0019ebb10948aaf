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
    from archspec.comparisons.api import compare
    from archspec.costs.api import cost
    from archspec.diffs.api import diff
    from archspec.explanations.api import explain
    from archspec.formulas.api import Formula, formula
    from archspec.model import Model
    from archspec.pipeline import import_config, load, models
    from archspec.pytorch.build import to_torch
    from archspec.scaffolds import scaffold
    from archspec.source import ArchError
    from archspec.verification.api import verify

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
        "Formula": "formulas.api",
        "Model": "model",
        "audit": "audits",
        "compare": "comparisons.api",
        "cost": "costs.api",
        "diff": "diffs.api",
        "explain": "explanations.api",
        "formula": "formulas.api",
        "import_config": "pipeline",
        "load": "pipeline",
        "models": "pipeline",
        "scaffold": "scaffolds",
        "to_torch": "pytorch.build",
        "verify": "verification.api",
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
