"""The tensors of a checkpoint as statements of blocks: a tree of names with repetition factored out."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from string import ascii_uppercase
from typing import NamedTuple, TypeAlias, cast

from archspec.analysis.scaffold.layers import Form, LayerPattern, recognise
from archspec.analysis.scaffold.tensors import Tensor
from archspec.core.addresses import is_index, segments
from archspec.formats.checkpoints.entries import Entry
from archspec.language.syntax.parse import CONTEXTUAL, parser


class Index(NamedTuple):
    """A loop index in an address: `step` * i + `start` in iteration i."""

    step: int
    start: int


class Block:
    """The contents of a definition; `arity` is the number of sizes in its statements."""

    __slots__ = ("arity", "statements")

    def __init__(self, statements: tuple[Statement, ...]) -> None:
        self.statements = statements
        self.arity = sum(statement.arity for statement in statements)


class Statement(NamedTuple):
    """`address: content`, in a loop of `iterations` if that is set. Its sizes are stored separately."""

    address: tuple[str | Index, ...]
    content: Form | Tensor | Block
    arity: int
    iterations: int | None = None


class SizedStatements(NamedTuple):
    """Statements, and their sizes in order."""

    statements: tuple[Statement, ...]
    sizes: tuple[int, ...]


_Tree: TypeAlias = "dict[str, _Tree | Entry]"
"""Entries by the segments of their names."""

TRIES = 8
"""The number of candidates tried as the second member of a progression."""


class Structure:
    """Builder of blocks from the entries of a checkpoint; `tensors` classifies each entry."""

    def __init__(self, patterns: list[LayerPattern], tensors: Mapping[str, Tensor]) -> None:
        self.patterns = patterns
        self._tensors = tensors
        self._known: dict[tuple[str, tuple[tuple[str, tuple[int, ...]], ...]], Form | None] = {}
        self._blocks: dict[tuple[Statement, ...], Block] = {}
        self._lists: list[set[Block]] = []

    def of(self, entries: Sequence[Entry]) -> tuple[Block, tuple[int, ...]]:
        """Return the outermost block and its sizes. Names must be distinct, and none may be inside another."""
        root: _Tree = {}
        for entry in entries:
            node = root
            *outer, last = segments(entry.name)
            for word in outer:
                node = cast("_Tree", node.setdefault(word, {}))
            node[last] = entry
        part = self._part(root, "", outermost=True)
        return self._chosen(self._block(part.statements)), part.sizes

    # Parts of the tree

    def _part(self, node: _Tree | Entry, word: str, outermost: bool = False) -> SizedStatements:
        if isinstance(node, Entry):
            return _single(self._tensors[node.name], node.shape)
        leaves = {name: child for name, child in node.items() if isinstance(child, Entry)}
        if len(leaves) == len(node) and not outermost:
            layer = self._layer(leaves, word)
            if layer is not None:
                return layer
        numbered = {int(name): child for name, child in node.items() if is_index(name) and not outermost}
        first = str(next(iter(numbered), ""))
        parts = [
            self._list(numbered, word) if name == first else self._at(name, self._part(child, name))
            for name, child in node.items()
            if name == first or outermost or not is_index(name)  # no address begins with an index
        ]
        return _together(parts)

    def _layer(self, leaves: dict[str, Entry], word: str) -> SizedStatements | None:
        """Return the library layer that declares exactly these tensors, or None."""
        if any(self._tensors[entry.name] != Tensor("param", "", len(entry.shape)) for entry in leaves.values()):
            return None  # a buffer, another dtype or a remark
        shapes = {name: entry.shape for name, entry in leaves.items()}
        key = word, tuple(shapes.items())
        if key not in self._known:
            self._known[key] = recognise(self.patterns, word, shapes)
        form = self._known[key]
        return form and _single(form, tuple(shapes[tensor][axis] for _, (tensor, axis) in form.slots))

    def _at(self, word: str | Index, part: SizedStatements) -> SizedStatements:
        """Return a part below `word`: one statement, or several if they begin with numbers, as a definition cannot."""
        if not _is_list(part):
            part = self._one(part)
        return SizedStatements(tuple(s._replace(address=(word, *s.address)) for s in part.statements), part.sizes)

    def _one(self, part: SizedStatements, numbered: bool = False) -> SizedStatements:
        """Return a part as one statement, wrapped in a block if necessary.

        A `numbered` part may be repeated, so it must not contain a loop, or a block below its number.
        """
        (first, *more) = part.statements
        if more or (numbered and (first.iterations or (first.address and isinstance(first.content, Block)))):
            return _single(self._block(part.statements), part.sizes)
        return part

    def _block(self, statements: tuple[Statement, ...]) -> Block:
        if statements not in self._blocks:
            self._blocks[statements] = Block(statements)
        return self._blocks[statements]

    def _list(self, children: dict[int, _Tree | Entry], word: str) -> SizedStatements:
        """Return numbered parts, with equal ones as a loop."""
        equal: dict[SizedStatements, list[int]] = {}
        runs: list[tuple[list[int], SizedStatements]] = []
        for number in sorted(children):
            part = self._part(children[number], word)
            if _is_list(part):
                runs.append(([number], part))
            else:
                equal.setdefault(self._one(part, numbered=True), []).append(number)
        runs += [(run, part) for part, numbers in equal.items() for run in progressions(numbers)]
        runs.sort(key=lambda run: run[0][0])
        found = _together([self._repeated(run, part) for run, part in runs])
        self._lists.append({s.content for s in found.statements if isinstance(s.content, Block)})
        return found

    def _repeated(self, run: list[int], part: SizedStatements) -> SizedStatements:
        if len(run) == 1:
            return self._at(str(run[0]), part)
        (statement,) = part.statements
        address = (Index(run[1] - run[0], run[0]), *statement.address)
        return SizedStatements((statement._replace(address=address, iterations=len(run)),), part.sizes)

    # Selection of definitions

    def _chosen(self, outermost: Block) -> Block:
        """Return the outermost block, with blocks kept as definitions if they repeat or are in a list with such blocks.

        All other blocks are inlined.
        """
        uses = dict.fromkeys(self._blocks.values(), 0)
        for block in self._blocks.values():
            for statement in block.statements:
                if isinstance(statement.content, Block):
                    uses[statement.content] += statement.iterations or 1
        repeated = {block for block, count in uses.items() if count > 1}
        listed = {block for blocks in self._lists for block in blocks}
        beside = {block for blocks in self._lists if blocks & repeated for block in blocks}
        kept: dict[Block, Block] = {}
        written: dict[Block, tuple[Statement, ...]] = {}
        for block in self._blocks.values():  # inner blocks come first
            written[block] = tuple(line for s in block.statements for line in _lines(s, kept, written))
            if block in beside or (
                block in repeated and (block in listed or len(written[block]) >= MIN_DEFINITION_STATEMENTS)
            ):
                kept[block] = Block(written[block])
        return Block(written[outermost])


MIN_DEFINITION_STATEMENTS = 3
"""The number of statements from which repeated blocks outside lists become definitions."""


def _lines(
    statement: Statement, kept: dict[Block, Block], written: dict[Block, tuple[Statement, ...]]
) -> Iterable[Statement]:
    """Return a statement, or the statements of an inlined block."""
    if not isinstance(statement.content, Block):
        return [statement]
    if statement.content in kept:
        return [statement._replace(content=kept[statement.content])]
    return [s._replace(address=(*statement.address, *s.address)) for s in written[statement.content]]


def progressions(numbers: Sequence[int]) -> list[list[int]]:
    """Split ascending numbers greedily into arithmetic progressions, ordered by their first members."""
    left = set(numbers)
    found: list[list[int]] = []
    for position, first in enumerate(numbers):
        if first not in left:
            continue
        seconds = [second for second in numbers[position + 1 : position + 1 + TRIES] if second in left]
        runs = [[first, *_further(second, second - first, left)] for second in seconds]
        run = max(runs, key=len, default=[first])  # the smallest step, if several are equally long
        if len(run) == 2 and run[1] != first + 1:
            run = [first]
        left.difference_update(run)
        found.append(run)
    return found


def _further(number: int, step: int, among: Container[int]) -> Iterable[int]:
    while number in among:
        yield number
        number += step


def _is_list(part: SizedStatements) -> bool:
    """Whether an address in a part begins with a loop index."""
    return any(s.address and isinstance(s.address[0], Index) for s in part.statements)


def _together(parts: Sequence[SizedStatements]) -> SizedStatements:
    return SizedStatements(
        tuple(statement for part in parts for statement in part.statements),
        tuple(size for part in parts for size in part.sizes),
    )


def _single(content: Form | Tensor | Block, sizes: tuple[int, ...]) -> SizedStatements:
    return SizedStatements((Statement((), content, len(sizes)),), sizes)


# Formatting of addresses, and names for definitions derived from them.

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


# Generation of `tie` statements for names that share a storage.


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
