"""The elements of a figure, read from the folded graph of a model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from archspec.core.addresses import is_inside, join, last_segment, parent, prefixes, segments
from archspec.drawing.figure.flow import Element, Flow
from archspec.drawing.figure.names import (
    activation_of,
    attention_text,
    embedding_word,
    experts_text,
    feed_forward_text,
    format_shape,
    format_size,
    humanize,
    lower,
)
from archspec.drawing.figure.tidy import absorb, tidy
from archspec.drawing.graph.plain import PlainGraph
from archspec.ir.structure.parts import (
    AttentionFacts,
    ConvolutionFacts,
    EmbeddingFacts,
    ExpertsFacts,
    FeedForwardFacts,
    HeadFacts,
    NormFacts,
    Part,
    StateSpaceFacts,
    vocabulary_of,
)

_COMPOSITES = (AttentionFacts, FeedForwardFacts, ExpertsFacts, StateSpaceFacts)
_POOLS = {"first": "First token", "token_at": "Chosen token", "last": "Last token", "mean": "Mean", "pick": ""}
_FUNCTIONS = {"matmul": "Dot product", "where": "Mask", "concat": "Concatenate", "stack": "Stack"}
_INDEX = re.compile(r"(^|\.)(\*|[\d,.…-]*\d)(@[\d*-]+)?$")


class Reading:
    """A graph whose nodes belong to parts."""

    def __init__(self, graph: PlainGraph, parts: Sequence[Part], shapes: Mapping[str, Sequence[int]]) -> None:
        self.graph = graph
        self.data: dict[str, dict[str, Any]] = graph.nodes
        self.labels: dict[str, str] = graph.graph.get("labels", {})
        self.order = _order(graph)
        self.parts = list(parts)
        self.shapes = shapes
        self.owner: dict[str, Part] = {}
        self.norms: dict[str, NormFacts] = {}
        self.vocabulary = vocabulary_of(parts)
        inputs = [tuple(data["shape"]) for data in self.data.values() if data["kind"] == "input"]
        self.batch = {str(shape[0]) for shape in inputs if len(shape) > 1 and not isinstance(shape[0], int)}
        self.units = _units(self.data)
        self._find_owners()
        self.ids = self._find_ids()

    def _find_owners(self) -> None:
        by_tensor: dict[str, Part] = {}
        for part in sorted(self.parts, key=lambda part: isinstance(part.facts, ConvolutionFacts)):
            if not isinstance(part.facts, HeadFacts):
                for name in part.tensors:
                    by_tensor.setdefault(name, part)
        heads = {part.address: part for part in self.parts if isinstance(part.facts, HeadFacts)}
        by_layer = {parent(name): part for name, part in by_tensor.items()}
        for node, data in self.data.items():
            names = data.get("tensors") or ()
            part = heads.get(node) or next((by_tensor[name] for name in names if name in by_tensor), None)
            if part is None and data["kind"] == "layer":  # its tensors have the names of others
                part = by_layer.get(node)
            if part is not None and data["kind"] in ("layer", "param", "op"):
                self.owner[node] = part
        self.norms = {node: part.facts for node, part in self.owner.items() if isinstance(part.facts, NormFacts)}
        groups: dict[int, list[str]] = {}
        for node, part in self.owner.items():
            if isinstance(part.facts, _COMPOSITES):
                groups.setdefault(id(part), []).append(node)
        for nodes in groups.values():
            part = self.owner[nodes[0]]
            for node in self._between(nodes):
                self.owner[node] = part

    def _find_ids(self) -> set[str]:
        """Return the nodes that compute the ids by which tables are indexed."""
        tables = [n for n, part in self.owner.items() if getattr(part.facts, "indexed_by", "") == "input"]
        seen: set[str] = set()
        pending = tables
        while pending:
            node = pending.pop()
            for source in self.graph.predecessors(node):
                if source not in seen and self.graph.edges[source, node]["dtype"] != "real":
                    seen.add(source)
                    pending.append(source)
        return seen

    def _between(self, nodes: Sequence[str]) -> set[str]:
        """Return the nodes on ways from some nodes to others of them, of no part or of norms."""

        def reach(neighbors: Callable[[str], Iterator[str]]) -> set[str]:
            seen: set[str] = set()
            pending = list(nodes)
            while pending:
                for node in neighbors(pending.pop()):
                    part = self.owner.get(node)
                    is_free = self.data[node]["kind"] == "op" and part is None
                    if node not in seen and (is_free or (part is not None and isinstance(part.facts, NormFacts))):
                        seen.add(node)
                        pending.append(node)
            return seen

        def successors(node: str) -> Iterator[str]:
            return (b for _, b, _ in self.graph.out_edges(node, data=True))

        return reach(successors) & reach(self.graph.predecessors)

    def label_of(self, node: str) -> str | None:
        """Return the label of a node, or of the innermost address that contains its part and no other one."""
        part, data, labels = self.owner.get(node), self.data[node], self.labels
        if part is None or not labels or not isinstance(part.facts, _COMPOSITES):
            return data.get("label")
        others = [p.address for p in self.parts if p is not part and isinstance(p.facts, _COMPOSITES)]
        for address in reversed([*prefixes(part.address)]):
            words = segments(address)
            outer = [block for block in data["path"] if _length(block) <= len(words)][-1:]
            name = join(*outer, *words[sum(map(_length, outer)) :])
            if name in (self.units[node], "") or any(is_inside(other, address) for other in others):
                return None
            if name in labels:
                return labels[name]
        return None

    def live_sources(self, node: str) -> Iterator[str]:
        """Yield the nodes whose numbers a node takes, or whose ids if it looks them up, in the order of operands."""
        takes_ids = isinstance(getattr(self.owner.get(node), "facts", None), EmbeddingFacts)
        edges = [(self.graph.edges[source, node], source) for source in self.graph.predecessors(node)]
        if self.data[node]["type"] == "lowest":  # of a type
            return
        for data, source in sorted(edges, key=lambda edge: min(edge[0]["positions"])):
            if data["dtype"] == "real" or takes_ids or node in self.ids:
                yield source


def _length(block: str) -> int:
    """Return the number of segments of the address of a block, in which "..." stands for numbers."""
    return block.replace("...", "").count(".") + 1


def _order(graph: PlainGraph) -> list[str]:
    """Return the nodes such that each is after those that it takes, otherwise in program order."""
    numbers = {node: number for number, node in enumerate(graph)}
    missing = {node: len([*graph.predecessors(node)]) for node in graph}
    ready = [(number, node) for node, number in numbers.items() if not missing[node]]
    order: list[str] = []
    while ready:
        _, node = heappop(ready)
        order.append(node)
        for _, target, _ in graph.out_edges(node, data=True):
            missing[target] -= 1
            if not missing[target]:
                heappush(ready, (numbers[target], target))
    return order


def _units(data: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the layer that each node is in: the innermost address with an index around a sum."""
    holding: set[str] = set()
    for node in data.values():
        if node["type"] == "add":
            indexed = [address for address in node["path"] if _INDEX.search(address)]
            holding.update(indexed[-1:])
    return {
        name: next((address for address in reversed(node["path"]) if address in holding), "")
        for name, node in data.items()
    }


