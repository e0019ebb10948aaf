"""The tensors and modules whose sizes add up to a difference of parameter counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from math import comb

from archspec.core.record import Record
from archspec.ir.module import LocatedTensor, Module, iter_tensors

MAX_TERMS = 2
MAX_SUMS = 100_000
MAX_ALTERNATIVES = 3


class Term(Record):
    """Some tensors, their description and their total size."""

    text: str
    tensors: frozenset[str]
    size: int


def describe_difference(
    module: Module, difference: int, is_counted: Callable[[LocatedTensor], bool] = lambda _: True
) -> str | None:
    """Describe the tensors whose sizes add up to a difference; None if they are not few, or not the only ones.

    It may be a coincidence, so the text says no more than that the numbers are equal.
    """
    sizes: dict[str, int] = {}
    for name, leaf in iter_tensors(module):
        is_tied = name in module.aliases  # it can be missing from the count, but not be one too many
        if leaf.weight.kind == "param" and is_counted(leaf) and not (is_tied and difference > 0):
            sizes[name] = leaf.weight.size
    terms = [term for term in _iter_terms(sizes, abs(difference)) if term.size <= abs(difference)]
    for count in range(1, MAX_TERMS + 1):
        if comb(len(terms), count) > MAX_SUMS:
            return None
        sums = [group for group in combinations(terms, count) if _is_sum(group, abs(difference))]
        if len(sums) > MAX_ALTERNATIVES:
            return None
        if sums:
            alternatives = [" and ".join(_describe(term, module) for term in group) for group in sums]
            return f"the difference is exactly the size of {', or of '.join(alternatives)}"
    return None


def _is_sum(terms: Sequence[Term], size: int) -> bool:
    """Whether the sizes of terms without common tensors add up to a size."""
    if sum(term.size for term in terms) != size:
        return False
    return not any(a.tensors & b.tensors for a, b in combinations(terms, 2))


def _describe(term: Term, module: Module) -> str:
    is_tied = all(name in module.aliases for name in term.tensors)
    return f"{term.text} ({term.size:,}{', tied: not counted again' if is_tied else ''})"


def _iter_terms(sizes: dict[str, int], difference: int) -> Iterator[Term]:
    """Yield each tensor and module, repeated ones together or some of them, and all tensors of one name in a module."""
    members: dict[str, dict[str, list[str]]] = {}  # tensors by pattern and address of a module
    named: dict[tuple[str, str], list[str]] = {}  # tensors by pattern of a module and last word
    for name in sizes:
        words = name.split(".")
        pattern = ["*" if word.isdigit() else word for word in words]
        for end in range(len(words)):
            prefix = ".".join(pattern[:end])
            named.setdefault((prefix, words[-1]), []).append(name)
            address = ".".join(words[: end + 1])
            members.setdefault(".".join(pattern[: end + 1]), {}).setdefault(address, []).append(name)
    done: set[frozenset[str]] = set()

    def term(text: str, names: Iterable[str]) -> Iterator[Term]:
        tensors = frozenset(names)
        if tensors not in done:
            done.add(tensors)
            yield Term(text, tensors, sum(sizes[name] for name in tensors))

    for pattern, modules in members.items():
        groups = list(modules.values())
        if len(groups) == 1:
            yield from term(f"`{pattern}`", groups[0])
            continue
        yield from term(f"all {len(groups)} `{pattern}`", [name for group in groups for name in group])
        each = sum(sizes[name] for name in groups[0])
        count = difference // max(each, 1)
        is_part = pattern.endswith("*") and 0 < count < len(groups) and each * count == difference
        if is_part and all(sum(sizes[name] for name in group) == each for group in groups):
            text = f"{count} of the {len(groups)} `{pattern}`"
            yield from term(text, [name for group in groups[:count] for name in group])
    for (prefix, word), names in named.items():
        yield from term(f"every `{word}`" + f" in `{prefix}`" * bool(prefix), names)
