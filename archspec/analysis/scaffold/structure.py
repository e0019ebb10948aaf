"""The tensors of a checkpoint as statements of blocks: a tree of names with repetition factored out."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from string import ascii_uppercase
from typing import NamedTuple, TypeAlias, cast

from archspec.analysis.scaffold.layers import LayerCall, LayerPattern, recognise_layer
from archspec.analysis.scaffold.tensors import TensorSketch
from archspec.core.addresses import is_index, segments
from archspec.formats.checkpoints.entries import Entry
from archspec.language.syntax.parse import CONTEXTUAL, parser


class LoopIndex(NamedTuple):
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

    address: tuple[str | LoopIndex, ...]
    content: LayerCall | TensorSketch | Block
    arity: int
    iterations: int | None = None


class SizedStatements(NamedTuple):
    """Statements, and their sizes in order."""

    statements: tuple[Statement, ...]
    sizes: tuple[int, ...]


_Tree: TypeAlias = "dict[str, _Tree | Entry]"
"""Entries by the segments of their names."""

MAX_SECOND_MEMBERS = 8
"""Maximum number of candidates for the second member of a progression."""


class Structure:
    """Builder of blocks from the entries of a checkpoint; `tensors` classifies each entry."""

    def __init__(self, patterns: list[LayerPattern], tensors: Mapping[str, TensorSketch]) -> None:
        self.patterns = patterns
        self._tensors = tensors
        self._forms: dict[tuple[str, tuple[tuple[str, tuple[int, ...]], ...]], LayerCall | None] = {}
        self._blocks: dict[tuple[Statement, ...], Block] = {}
        self._lists: list[set[Block]] = []

    def build(self, entries: Sequence[Entry]) -> tuple[Block, tuple[int, ...]]:
        """Build the outermost block, and return it with its sizes.

        Names must be distinct, and none may be inside another.
        """
        root: _Tree = {}
        for entry in entries:
            node = root
            *outer, last = segments(entry.name)
            for word in outer:
                node = cast("_Tree", node.setdefault(word, {}))
            node[last] = entry
        part = self._build_part(root, "", outermost=True)
        return self._select_definitions(self._intern_block(part.statements)), part.sizes

    # Parts of the tree

    def _build_part(self, node: _Tree | Entry, word: str, outermost: bool = False) -> SizedStatements:
        if isinstance(node, Entry):
            return _wrap_content(self._tensors[node.name], node.shape)
        leaves = {name: child for name, child in node.items() if isinstance(child, Entry)}
        if len(leaves) == len(node) and not outermost:
            layer = self._match_layer(leaves, word)
            if layer is not None:
                return layer
        numbered = {int(name): child for name, child in node.items() if is_index(name) and not outermost}
        first = str(next(iter(numbered), ""))
        parts = [
            self._build_list(numbered, word)
            if name == first
            else self._prefix_statements(name, self._build_part(child, name))
            for name, child in node.items()
            if name == first or outermost or not is_index(name)  # no address begins with an index
        ]
        return _concatenate(parts)

    def _match_layer(self, leaves: dict[str, Entry], word: str) -> SizedStatements | None:
        """Return the library layer that declares exactly these tensors, or None."""
        if any(self._tensors[entry.name] != TensorSketch("param", "", len(entry.shape)) for entry in leaves.values()):
            return None  # a buffer, another dtype or a remark
        shapes = {name: entry.shape for name, entry in leaves.items()}
        key = word, tuple(shapes.items())
        if key not in self._forms:
            self._forms[key] = recognise_layer(self.patterns, word, shapes)
        form = self._forms[key]
        return form and _wrap_content(form, tuple(shapes[tensor][axis] for _, (tensor, axis) in form.slots))

    def _prefix_statements(self, word: str | LoopIndex, part: SizedStatements) -> SizedStatements:
        """Prefix the addresses of a part with `word`.

        The result is one statement, unless addresses begin with loop indices, which no definition allows.
        """
        if not _is_list(part):
            part = self._as_single_statement(part)
        return SizedStatements(tuple(s._replace(address=(word, *s.address)) for s in part.statements), part.sizes)

    def _as_single_statement(self, part: SizedStatements, numbered: bool = False) -> SizedStatements:
        """Return a part as one statement, wrapped in a block if necessary.

        A `numbered` part may be repeated, so it must not contain a loop, or a block below its number.
        """
        (first, *more) = part.statements
        if more or (numbered and (first.iterations or (first.address and isinstance(first.content, Block)))):
            return _wrap_content(self._intern_block(part.statements), part.sizes)
        return part

    def _intern_block(self, statements: tuple[Statement, ...]) -> Block:
        if statements not in self._blocks:
            self._blocks[statements] = Block(statements)
        return self._blocks[statements]

    def _build_list(self, children: dict[int, _Tree | Entry], word: str) -> SizedStatements:
        """Build the statements of numbered parts, with equal parts as a loop."""
        equal: dict[SizedStatements, list[int]] = {}
        runs: list[tuple[list[int], SizedStatements]] = []
        for number in sorted(children):
            part = self._build_part(children[number], word)
            if _is_list(part):
                runs.append(([number], part))
            else:
                equal.setdefault(self._as_single_statement(part, numbered=True), []).append(number)
        runs += [(run, part) for part, numbers in equal.items() for run in split_progressions(numbers)]
        runs.sort(key=lambda run: run[0][0])
        statements = _concatenate([self._build_repetition(run, part) for run, part in runs])
        self._lists.append({s.content for s in statements.statements if isinstance(s.content, Block)})
        return statements

    def _build_repetition(self, run: list[int], part: SizedStatements) -> SizedStatements:
        if len(run) == 1:
            return self._prefix_statements(str(run[0]), part)
        (statement,) = part.statements
        address = (LoopIndex(run[1] - run[0], run[0]), *statement.address)
        return SizedStatements((statement._replace(address=address, iterations=len(run)),), part.sizes)

    # Selection of definitions

    def _select_definitions(self, outermost: Block) -> Block:
        """Return the outermost block with some blocks as definitions, and all others inlined.

        Definitions are blocks that repeat, or are in a list with such blocks.
        """
        uses = dict.fromkeys(self._blocks.values(), 0)
        for block in self._blocks.values():
            for statement in block.statements:
                if isinstance(statement.content, Block):
                    uses[statement.content] += statement.iterations or 1
        repeated = {block for block, count in uses.items() if count > 1}
        listed = {block for blocks in self._lists for block in blocks}
        beside_repeated = {block for blocks in self._lists if blocks & repeated for block in blocks}
        definitions: dict[Block, Block] = {}
        lines: dict[Block, tuple[Statement, ...]] = {}
        for block in self._blocks.values():  # inner blocks come first
            lines[block] = tuple(line for s in block.statements for line in _inline(s, definitions, lines))
            if block in beside_repeated or (
                block in repeated and (block in listed or len(lines[block]) >= MIN_DEFINITION_STATEMENTS)
            ):
                definitions[block] = Block(lines[block])
        return Block(lines[outermost])


MIN_DEFINITION_STATEMENTS = 3
"""Minimum number of statements of a repeated block outside lists that becomes a definition."""


def _inline(
    statement: Statement, definitions: dict[Block, Block], lines: dict[Block, tuple[Statement, ...]]
) -> Iterable[Statement]:
    """Return a statement, or the statements of an inlined block."""
    if not isinstance(statement.content, Block):
        return [statement]
    if statement.content in definitions:
        return [statement._replace(content=definitions[statement.content])]
    return [s._replace(address=(*statement.address, *s.address)) for s in lines[statement.content]]


def split_progressions(numbers: Sequence[int]) -> list[list[int]]:
    """Split ascending numbers greedily into arithmetic split_progressions, ordered by their first members."""
    remaining = set(numbers)
    result: list[list[int]] = []
    for position, first in enumerate(numbers):
        if first not in remaining:
            continue
        seconds = [
            second for second in numbers[position + 1 : position + 1 + MAX_SECOND_MEMBERS] if second in remaining
        ]
        runs = [[first, *_iter_progression(second, second - first, remaining)] for second in seconds]
        run = max(runs, key=len, default=[first])  # the smallest step, if several are equally long
        if len(run) == 2 and run[1] != first + 1:
            run = [first]
        remaining.difference_update(run)
        result.append(run)
    return result


def _iter_progression(number: int, step: int, among: Container[int]) -> Iterable[int]:
    while number in among:
        yield number
        number += step


def _is_list(part: SizedStatements) -> bool:
    """Whether an address in a part begins with a loop index."""
    return any(s.address and isinstance(s.address[0], LoopIndex) for s in part.statements)


def _concatenate(parts: Sequence[SizedStatements]) -> SizedStatements:
    return SizedStatements(
        tuple(statement for part in parts for statement in part.statements),
        tuple(size for part in parts for size in part.sizes),
    )


def _wrap_content(content: LayerCall | TensorSketch | Block, sizes: tuple[int, ...]) -> SizedStatements:
    return SizedStatements((Statement((), content, len(sizes)),), sizes)


# Formatting of addresses, and names of definitions.

MAX_NAME_LENGTH = 40
"""Maximum length of the name of a definition."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"[A-Za-z0-9_]+")


