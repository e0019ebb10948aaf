"""Detection of unused names and declarations of a definition."""

from __future__ import annotations

from archspec.resolve.definition import Resolved
from archspec.resolve.files import Definition
from archspec.resolve.patterns import by_first_word, covers, pattern_text
from archspec.resolve.scope import LocalName
from archspec.source import Report, Span
from archspec.syntax import tree

_HELP = {
    "input": "use it or remove it",
    "hyperparameter": "use it or remove it",
    "value": "remove it, or write `_` for an output that you do not need",
}


def check_unused(definition: Definition, resolved: Resolved, report: Report) -> None:
    """Report the unused names and addresses of a definition."""
    scope = resolved.scope
    if resolved.broken:
        return
    for name, local in scope.unread:
        _report_name(name, local, report)
    if not resolved.returns and not definition.unit.tree.broken:
        return  # reported, and explains all further errors
    for name, local in scope.locals.items():
        if name not in scope.used and not any(name in callee.hyperparameters for callee in scope.forwards):
            _report_name(name, local, report)
    referred = by_first_word([*scope.referred, *scope.meant])
    for declared in scope.declared:
        if declared.applied or "unused" in declared.node.modifiers:
            continue
        if any(covers(declared.pattern, p) for p in referred.get(declared.pattern[0], ())):
            continue
        if not definition.unit.reaches(declared.pattern):  # otherwise each compiled model is checked for its use
            span = definition.unit.span(declared.node.address)
            _report_address(pattern_text(declared.pattern), isinstance(declared.node, tree.Param), span, report)


def _report_name(name: str, local: LocalName, report: Report) -> None:
    """Report an unused input, hyperparameter or value; the index of a loop may be unused.

    An input that is ignored changes what a model computes, so that it is an error.
    """
    if local.what in _HELP:
        report_as = report.error if local.what == "input" else report.warn
        report_as(f"unused-{local.what}", f"unused {local.what} `{name}`", local.span, help=_HELP[local.what])


def _report_address(address: str, is_tensor: bool, span: Span, report: Report) -> None:
    """Report a layer that is never applied, or an unused tensor."""
    if is_tensor:
        help = "use it, remove it, or mark it `unused`"
        report.error("unused-tensor", f"unused tensor `{address}`", span, help=help)
    else:
        help = f"apply it, as in `.{address}(x)`, remove it, or mark it `unused`"
        report.error("unused-layer", f"`{address}` is declared but never applied", span, help=help)
