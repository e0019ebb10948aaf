"""Addresses with their indices filled in."""

from __future__ import annotations

from archspec.lower.evaluate import Evaluator
from archspec.lower.values import DYNAMIC, POISON, describe
from archspec.syntax import tree

MOST_SEGMENTS = 64
LONGEST = 500


def address_text(evaluator: Evaluator, node: tree.Address) -> str | None:
    """An address as text; None if an index is wrong, which has been reported."""
    known = evaluator.program.addresses.get(id(node))
    if known is None:
        if len(node.segments) > MOST_SEGMENTS or sum(len(s.text) for s in node.segments) > LONGEST:
            message = f"address too long: the limit is {MOST_SEGMENTS} segments and {LONGEST} characters"
            evaluator.fault("budget", message, node)
            return None
        known = evaluator.program.addresses[id(node)] = (node, *_around_index(node))
    _, before, index, after = known
    if index is None:
        return before
    number = evaluator.env.get(index)
    if isinstance(number, int) and number.__class__ is int and number >= 0:
        return f"{before}{number}{after}"
    return _spelt_out(evaluator, node)


def _around_index(node: tree.Address) -> tuple[str, str | None, str]:
    """The text before the only index of an address, if that is a plain name, the name, and the text after it.

    An address without an index is all `before`. One with other indices has a name that nothing can have.
    """
    words = [segment.text if segment.number is None else "\0" for segment in node.segments]
    numbers = [segment.number for segment in node.segments if segment.number is not None]
    if not numbers:
        return ".".join(words), None, ""
    if len(numbers) > 1 or not isinstance(numbers[0], tree.Name):
        return "", "", ""
    before, _, after = ".".join(words).partition("\0")
    return before, numbers[0].text, after


def _spelt_out(evaluator: Evaluator, node: tree.Address) -> str | None:
    words: list[str] = []
    for segment in node.segments:
        if segment.number is None:
            words.append(segment.text)
            continue
        index = evaluator.value(segment.number)
        if index is POISON:
            return None
        text = evaluator.index_text(index)
        if text is None:
            what = describe(index) if index is not DYNAMIC else "a value that depends on an input"
            evaluator.fault(
                "wrong-kind", f"expected a non-negative integer as address index, found {what}", segment.number
            )
            return None
        words.append(text)
    return ".".join(words)
