"""Naming variants of tensors in a checkpoint: renamings, a prefix, old names of norms, names of live models."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from functools import cache
from itertools import islice
from typing import NamedTuple

from archspec.core.addresses import last_segment, prefixes
from archspec.core.diagnostics import make_error
from archspec.formats.configs.names import Names

OLD_NORMS = {"gamma": "weight", "beta": "bias"}
"""The current names of a norm's tensors, by their names in checkpoints from TensorFlow."""

_CURRENT_NORMS = {new: old for old, new in OLD_NORMS.items()}

MAX_PREFIX_SEGMENTS = 8
"""Maximum number of segments of a prefix."""


class NamingVariant(NamedTuple):
    """An ignored difference in names: `checkpoint` in the checkpoint is `spec` in the model, in `names` names.

    `kind` is "rename" (both are patterns), "prefix" (one of them is ""), "norm" (both are last segments) or "live"
    (both are runs of segments, in which `*` stands for one). For GGUF files, `kind` is also "gguf" (a program and a
    model type), "stacked", "joined", "transposed" or another `how` of a rule (runs whose tensors are rearranged).
    """

    kind: str
    checkpoint: str
    spec: str
    names: int


class Rename(NamedTuple):
    """A renaming of full names: each `*` of `old` matches any characters, which replace the same `*` of `new`."""

    old: str
    new: str

    def apply(self, name: str) -> str | None:
        """Return the new name, or None without a match. Each `*` except the last matches as little as possible."""
        match = _compile_rename(self.old).fullmatch(name)
        if match is None:
            return None
        pairs = zip(self.new.split("*"), [*match.groups(), ""], strict=True)
        return "".join(part for pair in pairs for part in pair)


@cache
def _compile_rename(pattern: str) -> re.Pattern[str]:
    """Compile the pattern of a renaming. Atomic groups keep the time linear in the length of a name."""
    head, *pieces = map(re.escape, pattern.split("*"))
    groups = [*(f"(?>(.*?){piece})" for piece in pieces[:-1]), *(f"(.*){tail}" for tail in pieces[-1:])]
    return re.compile(head + "".join(groups), re.DOTALL)


def parse_rename(old: str, new: str) -> Rename:
    """Create a Rename. Raises ArchError if the patterns have different numbers of `*`, or one is empty."""
    if not old or not new or old.count("*") != new.count("*"):
        help = "use two full names with the same number of `*`, as in `--rename 'model.*=*'`"
        raise make_error("usage", f"invalid renaming `{old}={new}`", help=help)
    return Rename(old, new)


def respell(
    names: Sequence[str], spec: Set[str], norms: Set[str], renames: Sequence[Rename] = ()
) -> tuple[dict[str, str], list[NamingVariant], list[Rename]]:
    """Map the checkpoint's `names` to names of the spec; also return the variants used, and unmatched renamings.

    `spec` are the spec's names, and `norms` the names of tensors of norms. A prefix, of the checkpoint or of the spec,
    is detected if more names agree with it than without it. No two names are mapped to the same name of the spec: a
    current name takes precedence over an old one, and a name with the prefix over one without it.
    """
    renamed_names, used, unmatched = apply_renames(names, renames)
    prefix, missing = _find_prefix(dict.fromkeys(renamed_names.values()).keys(), spec, norms)
    mapping: dict[str, str] = {}
    owners: dict[str, str] = {}
    variants: dict[str, tuple[bool, bool]] = {}
    for name, new_name in renamed_names.items():
        spec_name, has_prefix = _strip_prefix(new_name, prefix, missing, spec)
        modern = _current_name(spec_name, spec, norms)
        rank = (modern != spec_name, not has_prefix)
        if modern not in spec or (modern in owners and variants[owners[modern]] <= rank):
            continue
        if modern in owners:
            del mapping[owners[modern]]
        mapping[name], owners[modern], variants[name] = modern, name, rank
    spellings = list(used)
    if prefix or missing:
        spellings.append(NamingVariant("prefix", prefix, missing, sum(not variants[name][1] for name in mapping)))
    old = Counter(last_segment(renamed_names[name]) for name in mapping if variants[name][0])
    spellings += [NamingVariant("norm", was, OLD_NORMS[was], count) for was, count in sorted(old.items(), reverse=True)]
    return mapping, spellings, unmatched