def read_flow(reading: Reading) -> Flow:
    """Return the elements of a model and the edges between them."""
    elements: dict[object, Element] = {}
    sources: dict[str, list[Element]] = {}
    edges: list[tuple[Element, Element]] = []
    order: list[Element] = []
    tensors: dict[Element, dict[str, None]] = {}

    def add(key: object, element: Element) -> Element:
        if key not in elements:
            elements[key] = element
            order.append(element)
        return elements[key]

    for node in reading.order:
        data = reading.data[node]
        operands = list(dict.fromkeys([e for source in reading.live_sources(node) for e in sources[source]]))
        element = _element_of(reading, node, data, operands, add) or _composite_of(data, operands, edges)
        if element is None:
            sources[node] = operands
            continue
        if node not in element.nodes:
            element.nodes.append(node)
        tensors.setdefault(element, {}).update(dict.fromkeys(data.get("tensors") or ()))
        element.unit = element.unit or reading.units[node]
        element.repeat = max(element.repeat, data.get("repeat", 1))
        element.shape = tuple(data["shape"])
        element.block = data["path"][-1] if data["path"] else ""
        element.block_label = reading.labels.get(element.block, "")
        edges += [(source, element) for source in operands if source is not element]
        sources[node] = [element]
    for element, names in tensors.items():
        element.tensors = list(names)
    shifted = {reading.units[node] for node, data in reading.data.items() if data["type"] == "roll"}
    flow = Flow(order, edges, shifted)
    absorb(flow)
    tidy(flow)
    return flow


