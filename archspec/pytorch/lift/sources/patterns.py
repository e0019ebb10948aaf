"""Kinds of layers, as lists in a configuration name them, and the rule that they follow."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise

from archspec.pytorch.lift.notation.conditions import Varying, conditions
from archspec.pytorch.lift.sources.fields import is_list, kind_of, lists_in, numbers_in, scopes_of

_PATTERN = r"interval|period|pattern|every|freq|skip|sparse_step|dense_replace|full_attention|attn_layer|layer_types"
"""Parts of the names of fields that say that some layers are different."""

MAX_KINDS = 2
"""A loop has layers of so many kinds."""


def has_patterns(fields: Mapping[str, object]) -> bool:
    """Whether layers may differ in a way that depends on their number."""
    if names_layers(fields):
        return True
    for scope in scopes_of(fields):
        counts = [value for name, value in numbers_in(scope) if kind_of(name) == "layers"]
        for name, value in scope.items():
            items = [*map(str, value)] if is_list(value) else []
            if len(items) in counts and len({*items}) > 1:
                return True
            if re.search(_PATTERN, name) and value and not isinstance(value, list | str | float):
                return True
    return False


def names_layers(fields: Mapping[str, object]) -> bool:
    """Whether there is a list of the numbers of some layers."""
    return any(kind_of(name) == "at_layer" for scope in scopes_of(fields) for name, _ in lists_in(scope))


def shows_rule(kinds: Sequence[Hashable], few: int) -> bool:
    """Whether the condition on the index of a loop that distinguishes the first few layers is that of all layers.

    Also true without a rule to show: for layers that do not alternate, or that no condition distinguishes.
    """
    start = next(first for first in range(few) if len({*kinds[first:few]}) <= MAX_KINDS)
    some, every = kinds[start:few], kinds[start:]
    if len({*every}) > MAX_KINDS or not _alternates(every):
        return True
    values, others = [Varying(tuple([kind == every[0] for kind in part]), start) for part in (some, every)]
    if not any(others.follows(holds) for _, holds in conditions(others)):
        return True
    found = next((holds for _, holds in conditions(values) if values.follows(holds)), None)
    return _alternates(some) and found is not None and others.follows(found)


def _alternates(kinds: Sequence[Hashable]) -> bool:
    return 1 < len({*kinds}) <= sum([first != second for first, second in pairwise(kinds)])
