"""Documents of the parts of statements: the spaces between tokens, and the possible line ends."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from archspec.core.pretty import LINE, Align, Doc, Fill, Group, Nest, TrailingText, lines_between
from archspec.language.format.rows import SPACE_BEFORE_COMMENT
from archspec.language.syntax.concrete import ConcretePart, RuleNode
from archspec.language.syntax.lines import begins_statement
from archspec.language.syntax.machine import Token
from archspec.language.syntax.tree import Comment

_TIGHT = frozenset(
    (
        *("place", "subscript", "index", "dotted", "address", "segment", "here", "reference", "literal", "ellipsis"),
        *("paren", "callee", "call", "arguments", "listing", "entries", "takeover"),
    )
)
"""Rules without spaces between their parts, except after commas."""

_LISTS = frozenset(("arguments", "listing", "entries", "outputs", "imports"))
_CLOSERS = frozenset((")", "]", "}"))
_ENCLOSED = frozenset(("paren", "callee", "index"))


class Layout:
    """The layout of expressions in one file."""

    def __init__(self, text: str, comments: Sequence[Comment]) -> None:
        self._text = text
        self._comments = comments
        self._starts = [comment.start for comment in comments]
        self._flat: dict[int, str | None] = {}
        self._measured: list[RuleNode] = []  # keeps the nodes alive, whose `id` is a key of `_flat`

    def flat(self, part: ConcretePart) -> str | None:
        """Return a part in one line; None if it has a chain with line breaks between its steps."""
        if not isinstance(part, RuleNode):
            return part.text
        pending = [part]
        while pending:
            branch = pending[-1]
            missing = [c for c in branch.children if isinstance(c, RuleNode) and id(c) not in self._flat]
            if missing:
                pending += missing
                continue
            pending.pop()
            self._measured.append(branch)
            self._flat[id(branch)] = self._join_flat(branch)
        return self._flat[id(part)]

    def doc(self, part: ConcretePart, inside: bool = False) -> Group:
        """Return a part as a document; `inside` brackets, a line can end between any two tokens."""
        return Group(self.flat(part), lambda: [self._break(part, inside)])

    def docs(self, rule: str, parts: Sequence[ConcretePart], inside: bool = False) -> list[Doc]:
        """Return the documents of the parts of a rule, with spaces between them."""
        result: list[Doc] = []
        for i, part in enumerate(parts):
            result += [*self._between(parts[i - 1], part), _gap(rule, parts[i - 1], part)] if i else []
            result.append(self.doc(part, inside))
        return result

    def is_broken(self, chain: RuleNode) -> bool:
        """Whether a line ends before a step of a chain."""
        ends = (previous.end for previous in chain.children)
        return any("\n" in self._text[end : step.start] for end, step in zip(ends, chain.children[1:], strict=False))

    def comments_in(self, start: int, end: int) -> Sequence[Comment]:
        """Return the comments between two offsets."""
        return self._comments[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def comments_in_brackets(self, part: ConcretePart) -> int:
        """Return the number of comments in the brackets of a part."""
        count = 0
        pending = [part]
        while pending:
            part = pending.pop()
            if isinstance(part, RuleNode) and self.comments_in(part.start, part.end):
                opening = _opening(part.children)
                pending += part.children[:opening]
                count += len(self.comments_in(part.children[opening].end, part.end)) if opening is not None else 0
        return count

    def _between_items(self, branch: RuleNode) -> list[Comment]:
        if branch.rule not in _LISTS or not self.comments_in(branch.start, branch.end):
            return []
        opening = _opening(branch.children)
        parts = branch.children[opening:] if opening is not None else []
        return [comment for before, part in pairwise(parts) for comment in self.comments_in(before.end, part.start)]

    def _join_flat(self, branch: RuleNode) -> str | None:
        if (branch.rule == "chain" and self.is_broken(branch)) or self.comments_in(branch.start, branch.end):
            return None
        parts = without_last_comma(branch.children)
        text = ""
        for i, part in enumerate(parts):
            flat = self._flat[id(part)] if isinstance(part, RuleNode) else part.text
            if flat is None:
                return None
            text += (_gap(branch.rule, parts[i - 1], part) if i else "") + flat
        return text

    def _break(self, part: ConcretePart, inside: bool) -> Doc:
        if not isinstance(part, RuleNode):
            return part.text
        parts = without_last_comma(part.children)
        match part.rule, parts:
            case rule, _ if self._between_items(part):
                return self._list_with_comments(part)
            case rule, _ if rule in _LISTS:
                return self._list(rule, parts)
            case rule, [first, inner, last] if rule in _ENCLOSED:
                within: Doc = [*self._between(first, inner), self.doc(inner, True), *self._between(inner, last)]
                return Align([self.doc(first), Align(within), self.doc(last)])
            case "call", [callee, first, second]:
                return [self.doc(callee, inside), *self._between(callee, first), self._argument_lists(first, second)]
            case "own", [*start, first, second] if _is_rule(first, "arguments") and _is_rule(second, "arguments"):
                return [
                    *self.docs("own", start, inside),
                    *self._between(start[-1], first),
                    self._argument_lists(first, second),
                ]
            case "chain", [head, *_]:
                steps = [[*self._between(*pair), LINE, self.doc(pair[1], inside)] for pair in pairwise(parts)]
                return Align([self.doc(head, inside), Nest([*steps], 2)])
            case "conditional", [*value, word, otherwise] if _text(word) == "else":
                before = [*self.docs("conditional", value, inside), *self._between(value[-1], word)]
                return Align([*before, LINE, *self.docs("conditional", [word, otherwise], inside)])
            case "step", [Token() as arrow, *step]:
                return [
                    arrow.text,
                    *self._between(arrow, step[0]),
                    " ",
                    self.doc(copy_with_children(part, step), inside),
                ]
            case "step", [value, RuleNode("skip", [*condition, word, otherwise]), *loop] if _text(word) == "else":
                before = [*self.docs("step", [value, *condition], inside), *self._between(condition[-1], word)]
                return Align([*before, LINE, *self.docs("step", [word, otherwise, *loop], inside)])
            case "binary", _ if inside:
                return Align(lines_between(self._operands(part)))
            case rule, _:
                return Align(self.docs(rule, parts, inside))

    def _between(self, left: ConcretePart, right: ConcretePart) -> list[Doc]:
        """Return the comments between two parts; a new line begins after each."""
        docs: list[Doc] = []
        for comment in self.comments_in(left.end, right.start):
            is_alone = "\n" in self._text[left.end : comment.start]
            docs += (
                [LINE, TrailingText(comment.text)] if is_alone else [TrailingText(SPACE_BEFORE_COMMENT + comment.text)]
            )
        return docs

    def _list(self, rule: str, parts: Sequence[ConcretePart]) -> Doc:
        opening = _opening(parts)
        if opening is None or opening + 2 == len(parts):
            return self.docs(rule, parts)
        space = " " if rule == "imports" else ""
        items = [part for part in parts[opening + 1 : -1] if _text(part) != ","]
        return [
            *self.docs(rule, parts[: opening + 1]),
            space,
            Align(Fill(self._items(items))),
            space,
            self.doc(parts[-1]),
        ]

    def _list_with_comments(self, branch: RuleNode) -> Doc:
        """Return a list with each item on a separate line, and comments next to and above the items."""
        opening = _opening(branch.children) or 0
        opener, *parts = branch.children[opening:]
        *_, closer = parts
        end = len(without_last_comma(parts)) - 1  # index of the closing bracket without a comma before it
        space = " " if branch.rule == "imports" else ""
        lines: list[_Line] = [_Line([], "", "", is_first=True)]
        last = opener
        for i, part in enumerate(parts):
            for comment in self.comments_in(last.end, part.start):
                if "\n" in self._text[last.end : comment.start]:
                    lines.append(_Line([], "", comment.text))
                else:
                    lines[-1].comment = comment.text
            if part is not closer and _text(part) != ",":
                group = _join([self.doc(part, True), "," if i + 1 < end else ""])
                if lines[-1].comment or (lines[-1].docs and not begins_statement(self._text, part.start)):
                    lines.append(_Line([], "", ""))
                lines[-1].add(group)
            last = part
        width = max(len(line.flat or "") for line in lines if line.comment)
        is_closed = bool(lines[-1].comment)
        return [
            *([*self.docs(branch.rule, branch.children[:opening]), space] if opening else []),
            Align(
                [
                    self.doc(opener),
                    space,
                    Align(lines_between([line.doc(width) for line in lines])),
                    LINE if is_closed else space,
                    self.doc(closer),
                ]
            ),
        ]

    def _items(self, items: Sequence[ConcretePart]) -> list[Group]:
        """Return the items of a list, with the commas after them."""
        groups: list[Group] = []
        for i, item in enumerate(items):
            parts: list[Group | str] = [self.doc(item, True), "," if i + 1 < len(items) else ""]
            if groups and begins_statement(self._text, item.start):  # a line cannot begin with this item
                parts = [groups.pop(), " ", *parts]
            groups.append(_join(parts))
        return groups

    def _argument_lists(self, first: ConcretePart, second: ConcretePart) -> Doc:
        """Return two lists of arguments; the second is below the first if it does not fit on the same line."""
        inner = self.doc(second)
        return Align([self.doc(first), *self._between(first, second), Group(inner.flat, lambda: [[LINE, inner]])])

    def _operands(self, node: RuleNode) -> list[Doc]:
        """Return the operands and operators of a chain of binary operations of the same precedence."""
        operands: list[Doc] = []
        comments: list[Doc] = []
        left: ConcretePart = node
        signs = _precedence(node)
        while isinstance(left, RuleNode) and left.rule == "binary" and _precedence(left) == signs:
            left, sign, right = left.children
            operands.insert(0, [*self.docs("binary", [sign, right], True), *comments])
            comments = self._between(left, sign)
        return [[self.doc(left, True), *comments], *operands]


@dataclass
class _Line:
    """A line in a list with comments: items, and a comment next to them or alone."""

    docs: list[Doc]
    flat: str | None
    comment: str
    is_first: bool = False

    def add(self, item: Group) -> None:
        self.docs += [" " if self.docs else "", item]
        flats = None if self.flat is None or item.flat is None else (self.flat, item.flat)
        self.flat = flats and " ".join(filter(None, flats))

    def doc(self, width: int) -> Doc:
        """Return the line with its comment, which is in a column if there are items before it."""
        if not self.comment:
            return [*self.docs]
        padding = " " * (width - len(self.flat)) if self.flat is not None else ""
        gap = padding + SPACE_BEFORE_COMMENT if self.docs or self.is_first else ""
        return [*self.docs, TrailingText(gap + self.comment)]


def _opening(parts: Sequence[ConcretePart]) -> int | None:
    """Return the index of the opening bracket of a list."""
    return next((i for i, part in enumerate(parts) if _text(part) in ("(", "[", "{")), None)


def split_declaration(part: ConcretePart) -> tuple[RuleNode, ConcretePart] | None:
    """Return the declaration at the start of a part, and the part without its address; None if there is none."""
    if not isinstance(part, RuleNode):
        return None
    if part.rule == "own":
        return part, copy_with_children(part, part.children[2:])
    if part.rule in ("conditional", "chain", "step"):
        first, *suffix = part.children
        split = split_declaration(first)
        return (split[0], copy_with_children(part, [split[1], *suffix])) if split else None
    return None


def without_last_comma(parts: Sequence[ConcretePart]) -> Sequence[ConcretePart]:
    """Return parts without a comma before the bracket at the end."""
    match parts:
        case [*before, comma, closer] if _text(comma) == "," and _text(closer) in _CLOSERS:
            return [*before, closer]
        case _:
            return parts


def _join(parts: Sequence[Group | str]) -> Group:
    flats = [part if isinstance(part, str) else part.flat for part in parts]
    flat = "".join(flat for flat in flats if flat is not None)
    return Group(None if None in flats else flat, lambda: [[*parts]])


def copy_with_children(branch: RuleNode, children: list[ConcretePart]) -> RuleNode:
    """Return a copy of a node with different children."""
    return RuleNode(branch.rule, children, children[0].start, branch.end, branch.height)


def _is_rule(part: ConcretePart, rule: str) -> bool:
    return isinstance(part, RuleNode) and part.rule == rule


def _text(part: ConcretePart) -> str:
    return "" if isinstance(part, RuleNode) else part.text


_PRECEDENCES = {"**": 1, "*": 2, "/": 2, "//": 2, "%": 2, "+": 3, "-": 3, "and": 5, "or": 6}


def _precedence(node: RuleNode) -> int:
    return _PRECEDENCES.get(_text(node.children[1]), 4)


def _gap(rule: str, left: ConcretePart, right: ConcretePart) -> str:
    """Return the space between two parts of a rule, or the empty string."""
    before, after = _text(left), _text(right)
    if after in (",", ":", "?", ")", "]") or before in ("(", "["):
        return ""
    if before == ",":
        return " "
    if rule in _TIGHT or _is_rule(right, "arguments") or _is_rule(right, "entries"):
        return ""
    if rule == "loop" and ".." in (before, after):
        return " " if before and _begins_with_dot(right) else ""
    if rule == "unary":
        return " " if before == "not" else ""
    if (rule == "initial" and after == "(") or (before == "{" and after == "}"):
        return ""
    return " "


def _begins_with_dot(part: ConcretePart) -> bool:
    while isinstance(part, RuleNode):
        part = part.children[0]
    return part.text.startswith(".")
