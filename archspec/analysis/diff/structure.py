"""Changes of tensors between two models, by name, and collapsed for display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from archspec.core.addresses import ANY_INDEX, is_index, is_inside, join, last_segment, parent, prefixes, relative
from archspec.core.addresses.repeats import NamePattern, collapse_names
from archspec.ir.table import Table


class StoredTensor(NamedTuple):
    """The properties of a tensor that matter for a checkpoint and an optimizer.

    `kind` is "param" or "buffer"; a buffer is never `trainable`. `tied_to` is the name under which it is counted, if
    it is a different name.
    """

    kind: str
    shape: tuple[int, ...]
    trainable: bool
    tied_to: str | None


StoredTensors = dict[str, StoredTensor]
"""All tensors of a model by name."""


def stored_tensors(table: Table) -> StoredTensors:
    """Return the parameters and buffers of a model by name."""
    parameters = {t.name: StoredTensor("param", t.shape, t.trainable, t.tied_to) for t in table.tensors}
    return parameters | {
        b.name: StoredTensor("buffer", b.shape, False, table.buffer_ties.get(b.name)) for b in table.buffers
    }


class NamePrefix(NamedTuple):
    """A prefix of the names of one model: `added` to all of A's names, or `removed` from A's names that have it.
    At least one of the two is empty.
    """

    added: str = ""
    removed: str = ""

    def rename(self, name: str) -> str:
        """Convert a name of A to a name of B."""
        return self.added + name.removeprefix(self.removed)


class TensorChange(NamedTuple):
    """The change of the tensor `name` (in B); `before` or `after` is None if A or B does not have it."""

    name: str
    before: StoredTensor | None
    after: StoredTensor | None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of change: added, removed, reshaped, tied, untied, retied, frozen, unfrozen, param, buffer."""
        before, after = self.before, self.after
        if before is None or after is None:
            return ("added",) if before is None else ("removed",)
        kinds = [after.kind] if before.kind != after.kind else []
        if before.shape != after.shape:
            kinds.append("reshaped")
        if before.kind == after.kind and before.tied_to != after.tied_to:
            kinds.append("tied" if before.tied_to is None else "untied" if after.tied_to is None else "retied")
        if before.kind == after.kind and before.trainable != after.trainable:
            kinds.append("unfrozen" if after.trainable else "frozen")
        return tuple(kinds)


class Repetition(NamedTuple):
    """A numbered component (`encoder.layer.*`) of which one model has more: `before` in A, `after` in B.

    `numbers` are the indices that were added or removed. Each of these components has the `tensors` tensors of the
    component `like`, which is in both models.
    """

    address: str
    before: int
    after: int
    numbers: tuple[int, ...]
    tensors: int
    like: str


def rename_tensors(tensors: StoredTensors, prefix: NamePrefix) -> StoredTensors:
    """Convert A's names of tensors to B's names."""
    rename = prefix.rename
    return {
        rename(name): stored._replace(tied_to=rename(stored.tied_to)) if stored.tied_to else stored
        for name, stored in tensors.items()
    }


def find_changes(before: StoredTensors, after: StoredTensors) -> tuple[TensorChange, ...]:
    """Return the tensors that differ, in A's order, followed by the added ones in B's order."""
    pairs = [TensorChange(name, before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after))]
    return tuple([pair for pair in pairs if pair.before != pair.after])


def apply_changes(tensors: StoredTensors, prefix: NamePrefix, steps: Sequence[TensorChange]) -> StoredTensors:
    """Apply `steps` to A's tensors. Raises ValueError if the tensors do not match the steps."""
    result = rename_tensors(tensors, prefix)
    for name, before, after in steps:
        if result.get(name) != before:
            raise ValueError(f"cannot apply the changes: {name} differs from the model that they were made for")
        if after is None:
            del result[name]
        else:
            result[name] = after
    return result


