"""Labels of definitions and their entries, which a definition states without being evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from archspec.compiler.resolve.unit import Definition, Pattern, address_pattern, covers
from archspec.language.syntax import tree
from archspec.language.syntax.tree import iter_declarations, iter_statements


def entry_names(definition: Definition) -> list[str]:
    """Return the names of the hyperparameters, inputs and outputs of a definition."""
    inputs = [entry.name for entry in definition.inputs]
    return [*definition.hyperparameters, *inputs, *[output.name for output in definition.node.outputs if output.name]]


def names_entry(definition: Definition, pattern: Pattern) -> bool:
    """Whether a label for this address is one for an entry: for its name, where nothing is declared."""
    if len(pattern) != 1 or pattern[0] not in entry_names(definition):
        return False
    declared = [address_pattern(d.address) for d in iter_declarations(definition.node.body)]
    return not any(outer and (covers(outer, pattern) or covers(pattern, outer)) for outer in declared)


def entry_labels(definition: Definition) -> dict[str, str]:
    """Return the labels of hyperparameters, inputs and outputs by name.

    An inherited entry without a label has the one in the definition that declares it.
    """
    origins = {name: parameter.origin for name, parameter in definition.hyperparameters.items()}
    origins |= {name: origin for name, (origin, _) in definition.inherited_inputs.items()}
    own = {origin: _own_entry_labels(origin) for origin in {definition, *origins.values()}}
    inherited = {name: own[origin][name] for name, origin in origins.items() if name in own[origin]}
    return inherited | own[definition]


def _own_entry_labels(definition: Definition) -> dict[str, str]:
    labels: dict[str, str] = {}
    for statement in _labels(definition):
        for pattern in map(address_pattern, statement.addresses):
            if names_entry(definition, pattern):
                labels.setdefault(str(pattern[0]), statement.text)
    return labels


def definition_label(definition: Definition) -> str | None:
    """Return the label of a definition."""
    return next((statement.text for statement in _labels(definition) if not statement.addresses), None)


def _labels(definition: Definition) -> Iterator[tree.Label]:
    return (s for s in iter_statements(definition.node.body) if isinstance(s, tree.Label))
