"""Comparison of a model's tensors with a checkpoint: missing, unexpected, differently shaped or tied tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from archspec.analysis.verify.gguf import match_gguf
from archspec.analysis.verify.naming import NamingVariant, Rename, apply_renames, respell, respell_live
from archspec.analysis.verify.surplus import describe_surplus, find_surplus, fit_quantized
from archspec.core.addresses.repeats import NamePattern, collapse_names
from archspec.core.reports.results import Result
from archspec.core.reports.text import number
from archspec.core.resources import specs_root
from archspec.formats.checkpoints.entries import Checkpoint, Entry
from archspec.formats.configs.names import find_gguf_names, find_names
from archspec.ir.table import Table

_SpecTensor = tuple[str, tuple[int, ...]]
"""The spec's declaration of a name: "param" or "buffer", and the shape."""


class Mismatch(NamedTuple):
    """A difference that several tensors may have; `fold` has their names.

    `kind` determines the other fields:
    - "missing": the spec has the tensor, with the shape `spec`, but the checkpoint has none of its names;
    - "unexpected": the checkpoint has the tensor, with this name, shape and `dtype`, but the spec does not;
    - "shape": the shape is `spec` in the spec and `checkpoint` in the checkpoint;
    - "tied": in the checkpoint, the parameter is the same tensor as `other`, but not in the spec;
    - "total_size": the index of the shards specifies `other` bytes, but they contain a different number; no name.

    `what` is "param" or "buffer" if the tensor is missing or has a different shape, otherwise "".
    """

    kind: str
    fold: NamePattern
    what: str = ""
    spec: tuple[int, ...] | None = None
    checkpoint: tuple[int, ...] | None = None
    dtype: str | None = None
    other: str | None = None


class StoredTotals(NamedTuple):
    """Totals of a checkpoint, or of its tensors of one element type.

    `names` counts all names; `tensors`, `elements` and `bytes` count a tensor with several names once.
    """

    names: int
    tensors: int
    elements: int
    bytes: int


class Verification(Result):
    """The differences between a checkpoint and a model.

    `params` is the parameter count of the model, `buffers` its number of buffers. `stored` has the totals of the
    checkpoint, and `dtypes` those by element type. `findings` are the differences. `spellings` are naming variants that
    were ignored, `notes` sentences that describe no difference, and `unmatched` the renamings that match no name.
    `fits` are other bundled models, with the same overrides, that the checkpoint matches exactly.
    """

    model: str
    overrides: Mapping[str, object]
    params: int
    buffers: int
    checkpoint: str
    files: int
    stored: StoredTotals
    dtypes: dict[str, StoredTotals]
    spellings: tuple[NamingVariant, ...]
    findings: tuple[Mismatch, ...]
    notes: tuple[str, ...]
    unmatched: tuple[Rename, ...] = ()
    fits: tuple[str, ...] = ()

    def __repr__(self) -> str:
        outcome = "an exact match" if self.is_exact else f"{len(self.findings)} differences"
        return f"<Verification of {self.checkpoint!r} against {self.model!r}: {outcome}>"

    @property
    def is_exact(self) -> bool:
        """Whether the checkpoint has exactly the tensors of the model."""
        return not self.findings


def compare(table: Table, checkpoint: Checkpoint, renames: Sequence[Rename] = ()) -> Verification:
    """Compare names, shapes and ties. Raises ArchError if renamings map two names to the same name."""
    specified = _spec_tensors(table)
    match = match_names(table, checkpoint, renames)
    entries, reshaped = fit_quantized(table, checkpoint, match.entries)
    surplus = find_surplus(checkpoint, match.remaining)
    groups = _group_names(table)
    totals = sum_entries(checkpoint.entries)
    findings = [
        *_find_missing(specified, groups, entries),
        *_find_unexpected([entry for entry in match.remaining if entry.name not in surplus]),
        *_find_reshaped(specified, entries),
        *_find_tied({t.name: groups[t.name] for t in table.tensors if not t.tied_to}, entries),
        *_find_size_mismatch(checkpoint),
    ]
    return Verification(
        model=table.model,
        overrides=table.overrides,
        params=table.params.total,
        buffers=len(table.buffers),
        checkpoint=checkpoint.label,
        files=checkpoint.files,
        stored=totals,
        dtypes=_totals_by_dtype(checkpoint.entries, totals),
        spellings=tuple(match.spellings),
        findings=tuple(findings),
        notes=(
            *checkpoint.notes,
            *match.notes,
            *reshaped,
            *describe_surplus(surplus),
            *_describe_ties(groups, entries),
            *_describe_overlaps(checkpoint.stored),
        ),
        unmatched=tuple(match.unmatched),
    )


