"""Pictures of the models of a comparison side by side, aligned by its components, with what differs marked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from archspec.analysis.compare.components import align, components
from archspec.core.addresses import address_pattern
from archspec.core.reports.text import titles
from archspec.drawing.api import build_plan, find_open_nodes
from archspec.drawing.plan.correspondence import Correspondence, key_from
from archspec.drawing.plan.labels import annotate, setting, subtitle
from archspec.drawing.plan.plan import Node
from archspec.drawing.svg.marks import Kind, Mark
from archspec.drawing.svg.panels import Panel, side_by_side
from archspec.drawing.svg.theme import THEMES
from archspec.ir.module import gc_paused
from archspec.ir.table import PlainValue
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, ModelLike, get_compilation

MAX_LEVEL = 16
"""Components are aligned down to this level."""

MAX_SETTINGS = 2
"""Hyperparameters that the text on a box names."""

_KEY: list[tuple[Kind | None, str]] = [
    ("removed", "only in A"),
    ("added", "not in A"),
    ("changed", "differs, or contains differences: type, sizes, hyperparameters, repetition"),
    (None, "A: the counterpart in A"),
]


def compiled_models(models: Sequence[tuple[ModelLike, Mapping[str, PlainValue]]]) -> list[Model]:
    """Compile models with their overrides."""
    return [as_model(model, overrides) for model, overrides in models]


def picture(models: Sequence[Model], theme: str = "light") -> str:
    """Return the pictures of models side by side, as SVG."""
    with gc_paused():
        panels, found = panels_of(models)
        return side_by_side(panels, found, _KEY, THEMES[theme])


def panels_of(models: Sequence[Model]) -> tuple[list[Panel], Correspondence]:
    """Return the marked plans of models, and what corresponds in them."""
    plans = [build_plan(model) for model in models]
    found = Correspondence(plans, _Keys(models))
    marks = [_marks(found, own) for own in range(len(plans))]
    panels = [
        Panel(f"{_letter(own)}: {title}", plan, find_open_nodes(plan, "layer", None), marks[own])
        for own, (plan, title) in enumerate(zip(plans, _titles(models), strict=True))
    ]
    return panels, found


def _titles(models: Sequence[Model]) -> list[str]:
    tables = [get_compilation(model).table for model in models]
    return titles((table.model, table.overrides) for table in tables)


class _Keys:
    """Keys of nodes: the rows of an alignment of the models' components.

    Components without others inside only have one if their addresses correspond. Within their block, the order and the
    roles of such layers say more than the shapes of their matrices, which may be transposed.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        rows = align([components(get_compilation(model).table) for model in models], MAX_LEVEL)
        self._rows: list[dict[str, Hashable]] = [{} for _ in models]
        for number, row in enumerate(rows):
            for own, group, by in zip(self._rows, row.groups, row.by, strict=True):
                if len(group) == 1 and (group[0].parts or by in ("", "address")):
                    own[group[0].address] = own[address_pattern(group[0].address)] = ("component", number)

    def __call__(self, own: int, node: Node) -> Hashable:
        return key_from(self._rows[own], node, address_pattern)


def _marks(found: Correspondence, own: int) -> dict[int, Mark]:
    """Return the marks of a model: of the first, differences from any other; of another, those from the first."""
    plan, marks = found.plans[own], dict[int, Mark]()
    others = range(1, len(found.plans)) if own == 0 else range(1)

    def visit(node: Node) -> None:
        for child in plan.children(node):
            known = {other: found.node(own, child.id, other) for other in others}
            if child.kind in ("period", "group") or found.only_groups(own, child, others):
                visit(child)
                continue
            missing = [f"not in {_letter(other)}" for other, counterpart in known.items() if counterpart is None]
            if len(missing) == len(known):
                marks[child.id] = Mark("removed" if own == 0 else "added", ", ".join(missing))
                continue
            before = len(marks)
            visit(child)
            is_same_inside = len(marks) == before
            pairs = [(other, node) for other, node in known.items() if node is not None]
            texts = {other: _differences(child, node, is_same_inside) for other, node in pairs}
            differing = [f"{_letter(other)}: {', '.join(text)}" for other, text in texts.items() if text]
            if differing or missing:
                marks[child.id] = Mark("changed", "; ".join([*differing, *missing]))
            first = known.get(0)
            if first is not None and child.form == "box":
                _name_counterpart(child, first, texts[0])

    visit(plan.nodes[0])
    return marks


