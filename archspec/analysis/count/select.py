"""Selection of tensors: `--select` and `--exclude` patterns of whole tensor names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from archspec.core.record import Record
from archspec.ir.table import Table


class SelectionRule(Record):
    """A pattern of names, in which `*` matches any characters. `include` is True for `--select`, False for
    `--exclude`.
    """

    include: bool
    pattern: str


class Selection(Record):
    """The tensors that the rules selected: `chosen` by name, with the `params` counted for each.

    The parameters of a shared tensor are counted at its canonical name if that is chosen, otherwise at the first of its
    other names that is; `params` thus sums to `total` without counting anything twice. `unmatched` are the rules that
    match no name.
    """

    chosen: tuple[bool, ...]
    params: tuple[int, ...]
    total: int
    unmatched: tuple[SelectionRule, ...]


def select(table: Table, rules: Sequence[SelectionRule] = ()) -> Selection:
    """Apply the rules in order; the last match wins.

    If the first rule excludes, all tensors start out selected, otherwise none. Without rules all are selected.
    """
    if not rules:
        everything = tuple(table.tensors.column([tensor.params for tensor in table.tensors.distinct]))
        return Selection((True,) * len(everything), everything, table.params.total, ())
    chosen, unmatched = _match([tensor.name for tensor in table.tensors], rules)
    params: list[int] = []
    canonical = [t.name for t, is_chosen in zip(table.tensors, chosen, strict=True) if is_chosen and not t.tied_to]
    counted_at = dict(zip(canonical, canonical, strict=True))
    for tensor, is_chosen in zip(table.tensors, chosen, strict=True):
        here = is_chosen and counted_at.setdefault(tensor.tied_to or tensor.name, tensor.name) == tensor.name
        params.append(tensor.size if here else 0)
    return Selection(tuple(chosen), tuple(params), sum(params), tuple(unmatched))


def _match(names: Iterable[str], rules: Sequence[SelectionRule]) -> tuple[list[bool], list[SelectionRule]]:
    import re
    from fnmatch import translate

    matchers = [(re.compile(translate(rule.pattern)).match, rule) for rule in rules]
    seen: set[SelectionRule] = set()
    chosen: list[bool] = []
    for name in names:
        state = not rules[0].include
        for matches, rule in matchers:
            if matches(name):
                state = rule.include
                seen.add(rule)
        chosen.append(state)
    return chosen, [rule for rule in rules if rule not in seen]