def _element_of(
    reading: Reading, node: str, data: Mapping[str, Any], operands: Sequence[Element], add: Any
) -> Element | None:
    """Return the element of a node; None for a node that only moves, masks or scales what it takes."""
    part, kind, type = reading.owner.get(node), data["kind"], data["type"]
    if node in reading.ids and kind == "op":
        return None
    if part is not None:
        key = (id(part), reading.units[node]) if isinstance(part.facts, _COMPOSITES) else node
        element = add(key, _part_element(part, node, data, operands))
        element.part = part
        if isinstance(part.facts, HeadFacts) and part.facts.classes == reading.vocabulary:
            element.title = "LM head"
        element.title = reading.label_of(node) or element.title
        return element
    if kind in ("input", "output", "param"):
        name = data.get("label") or humanize(last_segment(node) if kind == "param" else node.split(":")[-1])
        shape = [size for size in data["shape"] if kind != "param" or size != 1]
        return add(
            node,
            Element("parameter" if kind == "param" else kind, name, format_shape(shape, reading.batch), [node]),
        )
    if kind == "layer" and data.get("params"):
        element = add(node, _layer_element(reading, node, data, operands))
        element.title = data.get("label", element.title)
        return element
    activation = activation_of(type)
    if any(element.kind == "experts" for element in operands) and type not in ("add", "sub"):
        return None
    if len(operands) > 1 and type in ("add", "sub"):
        return add(node, Element("add", "+", "", [node]))
    if len(operands) > 1 and type in ("mul", "div"):
        return add(node, Element("multiply", "×", "", [node]))
    if len(operands) > 1:
        return add(node, Element("function", _FUNCTIONS.get(type, humanize(type)), "", [node]))
    if len(operands) == 1 and activation is not None:
        if operands[0].kind in ("linear", "convolution") and "+" not in operands[0].title:
            operands[0].title += f" + {activation}"
            return None
        return add(node, Element("function", activation, "", [node])) if operands[0].kind != "function" else None
    if len(operands) == 1 and type in _POOLS and len(data["shape"]) < len(operands[0].shape):
        return add(node, Element("function", _pool_title(type, data.get("hyperparameters", {})), "", [node]))
    return None


def _pool_title(type: str, settings: Mapping[str, object]) -> str:
    """Return what takes one vector of several."""
    if type != "pick":
        return _POOLS[type]
    words = {"0": "First token", "1": "Second token", "-1": "Last token"}
    return words.get(str(settings.get("index")), "Chosen token")


def _composite_of(
    data: Mapping[str, Any], operands: Sequence[Element], edges: Sequence[tuple[Element, Element]]
) -> Element | None:
    """Return the experts whose results an operation weighs, by what they take themselves."""
    if data["type"] in ("add", "sub") or data["kind"] != "op":
        return None
    for element in operands:
        if element.kind == "experts" and all(e is element or (e, element) in edges for e in operands):
            return element
    return None


