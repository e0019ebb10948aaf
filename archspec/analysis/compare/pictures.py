"""Pictures of compared models side by side, aligned by their components, with marked differences."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from archspec.analysis.compare.components import align, find_components
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
"""Maximum level of aligned components."""

MAX_SETTINGS = 2
"""Maximum number of hyperparameters in the text on a box."""

_KEY: list[tuple[Kind | None, str]] = [
    ("removed", "only in A"),
    ("added", "not in A"),
    ("changed", "differs, or contains differences: type, sizes, hyperparameters, repetition"),
    (None, "A: the counterpart in A"),
]


def compile_models(models: Sequence[tuple[ModelLike, Mapping[str, PlainValue]]]) -> list[Model]:
    """Compile models with their overrides."""
    return [as_model(model, overrides) for model, overrides in models]


def picture(models: Sequence[Model], theme: str = "light") -> str:
    """Return the pictures of models side by side, as SVG."""
    with gc_paused():
        panels, correspondence = build_panels(models)
        return side_by_side(panels, correspondence, _KEY, THEMES[theme])


def build_panels(models: Sequence[Model]) -> tuple[list[Panel], Correspondence]:
    """Return the marked plans of models, and the correspondence of their nodes."""
    plans = [build_plan(model) for model in models]
    correspondence = Correspondence(plans, _ComponentKeys(models))
    marks = [_find_marks(correspondence, index) for index in range(len(plans))]
    panels = [
        Panel(f"{_model_letter(index)}: {title}", plan, find_open_nodes(plan, "layer", None), marks[index])
        for index, (plan, title) in enumerate(zip(plans, _model_titles(models), strict=True))
    ]
    return panels, correspondence


def _model_titles(models: Sequence[Model]) -> list[str]:
    tables = [get_compilation(model).table for model in models]
    return titles((table.model, table.overrides) for table in tables)


class _ComponentKeys:
    """Keys of nodes: the rows of an alignment of the models' components.

    A component without nested components has a key only if its address corresponds. Within a block, the order and the
    roles of such layers are better evidence than the shapes of their matrices, which may be transposed.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        rows = align([find_components(get_compilation(model).table) for model in models], MAX_LEVEL)
        self._rows: list[dict[str, Hashable]] = [{} for _ in models]
        for number, row in enumerate(rows):
            for model_rows, group, criterion in zip(self._rows, row.groups, row.by, strict=True):
                if len(group) == 1 and (group[0].parts or criterion in ("", "address")):
                    model_rows[group[0].address] = model_rows[address_pattern(group[0].address)] = ("component", number)

    def __call__(self, model: int, node: Node) -> Hashable:
        return key_from(self._rows[model], node, address_pattern)


def _find_marks(correspondence: Correspondence, model: int) -> dict[int, Mark]:
    """Return the marks of a model by node. The first is compared with all models, the others with the first."""
    plan, marks = correspondence.plans[model], dict[int, Mark]()
    compared = range(1, len(correspondence.plans)) if model == 0 else range(1)

    def visit(node: Node) -> None:
        for child in plan.children(node):
            counterparts = {peer: correspondence.node(model, child.id, peer) for peer in compared}
            if child.kind in ("period", "group") or correspondence.only_groups(model, child, compared):
                visit(child)
                continue
            missing = [
                f"not in {_model_letter(peer)}" for peer, counterpart in counterparts.items() if counterpart is None
            ]
            if len(missing) == len(counterparts):
                marks[child.id] = Mark("removed" if model == 0 else "added", ", ".join(missing))
                continue
            count = len(marks)
            visit(child)
            has_equal_children = len(marks) == count
            pairs = [(peer, node) for peer, node in counterparts.items() if node is not None]
            texts = {peer: _describe_differences(child, node, has_equal_children) for peer, node in pairs}
            differing = [f"{_model_letter(peer)}: {', '.join(text)}" for peer, text in texts.items() if text]
            if differing or missing:
                marks[child.id] = Mark("changed", "; ".join([*differing, *missing]))
            first = counterparts.get(0)
            if first is not None and child.form == "box":
                _name_counterpart(child, first, texts[0])

    visit(plan.nodes[0])
    return marks


