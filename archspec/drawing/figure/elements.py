"""The elements of a figure, and the edges between them, from the folded graph of a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from archspec.core.addresses import last_segment, parent
from archspec.drawing.figure.names import (
    ACTIVATIONS,
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
from archspec.drawing.graph.plain import PlainGraph
from archspec.ir.structure.parts import (
    AttentionFacts,
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
_ABSORBING = ("attention", "experts", "state_space")
_FUNCTIONS = {"matmul": "Dot product", "where": "Mask", "concat": "Concatenate", "stack": "Stack"}
_INDEX = re.compile(r"(^|\.)(\*|[\d,.…-]*\d)(@[\d*-]+)?$")


class Element:
    """An element of a figure: a box, a circle, or a pill.

    `kind` is "attention", "core", "feed_forward", "experts", "state_space", "norm", "embedding", "linear",
    "convolution", "parameter", "function", "add", "multiply", "input" or "output". `title` and `details` are its text.
    `unit` is the address of the layer that it is in, "" for none, `repeat` the number of such layers, and `block`
    the address of the block that it is in. `nodes` are those
    of the graph, and `tensors` the names of its parameters. `shape` is that of its result.
    """

    def __init__(self, kind: str, title: str, details: str, nodes: Sequence[str]) -> None:
        self.kind = kind
        self.title = title
        self.details = details
        self.nodes = list(nodes)
        self.unit = ""
        self.block = ""
        self.repeat = 1
        self.tensors: list[str] = []
        self.shape: tuple[object, ...] = ()
        self.part: Part | None = None

    @property
    def facts(self) -> object:
        return self.part.facts if self.part is not None else None


class Flow:
    """Elements in program order, and the edges between them, each once."""

    def __init__(self, elements: Sequence[Element], edges: Iterable[tuple[Element, Element]]) -> None:
        self.elements = list(elements)
        self.edges = list(dict.fromkeys(edges))

    def sources(self, element: Element) -> list[Element]:
        return [a for a, b in self.edges if b is element]

    def users(self, element: Element) -> list[Element]:
        return [b for a, b in self.edges if a is element]

    def remove(self, element: Element, *, bridge: bool = False) -> None:
        """Remove an element; with `bridge`, what it takes goes to what uses it."""
        added = [(a, b) for a in self.sources(element) for b in self.users(element)] if bridge else []
        self.elements.remove(element)
        others = [edge for edge in self.edges if element not in edge]
        self.edges = list(dict.fromkeys([*others, *added]))

    def merge(self, elements: Sequence[Element], element: Element) -> None:
        """Replace elements by one, at the place of the last."""
        place = self.elements.index(elements[-1])
        self.elements[place] = element
        self.elements = [e for e in self.elements if e not in elements]
        renamed = [(element if a in elements else a, element if b in elements else b) for a, b in self.edges]
        self.edges = list(dict.fromkeys([(a, b) for a, b in renamed if a is not b]))


class Reading:
    """A graph whose nodes belong to parts."""

    def __init__(self, graph: PlainGraph, parts: Sequence[Part], shapes: Mapping[str, Sequence[int]]) -> None:
        self.graph = graph
        self.data: dict[str, dict[str, Any]] = graph.nodes
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

    def _find_owners(self) -> None:
        by_tensor: dict[str, Part] = {}
        for part in self.parts:
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

    def live_sources(self, node: str) -> Iterator[str]:
        """Yield the nodes whose numbers a node takes, or whose ids if it looks them up, in the order of operands."""
        takes_ids = isinstance(getattr(self.owner.get(node), "facts", None), EmbeddingFacts)
        edges = [(self.graph.edges[source, node], source) for source in self.graph.predecessors(node)]
        for data, source in sorted(edges, key=lambda edge: min(edge[0]["positions"])):
            if data["dtype"] == "real" or takes_ids:
                yield source


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
        element.tensors += [name for name in data.get("tensors") or () if name not in element.tensors]
        element.unit = element.unit or reading.units[node]
        element.repeat = max(element.repeat, data.get("repeat", 1))
        element.shape = tuple(data["shape"])
        element.block = data["path"][-1] if data["path"] else ""
        edges += [(source, element) for source in operands if source is not element]
        sources[node] = [element]
    flow = Flow(order, edges)
    _absorb(flow)
    _tidy(flow)
    return flow


def _element_of(
    reading: Reading, node: str, data: Mapping[str, Any], operands: Sequence[Element], add: Any
) -> Element | None:
    """Return the element of a node; None for a node that only moves, masks or scales what it takes."""
    part, kind, type = reading.owner.get(node), data["kind"], data["type"]
    if part is not None:
        key = (id(part), reading.units[node]) if isinstance(part.facts, _COMPOSITES) else node
        element = add(key, _part_element(part, node, data))
        element.part = part
        if isinstance(part.facts, HeadFacts) and part.facts.classes == reading.vocabulary:
            element.title = "LM head"
        return element
    if kind == "input":
        return add(
            node, Element("input", humanize(node.split(":")[-1]), format_shape(data["shape"], reading.batch), [node])
        )
    if kind == "output":
        return add(
            node, Element("output", humanize(node.split(":")[-1]), format_shape(data["shape"], reading.batch), [node])
        )
    if kind == "param":
        return add(
            node, Element("parameter", humanize(last_segment(node)), format_shape(data["shape"], reading.batch), [node])
        )
    if kind == "layer" and data.get("params"):
        return add(node, _layer_element(reading, node, data, operands))
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
    return {"0": "First token", "-1": "Last token"}.get(str(settings.get("index")), "Pick")


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


def _part_element(part: Part, node: str, data: Mapping[str, Any]) -> Element:
    facts = part.facts
    match facts:
        case AttentionFacts():
            return Element("attention", *attention_text(facts), [node])
        case FeedForwardFacts():
            return Element("feed_forward", *feed_forward_text(facts), [node])
        case ExpertsFacts():
            return Element("experts", *experts_text(facts), [node])
        case StateSpaceFacts():
            details = f"width {format_size(facts.width)}, state {format_size(facts.states)}"
            return Element("state_space", "Selective state space", details, [node])
        case NormFacts():
            return Element("norm", facts.name, "", [node])
        case HeadFacts():
            details = f"{format_size(facts.width)} → {format_size(facts.classes)}"
            return Element("linear", _layer_title(node), details, [node])
        case _:
            title = f"{embedding_word(last_segment(node), facts)} embedding"
            return Element("embedding", title, f"{format_size(facts.rows)} × {format_size(facts.width)}", [node])


def _layer_title(node: str) -> str:
    name = last_segment(node.split("#")[0])
    return (
        humanize(last_segment(parent(node)) if name in ("dense", "proj", "projection", "linear") else name) or "Linear"
    )


def _layer_element(reading: Reading, node: str, data: Mapping[str, Any], operands: Sequence[Element]) -> Element:
    shapes = [tuple(reading.shapes[name]) for name in data.get("tensors") or () if name in reading.shapes]
    matrix = max(shapes, key=len, default=())
    if len(matrix) > 2:
        kernel = "×".join(map(format_size, matrix[2:]))
        inputs = [element.shape[1] for element in operands if len(element.shape) == len(matrix)]
        input_width = inputs[0] if inputs and isinstance(inputs[0], int) else matrix[1]
        word = "Depthwise conv" if input_width == matrix[0] != matrix[1] == 1 else "Grouped conv"
        title = f"{'Conv' if input_width == matrix[1] else word} {kernel}"
        return Element("convolution", title, f"{format_size(input_width)} → {format_size(matrix[0])}", [node])
    if len(matrix) == 2 and matrix[0] in data["shape"]:
        return Element("linear", _layer_title(node), f"{format_size(matrix[1])} → {format_size(matrix[0])}", [node])
    return Element("embedding", _layer_title(node), format_shape(matrix), [node])


def _absorb(flow: Flow) -> None:
    """Let a composite have what only it takes, from what it takes itself, such as maps of tokens of another kind."""
    again = True
    while again:
        again = False
        for element in list(flow.elements):
            users = flow.users(element)
            if element.kind not in ("linear", "function") or len(users) != 1 or users[0].kind not in _ABSORBING:
                continue
            (user,) = users
            is_later = flow.elements.index(element) > flow.elements.index(user)
            if is_later or all(source in flow.sources(user) for source in flow.sources(element)):
                user.nodes += element.nodes
                user.tensors += element.tensors
                flow.remove(element, bridge=True)
                again = True
    flow.edges = [(a, b) for a, b in flow.edges if a is not b]


def _tidy(flow: Flow) -> None:
    """Leave out what shows nothing, and join what is one thing to a reader."""
    for element in list(flow.elements):  # inputs of masks and positions, outputs of nothing
        if element.kind == "input" and not flow.users(element):
            flow.remove(element)
        if element.kind == "output" and not flow.sources(element):
            flow.remove(element)
    for element in list(flow.elements):  # relative positions, which every layer takes
        users = flow.users(element)
        is_side = element.kind in ("embedding", "norm") and users and all(u.kind == "attention" for u in users)
        if is_side and not _reaches_input(flow, element):
            tensors = [name for e in (element, *flow.sources(element)) for name in e.tensors]
            for user in users:
                user.tensors += tensors
            flow.remove(element)
    for element in list(flow.elements):
        users = flow.users(element)
        if element.kind in ("embedding", "norm", "parameter") and not users:
            flow.remove(element)
        elif element.kind == "parameter" and all(u.kind in ("attention", "state_space", "experts") for u in users):
            for user in users:
                user.tensors += element.tensors
                if user.kind == "attention":
                    user.details += f", {element.title.lower()}"
            flow.remove(element)
    again = True
    while again:  # sums of sums, and of embeddings
        again = any(_join_sum(flow, element) for element in list(flow.elements) if element.kind == "add")
    for element in list(flow.elements):
        _join_add_and_norm(flow, element)
    _join_inputs(flow)
    for element in list(flow.elements):
        if element.kind == "convolution" and not element.unit:
            _join_followers(flow, element)
    _join_runs(flow)
    for element in list(flow.elements):
        _join_transition(flow, element)


def _join_inputs(flow: Flow) -> None:
    """Write inputs of equal shapes that one element takes on one line."""
    groups: dict[tuple[str, tuple[Element, ...]], list[Element]] = {}
    for element in flow.elements:
        if element.kind == "input":
            groups.setdefault((element.details, tuple(flow.users(element))), []).append(element)
    for (details, _), inputs in groups.items():
        if len(inputs) > 1:
            words = [inputs[0].title, *[lower(e.title) for e in inputs[1:]]]
            joined = Element("input", ", ".join(words), details, [node for e in inputs for node in e.nodes])
            joined.shape = inputs[0].shape
            flow.merge(inputs, joined)


def _join_followers(flow: Flow, element: Element) -> None:
    """Name norms and activations after a convolution in its box."""
    while len(users := flow.users(element)) == 1 and users[0].kind in ("norm", "function") and not users[0].unit:
        user = users[0]
        is_activation = user.kind == "norm" or user.title in ACTIVATIONS
        if not is_activation or flow.sources(user) != [element] or user.title.startswith("Add"):
            return
        element.title += f" + {user.title}"
        element.tensors += user.tensors
        element.shape = user.shape
        flow.remove(user, bridge=True)


def _join_runs(flow: Flow) -> None:
    """Draw equal boxes above each other, outside of layers, as one with their number."""
    counts: dict[Element, int] = {}
    for element in list(flow.elements):
        sources = flow.sources(element)
        if element.unit or element.kind not in ("convolution", "linear") or len(sources) != 1:
            continue
        (below,) = sources
        title = re.sub(r"^\d+ × ", "", below.title)
        is_equal = (below.kind, title, below.details) == (element.kind, element.title, element.details)
        if is_equal and flow.users(below) == [element]:
            counts[element] = counts.pop(below, 1) + 1
            element.tensors += below.tensors
            flow.remove(below, bridge=True)
            element.title = f"{counts[element]} × {title}"


def _join_transition(flow: Flow, element: Element) -> None:
    """Draw a norm and a map in a block of their own between layers as one box, such as that between two stages."""
    users = flow.users(element)
    if element.kind == "norm" and not element.unit and element.block and len(users) == 1:
        (user,) = users
        is_between = any(e.unit for e in flow.sources(element)) and any(e.unit for e in flow.users(user))
        if user.kind in ("linear", "convolution") and user.block == element.block and is_between:
            joined = Element(
                "linear", humanize(last_segment(element.block)), user.details, [*element.nodes, *user.nodes]
            )
            joined.tensors, joined.shape, joined.block = element.tensors + user.tensors, user.shape, user.block
            flow.merge([element, user], joined)


def _reaches_input(flow: Flow, element: Element) -> bool:
    pending, seen = [element], {element}
    while pending:
        current = pending.pop()
        if current.kind == "input":
            return True
        for source in flow.sources(current):
            if source not in seen:
                seen.add(source)
                pending.append(source)
    return False


def _join_sum(flow: Flow, element: Element) -> bool:
    if element not in flow.elements:
        return False
    users, sources = flow.users(element), flow.sources(element)
    if len(users) == 1 and users[0].kind == "add" and users[0].unit == element.unit:
        flow.remove(element, bridge=True)
        return True
    embeddings = [s for s in sources if s.kind in ("embedding", "parameter") and flow.users(s) == [element]]
    if len(embeddings) > 1 or (len(embeddings) == len(sources) == 1):
        joined = _joined_embeddings(embeddings)
        if len(embeddings) == len(sources):
            flow.merge([*embeddings, element], joined)
        else:
            flow.merge(embeddings, joined)
        return True
    return False


def _joined_embeddings(elements: Sequence[Element]) -> Element:
    first = {"Token embedding": 0, "Position embedding": 1}
    elements = sorted(elements, key=lambda element: first.get(element.title, 2))
    words = [re.sub(r" embeddings?$", "", element.title) for element in elements]
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    names = [word if number == 1 else f"{number} {word.lower()}" for word, number in counts.items()]
    title = " + ".join([names[0], *map(lower, names[1:])]) + " embedding"
    pairs = [element.details.split(" × ") for element in elements]
    widths = {pair[-1] for pair in pairs}
    details = " + ".join(pair[0] for pair in pairs)
    if len(widths) == 1 and all(len(pair) == 2 for pair in pairs):
        details = f"({details}) × {widths.pop()}" if len(pairs) > 1 else f"{details} × {widths.pop()}"
    joined = Element("embedding", title, details, [node for element in elements for node in element.nodes])
    joined.unit, joined.repeat = elements[0].unit, elements[0].repeat
    joined.tensors = [name for element in elements for name in element.tensors]
    joined.shape = elements[0].shape
    return joined


def _join_add_and_norm(flow: Flow, element: Element) -> None:
    """Draw a sum that only a norm takes, as in post-norm layers, as one box."""
    users = flow.users(element)
    if element.kind == "add" and len(users) == 1 and users[0].kind == "norm" and users[0].unit == element.unit:
        norm = users[0]
        joined = Element("norm", f"Add & {norm.title}", "", [*element.nodes, *norm.nodes])
        joined.unit, joined.repeat, joined.shape = norm.unit, norm.repeat, norm.shape
        joined.tensors, joined.part = norm.tensors, norm.part
        flow.merge([element, norm], joined)
