"""Changes of tensors between two models: exactly, by name, and collapsed for display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from archspec.core.addresses import ANY_INDEX, is_index, is_inside, join, last_segment, parent, prefixes, relative
from archspec.core.addresses.repeats import NamePattern, collapse_names
from archspec.ir.table import Table


class StoredTensor(NamedTuple):
    """A tensor as a checkpoint and an optimizer see it.

    `kind` is "param" or "buffer"; a buffer is never `trainable`. `tied_to` is the name under which it is counted, if
    that is a different one.
    """

    kind: str
    shape: tuple[int, ...]
    trainable: bool
    tied_to: str | None


Contents = dict[str, StoredTensor]
"""Return all tensors of a model by name."""


def contents(table: Table) -> Contents:
    """Return the parameters and buffers of a model by name."""
    found = {t.name: StoredTensor("param", t.shape, t.trainable, t.tied_to) for t in table.tensors}
    return found | {
        b.name: StoredTensor("buffer", b.shape, False, table.buffer_ties.get(b.name)) for b in table.buffers
    }


class NamePrefix(NamedTuple):
    """A prefix of the names of one model only: `added` to all of A's names, or `removed` from those of A that have it.
    At most one of the two is not empty.
    """

    added: str = ""
    removed: str = ""

    def rename(self, name: str) -> str:
        """Convert a name of A to B's."""
        return self.added + name.removeprefix(self.removed)


class TensorChange(NamedTuple):
    """The change of the tensor that B calls `name`; `before` or `after` is None if that model does not have it."""

    name: str
    before: StoredTensor | None
    after: StoredTensor | None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of change: added, removed, reshaped, tied, untied, retied, frozen, unfrozen, param, buffer."""
        before, after = self.before, self.after
        if before is None or after is None:
            return ("added",) if before is None else ("removed",)
        found = [after.kind] if before.kind != after.kind else []
        if before.shape != after.shape:
            found.append("reshaped")
        if before.kind == after.kind and before.tied_to != after.tied_to:
            found.append("tied" if before.tied_to is None else "untied" if after.tied_to is None else "retied")
        if before.kind == after.kind and before.trainable != after.trainable:
            found.append("unfrozen" if after.trainable else "frozen")
        return tuple(found)


class Repetition(NamedTuple):
    """A numbered component (`encoder.layer.*`) of which one model has more: `before` in A, `after` in B.

    `numbers` are the indices that were added or removed. Each of these components has `tensors` tensors, the same as
    the component `like`, which is in both models.
    """

    address: str
    before: int
    after: int
    numbers: tuple[int, ...]
    tensors: int
    like: str


def renamed(tensors: Contents, prefix: NamePrefix) -> Contents:
    """Return the tensors under B's names."""
    rename = prefix.rename
    return {
        rename(name): stored._replace(tied_to=rename(stored.tied_to)) if stored.tied_to else stored
        for name, stored in tensors.items()
    }


def changes(before: Contents, after: Contents) -> tuple[TensorChange, ...]:
    """Return the tensors that differ, in A's order, followed by the added ones in B's order."""
    pairs = [TensorChange(name, before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after))]
    return tuple([pair for pair in pairs if pair.before != pair.after])


def changed(tensors: Contents, prefix: NamePrefix, steps: Sequence[TensorChange]) -> Contents:
    """Apply `steps` to A's tensors. Raises ValueError if these do not match the steps."""
    found = renamed(tensors, prefix)
    for name, before, after in steps:
        if found.get(name) != before:
            raise ValueError(f"cannot apply the changes: {name} differs from the model that they were made for")
        if after is None:
            del found[name]
        else:
            found[name] = after
    return found


def common_prefix(before: Contents, after: Contents) -> NamePrefix:
    """Detect the prefix under which the most names of the models agree, if these are more than without it, and more
    than half of the names of the model without it. Names agree if their kinds and their numbers of axes do.
    """
    plain = _agreeing(before, after)
    best, most = NamePrefix(), plain
    for shorter, longer, adds in ((before, after, True), (after, before, False)):
        for prefix, agreeing in _candidates(shorter, longer).items():
            found = NamePrefix(added=prefix) if adds else NamePrefix(removed=prefix)
            if agreeing > most and 2 * agreeing > len(shorter) and len(renamed(before, found)) == len(before):
                best, most = found, agreeing
    return best


def _alike(a: StoredTensor | None, b: StoredTensor | None) -> bool:
    return a is not None and b is not None and a.kind == b.kind and len(a.shape) == len(b.shape)


def _agreeing(before: Contents, after: Contents) -> int:
    return sum(_alike(stored, after.get(name)) for name, stored in before.items())


def _candidates(shorter: Contents, longer: Contents) -> Counter[str]:
    """Count, for each prefix, the names of `longer` that are names of `shorter` without it."""
    found: Counter[str] = Counter()
    for name, stored in longer.items():
        for outer in prefixes(name):
            if _alike(shorter.get(relative(name, outer)), stored):
                found[f"{outer}."] += 1
    return found


# Collapsing -----------------------------------------------------------------------------------------------------------


class TensorChanges(NamedTuple):
    """One change of tensors whose names differ only in indices; `kinds` are as in TensorChange."""

    kinds: tuple[str, ...]
    fold: NamePattern
    before: StoredTensor | None
    after: StoredTensor | None


def folded(steps: Sequence[TensorChange]) -> list[TensorChanges]:
    """Collapse changes over numbers."""
    described = {step.name: (step.kinds, step.before, step.after) for step in steps}
    return [
        TensorChanges(kinds, names, before, after)
        for names, (kinds, before, after) in collapse_names(described.items())
    ]


def repetitions(before: Contents, after: Contents) -> list[Repetition]:
    """Return the numbered components of which one model has more, each equal to one at a number in both models."""
    ours, theirs = _numbered(before), _numbered(after)
    found: list[Repetition] = []
    done: list[str] = []
    for address in dict.fromkeys((*ours, *theirs)):
        numbers, others = ours.get(address, {}), theirs.get(address, {})
        common = sorted(numbers.keys() & others.keys())
        if not common or any(is_inside(address, outer) for outer in done):
            continue
        for more, fewer in ((numbers, others), (others, numbers)):
            extra = sorted(more.keys() - fewer.keys())
            like = more[common[-1]]
            if extra and not fewer.keys() - more.keys() and all(more[i] == like for i in extra):
                pattern, sample = join(address, ANY_INDEX), join(address, str(common[-1]))
                found.append(Repetition(pattern, len(numbers), len(others), tuple(extra), len(like), sample))
                done += [join(address, str(i)) for i in extra]
    return found


def covered(found: Sequence[Repetition]) -> Iterator[str]:
    """Yield the prefixes of the names in repetitions."""
    for repetition in found:
        yield from (f"{join(parent(repetition.address), str(i))}." for i in repetition.numbers)


def _numbered(tensors: Mapping[str, StoredTensor]) -> dict[str, dict[int, Contents]]:
    """Return, for each address before a number (`encoder.layer`), the tensors at each number, with relative ties."""
    found: dict[str, dict[int, Contents]] = {}
    for name, stored in tensors.items():
        for outer in prefixes(name):
            if outer != name and is_index(last_segment(outer)):
                tied = stored.tied_to
                if tied is not None and is_inside(tied, outer):
                    tied = f".{relative(tied, outer)}"
                inside = found.setdefault(parent(outer), {}).setdefault(int(last_segment(outer)), {})
                inside[relative(name, outer)] = stored._replace(tied_to=tied)
    return found
