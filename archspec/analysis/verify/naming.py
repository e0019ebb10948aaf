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
"""The current names of a norm's tensors, by those in checkpoints from TensorFlow."""

_CURRENT_NORMS = {new: old for old, new in OLD_NORMS.items()}

MAX_SEGMENTS = 8
"""The limit on the segments of a prefix."""


class NamingVariant(NamedTuple):
    """A difference in names that was ignored: `checkpoint` there is `spec` in the model, in `names` names.

    `kind` is "rename" (both are patterns), "prefix" (one of them is ""), "norm" (both are last segments) or "live"
    (both are runs of segments, in which `*` stands for one). For GGUF files, `kind` is also "gguf" (the names of a
    program are those of a model type), "stacked", "joined", "transposed" or another `how` of a rule (runs whose
    tensors are rearranged).
    """

    kind: str
    checkpoint: str
    spec: str
    names: int


class Rename(NamedTuple):
    """A renaming of whole names: each `*` of `old` matches any characters, which replace that of `new`."""

    old: str
    new: str

    def apply(self, name: str) -> str | None:
        """Return the new name; None without a match. Each `*` matches as little as possible, the last one the rest."""
        found = _regex(self.old).fullmatch(name)
        if found is None:
            return None
        pairs = zip(self.new.split("*"), [*found.groups(), ""], strict=True)
        return "".join(part for pair in pairs for part in pair)


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    """Compile the pattern of a renaming. Atomic groups keep the time linear in the length of a name."""
    head, *pieces = map(re.escape, pattern.split("*"))
    groups = [*(f"(?>(.*?){piece})" for piece in pieces[:-1]), *(f"(.*){tail}" for tail in pieces[-1:])]
    return re.compile(head + "".join(groups), re.DOTALL)


def parse_rename(old: str, new: str) -> Rename:
    """Create a Rename. Raises ArchError if the patterns have different numbers of `*`, or one is empty."""
    if not old or not new or old.count("*") != new.count("*"):
        help = "use two whole names with equally many `*`, as in `--rename 'model.*=*'`"
        raise make_error("usage", f"invalid renaming `{old}={new}`", help=help)
    return Rename(old, new)


def respell(
    names: Sequence[str], spec: Set[str], norms: Set[str], renames: Sequence[Rename] = ()
) -> tuple[dict[str, str], list[NamingVariant], list[Rename]]:
    """Map the checkpoint's `names` to names of the spec; also returns the variants used, and unmatched renamings.

    `spec` are the spec's names, and `norms` those of norms. A prefix, of the checkpoint or of the spec, is detected if
    more names agree with it than without it. No two names are mapped to the same name of the spec: the one that is
    written like it, or like the others, takes precedence.
    """
    called, used, unmatched = renamed(names, renames)
    prefix, missing = _prefix(dict.fromkeys(called.values()).keys(), spec, norms)
    found: dict[str, str] = {}
    takers: dict[str, str] = {}
    variants: dict[str, tuple[bool, bool]] = {}
    for name, now in called.items():
        ours, has_prefix = _placed(now, prefix, missing, spec)
        modern = _modern(ours, spec, norms)
        how = (modern != ours, not has_prefix)
        if modern not in spec or (modern in takers and variants[takers[modern]] <= how):
            continue
        if modern in takers:
            del found[takers[modern]]
        found[name], takers[modern], variants[name] = modern, name, how
    spellings = list(used)
    if prefix or missing:
        spellings.append(NamingVariant("prefix", prefix, missing, sum(not variants[name][1] for name in found)))
    old = Counter(last_segment(called[name]) for name in found if variants[name][0])
    spellings += [NamingVariant("norm", was, OLD_NORMS[was], count) for was, count in sorted(old.items(), reverse=True)]
    return found, spellings, unmatched


def respell_live(
    names: Sequence[str], spec: Set[str], norms: Set[str], renames: Sequence[Rename], family: Names
) -> tuple[dict[str, str], list[NamingVariant], list[Rename]]:
    """Do the same as `respell` for a checkpoint with the names that live models of the family have."""
    steps = {name: family.steps(name) for name in spec}
    own = {live: name for name, (live, _) in steps.items()}
    found, spellings, unmatched = respell(names, own.keys(), {steps[name][0] for name in norms}, renames)
    found = {name: own[live] for name, live in found.items()}
    used = Counter(pair for name in found.values() for pair in steps[name][1])
    spellings += [NamingVariant("live", live, old, used[old, live]) for old, live in family.pairs if used[old, live]]
    return found, spellings, unmatched


def renamed(
    names: Sequence[str], renames: Iterable[Rename]
) -> tuple[dict[str, str], list[NamingVariant], list[Rename]]:
    """Apply renamings in order. Returns the new names, the renamings with effect, and the others. Raises ArchError."""
    called = {name: name for name in names}
    used: list[NamingVariant] = []
    unmatched: list[Rename] = []
    for rename in renames:
        changed = {name: new for name, now in called.items() if (new := rename.apply(now)) is not None}
        called.update(changed)
        if changed:
            used.append(NamingVariant("rename", rename.old, rename.new, len(changed)))
        else:
            unmatched.append(rename)
    firsts: dict[str, str] = {}
    for name, now in called.items():
        if firsts.setdefault(now, name) != name:
            raise make_error("usage", f"--rename maps both `{firsts[now]}` and `{name}` to `{now}`")
    return called, used, unmatched


def _prefix(names: Set[str], spec: Set[str], norms: Set[str]) -> tuple[str, str]:
    """Return the prefix of the checkpoint's names and that of the spec's; at least one of them is ""."""
    votes = Counter({("", ""): 0})
    for name in names:
        is_old = last_segment(name) in OLD_NORMS
        for prefix in _prefixes(name):
            rest = name[len(prefix) :]
            if rest in spec or (is_old and _modern(rest, spec, norms) in spec):
                votes[prefix, ""] += 1
    for name in spec:
        for prefix in _prefixes(name)[1:]:
            rest = name[len(prefix) :]
            if rest in names or (name in norms and _old(rest) in names):
                votes["", prefix] += 1
    best, count = max(votes.items(), key=lambda vote: (vote[1], -len(vote[0][0]) - len(vote[0][1])))
    return best if count > votes["", ""] and 2 * count >= min(len(names), len(spec)) else ("", "")


def _prefixes(name: str) -> list[str]:
    """Return the prefixes of a name: "", `a.`, `a.b.` for `a.b.c`."""
    return ["", *(f"{outer}." for outer in islice(prefixes(name), MAX_SEGMENTS) if outer != name)]


def _placed(name: str, prefix: str, missing: str, spec: Set[str]) -> tuple[str, bool]:
    """Return the name under the spec's prefix, and whether the prefixes apply to it."""
    if missing:
        return (name, False) if name in spec else (missing + name, True)
    return (name[len(prefix) :], True) if name.startswith(prefix) else (name, False)


def _modern(name: str, spec: Set[str], norms: Set[str]) -> str:
    """Return the current name of a norm's tensor, if the spec has it and does not have the old one."""
    if last_segment(name) not in OLD_NORMS or name in spec:
        return name
    modern = name.removesuffix(last_segment(name)) + OLD_NORMS[last_segment(name)]
    return modern if modern in norms else name


def _old(name: str) -> str:
    """Return the old name of a norm's tensor."""
    return name.removesuffix(last_segment(name)) + _CURRENT_NORMS.get(last_segment(name), last_segment(name))
