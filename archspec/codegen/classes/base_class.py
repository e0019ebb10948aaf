"""A definition that merges another one, as a class derived from the other one's class."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from archspec.codegen.classes.init_method import InitMethod
from archspec.codegen.python.trees import apply, py
from archspec.codegen.scope.attribute_paths import own_members
from archspec.codegen.scope.context import Context
from archspec.compiler.elaborate.trace import DefinitionUse, known_values
from archspec.compiler.resolve import nodes, walk
from archspec.compiler.resolve.unit import Definition


def base_class(
    context: Context, definition: Definition, uses: Sequence[DefinitionUse]
) -> tuple[str, list[ast.stmt]] | None:
    """The base class of a definition that merges another one, and the statements of `__init__` that initialize it.

    Raises ArchError (`untranslatable`) where a class cannot be derived.
    """
    bases = context.bases(definition)
    if not bases:
        return None
    init = InitMethod(context, definition, uses)
    merging = [own for own, always in _merging(init) if always]
    modules = context.modules(definition)
    if len(bases) > 1 or len(merging) != 1 or any(len(module.merged) != 1 for module in modules):
        message = "a class can only be derived from one other, which is the same in every use"
        init.scope.refuse(message, definition.node.name)
    (base,), (own,) = bases, merging
    emitted = context.emitted(base)
    if emitted.base.startswith("nn.") and emitted.base != "nn.Module":
        init.scope.refuse(f"a class cannot be derived from `{base.name}`, which is {emitted.base} in PyTorch", own)
    bounds = context.trace.variants_of(own, base)
    if any(not known_values(bound).isdisjoint(emitted.kept) for bound in bounds):
        init.scope.refuse("the hyperparameters of a base class cannot be bound in a value", own)
    for module in modules:
        shared = _first_words(own_members(module)) & _first_words(next(iter(module.merged.values())).members)
        if shared:
            message = f"`{min(shared)}` would contain parts that its base class declares, and others"
            init.scope.refuse(message, own)
    called = ast.Expr(apply(py("super().__init__"), *init.static.hyperparameters(base, own)))
    frozen = [ast.Expr(py("self.requires_grad_(False)"))] if "frozen" in own.modifiers else []
    return emitted.name, [*init.names(), called, *frozen]


def _first_words(members: Iterable[str]) -> set[str]:
    return {address.split(".")[0] for address in members}


def _merging(init: InitMethod) -> Iterator[tuple[nodes.ModuleDeclaration, bool]]:
    """What definitions merge in some use, and whether it is outside loops and branches that are not always taken."""
    for site in walk.iter_declaration_sites(init.scope.form.body):
        what = site.declaration.what
        if isinstance(what, nodes.ModuleDeclaration) and what.merges and init.scope.trace.targets(what):
            yield what, not site.loops and all(init.scope.truth(condition) is not None for condition, _ in site.guards)