def detect_prefix(before: StoredTensors, after: StoredTensors) -> NamePrefix:
    """Detect the prefix with the most matching tensors; empty unless a prefix is better than none.

    More than half of the tensors of the model without the prefix must match. Tensors match if their names, kinds and
    numbers of axes are equal.
    """
    unprefixed = _count_matches(before, after)
    best, best_count = NamePrefix(), unprefixed
    for shorter, longer, adds in ((before, after, True), (after, before, False)):
        for prefix, matches in _count_prefixes(shorter, longer).items():
            candidate = NamePrefix(added=prefix) if adds else NamePrefix(removed=prefix)
            if (
                matches > best_count
                and 2 * matches > len(shorter)
                and len(rename_tensors(before, candidate)) == len(before)
            ):
                best, best_count = candidate, matches
    return best


def _is_match(a: StoredTensor | None, b: StoredTensor | None) -> bool:
    return a is not None and b is not None and a.kind == b.kind and len(a.shape) == len(b.shape)


def _count_matches(before: StoredTensors, after: StoredTensors) -> int:
    return sum(_is_match(stored, after.get(name)) for name, stored in before.items())


def _count_prefixes(shorter: StoredTensors, longer: StoredTensors) -> Counter[str]:
    """Count, for each prefix, the tensors of `longer` that match a tensor of `shorter` without the prefix."""
    counts: Counter[str] = Counter()
    for name, stored in longer.items():
        for prefix in prefixes(name):
            if _is_match(shorter.get(relative(name, prefix)), stored):
                counts[f"{prefix}."] += 1
    return counts


# Collapsing -----------------------------------------------------------------------------------------------------------


class TensorChanges(NamedTuple):
    """One change of tensors whose names differ only in indices; `kinds` are as in TensorChange."""

    kinds: tuple[str, ...]
    fold: NamePattern
    before: StoredTensor | None
    after: StoredTensor | None


def collapse_changes(steps: Sequence[TensorChange]) -> list[TensorChanges]:
    """Collapse changes over indices."""
    described = {step.name: (step.kinds, step.before, step.after) for step in steps}
    return [
        TensorChanges(kinds, names, before, after)
        for names, (kinds, before, after) in collapse_names(described.items())
    ]


def find_repetitions(before: StoredTensors, after: StoredTensors) -> list[Repetition]:
    """Return the numbered components of which one model has more, if each is equal to a component in both models."""
    ours, theirs = _group_by_index(before), _group_by_index(after)
    result: list[Repetition] = []
    covered: list[str] = []
    for address in dict.fromkeys((*ours, *theirs)):
        ours_by_index, theirs_by_index = ours.get(address, {}), theirs.get(address, {})
        common = sorted(ours_by_index.keys() & theirs_by_index.keys())
        if not common or any(is_inside(address, outer) for outer in covered):
            continue
        for more, fewer in ((ours_by_index, theirs_by_index), (theirs_by_index, ours_by_index)):
            extra = sorted(more.keys() - fewer.keys())
            model_tensors = more[common[-1]]
            if extra and not fewer.keys() - more.keys() and all(more[i] == model_tensors for i in extra):
                pattern, sample = join(address, ANY_INDEX), join(address, str(common[-1]))
                result.append(
                    Repetition(
                        pattern, len(ours_by_index), len(theirs_by_index), tuple(extra), len(model_tensors), sample
                    )
                )
                covered += [join(address, str(i)) for i in extra]
    return result


def repetition_prefixes(repetitions: Sequence[Repetition]) -> Iterator[str]:
    """Yield the prefixes of the names in repetitions."""
    for repetition in repetitions:
        yield from (f"{join(parent(repetition.address), str(i))}." for i in repetition.numbers)


def _group_by_index(tensors: Mapping[str, StoredTensor]) -> dict[str, dict[int, StoredTensors]]:
    """Return the tensors at each index of each numbered address (`encoder.layer`), with relative ties."""
    groups: dict[str, dict[int, StoredTensors]] = {}
    for name, stored in tensors.items():
        for prefix in prefixes(name):
            if prefix != name and is_index(last_segment(prefix)):
                tied = stored.tied_to
                if tied is not None and is_inside(tied, prefix):
                    tied = f".{relative(tied, prefix)}"
                tensors_at_index = groups.setdefault(parent(prefix), {}).setdefault(int(last_segment(prefix)), {})
                tensors_at_index[relative(name, prefix)] = stored._replace(tied_to=tied)
    return groups
