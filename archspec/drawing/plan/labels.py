"""The texts of nodes, and the sizes of their closed boxes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from archspec.core.addresses import last_segment
from archspec.drawing.plan.metrics import shorten_text, width
from archspec.drawing.plan.plan import Line, Node, Plan

TITLE, SUBTITLE, PILL, SHAPE = 12.0, 9.5, 11.0, 9.0
"""Sizes of fonts."""

HEADING, HEADING_TYPE = 11.5, 10.0
BADGE = 12.0

MAX_TEXT_WIDTH = 300.0
"""The width at which texts are shortened."""

MAX_NOTE_WIDTH = 200.0
"""Maximum width of a secondary text."""

MAX_NAMED_MODULES = 2
"""Maximum number of layers by which blocks are told apart."""

CIRCLE = 18.0
TIMES = "\N{MULTIPLICATION SIGN}"
ARROW = "\N{RIGHTWARDS ARROW}"


def label_children(plan: Plan, children: Sequence[Node]) -> None:
    """Set the texts and sizes of the children of a node."""
    _distinguish(plan, children)
    titles = {child.id: child.title for child in children}
    for child in children:
        if child.kind in ("layer", "param", "buffer"):
            others = [title for id, title in titles.items() if id != child.id]
            child.title = _short(child.title, others)
        measure(child)


def measure(node: Node) -> None:
    """Set the lines of a node and the size of its closed box, from its title, type and `differs`."""
    if node.times != 1 and (node.form == "box" or node.kind == "period"):
        node.badge = _line(_badge(node), BADGE, True)
    if node.form == "circle":
        node.size = (CIRCLE, CIRCLE)
        return
    if node.form == "pill":
        line = _line(node.title if node.times == 1 else f"{node.title} {_badge(node)}", PILL)
        node.lines, node.size = [line], (round(line[1] + 20, 1), 22.0)
    elif node.form == "terminal":
        node.lines = [_line(node.label or node.title, PILL, True)]
        if node.shape:
            node.lines.append(_line(_times(node.shape), SHAPE))
        node.size = (_max_width(node.lines, 24), 34.0 if node.shape else 22.0)
    else:
        texts = [subtitle(node, node.label), node.differs]
        node.lines = [_line(node.title, TITLE, True), *[_line(text, SUBTITLE) for text in texts if text]]
        room = _max_width(node.lines, 30)
        if node.badge is not None:
            room = max(room, node.badge[1] + 10)
        node.size = (room, 18.0 + 14 * len(node.lines))
    if node.kind not in ("input", "output", "param", "buffer"):
        parts = [_line(node.title, HEADING, True)]
        if node.type and node.type != node.title:
            parts.append(_line(node.label or node.type, HEADING_TYPE))
        if node.differs:
            parts.append(_line(node.differs, HEADING_TYPE))
        node.heading = parts


def annotate(node: Node, text: str) -> None:
    """Add a text to those that distinguish a node."""
    text = shorten_text(text, SUBTITLE, MAX_NOTE_WIDTH)
    node.differs = ", ".join([part for part in (node.differs, text) if part])
    measure(node)


def subtitle(node: Node, label: str = "") -> str:
    """Return a label or the type of a node, and the sizes of its first tensor: of a matrix, from input to output."""
    type = label or node.type
    tensor = next(iter(node.tensors or ()), None)
    if node.kind in ("param", "buffer"):
        shape = _times(node.shape) if node.shape else "number"
        return f"{tensor.copies} of {shape}" if tensor is not None and tensor.copies > 1 else shape
    if node.kind != "layer" or tensor is None:
        return type
    if len(tensor.shape) == 2 and node.inputs and node.inputs[0].dtype == "real" and node.shape:
        before, after = node.inputs[0].shape[-1:], node.shape[-1:]
        if {*before, *after} == {*tensor.shape}:
            return f"{type} {before[0]} {ARROW} {after[0]}"
    return f"{type} {_times(tensor.shape)}".rstrip()


def _badge(node: Node) -> str:
    """Return how often a node is applied."""
    return f"same weights, {node.times} times" if node.same else f"{TIMES} {node.times}"


def _line(text: str, size: float, bold: bool = False) -> Line:
    text = shorten_text(text, size, MAX_TEXT_WIDTH, bold)
    return text, width(text, size, bold)


def _max_width(lines: Iterable[Line], margin: float) -> float:
    return round(max(line[1] for line in lines) + margin, 1)


def _times(shape: Sequence[str | int]) -> str:
    return f" {TIMES} ".join(map(str, shape))


def _short(title: str, others: Sequence[str]) -> str:
    """Return an address without a prefix that at least two siblings share, if it is then still unique."""
    parts = title.split(".")
    for start in range(len(parts) - 1, 0, -1):
        prefix, rest = ".".join(parts[:start]) + ".", ".".join(parts[start:])
        is_unique = not any(other == rest or other.endswith(f".{rest}") for other in others)
        is_unique = is_unique and not rest[:1].isdigit()
        if is_unique and sum(other.startswith(prefix) for other in others) > 1:
            return rest
    return title


def _distinguish(plan: Plan, children: Sequence[Node]) -> None:
    """Set `differs` of blocks of the same type by the hyperparameters that differ between them."""
    groups: dict[str, list[tuple[Node, bool]]] = {}
    for child in children:
        is_period = child.kind == "period"
        for node in plan.children(child) if is_period else [child]:
            if node.kind == "block":
                groups.setdefault(node.type, []).append((node, is_period or node.times != 1))
    for found in groups.values():
        repeated = [node for node, is_repeated in found if is_repeated]
        if not repeated and all(last_segment(node.title).isdigit() for node, _ in found):  # stages
            repeated = [node for node, _ in found]
        if repeated and len(found) > 1:
            texts = [", ".join(_differences(node, repeated)) for node, _ in found]
            if not all(texts):
                texts = _module_differences([node for node, _ in found]) or texts
            for (node, _), text in zip(found, texts, strict=True):
                node.differs = text
                measure(node)


def _module_differences(nodes: Sequence[Node]) -> list[str]:
    """Describe which of the layers that not all blocks have each block has; [] if they are too many to name."""
    first, *others = [node.modules for node in nodes]
    some = sorted(first.union(*others) - first.intersection(*others))
    names = {module: last_segment(module) for module in some}
    if not some or len(some) > MAX_NAMED_MODULES or len(set(names.values())) < len(some):
        return []
    return [
        ", ".join([f"{'with' if module in node.modules else 'without'} {name}" for module, name in names.items()])
        for node in nodes
    ]


def _differences(node: Node, repeated: Sequence[Node]) -> list[str]:
    """Describe the values of a node that differ within the repeated nodes, and those that none of them has."""
    found: list[str] = []
    for name, value in (node.hyperparameters or {}).items():
        usual = [(other.hyperparameters or {}).get(name) for other in repeated]
        varies = any(other != usual[0] for other in usual)
        is_other = all(value != other for other in usual)
        if varies or is_other:
            found.append(setting(name, value))
    return found[:3]


def setting(name: str, value: object) -> str:
    """Format a hyperparameter with its value."""
    if isinstance(value, bool):
        return name if value else f"not {name}"
    return f"{name} = {'none' if value is None else value}"
