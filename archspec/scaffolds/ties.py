"""Names of one storage as `tie` statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from archspec.addresses import is_index, segments
from archspec.checkpoints.entries import Entry
from archspec.scaffolds.addresses import rounds, written
from archspec.scaffolds.structure import Index, progressions
from archspec.scaffolds.tensors import Tensor


def tied(entries: Iterable[Entry], tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Parameters that are another's elements: the name of each, and the first name of that storage."""
    firsts: dict[tuple[object, ...], str] = {}
    found: dict[str, str] = {}
    for entry in entries:
        if tensors[entry.name].kind == "param":
            first = firsts.setdefault(entry.place, entry.name)
            if first != entry.name:
                found[entry.name] = first
    return found


MOST_NUMBERS = 6
"""Numbers in a name that are tried as the one that is counted up."""

_Words = tuple[str | Index, ...]
_I = Index(1, 0)


def statements(ties: Mapping[str, str]) -> Iterator[str]:
    """`tie` statements: one for names that differ in one number, and are tied to one name or to those with the same
    number.
    """
    groups: dict[tuple[_Words, _Words], dict[int, str]] = {}
    for alias, counted in ties.items():
        for number, *pair in _ways(tuple(segments(alias)), tuple(segments(counted))):
            groups.setdefault((pair[0], pair[1]), {})[number] = alias
    order = {alias: place for place, alias in enumerate(ties)}
    said: list[tuple[int, str]] = []
    left = dict(ties)
    for (alias, counted), names in sorted(groups.items(), key=lambda group: -len(group[1])):
        for run in progressions(sorted(number for number, name in names.items() if name in left)):
            if len(run) > 1:
                index = Index(run[1] - run[0], run[0])
                pair = f"{written(_with(alias, index))} = {written(_with(counted, index))}"
                said.append((order[names[run[0]]], f"tie {pair} {rounds(index, len(run))}"))
                for number in run:
                    del left[names[number]]
    said += [
        (order[alias], f"tie {written(segments(alias))} = {written(segments(counted))}")
        for alias, counted in left.items()
    ]
    yield from (text for _, text in sorted(said))


def _ways(alias: tuple[str, ...], counted: tuple[str, ...]) -> Iterator[tuple[int, _Words, _Words]]:
    """Each number of `alias` that may be counted up, with both names around it; the second may have the number too."""
    places = [place for place in range(1, len(alias)) if is_index(alias[place])][:MOST_NUMBERS]
    for place in places:
        one = (*alias[:place], _I, *alias[place + 1 :])
        yield int(alias[place]), one, counted
        if place < len(counted) and counted[place] == alias[place]:
            yield int(alias[place]), one, (*counted[:place], _I, *counted[place + 1 :])


def _with(words: _Words, index: Index) -> _Words:
    return tuple(index if isinstance(word, Index) else word for word in words)
