"""The tensors of a checkpoint as statements of blocks: a tree of names, with what repeats in it said once."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from archspec.addresses import is_index, segments
from archspec.checkpoints.entries import Entry
from archspec.scaffolds.layers import Form, LayerPattern, recognise
from archspec.scaffolds.tensors import Tensor


class Index(NamedTuple):
    """The number in an address in round i: `step` * i + `start`."""

    step: int
    start: int


class Block:
    """What a definition is to own; `arity` counts the sizes of all its statements."""

    __slots__ = ("arity", "statements")

    def __init__(self, statements: tuple[Statement, ...]) -> None:
        self.statements = statements
        self.arity = sum(statement.arity for statement in statements)


class Statement(NamedTuple):
    """`address: what`, in rounds 0 to `rounds` - 1 if it is repeated. Its sizes are kept apart."""

    address: tuple[str | Index, ...]
    what: Form | Tensor | Block
    arity: int
    rounds: int | None = None


class SizedStatements(NamedTuple):
    """Statements with their sizes, one after the other."""

    statements: tuple[Statement, ...]
    sizes: tuple[int, ...]


class _Node:
    __slots__ = ("children", "entry")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.entry: Entry | None = None


TRIES = 8
"""How many second members of a progression are tried."""


class Structure:
    """Makes blocks of entries, of which `tensors` says what each is."""

    def __init__(self, patterns: list[LayerPattern], tensors: Mapping[str, Tensor]) -> None:
        self.patterns = patterns
        self._tensors = tensors
        self._known: dict[tuple[str, tuple[tuple[str, tuple[int, ...]], ...]], Form | None] = {}
        self._blocks: dict[tuple[Statement, ...], Block] = {}
        self._lists: list[set[Block]] = []

    def of(self, entries: Sequence[Entry]) -> tuple[Block, tuple[int, ...]]:
        """The outermost block, and its sizes. Names are distinct, and none lies inside another."""
        root = _Node()
        for entry in entries:
            node = root
            for word in segments(entry.name):
                node = node.children.setdefault(word, _Node())
            node.entry = entry
        part = self._part(root, "", outermost=True)
        return self._chosen(self._block(part.statements)), part.sizes

    # What stands at an address

    def _part(self, node: _Node, word: str, outermost: bool = False) -> SizedStatements:
        if node.entry is not None:
            return _single(self._tensors[node.entry.name], node.entry.shape)
        leaves = {name: child.entry for name, child in node.children.items() if child.entry is not None}
        if len(leaves) == len(node.children) and not outermost:
            layer = self._layer(leaves, word)
            if layer is not None:
                return layer
        numbered = {int(name): child for name, child in node.children.items() if is_index(name)}
        statements: list[Statement] = []
        sizes: list[int] = []
        done = False
        for name, child in node.children.items():
            if outermost or not is_index(name):  # no address begins with an index
                part = self._at(name, self._part(child, name))
            elif done:
                continue
            else:
                done = True
                part = self._list(numbered, word)
            statements += part.statements
            sizes += part.sizes
        return SizedStatements(tuple(statements), tuple(sizes))

    def _layer(self, leaves: dict[str, Entry], word: str) -> SizedStatements | None:
        """A layer of the library that owns these tensors and no others."""
        if any(self._tensors[entry.name] != Tensor("param", "", len(entry.shape)) for entry in leaves.values()):
            return None  # something is to be said of it
        shapes = {name: entry.shape for name, entry in leaves.items()}
        key = word, tuple(shapes.items())
        if key not in self._known:
            self._known[key] = recognise(self.patterns, word, shapes)
        form = self._known[key]
        return form and _single(form, tuple(shapes[tensor][axis] for _, (tensor, axis) in form.slots))

    def _at(self, word: str | Index, part: SizedStatements) -> SizedStatements:
        """What stands at `word`: one statement, or several if they begin with numbers, as no definition can."""
        if not _is_list(part):
            part = self._one(part)
        return SizedStatements(tuple(s._replace(address=(word, *s.address)) for s in part.statements), part.sizes)

    def _one(self, part: SizedStatements, numbered: bool = False) -> SizedStatements:
        """A part as one statement, perhaps of a block. What is `numbered` may be repeated: it has no loop of its own,
        and a block in it begins at the number.
        """
        (first, *more) = part.statements
        if more or (numbered and (first.rounds or (first.address and isinstance(first.what, Block)))):
            return _single(self._block(part.statements), part.sizes)
        return part

    def _block(self, statements: tuple[Statement, ...]) -> Block:
        if statements not in self._blocks:
            self._blocks[statements] = Block(statements)
        return self._blocks[statements]

    def _list(self, children: dict[int, _Node], word: str) -> SizedStatements:
        """Numbered parts: equal ones are repeated by one statement."""
        alike: dict[SizedStatements, list[int]] = {}
        runs: list[tuple[list[int], SizedStatements]] = []
        for number in sorted(children):
            part = self._part(children[number], word)
            if _is_list(part):
                runs.append(([number], part))
            else:
                alike.setdefault(self._one(part, numbered=True), []).append(number)
        runs += [(run, part) for part, numbers in alike.items() for run in progressions(numbers)]
        runs.sort(key=lambda run: run[0][0])
        parts = [self._repeated(run, part) for run, part in runs]
        statements = tuple(statement for part in parts for statement in part.statements)
        self._lists.append({s.what for s in statements if isinstance(s.what, Block)})
        return SizedStatements(statements, tuple(size for part in parts for size in part.sizes))

    def _repeated(self, run: list[int], part: SizedStatements) -> SizedStatements:
        if len(run) == 1:
            return self._at(str(run[0]), part)
        (statement,) = part.statements
        address = (Index(run[1] - run[0], run[0]), *statement.address)
        return SizedStatements((statement._replace(address=address, rounds=len(run)),), part.sizes)

    # Which blocks become definitions

    def _chosen(self, outermost: Block) -> Block:
        """The outermost block, where blocks that repeat are definitions, and so is what stands beside them in a list;
        what is used once is written out.
        """
        uses = dict.fromkeys(self._blocks.values(), 0)
        for block in self._blocks.values():
            for statement in block.statements:
                if isinstance(statement.what, Block):
                    uses[statement.what] += statement.rounds or 1
        repeated = {block for block, count in uses.items() if count > 1}
        listed = {block for blocks in self._lists for block in blocks}
        beside = {block for blocks in self._lists if blocks & repeated for block in blocks}
        kept: dict[Block, Block] = {}
        written: dict[Block, tuple[Statement, ...]] = {}
        for block in self._blocks.values():  # what is inside of others comes before them
            written[block] = tuple(line for s in block.statements for line in _lines(s, kept, written))
            if block in beside or (block in repeated and (block in listed or len(written[block]) >= FEWEST_LINES)):
                kept[block] = Block(written[block])
        return Block(written[outermost])


FEWEST_LINES = 3
"""Blocks that stand at words, and not in a list, become a definition if they repeat and have so many statements."""


def _lines(
    statement: Statement, kept: dict[Block, Block], written: dict[Block, tuple[Statement, ...]]
) -> Iterable[Statement]:
    """A statement as it is, or those of a block that is written out."""
    if not isinstance(statement.what, Block):
        return [statement]
    if statement.what in kept:
        return [statement._replace(what=kept[statement.what])]
    return [s._replace(address=(*statement.address, *s.address)) for s in written[statement.what]]


def progressions(numbers: Sequence[int]) -> list[list[int]]:
    """Ascending numbers as arithmetic progressions, long ones where they are found, in the order of their firsts."""
    left = set(numbers)
    found: list[list[int]] = []
    for place, first in enumerate(numbers):
        if first not in left:
            continue
        seconds = [second for second in numbers[place + 1 : place + 1 + TRIES] if second in left]
        runs = [[first, *_further(second, second - first, left)] for second in seconds]
        run = max(runs, key=len, default=[first])  # of equally long ones that with the smallest step
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
    """Whether addresses in a part begin with a number that is counted up."""
    return any(s.address and isinstance(s.address[0], Index) for s in part.statements)


def _single(what: Form | Tensor | Block, sizes: tuple[int, ...]) -> SizedStatements:
    return SizedStatements((Statement((), what, len(sizes)),), sizes)
