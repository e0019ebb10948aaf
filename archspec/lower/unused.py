"""What a definition binds or owns and never uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archspec.lower.patterns import by_first_word, covers, pattern_text
from archspec.lower.program import Program
from archspec.source import Span
from archspec.syntax import tree

if TYPE_CHECKING:
    from archspec.lower.definition import DefinitionCheck, Local

_HELP = {
    "input": "use it or remove it",
    "hyperparameter": "use it or remove it",
    "value": "remove it, or write `_` for an output that you do not need",
}


def check_unused(check: DefinitionCheck) -> None:
    """Reports the names and the addresses of a definition, walked through, that nothing in it uses."""
    program = check.program
    for name, local in check.locals.items():
        if name not in check.used:
            report_unused_name(program, name, local)
    referred = by_first_word([*(pattern for pattern, _ in check.referred), *check.meant])
    for owned in check.owned:
        if owned.applied or "unused" in owned.node.modifiers:
            continue
        if any(covers(owned.pattern, p) for p in referred.get(owned.pattern[0], ())):
            continue
        if not check.unit.reaches(owned.pattern):  # else each model is asked whether it does use it
            span = check.unit.span(owned.node.address)
            report_unused(program, pattern_text(owned.pattern), span, tensor=isinstance(owned.node, tree.Param))


def report_unused_name(program: Program, name: str, local: Local) -> None:
    """Reports an input, a hyperparameter or a value that nothing reads; the index of a loop need not be read."""
    if local.what in _HELP:
        message = f"unused {local.what} `{name}`"
        program.error(f"unused-{local.what}", message, local.span, help=_HELP[local.what])


def report_unused(program: Program, address: str, span: Span, *, tensor: bool = False) -> None:
    """Reports a layer that is never applied, or a tensor that nothing reads."""
    if tensor:
        help = "use it, remove it, or mark it `unused`"
        program.error("unused-tensor", f"unused tensor `{address}`", span, help=help)
    else:
        help = f"apply it, as in `.{address}(x)`, remove it, or mark it `unused`"
        program.error("unused-layer", f"`{address}` is declared but never applied", span, help=help)