def _part_element(part: Part, node: str, data: Mapping[str, Any], operands: Sequence[Element]) -> Element:
    facts = part.facts
    match facts:
        case AttentionFacts():
            title, details = attention_text(facts)
            tokens = operands[0].shape[1:-1] if operands else ()
            if not facts.is_cross and isinstance(facts.keys, int) and facts.keys < _size(tokens):
                title, details = f"Window {lower(title)}", f"{details}, windows of {facts.keys:,}"
            return Element("attention", title, details, [node])
        case FeedForwardFacts():
            return Element("feed_forward", *feed_forward_text(facts), [node])
        case ExpertsFacts():
            return Element("experts", *experts_text(facts), [node])
        case StateSpaceFacts():
            details = f"width {format_size(facts.width)}, state {format_size(facts.states)}"
            return Element("state_space", "Selective state space", details, [node])
        case NormFacts():
            return Element("norm", facts.name, "", [node])
        case ConvolutionFacts():
            return _convolution(facts, node, operands)
        case HeadFacts():
            details = f"{format_size(facts.width)} → {format_size(facts.classes)}"
            return Element("linear", _layer_title(node), details, [node])
        case _:
            word = embedding_word(last_segment(node), facts)
            is_added = data["kind"] == "layer" and facts.indexed_by == "position" and any(e.shape for e in operands)
            title = f"Add {lower(word)} embedding" if is_added else f"{word} embedding"
            return Element("embedding", title, f"{format_size(facts.rows)} × {format_size(facts.width)}", [node])


def _convolution(facts: ConvolutionFacts, node: str, operands: Sequence[Element]) -> Element:
    kernel = "×".join(map(format_size, facts.kernel))
    widths = f"{format_size(facts.width)} → {format_size(facts.channels)}"
    if [element.kind for element in operands] == ["input"] and facts.kernel == facts.stride:
        return Element("embedding", "Patch embedding", f"{kernel} conv, {widths}", [node])
    is_depthwise = facts.groups == facts.width
    word = "conv" if facts.groups == 1 else "depthwise conv" if is_depthwise else "grouped conv"
    word = f"transposed {word}" if facts.is_transposed else word
    return Element("convolution", f"{word[0].upper()}{word[1:]} {kernel}", widths, [node])


def _size(shape: Sequence[object]) -> int:
    """Return the number of elements of a shape, 0 if it is not known."""
    return math.prod([size if isinstance(size, int) else 0 for size in shape]) if shape else 0


def _layer_title(node: str) -> str:
    name = last_segment(node.split("#")[0])
    return (
        humanize(last_segment(parent(node)) if name in ("dense", "proj", "projection", "linear") else name) or "Linear"
    )


def _layer_element(reading: Reading, node: str, data: Mapping[str, Any], operands: Sequence[Element]) -> Element:
    shapes = [tuple(reading.shapes[name]) for name in data.get("tensors") or () if name in reading.shapes]
    matrix = max(shapes, key=len, default=())
    if len(matrix) > 2 and len(matrix) == len(data["shape"]):  # a convolution by weights that are computed
        kernel = "×".join(map(format_size, matrix[2:]))
        source = next((reading.data[source] for source in reading.graph.predecessors(node)), data)
        widths = f"{format_size(source['shape'][1])} → {format_size(matrix[0])}"
        word = "Conv" if source["shape"][1] == matrix[1] else "Grouped conv"
        return Element("convolution", f"{word} {kernel}", widths, [node])
    if len(matrix) == 2 and matrix[0] in data["shape"]:
        return Element("linear", _layer_title(node), f"{format_size(matrix[1])} → {format_size(matrix[0])}", [node])
    source = next((element.shape for element in operands if element.shape), ())
    if source and data["shape"]:
        widths = f"{format_size(source[-1])} → {format_size(data['shape'][-1])}"
        return Element("layer", humanize(str(data["type"])), widths, [node])
    return Element("embedding", _layer_title(node), format_shape(matrix), [node])