class TensorMatching(NamedTuple):
    """The tensors of a checkpoint by their names in the spec, the remaining tensors, and the ignored differences."""

    entries: dict[str, Entry]
    remaining: list[Entry]
    spellings: list[NamingVariant]
    unmatched: list[Rename]
    notes: Sequence[str] = ()


def match_names(table: Table, checkpoint: Checkpoint, renames: Sequence[Rename]) -> TensorMatching:
    """Match the names in a checkpoint with those of the spec, as `respell` does.

    The names of live models are tried, too, or the names of llama.cpp for GGUF files.
    """
    specified = _spec_tensors(table)
    norms = {t.name for t in table.tensors if t.role == "norm"}
    names = [entry.name for entry in checkpoint.entries]
    best = respell(names, specified.keys(), norms, renames)
    definition = table.modules[0].type  # empty for the table of a checkpoint
    is_live = checkpoint.format != "gguf" and definition and len(best[0]) < len(names)
    for family in find_names(definition, specs_root()) if is_live else ():
        live = respell_live(names, specified.keys(), norms, renames, family)
        if len(live[0]) > len(best[0]):
            best = live
    mapping, spellings, unmatched = best
    entries = {mapping[entry.name]: entry for entry in checkpoint.entries if entry.name in mapping}
    match = TensorMatching(
        entries, [entry for entry in checkpoint.entries if entry.name not in mapping], spellings, unmatched
    )
    return _match_gguf(table, checkpoint, renames, match) if checkpoint.format == "gguf" and match.remaining else match


def _match_gguf(
    table: Table, checkpoint: Checkpoint, renames: Sequence[Rename], best: TensorMatching
) -> TensorMatching:
    """Match the names of a GGUF file by the lists of families, if one of them fits better."""
    new_names, used, unmatched = apply_renames([entry.name for entry in checkpoint.entries], renames)
    stored = {new_names[entry.name]: entry for entry in checkpoint.entries}
    specified = _spec_tensors(table)

    def differences(match: TensorMatching) -> int:
        return len(match.remaining) + sum(entry.shape != specified[name][1] for name, entry in match.entries.items())

    for family in find_gguf_names(table.modules[0].type, specs_root()):
        gguf_match = match_gguf(specified, stored, family)
        match = TensorMatching(
            gguf_match.entries, gguf_match.remaining, used + gguf_match.spellings, unmatched, gguf_match.notes
        )
        best = min(best, match, key=differences)
    return best


def _spec_tensors(table: Table) -> dict[str, _SpecTensor]:
    specified: dict[str, _SpecTensor] = {t.name: ("param", t.shape) for t in table.tensors}
    return specified | {b.name: ("buffer", b.shape) for b in table.buffers}


def sum_entries(entries: Iterable[Entry]) -> StoredTotals:
    """Sum entries; an entry that shares the elements of an earlier one counts only as a name."""
    entries = list(entries)
    distinct = list({entry.storage_key: entry for entry in entries}.values())
    return StoredTotals(
        len(entries), len(distinct), sum(entry.elements for entry in distinct), sum(entry.bytes for entry in distinct)
    )


def _totals_by_dtype(entries: Sequence[Entry], totals: StoredTotals) -> dict[str, StoredTotals]:
    entries_by_dtype: dict[str, list[Entry]] = {}
    for entry in entries:
        entries_by_dtype.setdefault(entry.dtype, []).append(entry)
    return {
        dtype: totals if len(entries_by_dtype) == 1 else sum_entries(part) for dtype, part in entries_by_dtype.items()
    }


def _group_names(table: Table) -> dict[str, list[str]]:
    """Group the names of each tensor and buffer of the spec by the canonical name, which is the first one."""
    ties = {t.name: t.tied_to for t in table.tensors if t.tied_to} | table.buffer_ties
    groups = {stored.name: [stored.name] for stored in (*table.tensors, *table.buffers) if stored.name not in ties}
    for name, counted in ties.items():
        groups[counted].append(name)
    return groups