def _name_counterpart(node: Node, first: Node, differences: Sequence[str]) -> None:
    """Write the name of a node in the first model on it, if it is different, and what differs there."""
    names = [first.title] if first.title != node.title else []
    if names or differences:
        annotate(node, f"A: {', '.join([*names, *differences])}")


def _differences(node: Node, other: Node, is_same_inside: bool) -> list[str]:
    """Describe how a node differs from `other`: by what the other one has instead.

    The hyperparameters of a block matter only if nothing inside it differs, because that is what they act on.
    """
    found: list[str] = []
    if node.kind in ("layer", "param", "buffer"):
        found += _tensors(node, other)
    elif node.kind in ("input", "output") and (node.dtype, _sizes(node)) != (other.dtype, _sizes(other)):
        found.append(" ".join([other.dtype or "", *[line for line, _ in (other.lines or ())[1:]]]))
    if (node.times, node.same) != (other.times, other.same):
        found.append(other.badge[0] if other.badge is not None else "once")
    if not found and (is_same_inside or node.kind != "block"):
        found += _settings(node, other)
    return found


def _tensors(node: Node, other: Node) -> list[str]:
    """Describe how `other` differs in its type and in what it stores."""
    if (node.type, _shapes(node), node.dtype) != (other.type, _shapes(other), other.dtype):
        text = subtitle(other)
        if text != subtitle(node):
            return [text.removeprefix(f"{node.type} ")]
        ours, theirs = ({tensor.name for tensor in each.tensors or ()} for each in (node, other))
        words = [f"with {name}" for name in sorted(theirs - ours)] + [
            f"without {name}" for name in sorted(ours - theirs)
        ]
        return words or ["other sizes"]
    found: list[str] = []
    for word, flags in (("frozen", _flags(node, other, "frozen")), ("tied", _flags(node, other, "tied_to"))):
        if flags[0] != flags[1]:
            found.append(word if all(flags[1]) else f"not {word}" if not any(flags[1]) else f"{word} in part")
    return found


def _shapes(node: Node) -> object:
    return sorted([(t.shape, t.copies) for t in node.tensors]) if node.tensors is not None else _sizes(node)


def _flags(node: Node, other: Node, name: str) -> tuple[list[bool], list[bool]]:
    """Return which tensors of two nodes are frozen or tied."""
    ours, theirs = (sorted(bool(getattr(tensor, name)) for tensor in each.tensors or ()) for each in (node, other))
    return ours, theirs


def _sizes(node: Node) -> list[int | str]:
    """Return the sizes of an input, output or buffer; names of dimensions are not compared."""
    return [size if isinstance(size, int) else "" for size in node.shape or ()]


def _settings(node: Node, other: Node) -> list[str]:
    """Describe the values of `other` for hyperparameters and constants that both have, as far as they are plain."""
    found: list[str] = []
    for own, theirs in ((node.hyperparameters, other.hyperparameters), (node.constants, other.constants)):
        before = _plain(own)
        found += [setting(name, value) for name, value in _plain(theirs).items() if value != before.get(name, value)]
    more = len(found) - MAX_SETTINGS
    return [*found[:MAX_SETTINGS], f"{more} more"] if more > 0 else found


def _plain(values: Mapping[str, object] | None) -> dict[str, object]:
    return {name: value for name, value in (values or {}).items() if isinstance(value, int | float | str | None)}


def _letter(number: int) -> str:
    """Return the letter of a model: A to Z, and then A1, B1, ..."""
    return chr(ord("A") + number % 26) + (str(number // 26) if number > 25 else "")