def format_address(address: Sequence[str | LoopIndex]) -> str:
    """Format an address, with quoted segments where necessary and loop indices in brackets."""
    text = ""
    for position, word in enumerate(address):
        if isinstance(word, LoopIndex):
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


def format_loop(index: LoopIndex, number: int) -> str:
    """Format the loop over `number` values of an index."""
    first = index.start if index.step == 1 else 0
    return f"for i in {first}..{first + number}"


def choose_definition_name(paths: Sequence[Sequence[str | LoopIndex]], reserved: set[str]) -> str:
    """Return an unused name for a definition used at these paths.

    It is the last word of the first path, with preceding words if that is `reserved`, and with the number at the end of
    the paths if it is the same for all.
    """
    path = paths[0]
    words = [word for word in path if isinstance(word, str) and not is_index(word)]
    last = words.pop() if words else "part"
    number = path[-1]
    if isinstance(number, LoopIndex) or is_index(number):
        last = _to_singular(last)
    name = _to_camel_case(last)
    if isinstance(number, str) and is_index(number) and {path[-1] for path in paths} == {number}:
        name += number
    before = [_to_camel_case(word) for word in reversed(words)]
    if before and re.search("encoder|decoder", words[-1], re.IGNORECASE) and before[0] not in name:
        name = before.pop(0) + name
    while name in reserved and before:
        name = before.pop(0) + name
    name = name[-MAX_NAME_LENGTH:].lstrip("0123456789") or "Part"
    return next(n for suffix in _iter_suffixes() if (n := name + suffix) not in reserved)