def respell_live(
    names: Sequence[str], spec: Set[str], norms: Set[str], renames: Sequence[Rename], family: Names
) -> tuple[dict[str, str], list[NamingVariant], list[Rename]]:
    """Do the same as `respell` for a checkpoint with the names of live models of the family."""
    steps = {name: family.steps(name) for name in spec}
    spec_names = {live: name for name, (live, _) in steps.items()}
    mapping, spellings, unmatched = respell(names, spec_names.keys(), {steps[name][0] for name in norms}, renames)
    mapping = {name: spec_names[live] for name, live in mapping.items()}
    used = Counter(pair for name in mapping.values() for pair in steps[name][1])
    spellings += [NamingVariant("live", live, old, used[old, live]) for old, live in family.pairs if used[old, live]]
    return mapping, spellings, unmatched


def apply_renames(
    names: Sequence[str], renames: Iterable[Rename]
) -> tuple[dict[str, str], list[NamingVariant], list[Rename]]:
    """Apply renamings in order, and return the new names, the renamings with effect, and the unmatched renamings.

    Raises ArchError if two names are renamed to the same name.
    """
    new_names = {name: name for name in names}
    used: list[NamingVariant] = []
    unmatched: list[Rename] = []
    for rename in renames:
        changed = {name: new for name, current in new_names.items() if (new := rename.apply(current)) is not None}
        new_names.update(changed)
        if changed:
            used.append(NamingVariant("rename", rename.old, rename.new, len(changed)))
        else:
            unmatched.append(rename)
    firsts: dict[str, str] = {}
    for name, current in new_names.items():
        if firsts.setdefault(current, name) != name:
            raise make_error("usage", f"--rename maps both `{firsts[current]}` and `{name}` to `{current}`")
    return new_names, used, unmatched


def _find_prefix(names: Set[str], spec: Set[str], norms: Set[str]) -> tuple[str, str]:
    """Find the prefix of the checkpoint's names and the prefix of the spec's names; at least one of them is ""."""
    votes = Counter({("", ""): 0})
    for name in names:
        is_old = last_segment(name) in OLD_NORMS
        for prefix in _list_prefixes(name):
            suffix = name[len(prefix) :]
            if suffix in spec or (is_old and _current_name(suffix, spec, norms) in spec):
                votes[prefix, ""] += 1
    for name in spec:
        for prefix in _list_prefixes(name)[1:]:
            suffix = name[len(prefix) :]
            if suffix in names or (name in norms and _old_norm_name(suffix) in names):
                votes["", prefix] += 1
    best, count = max(votes.items(), key=lambda vote: (vote[1], -len(vote[0][0]) - len(vote[0][1])))
    return best if count > votes["", ""] and 2 * count >= min(len(names), len(spec)) else ("", "")


def _list_prefixes(name: str) -> list[str]:
    """Return the prefixes of a name: "", `a.`, `a.b.` for `a.b.c`."""
    return ["", *(f"{outer}." for outer in islice(prefixes(name), MAX_PREFIX_SEGMENTS) if outer != name)]


def _strip_prefix(name: str, prefix: str, missing: str, spec: Set[str]) -> tuple[str, bool]:
    """Return the name under the spec's prefix, and whether the prefixes apply to it."""
    if missing:
        return (name, False) if name in spec else (missing + name, True)
    return (name[len(prefix) :], True) if name.startswith(prefix) else (name, False)


def _current_name(name: str, spec: Set[str], norms: Set[str]) -> str:
    """Return the current name of a norm's tensor if the spec has it and not the old name."""
    if last_segment(name) not in OLD_NORMS or name in spec:
        return name
    modern = name.removesuffix(last_segment(name)) + OLD_NORMS[last_segment(name)]
    return modern if modern in norms else name


def _old_norm_name(name: str) -> str:
    """Return the old name of a norm's tensor."""
    return name.removesuffix(last_segment(name)) + _CURRENT_NORMS.get(last_segment(name), last_segment(name))