def _find_missing(
    specified: dict[str, _SpecTensor], groups: dict[str, list[str]], entries: dict[str, Entry]
) -> Iterator[Mismatch]:
    absent = [counted for counted, names in groups.items() if not any(name in entries for name in names)]
    for folded, (what, shape) in collapse_names((name, specified[name]) for name in absent):
        yield Mismatch("missing", folded, what, spec=shape)


def _find_unexpected(entries: Iterable[Entry]) -> Iterator[Mismatch]:
    for folded, (shape, dtype) in collapse_names((entry.name, (entry.shape, entry.dtype)) for entry in entries):
        yield Mismatch("unexpected", folded, checkpoint=shape, dtype=dtype)


def _find_reshaped(specified: dict[str, _SpecTensor], entries: dict[str, Entry]) -> Iterator[Mismatch]:
    items = [(name, (fact, entries[name].shape)) for name, fact in specified.items() if name in entries]
    for folded, ((what, ours), theirs) in collapse_names(item for item in items if item[1][0][1] != item[1][1]):
        yield Mismatch("shape", folded, what, spec=ours, checkpoint=theirs)


def _find_tied(groups: dict[str, list[str]], entries: dict[str, Entry]) -> Iterator[Mismatch]:
    """Find tensors that are different in the spec but have the same elements in the checkpoint."""
    firsts: dict[tuple[object, ...], tuple[str, str]] = {}
    items: list[tuple[str, str]] = []
    for counted, names in groups.items():
        storages: set[tuple[object, ...]] = set()
        for name in names:
            if name in entries and entries[name].storage_key not in storages:
                storages.add(entries[name].storage_key)
                first, group = firsts.setdefault(entries[name].storage_key, (name, counted))
                if group != counted:
                    items.append((name, first))
    for folded, first in collapse_names(items):
        yield Mismatch("tied", folded, other=first)


def _find_size_mismatch(checkpoint: Checkpoint) -> Iterator[Mismatch]:
    """Compare the size in an index with the totals, counting each tensor once or once per name: both are common."""
    if checkpoint.total_size is None:
        return
    sums = {sum_entries(checkpoint.stored).bytes, sum(entry.bytes for entry in checkpoint.stored)}
    if checkpoint.total_size not in sums:
        yield Mismatch("total_size", NamePattern("", (), ()), other=str(checkpoint.total_size))


def _describe_ties(groups: dict[str, list[str]], entries: dict[str, Entry]) -> Iterator[str]:
    """Describe the names under which a checkpoint stores tied tensors; one of the names is sufficient."""
    items: list[tuple[str, tuple[str, str]]] = []
    for names in groups.values():
        stored_names = [name for name in names if name in entries]
        storages = {entries[name].storage_key for name in stored_names[:1]}
        for name in names if stored_names else ():
            if name not in entries:
                items.append((name, ("not stored because it is tied to", stored_names[0])))
            elif entries[name].storage_key not in storages:
                storages.add(entries[name].storage_key)
                items.append((name, ("stored separately (equality was not checked) from", stored_names[0])))
    for folded, (sentence, stored_name) in collapse_names(items):
        yield f"{sentence} `{stored_name}`: {folded}"


def _describe_overlaps(entries: Iterable[Entry]) -> Iterator[str]:
    """Describe different tensors whose elements overlap in storage."""
    distinct = {entry.storage_key: entry for entry in entries if entry.bytes}.values()
    before: Entry | None = None
    pairs: list[tuple[str, str]] = []
    for entry in sorted(distinct, key=lambda entry: (entry.file, entry.storage, entry.start)):
        if before and (before.file, before.storage) == (entry.file, entry.storage) and entry.start < before.stop:
            pairs.append((before.name, entry.name))
        if not before or (before.file, before.storage, before.stop) < (entry.file, entry.storage, entry.stop):
            before = entry
    if pairs:
        more = f" (and {number(len(pairs) - 1, 'more pair')})" if pairs[1:] else ""
        named = " and ".join(f"`{name}`" for name in pairs[0])
        yield f"{named} may share elements{more}; the totals count them for each tensor"
