"""Detection of unused names and declarations of a definition."""

from __future__ import annotations

from collections.abc import Callable

from archspec.resolve.definition import Resolved
from archspec.resolve.patterns import by_first_word, covers, pattern_text
from archspec.resolve.scope import LocalName
from archspec.resolve.unit import Definition
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
        if name not in scope.used:
            _report_name(name, local, report)
    referred = by_first_word([*scope.referred, *scope.meant])
    for declared in scope.declared:
        if declared.applied or "unused" in declared.node.modifiers:
            continue
        if any(covers(declared.pattern, p) for p in referred.get(declared.pattern[0], ())):
            continue
        if not definition.unit.reaches(declared.pattern):  # otherwise each compiled model is checked for its use
            span = definition.unit.span(declared.node.address)
            text, is_tensor = pattern_text(declared.pattern), isinstance(declared.node, tree.Param)
            report_unused_address(report.error, text, span, tensor=is_tensor)


def _report_name(name: str, local: LocalName, report: Report) -> None:
    """Report an unused input, hyperparameter or value; the index of a loop may be unused."""
    if local.what in _HELP:
        report.error(f"unused-{local.what}", f"unused {local.what} `{name}`", local.span, help=_HELP[local.what])


def report_unused_address(error: Callable[..., None], address: str, span: Span, *, tensor: bool = False) -> None:
    """Report a layer that is never applied, or an unused tensor."""
    if tensor:
        help = "use it, remove it, or mark it `unused`"
        error("unused-tensor", f"unused tensor `{address}`", span, help=help)
    else:
        help = f"apply it, as in `.{address}(x)`, remove it, or mark it `unused`"
        error("unused-layer", f"`{address}` is declared but never applied", span, help=help)
