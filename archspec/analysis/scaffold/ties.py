"""Generation of `tie` statements for names that share a storage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from archspec.analysis.scaffold.addresses import loop_clause, written
from archspec.analysis.scaffold.structure import Index, progressions
from archspec.analysis.scaffold.tensors import Tensor
from archspec.core.addresses import is_index, segments
from archspec.formats.checkpoints.entries import Entry


def tied(entries: Iterable[Entry], tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Map the name of each tied parameter to the first name of its storage."""
    firsts: dict[tuple[object, ...], str] = {}
    found: dict[str, str] = {}
    for entry in entries:
        if tensors[entry.name].kind == "param":
            first = firsts.setdefault(entry.place, entry.name)
            if first != entry.name:
                found[entry.name] = first
    return found


MAX_NUMBERS = 6
"""The maximum number of segments of a name that are tried as a loop index."""

_Words = tuple[str | Index, ...]
_I = Index(1, 0)


def statements(ties: Mapping[str, str]) -> Iterator[str]:
    """Yield `tie` statements, with a loop for names that differ in one number.

    In a loop, the names are tied to a single name, or to names with the same number.
    """
    groups: dict[tuple[_Words, _Words], dict[int, str]] = {}
    for alias, counted in ties.items():
        for number, *pair in _candidates(tuple(segments(alias)), tuple(segments(counted))):
            groups.setdefault((pair[0], pair[1]), {})[number] = alias
    order = {alias: position for position, alias in enumerate(ties)}
    lines: list[tuple[int, str]] = []
    left = dict(ties)
    for (alias, counted), names in sorted(groups.items(), key=lambda group: -len(group[1])):
        for run in progressions(sorted(number for number, name in names.items() if name in left)):
            if len(run) > 1:
                index = Index(run[1] - run[0], run[0])
                pair = f"{written(_with(alias, index))} = {written(_with(counted, index))}"
                lines.append((order[names[run[0]]], f"tie {pair} {loop_clause(index, len(run))}"))
                for number in run:
                    del left[names[number]]
    lines += [
        (order[alias], f"tie {written(segments(alias))} = {written(segments(counted))}")
        for alias, counted in left.items()
    ]
    yield from (text for _, text in sorted(lines))


def _candidates(alias: tuple[str, ...], counted: tuple[str, ...]) -> Iterator[tuple[int, _Words, _Words]]:
    """Yield each number of `alias` that may be a loop index, with both names generalized over it."""
    indices = [i for i in range(1, len(alias)) if is_index(alias[i])][:MAX_NUMBERS]
    for i in indices:
        one = (*alias[:i], _I, *alias[i + 1 :])
        yield int(alias[i]), one, counted
        if i < len(counted) and counted[i] == alias[i]:
            yield int(alias[i]), one, (*counted[:i], _I, *counted[i + 1 :])


def _with(words: _Words, index: Index) -> _Words:
    return tuple(index if isinstance(word, Index) else word for word in words)
