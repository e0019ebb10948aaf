"""Stacks of layers that look alike, each drawn once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from archspec.core.addresses import last_segment, parent
from archspec.drawing.figure.flow import Element, Flow
from archspec.ir.structure.parts import AttentionFacts

Look = tuple[tuple[str, str, str], ...]

_WINDOW = re.compile(r", window (±?\d(?:[\d,]*\d)?)")

_SMALL = ("norm", "parameter", "embedding", "add", "multiply", "function")
"""Kinds of elements in which layers that look alike may differ."""


class Stack:
    """Layers that look alike, `count` in number; `shown` are the elements of one.

    `is_open` is whether their elements are drawn. `marks` has one entry a layer if layers differ in a window: whether
    it sees all keys, or shifts windows.
    """

    def __init__(self, shown: Sequence[Element], count: int, marks: Sequence[bool]) -> None:
        self.shown = list(shown)
        self.count = count
        self.marks = list(marks)
        self.is_open = True

    @property
    def params(self) -> int:
        return len({name for element in self.shown for name in element.tensors})


def find_stacks(flow: Flow) -> list[Stack]:
    """Return the stacks of a flow, from which all layers but one of each stack are removed."""
    units: dict[str, list[Element]] = {}
    for element in flow.elements:
        if element.unit:
            units.setdefault(element.unit, []).append(element)
    stacks: list[Stack] = []
    groups: dict[tuple[str, Look], list[str]] = {}
    for unit, elements in units.items():
        groups.setdefault((_container(unit), _look(elements)), []).append(unit)
    for names in groups.values():
        best = max(names, key=lambda name: (len(units[name]), max(e.repeat for e in units[name])))
        count = sum(max(element.repeat for element in units[name]) for name in names)
        marks = _marks(names, {name: _sees_all(units[name]) for name in names})
        shifts = _marks(names, {name: name in flow.shifted for name in names})
        stacks.append(Stack(units[best], count, marks or shifts))
        for name in names:
            if name != best:
                _merge_units(flow, units[name], units[best])
        _drop_returns(flow, units[best])
        _enter_by_first(flow, units[best])
        for attention in [e for e in units[best] if isinstance(e.facts, AttentionFacts)]:
            if marks:
                _name_both_windows(attention)
            elif shifts:
                attention.details += ", dark: shifted"
    return stacks


def _name_both_windows(attention: Element) -> None:
    windows = _WINDOW.findall(attention.details)
    details = _WINDOW.sub("", attention.details)
    attention.details = f"{details}, local{f' ({windows[0]})' if windows else ''}, dark: global"


def _sees_all(unit: Sequence[Element]) -> bool:
    return any(isinstance(element.facts, AttentionFacts) and element.facts.window is None for element in unit)


def _split(unit: str) -> tuple[str, str]:
    """Return the address and the number of a layer, or its numbers: `layers` and `0,2,...,24`."""
    address = re.sub(r"@.*", "", unit).replace("...", "…")
    return parent(address), last_segment(address)


def _container(unit: str) -> str:
    return _split(unit)[0]


def _look(elements: Sequence[Element]) -> Look:
    return tuple(
        [
            (element.kind, element.title, _WINDOW.sub("", element.details).replace(", position bias", ""))
            for element in elements
            if element.kind not in _SMALL
        ]
    )


def _numbers(unit: str) -> list[int]:
    """Return the numbers of the layers in an address such as `layers.0,2,4,6,...,24` or `layers.3-60`."""
    numbers: list[int] = []
    words = _split(unit)[1].split(",")
    for position, word in enumerate(words):
        if word == "…" and position > 1 and position + 1 < len(words) and words[position + 1].isdigit():
            step = numbers[-1] - numbers[-2]
            numbers += range(numbers[-1] + step, int(words[position + 1]), step)
        elif "-" in word:
            first, last = word.split("-")
            numbers += range(int(first), int(last) + 1)
        elif word.isdigit():
            numbers.append(int(word))
    return numbers


def _marks(names: Sequence[str], is_dark: Mapping[str, bool]) -> list[bool]:
    """Return which layers are dark, in their order; nothing if all are alike."""
    by_number: dict[int, bool] = {}
    for name in names:
        by_number.update(dict.fromkeys(_numbers(name), is_dark[name]))
    marks = [by_number[number] for number in sorted(by_number)]
    return marks if len(set(marks)) > 1 else []


def _drop_returns(flow: Flow, unit: Sequence[Element]) -> None:
    """Leave out the ways from a layer to the next of the same stack."""
    places = {element: place for place, element in enumerate(unit)}
    flow.edges = [(a, b) for a, b in flow.edges if a not in places or b not in places or places[a] < places[b]]


def _merge_units(flow: Flow, unit: Sequence[Element], into: Sequence[Element]) -> None:
    """Draw a layer as another that looks alike, with the lines of both."""
    blocks = SequenceMatcher(None, [e.kind for e in unit], [e.kind for e in into], autojunk=False).get_matching_blocks()
    twins = {unit[block.a + i]: into[block.b + i] for block in blocks for i in range(block.size)}
    for element in unit:
        twin = twins.get(element)
        if twin is None:
            flow.remove(element, bridge=True)
            continue
        renamed = [(twin if a is element else a, twin if b is element else b) for a, b in flow.edges]
        flow.edges = list(dict.fromkeys(renamed))
        flow.elements.remove(element)
        twin.tensors += element.tensors


def _enter_by_first(flow: Flow, unit: Sequence[Element]) -> None:
    """Let what enters a layer enter by an element that the first of the layers, which is merged, does not have."""
    for element in unit:
        if not flow.sources(element):
            for user in flow.users(element):
                for source in flow.sources(user):
                    if source not in unit:
                        flow.edges.remove((source, user))
                        flow.edges.append((source, element))
            flow.edges = list(dict.fromkeys(flow.edges))