def _name_counterpart(node: Node, first: Node, differences: Sequence[str]) -> None:
    """Annotate a node with the name of its counterpart in the first model, if it differs, and with the differences."""
    names = [first.title] if first.title != node.title else []
    if names or differences:
        annotate(node, f"A: {', '.join([*names, *differences])}")


def _describe_differences(node: Node, counterpart: Node, has_equal_children: bool) -> list[str]:
    """Describe how a node differs from its counterpart, by the values of the counterpart.

    The hyperparameters of a block are listed only if no nested node differs, because nested differences show their
    effect.
    """
    descriptions: list[str] = []
    if node.kind in ("layer", "param", "buffer"):
        descriptions += _describe_tensors(node, counterpart)
    elif node.kind in ("input", "output") and (node.dtype, _sizes(node)) != (counterpart.dtype, _sizes(counterpart)):
        descriptions.append(" ".join([counterpart.dtype or "", *[line for line, _ in (counterpart.lines or ())[1:]]]))
    if (node.times, node.same) != (counterpart.times, counterpart.same):
        descriptions.append(counterpart.badge[0] if counterpart.badge is not None else "once")
    if not descriptions and (has_equal_children or node.kind != "block"):
        descriptions += _describe_settings(node, counterpart)
    return descriptions


def _describe_tensors(node: Node, counterpart: Node) -> list[str]:
    """Describe how the counterpart differs in its type and its tensors."""
    if (node.type, _shapes(node), node.dtype) != (counterpart.type, _shapes(counterpart), counterpart.dtype):
        text = subtitle(counterpart)
        if text != subtitle(node):
            return [text.removeprefix(f"{node.type} ")]
        ours, theirs = ({tensor.name for tensor in item.tensors or ()} for item in (node, counterpart))
        words = [f"with {name}" for name in sorted(theirs - ours)] + [
            f"without {name}" for name in sorted(ours - theirs)
        ]
        return words or ["other sizes"]
    descriptions: list[str] = []
    for word, flags in (
        ("frozen", _flags(node, counterpart, "frozen")),
        ("tied", _flags(node, counterpart, "tied_to")),
    ):
        if flags[0] != flags[1]:
            descriptions.append(word if all(flags[1]) else f"not {word}" if not any(flags[1]) else f"{word} in part")
    return descriptions


def _shapes(node: Node) -> object:
    return sorted([(t.shape, t.copies) for t in node.tensors]) if node.tensors is not None else _sizes(node)


def _flags(node: Node, counterpart: Node, name: str) -> tuple[list[bool], list[bool]]:
    """Return the sorted values of a flag (`frozen` or `tied_to`) of the tensors of two nodes."""
    ours, theirs = (
        sorted(bool(getattr(tensor, name)) for tensor in item.tensors or ()) for item in (node, counterpart)
    )
    return ours, theirs


def _sizes(node: Node) -> list[int | str]:
    """Return the sizes of an input, output or buffer, without names of dimensions, which are not compared."""
    return [size if isinstance(size, int) else "" for size in node.shape or ()]


def _describe_settings(node: Node, counterpart: Node) -> list[str]:
    """Describe the counterpart's values of hyperparameters and constants that both nodes have, if they are plain."""
    descriptions: list[str] = []
    for values, counterpart_values in (
        (node.hyperparameters, counterpart.hyperparameters),
        (node.constants, counterpart.constants),
    ):
        plain_values = _plain_values(values)
        descriptions += [
            setting(name, value)
            for name, value in _plain_values(counterpart_values).items()
            if value != plain_values.get(name, value)
        ]
    omitted = len(descriptions) - MAX_SETTINGS
    return [*descriptions[:MAX_SETTINGS], f"{omitted} more"] if omitted > 0 else descriptions


def _plain_values(values: Mapping[str, object] | None) -> dict[str, object]:
    return {name: value for name, value in (values or {}).items() if isinstance(value, int | float | str | None)}


def _model_letter(number: int) -> str:
    """Return the letter of a model: A to Z, and then A1, B1, ..."""
    return chr(ord("A") + number % 26) + (str(number // 26) if number > 25 else "")
