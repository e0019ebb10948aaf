"""Static checks of a file: names and arguments, and unused imports, names, tensors and layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from archspec.compiler.resolve import nodes
from archspec.compiler.resolve.definition import ResolvedDefinition, resolve_definition, resolve_model
from archspec.compiler.resolve.scope import LocalName
from archspec.compiler.resolve.unit import Definition, Hyperparameter, Unit, covers, group_by_first_word, pattern_text
from archspec.compiler.resolve.walk import declarations
from archspec.core.diagnostics import Diagnostic, Note, Report, Span
from archspec.core.reports.text import literal
from archspec.language.syntax import tree
from archspec.language.syntax.tree import names_in

_HELP = {
    "input": "use it or remove it",
    "hyperparameter": "use it or remove it",
    "value": "remove it, or write `_` for an output that you do not need",
}


def check_file(unit: Unit, report: Report) -> None:
    """Resolve every definition and model of a file, and check that everything in it is used."""
    used: set[str] = set()
    for item in unit.tree.items:
        if isinstance(item, tree.Definition):
            binding = unit.names[item.name.text]
            if isinstance(binding.target, Definition) and binding.target.node is item:
                form = resolve_definition(binding.target, report)
                _check_unused(binding.target, form, report)
                _check_forwarded(binding.target, form, report)
                used |= form.scope.file_names
        elif isinstance(item, tree.Model):
            resolve_model(unit, item, report)
            used.add(item.callee.text)
            for argument in item.arguments.items if item.arguments is not None else ():
                if argument.value is not None:
                    used.update(names_in(argument.value))
        elif isinstance(item, tree.Import) and not item.names:
            help = "list the names to import, or remove it"
            report.warn("unused-import", "this import lists no names", unit.span(item), help=help)
    for name, binding in unit.names.items():
        if binding.imported and binding.target is not None and name not in used | unit.broken:
            report.warn("unused-import", f"unused import `{name}`", binding.span, help="remove it")
    for name, span in unit.dims.items():
        if name not in used | unit.broken:
            report.warn("unused-dimension", f"unused dimension `{name}`", span, help="remove it")


def _check_unused(definition: Definition, resolved: ResolvedDefinition, report: Report) -> None:
    """Report the unused names and addresses of a definition."""
    scope = resolved.scope
    if resolved.broken:
        return
    for name, local in scope.unread:
        _report_unused_name(name, local, report)
    if not resolved.returns and not definition.unit.tree.broken:
        return  # reported, and the cause of all further errors
    inherited = [p.default for p in definition.hyperparameters.values() if p.origin is not definition and p.default]
    used = scope.used.union(*map(names_in, inherited))
    for name, local in scope.locals.items():
        is_forwarded = name in definition.hyperparameters and any(name in f.hyperparameters for f in scope.forwards)
        if name not in used and not is_forwarded:
            _report_unused_name(name, local, report)
    referred = group_by_first_word([*scope.referred, *scope.suggested])
    for declared in scope.declared:
        if declared.applied or not declared.pattern or "unused" in declared.node.modifiers:
            continue
        if any(covers(declared.pattern, p) for p in referred.get(declared.pattern[0], ())):
            continue
        if not definition.unit.reaches(declared.pattern):  # else its use is checked in each compiled model
            span = definition.unit.span(declared.node.address)
            kind = declared.node.kind if isinstance(declared.node, tree.TensorDeclaration) else ""
            _report_unused_address(pattern_text(declared.pattern), kind, span, report)


def _report_unused_name(name: str, local: LocalName, report: Report) -> None:
    """Report an unused input, hyperparameter or value; the index of a loop may be unused.

    An unused input is an error, because a model that ignores an input computes different outputs.
    """
    if local.what in _HELP:
        report_as = report.error if local.what == "input" else report.warn
        report_as(f"unused-{local.what}", f"unused {local.what} `{name}`", local.span, help=_HELP[local.what])


def _report_unused_address(address: str, kind: str, span: Span, report: Report) -> None:
    """Report an unused tensor of this `kind`, or a layer that is never applied if `kind` is empty."""
    if kind:
        help = "use it or remove it" if kind == "const" else "use it, remove it, or mark it `unused`"
        report.error("unused-tensor", f"unused tensor `{address}`", span, help=help)
    else:
        help = f"apply it, as in `.{address}(x)`, remove it, or mark it `unused`"
        report.error("unused-layer", f"`{address}` is declared but never applied", span, help=help)


class _Receiver(NamedTuple):
    """A part of a definition to which `..` passes a hyperparameter."""

    callee: str
    forward: tree.Argument
    hyperparameter: Hyperparameter

    @property
    def default(self) -> object:
        """The default of the hyperparameter in the part; None if it is not a literal."""
        default = self.hyperparameter.default
        return default.value if isinstance(default, tree.Literal) else None


def _check_forwarded(definition: Definition, resolved: ResolvedDefinition, report: Report) -> None:
    """Report hyperparameters that `..` passes to several parts, of which one means something different by the name.

    It does if it is a model by itself whose default differs, and a part without a different default has the name, too.
    """
    receivers = [*_iter_receivers(definition, resolved)]
    for name, hyperparameter in definition.hyperparameters.items():
        default = hyperparameter.default
        if not isinstance(default, tree.Literal):
            continue
        named = [receiver for receiver in receivers if receiver.hyperparameter.name == name]
        different = [receiver for receiver in named if receiver.default not in (None, default.value)]
        for receiver in different if len(different) < len(named) else ():
            message = (
                f"`..` passes `{name}` to `{receiver.callee}`, but its default is {literal(receiver.default)} there, "
                f"not {literal(default.value)} as here"
            )
            span, note = definition.unit.span(receiver.forward), Note("the default there", receiver.hyperparameter.span)
            help = f"specify it: `{name} = ...`, or `{name} = {name}` if it has the same meaning"
            report.add(Diagnostic("ambiguous-name", message, span, (note,), help, "warning"))


def _iter_receivers(definition: Definition, resolved: ResolvedDefinition) -> Iterator[_Receiver]:
    """Yield each hyperparameter that `..` passes to a module."""
    for declaration in declarations(resolved.body):
        node = declaration.what
        if not isinstance(node, nodes.ModuleDeclaration) or node.arguments.forward is None:
            continue
        target = _callee(definition, node.callee)
        if target is None:
            continue
        explicit = {argument.name for argument in node.arguments.hyperparameters}
        names = target.hyperparameters.keys() & definition.hyperparameters.keys() - explicit
        is_model = all(item.default is not None for item in target.hyperparameters.values())
        for name in names if "" not in explicit else ():
            received = target.hyperparameters[name]
            yield _Receiver(
                target.name, node.arguments.forward, received if is_model else received._replace(default=None)
            )


def _callee(definition: Definition, callee: nodes.Expr) -> Definition | None:
    """Return the definition that a module declaration applies: named, or the default of a hyperparameter."""
    target = callee.target if isinstance(callee, nodes.Global) else None
    if isinstance(callee, nodes.Local) and callee.name in definition.hyperparameters:
        hyperparameter = definition.hyperparameters[callee.name]
        word = hyperparameter.default.text if isinstance(hyperparameter.default, tree.Name) else ""
        binding = hyperparameter.unit.names.get(word)
        target = binding.target if binding is not None else None
    return target if isinstance(target, Definition) else None
