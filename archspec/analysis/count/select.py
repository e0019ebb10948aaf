"""Selection of tensors by patterns of full names, `--select` and `--exclude`; separate, because `--help` imports it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from archspec.core.diagnostics import make_error
from archspec.core.record import Record
from archspec.ir.table import Table


class SelectionRule(Record):
    """A pattern of names, in which `*` matches any characters. `include` is True for `--select`, False for
    `--exclude`.
    """

    include: bool
    pattern: str


class Selection(Record):
    """The tensors that the rules select: `chosen` by name, with the `params` counted for each name.

    The parameters of a shared tensor are counted at its canonical name if it is chosen, otherwise at the first chosen
    alias. `params` therefore sums to `total` without counting anything twice. `unmatched` are the rules that match no
    name. `counted_elsewhere` maps each excluded name of a shared tensor to the chosen name at which it is counted.
    """

    chosen: tuple[bool, ...]
    params: tuple[int, ...]
    total: int
    unmatched: tuple[SelectionRule, ...]
    counted_elsewhere: dict[str, str]


def select(table: Table, rules: Sequence[SelectionRule] = ()) -> Selection:
    """Apply the rules in order; the last match wins.

    If the first rule excludes, all tensors are selected initially, otherwise none. Without rules, all are selected.
    """
    if not rules:
        all_params = tuple(table.tensors.column([tensor.params for tensor in table.tensors.distinct]))
        return Selection((True,) * len(all_params), all_params, table.params.total, (), {})
    chosen, excluded, unmatched = _match([tensor.name for tensor in table.tensors], rules)
    params: list[int] = []
    canonical = [t.name for t, is_chosen in zip(table.tensors, chosen, strict=True) if is_chosen and not t.tied_to]
    counted_at = dict(zip(canonical, canonical, strict=True))
    for tensor, is_chosen in zip(table.tensors, chosen, strict=True):
        is_counted = is_chosen and counted_at.setdefault(tensor.tied_to or tensor.name, tensor.name) == tensor.name
        params.append(tensor.size if is_counted else 0)
    elsewhere = {
        tensor.name: counted_at[tensor.tied_to or tensor.name]
        for tensor, is_excluded in zip(table.tensors, excluded, strict=True)
        if is_excluded and (tensor.tied_to or tensor.name) in counted_at
    }
    return Selection(tuple(chosen), tuple(params), sum(params), tuple(unmatched), elsewhere)


def describe_shared_tensors(selection: Selection) -> list[str]:
    """Describe the excluded names of tensors that are counted at another name."""
    pairs = [*selection.counted_elsewhere.items()]
    lines = [f"excluded, but counted as {counted}: {name}" for name, counted in pairs[:MAX_SHARED]]
    hidden = len(pairs) - MAX_SHARED
    return [*lines, f"excluded, but counted under another name: {hidden:,} more"] if hidden > 0 else lines


MAX_SHARED = 8


def _match(names: Iterable[str], rules: Sequence[SelectionRule]) -> tuple[list[bool], list[bool], list[SelectionRule]]:
    """Return whether each name is chosen, whether a rule excludes it, and the rules that match no name."""
    import re
    from fnmatch import translate

    for rule in rules:
        if not isinstance(rule.pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise make_error("usage", f"`SelectionRule` expects a string as `pattern`, found {rule.pattern!r:.40}")
    matchers = [(re.compile(translate(rule.pattern)).match, rule) for rule in rules]
    matched: set[SelectionRule] = set()
    chosen: list[bool] = []
    excluded: list[bool] = []
    for name in names:
        is_chosen, is_excluded = not rules[0].include, False
        for match, rule in matchers:
            if match(name):
                is_chosen, is_excluded = rule.include, not rule.include
                matched.add(rule)
        chosen.append(is_chosen)
        excluded.append(is_excluded)
    return chosen, excluded, [rule for rule in rules if rule not in matched]