def _iter_suffixes() -> Iterator[str]:
    """Yield an empty suffix, then B, C, ..., Z, B2, C2, ...: digits alone would look like a layer number."""
    yield ""
    for number in count(1):
        yield from (letter + ("" if number == 1 else str(number)) for letter in ascii_uppercase[1:])


def _to_singular(word: str) -> str:
    """`layers` -> `layer`; a single letter -> `layer`."""
    if len(word) < 2:
        return "layer"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _to_camel_case(word: str) -> str:
    parts = re.findall("[A-Za-z0-9]+", word)
    return "".join(part[0].upper() + part[1:] for part in parts).lstrip("0123456789") or "Part"


# `tie` statements for names that share a storage.


def map_ties(entries: Iterable[Entry], tensors: Mapping[str, TensorSketch]) -> dict[str, str]:
    """Map the name of each tied parameter to the first name of its storage."""
    firsts: dict[tuple[object, ...], str] = {}
    ties: dict[str, str] = {}
    for entry in entries:
        if tensors[entry.name].kind == "param":
            first = firsts.setdefault(entry.storage_key, entry.name)
            if first != entry.name:
                ties[entry.name] = first
    return ties


MAX_INDEX_CANDIDATES = 6
"""Maximum number of segments of a name that are tried as a loop index."""

_Words = tuple[str | LoopIndex, ...]
_UNIT_INDEX = LoopIndex(1, 0)


def tie_statements(ties: Mapping[str, str]) -> Iterator[str]:
    """Yield `tie` statements, with a loop for names that differ in one number.

    In a loop, the names are tied to a single name, or to names with the same number.
    """
    groups: dict[tuple[_Words, _Words], dict[int, str]] = {}
    for alias, counted in ties.items():
        for number, *pair in _iter_loop_candidates(tuple(segments(alias)), tuple(segments(counted))):
            groups.setdefault((pair[0], pair[1]), {})[number] = alias
    order = {alias: position for position, alias in enumerate(ties)}
    lines: list[tuple[int, str]] = []
    remaining = dict(ties)
    for (alias, counted), names in sorted(groups.items(), key=lambda group: -len(group[1])):
        for run in split_progressions(sorted(number for number, name in names.items() if name in remaining)):
            if len(run) > 1:
                index = LoopIndex(run[1] - run[0], run[0])
                pair = (
                    f"{format_address(_insert_index(alias, index))} = {format_address(_insert_index(counted, index))}"
                )
                lines.append((order[names[run[0]]], f"tie {pair} {format_loop(index, len(run))}"))
                for number in run:
                    del remaining[names[number]]
    lines += [
        (order[alias], f"tie {format_address(segments(alias))} = {format_address(segments(counted))}")
        for alias, counted in remaining.items()
    ]
    yield from (text for _, text in sorted(lines))


def _iter_loop_candidates(alias: tuple[str, ...], counted: tuple[str, ...]) -> Iterator[tuple[int, _Words, _Words]]:
    """Yield each number of `alias` that may be a loop index, with both names generalized over it."""
    indices = [i for i in range(1, len(alias)) if is_index(alias[i])][:MAX_INDEX_CANDIDATES]
    for i in indices:
        one = (*alias[:i], _UNIT_INDEX, *alias[i + 1 :])
        yield int(alias[i]), one, counted
        if i < len(counted) and counted[i] == alias[i]:
            yield int(alias[i]), one, (*counted[:i], _UNIT_INDEX, *counted[i + 1 :])


def _insert_index(words: _Words, index: LoopIndex) -> _Words:
    return tuple(index if isinstance(word, LoopIndex) else word for word in words)
