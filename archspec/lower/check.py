"""What can be said of a file before anything is compiled: names, arguments, and what is never used."""

from __future__ import annotations

from archspec.lower.definition import DefinitionCheck
from archspec.lower.evaluate import Evaluator
from archspec.lower.plan import names_in
from archspec.lower.program import Program
from archspec.lower.units import Definition, Unit
from archspec.source import suggest
from archspec.syntax import tree


def check_unit(program: Program, unit: Unit) -> None:
    """Checks every definition and model of a file, and that every import and dimension is used."""
    used: set[str] = set()
    for item in unit.tree.items:
        if isinstance(item, tree.Definition):
            binding = unit.names[item.name.text]
            if isinstance(binding.target, Definition) and binding.target.node is item:
                DefinitionCheck(program, binding.target, used).run()
        elif isinstance(item, tree.Model):
            _check_model(program, unit, item, used)
        elif isinstance(item, tree.Import) and not item.names:
            program.error(
                "unused-import",
                "this import lists no names",
                unit.span(item),
                help="list the names to import, or remove it",
            )
    for name, binding in unit.names.items():
        if binding.imported and binding.target is not None and name not in used | unit.broken:
            program.error("unused-import", f"unused import `{name}`", binding.span, help="remove it")
    for name, span in unit.dims.items():
        if name not in used | unit.broken:
            program.error("unused-dimension", f"unused dimension `{name}`", span, help="remove it")


def _check_model(program: Program, unit: Unit, model: tree.Model, used: set[str]) -> None:
    evaluator = Evaluator(program, unit, None, {})
    used.add(model.callee.text)
    target = unit.names.get(model.callee.text)
    if target is None:
        if model.callee.text not in unit.broken:
            near = suggest(model.callee.text, [n for n, b in unit.names.items() if isinstance(b.target, Definition)])
            evaluator.fault("unknown-name", f"unknown name `{model.callee.text}`", model.callee, help=near)
    elif not isinstance(target.target, Definition | None) or (target.target and target.target.kind == "fn"):
        evaluator.fault("wrong-kind", "expected the name of a block or layer", model.callee)
    for item in model.arguments.items if model.arguments else ():
        if item.value is not None:
            used.update(names_in(item.value))
