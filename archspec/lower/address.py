"""Addresses with their indices filled in."""

from __future__ import annotations

from archspec.lower.evaluate import Evaluator
from archspec.lower.values import DYNAMIC, POISON, describe
from archspec.syntax import tree


def address_text(evaluator: Evaluator, node: tree.Address) -> str | None:
    """An address as text; None if an index is wrong, which has been reported."""
    words: list[str] = []
    for segment in node.segments:
        if segment.number is None:
            words.append(segment.text)
            continue
        if segment.text:
            words.append(segment.text)
        index = evaluator.value(segment.number)
        if index is POISON:
            return None
        if index.__class__ is not int or index < 0:
            what = describe(index) if index is not DYNAMIC else "a value that depends on an input"
            evaluator.fault("wrong-kind", f"an index in an address is an integer from 0, not {what}", segment.number)
            return None
        words.append(str(index))
    return ".".join(words)
