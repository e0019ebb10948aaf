"""Static checks of a file: names, arguments, and unused definitions."""

from __future__ import annotations

from archspec.check.unused import check_unused
from archspec.resolve.definition import resolve_model, resolved
from archspec.resolve.unit import Definition, Unit
from archspec.source import Report
from archspec.syntax import tree
from archspec.syntax.walk import names_in


def check_file(unit: Unit, report: Report) -> None:
    """Resolve every definition and model of a file, and check that everything in it is used."""
    used: set[str] = set()
    for item in unit.tree.items:
        if isinstance(item, tree.Definition):
            binding = unit.names[item.name.text]
            if isinstance(binding.target, Definition) and binding.target.node is item:
                form = resolved(binding.target, report)
                check_unused(binding.target, form, report)
                used |= form.scope.file_names
        elif isinstance(item, tree.Model):
            resolve_model(unit, item, report)
            used.add(item.callee.text)
            for argument in item.arguments.items if item.arguments is not None else ():
                if argument.value is not None:
                    used.update(names_in(argument.value))
        elif isinstance(item, tree.Import) and not item.names:
            help = "list the names to import, or remove it"
            report.error("unused-import", "this import lists no names", unit.span(item), help=help)
    for name, binding in unit.names.items():
        if binding.imported and binding.target is not None and name not in used | unit.broken:
            report.error("unused-import", f"unused import `{name}`", binding.span, help="remove it")
    for name, span in unit.dims.items():
        if name not in used | unit.broken:
            report.error("unused-dimension", f"unused dimension `{name}`", span, help="remove it")
