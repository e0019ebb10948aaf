"""Parts of statements as documents: the spaces between tokens, and where a line may end."""

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
        self._kept: list[RuleNode] = []  # so that no other branch gets the `id` of one of them

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
            self._kept.append(branch)
            self._flat[id(branch)] = self._joined(branch)
        return self._flat[id(part)]

    def doc(self, part: ConcretePart, inside: bool = False) -> Group:
        """Return a part as a document; `inside`: it is in brackets, so that a line can end between any two tokens."""
        return Group(self.flat(part), lambda: [self._broken(part, inside)])

    def docs(self, rule: str, parts: Sequence[ConcretePart], inside: bool = False) -> list[Doc]:
        """Return the documents of the parts of a rule, with spaces between them."""
        found: list[Doc] = []
        for i, part in enumerate(parts):
            found += [*self._between(parts[i - 1], part), _gap(rule, parts[i - 1], part)] if i else []
            found.append(self.doc(part, inside))
        return found

    def is_broken(self, chain: RuleNode) -> bool:
        """Whether a line ends before a step of a chain."""
        ends = (before.end for before in chain.children)
        return any("\n" in self._text[end : step.start] for end, step in zip(ends, chain.children[1:], strict=False))

    def comments_in(self, start: int, end: int) -> Sequence[Comment]:
        """Return the comments between two offsets."""
        return self._comments[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def comments_in_brackets(self, part: ConcretePart) -> int:
        """Return the number of comments in the brackets of a part."""
        found = 0
        pending = [part]
        while pending:
            part = pending.pop()
            if isinstance(part, RuleNode) and self.comments_in(part.start, part.end):
                opening = _opening(part.children)
                pending += part.children[:opening]
                found += len(self.comments_in(part.children[opening].end, part.end)) if opening is not None else 0
        return found

    def _between_items(self, branch: RuleNode) -> list[Comment]:
        if branch.rule not in _LISTS or not self.comments_in(branch.start, branch.end):
            return []
        opening = _opening(branch.children)
        parts = branch.children[opening:] if opening is not None else []
        return [comment for before, part in pairwise(parts) for comment in self.comments_in(before.end, part.start)]

    def _joined(self, branch: RuleNode) -> str | None:
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

    def _broken(self, part: ConcretePart, inside: bool) -> Doc:
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
                return [self.doc(callee, inside), *self._between(callee, first), self._lists(first, second)]
            case "own", [*head, first, second] if _is(first, "arguments") and _is(second, "arguments"):
                return [*self.docs("own", head, inside), *self._between(head[-1], first), self._lists(first, second)]
            case "chain", [head, *_]:
                steps = [[*self._between(*pair), LINE, self.doc(pair[1], inside)] for pair in pairwise(parts)]
                return Align([self.doc(head, inside), Nest([*steps], 2)])
            case "conditional", [*value, word, otherwise] if _text(word) == "else":
                before = [*self.docs("conditional", value, inside), *self._between(value[-1], word)]
                return Align([*before, LINE, *self.docs("conditional", [word, otherwise], inside)])
            case "step", [Token() as arrow, *rest]:
                return [arrow.text, *self._between(arrow, rest[0]), " ", self.doc(copy_of(part, rest), inside)]
            case "step", [value, RuleNode("skip", [*condition, word, otherwise]), *loop] if _text(word) == "else":
                before = [*self.docs("step", [value, *condition], inside), *self._between(condition[-1], word)]
                return Align([*before, LINE, *self.docs("step", [word, otherwise, *loop], inside)])
            case "binary", _ if inside:
                return Align(lines_between(self._operands(part)))
            case rule, _:
                return Align(self.docs(rule, parts, inside))

    def _between(self, left: ConcretePart, right: ConcretePart) -> list[Doc]:
        """Return the comments between two parts, after which a new line begins."""
        found: list[Doc] = []
        for comment in self.comments_in(left.end, right.start):
            is_alone = "\n" in self._text[left.end : comment.start]
            found += (
                [LINE, TrailingText(comment.text)] if is_alone else [TrailingText(SPACE_BEFORE_COMMENT + comment.text)]
            )
        return found

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
        """Return a list with its items in lines of their own, and comments beside and above them."""
        at = _opening(branch.children) or 0
        opener, *parts = branch.children[at:]
        *_, closer = parts
        end = len(without_last_comma(parts)) - 1  # where the bracket is without a comma before it
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
                group = _joined([self.doc(part, True), "," if i + 1 < end else ""])
                if lines[-1].comment or (lines[-1].docs and not begins_statement(self._text, part.start)):
                    lines.append(_Line([], "", ""))
                lines[-1].add(group)
            last = part
        width = max(len(line.flat or "") for line in lines if line.comment)
        is_closed = bool(lines[-1].comment)
        return [
            *([*self.docs(branch.rule, branch.children[:at]), space] if at else []),
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
            if groups and begins_statement(self._text, item.start):  # a line cannot begin with it
                parts = [groups.pop(), " ", *parts]
            groups.append(_joined(parts))
        return groups

    def _lists(self, first: ConcretePart, second: ConcretePart) -> Doc:
        """Return two lists of arguments; the second is below the first if it does not fit beside it."""
        inner = self.doc(second)
        return Align([self.doc(first), *self._between(first, second), Group(inner.flat, lambda: [[LINE, inner]])])

    def _operands(self, node: RuleNode) -> list[Doc]:
        """Return the operands of an operation with their operators, without nested operations of the same operators."""
        found: list[Doc] = []
        after: list[Doc] = []
        left: ConcretePart = node
        signs = _strength(node)
        while isinstance(left, RuleNode) and left.rule == "binary" and _strength(left) == signs:
            left, sign, right = left.children
            found.insert(0, [*self.docs("binary", [sign, right], True), *after])
            after = self._between(left, sign)
        return [[self.doc(left, True), *after], *found]


@dataclass
class _Line:
    """A line in a list with comments: items, and a comment beside them or alone."""

    docs: list[Doc]
    flat: str | None
    comment: str
    is_first: bool = False

    def add(self, item: Group) -> None:
        self.docs += [" " if self.docs else "", item]
        both = None if self.flat is None or item.flat is None else (self.flat, item.flat)
        self.flat = both and " ".join(filter(None, both))

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


def own_and_rest(part: ConcretePart) -> tuple[RuleNode, ConcretePart] | None:
    """Return the declaration with which a part begins, and the part without its address; None if there is none."""
    if not isinstance(part, RuleNode):
        return None
    if part.rule == "own":
        return part, copy_of(part, part.children[2:])
    if part.rule in ("conditional", "chain", "step"):
        first, *others = part.children
        found = own_and_rest(first)
        return (found[0], copy_of(part, [found[1], *others])) if found else None
    return None


def without_last_comma(parts: Sequence[ConcretePart]) -> Sequence[ConcretePart]:
    """Return parts without a comma before the bracket at the end."""
    match parts:
        case [*before, comma, closer] if _text(comma) == "," and _text(closer) in _CLOSERS:
            return [*before, closer]
        case _:
            return parts


def _joined(parts: Sequence[Group | str]) -> Group:
    flats = [part if isinstance(part, str) else part.flat for part in parts]
    flat = "".join(flat for flat in flats if flat is not None)
    return Group(None if None in flats else flat, lambda: [[*parts]])


def copy_of(branch: RuleNode, children: list[ConcretePart]) -> RuleNode:
    """Return a branch with other children."""
    return RuleNode(branch.rule, children, children[0].start, branch.end, branch.height)


def _is(part: ConcretePart, rule: str) -> bool:
    return isinstance(part, RuleNode) and part.rule == rule


def _text(part: ConcretePart) -> str:
    return "" if isinstance(part, RuleNode) else part.text


_STRENGTHS = {"**": 1, "*": 2, "/": 2, "//": 2, "%": 2, "+": 3, "-": 3, "and": 5, "or": 6}


def _strength(node: RuleNode) -> int:
    return _STRENGTHS.get(_text(node.children[1]), 4)


def _gap(rule: str, left: ConcretePart, right: ConcretePart) -> str:
    """Return what is between two parts of a rule: a space or nothing."""
    before, after = _text(left), _text(right)
    if after in (",", ":", "?", ")", "]") or before in ("(", "["):
        return ""
    if before == ",":
        return " "
    if rule in _TIGHT or _is(right, "arguments") or _is(right, "entries"):
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
