"""The patterns of `rearrange` and `repeat` in the syntax of einops, and the operations that they represent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from archspec.core.record import Record

ELLIPSIS = "..."
"""The name of the axes that a pattern does not name."""

Groups = tuple[tuple[str, ...], ...]
"""The axes of a tensor: each is the product of the named axes of the pattern, and () has size 1."""

MAX_TOKENS = 200
"""Maximum number of names and parentheses on one side of a pattern."""

_TOKEN = r"->|\.\.\.|[()]|[A-Za-z][A-Za-z0-9_]*|[0-9]+|\S"


class PatternError(Exception):
    """A pattern is invalid: a message, the first and last (exclusive) character, and a suggested fix."""

    def __init__(self, message: str, start: int, end: int, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.help = help


class PatternAxis(Record):
    """One axis of a tensor in a pattern, in the characters from `start` to `end`; see `Groups`."""

    names: tuple[str, ...]
    start: int
    end: int


class Pattern(Record):
    """A pattern `left -> right`."""

    text: str
    left: tuple[PatternAxis, ...]
    right: tuple[PatternAxis, ...]

    def text_of(self, group: PatternAxis) -> str:
        return self.text[group.start : group.end]

    def groups(self, ellipsis_axes: Sequence[str]) -> tuple[Groups, Groups]:
        """Return both sides, with `ellipsis_axes` in place of `...`."""
        left, right = (tuple(_expand_ellipsis(side, ellipsis_axes)) for side in (self.left, self.right))
        return left, right


def _expand_ellipsis(side: Sequence[PatternAxis], ellipsis_axes: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for group in side:
        if group.names == (ELLIPSIS,) and group.end - group.start == len(ELLIPSIS):
            yield from ((name,) for name in ellipsis_axes)
        else:
            yield tuple([word for name in group.names for word in (ellipsis_axes if name == ELLIPSIS else (name,))])


# Parsing --------------------------------------------------------------------------------------------------------------


def parse(text: str, new_axes: Sequence[str] | None = None) -> Pattern:
    """Parse a pattern; for `repeat`, its right side may have `new_axes`. Raises PatternError."""
    tokens = list(re.finditer(_TOKEN, text))
    arrows = [i for i, token in enumerate(tokens) if token[0] == "->"]
    if len(arrows) != 1:
        start, end = tokens[arrows[1]].span() if arrows else (0, len(text))
        raise PatternError("expected one `->` in the pattern", start, end, 'write it as in `"b s (h d) -> b h s d"`')
    left, right = _parse_side(tokens[: arrows[0]]), _parse_side(tokens[arrows[0] + 1 :])
    for group in left:
        if ELLIPSIS in group.names and group.end - group.start > len(ELLIPSIS):
            message = "`...` cannot be in parentheses on the left"
            raise PatternError(message, group.start, group.end, "write it without parentheses")
    _check_names(tokens[: arrows[0]], tokens[arrows[0] + 1 :], new_axes)
    return Pattern(text, left, right)


def _parse_side(tokens: Sequence[re.Match[str]]) -> tuple[PatternAxis, ...]:
    """Parse one side."""
    groups: list[PatternAxis] = []
    names: list[str] = []
    opening: re.Match[str] | None = None
    for token in tokens:
        word = token[0]
        if word == "(":
            if opening is not None:
                raise PatternError("parentheses cannot be nested", *token.span())
            opening, names = token, []
        elif word == ")":
            if opening is None:
                raise PatternError("unmatched `)`", *token.span())
            groups.append(PatternAxis(tuple(names), opening.start(), token.end()))
            opening = None
        elif word[0].isalpha() or word in ("1", ELLIPSIS):
            axis_names = () if word == "1" else (word,)
            if opening is not None:
                names += axis_names
            else:
                groups.append(PatternAxis(axis_names, *token.span()))
        else:
            help = "name the axis, and pass its size: `n = 2`" if word.isdigit() else None
            raise PatternError(f"expected a name, `1`, `...` or parentheses, found `{word}`", *token.span(), help)
    if opening is not None:
        raise PatternError("unclosed `(`", *opening.span())
    if len(tokens) > MAX_TOKENS:
        raise PatternError(
            f"too many words on a side of a pattern: the limit is {MAX_TOKENS}", *tokens[MAX_TOKENS].span()
        )
    return tuple(groups)


def _check_names(left: Sequence[re.Match[str]], right: Sequence[re.Match[str]], new_axes: Sequence[str] | None) -> None:
    """Check that every name is on both sides once, except for `new_axes`."""
    sides = [{token[0]: token for token in side if _is_name(token[0])} for side in (left, right)]
    for side, names in zip((left, right), sides, strict=True):
        for token in side:
            if _is_name(token[0]) and names[token[0]] is not token:
                raise PatternError(f"`{token[0]}` occurs twice on one side", *names[token[0]].span())
    for here, there, side_name in ((sides[0], sides[1], "left"), (sides[1], sides[0], "right")):
        for word, token in here.items():
            if word in there or (side_name == "right" and word in (new_axes or ())):
                continue
            message, help = f"`{word}` occurs only on the {side_name} of `->`", None
            if side_name == "right" and word != ELLIPSIS:
                help = f"use `repeat` to add an axis, with its size: `{word} = 2`"
                if new_axes is not None:
                    message, help = f"missing size of the new axis `{word}`", f"pass it: `{word} = 2`"
            raise PatternError(message, *token.span(), help)


def _is_name(word: str) -> bool:
    return word[0].isalpha() or word == ELLIPSIS


# Steps ----------------------------------------------------------------------------------------------------------------


class Steps(Record):
    """The primitive operations that a pattern represents; operations without effect are skipped.

    Reshape to the axes `split`, permute by `order`, reshape to `merged`, expand to `expanded`, reshape to `joined`.
    """

    split: Groups
    order: tuple[int, ...]
    merged: Groups
    expanded: Groups
    joined: Groups


def pattern_steps(left: Groups, right: Groups) -> Steps:
    """Return the minimum of steps from the axes `left` to the axes `right`."""
    old = {name for group in left for name in group}
    followed = {a: b for group in right for a, b in pairwise(group)}
    parts = {name: part for group in left for part in _split_axis(group, followed) for name in part}
    target = [tuple(dict.fromkeys(parts.get(name, (name,)) for name in group)) for group in right]
    if any(len(group) > 1 and not old.issuperset(sum(group, ())) for group in target):
        target = [(part,) for group in target for part in group]
    expanded = tuple([sum(group, ()) for group in target])
    is_new = [bool(group) and group[0][0] not in old for group in target]
    first_kept = next((i for i, new in enumerate(is_new) if not new), len(target))
    merging = [() if new else group for group, new in zip(target, is_new, strict=True)][first_kept:]
    split, order = _find_permutation([_split_axis(group, followed) for group in left], merging)
    merged = tuple([sum(group, ()) for group in merging])
    return Steps(split, order, merged, expanded, right)


_AxisParts = tuple[tuple[str, ...], ...]
"""An axis as the product of parts: names that remain next to each other."""


def _split_axis(group: tuple[str, ...], followed: dict[str, str]) -> _AxisParts:
    """Divide an axis into maximal parts."""
    parts: list[tuple[str, ...]] = []
    for name in group:
        if parts and followed.get(parts[-1][-1]) == name:
            parts[-1] += (name,)
        else:
            parts.append((name,))
    return tuple(parts)


def _find_permutation(left: Sequence[_AxisParts], right: Sequence[_AxisParts]) -> tuple[Groups, tuple[int, ...]]:
    """Return the axes to permute and their order, chosen so that at most one further reshape yields `right`."""
    before = [part for group in left for part in group]
    after = [part for group in right for part in group]
    merged = tuple([sum(group, ()) for group in left])
    if before == after:
        return merged, tuple(range(len(merged)))
    is_simple = all(len(group) <= 1 for group in right)
    target: list[tuple[str, ...]] = [sum(group, ()) for group in right] if is_simple else after
    if all(len(group) <= 1 for group in left):
        split = list(merged)
        if target.count(()) != split.count(()):
            target = after + [()] * split.count(())
    else:
        split = before
        for i, group in enumerate(target):
            if not group:
                split.insert(i, ())
    units = iter([i for i, group in enumerate(split) if not group])
    return tuple(split), tuple([split.index(group) if group else next(units) for group in target])
