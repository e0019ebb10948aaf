"""Formatting of addresses, and names for definitions derived from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from string import ascii_uppercase

from archspec.analysis.scaffold.structure import Index
from archspec.core.addresses import is_index
from archspec.language.syntax.parse import CONTEXTUAL, parser

MAX_NAME_LENGTH = 40
"""The maximum length of a definition's name."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"[A-Za-z0-9_]+")


def written(address: Sequence[str | Index]) -> str:
    """Format an address, with quoted segments where necessary and loop indices in brackets."""
    text = ""
    for position, word in enumerate(address):
        if isinstance(word, Index):
            start = f" + {word.start}" if word.start else ""
            text += "[i]" if word.step == 1 else f"[{word.step} * i{start}]"
            continue
        plain = _WORD.fullmatch(word) if position else _NAME.fullmatch(word) and word not in _keywords()
        text += ("." if position else "") + (word if plain else f'"{word}"')
    return text


@cache
def _keywords() -> frozenset[str]:
    """Return the keywords that must be quoted at the start of an address."""
    return parser().keywords - CONTEXTUAL


def loop_clause(index: Index, number: int) -> str:
    """Format the loop over `number` values of an index."""
    first = index.start if index.step == 1 else 0
    return f"for i in {first}..{first + number}"


def definition_name(paths: Sequence[Sequence[str | Index]], taken: set[str]) -> str:
    """Return an unused name for a definition used at these paths.

    It is the last word of the first path, with the preceding words if that is taken, and with the number of the paths
    if all have the same.
    """
    path = paths[0]
    words = [word for word in path if isinstance(word, str) and not is_index(word)]
    last = words.pop() if words else "part"
    number = path[-1]
    if isinstance(number, Index) or is_index(number):
        last = _singular(last)
    name = _camel(last)
    if isinstance(number, str) and is_index(number) and {path[-1] for path in paths} == {number}:
        name += number
    before = [_camel(word) for word in reversed(words)]
    if before and re.search("encoder|decoder", words[-1], re.IGNORECASE) and before[0] not in name:
        name = before.pop(0) + name
    while name in taken and before:
        name = before.pop(0) + name
    name = name[-MAX_NAME_LENGTH:].lstrip("0123456789") or "Part"
    return next(n for suffix in _suffixes() if (n := name + suffix) not in taken)


def _suffixes() -> Iterator[str]:
    """Yield an empty suffix, then B, C, ..., Z, B2, C2, ...: digits alone would look like a layer number."""
    yield ""
    for number in count(1):
        yield from (letter + ("" if number == 1 else str(number)) for letter in ascii_uppercase[1:])


def _singular(word: str) -> str:
    """`layers` -> `layer`; a single letter -> `layer`."""
    if len(word) < 2:
        return "layer"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _camel(word: str) -> str:
    parts = re.findall("[A-Za-z0-9]+", word)
    return "".join(part[0].upper() + part[1:] for part in parts).lstrip("0123456789") or "Part"
