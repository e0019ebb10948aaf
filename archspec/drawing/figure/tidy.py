"""Elements that show nothing are left out, and what is one thing to a reader becomes one element."""

from __future__ import annotations

import re
from collections.abc import Sequence

from archspec.core.addresses import last_segment
from archspec.drawing.figure.flow import Element, Flow
from archspec.drawing.figure.names import ACTIVATIONS, humanize, lower

MAX_WIDTHS = 4
"""The most widths of steps that are one box."""

_ABSORBING = ("attention", "experts", "state_space")


def absorb(flow: Flow) -> None:
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


def tidy(flow: Flow) -> None:
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
        elif element.kind == "parameter" and all(u.kind in _ABSORBING for u in users):
            for user in users:
                user.tensors += element.tensors
                if user.kind == "attention":
                    user.details += f", {element.title.lower()}"
            flow.remove(element)
    again = True
    while again:  # sums of sums, and of embeddings
        again = any(_join_sum(flow, e) for e in list(flow.elements) if e.kind == "add" or e.title == "Concatenate")
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
        is_step = below.block == element.block != "" and (below.kind, title) == (element.kind, element.title)
        widths = [*below.details.split(" → "), element.details.split(" → ")[-1]]
        if (is_equal or (is_step and len(widths) <= MAX_WIDTHS)) and flow.users(below) == [element]:
            counts[element] = counts.pop(below, 1) + 1
            element.tensors += below.tensors
            flow.remove(below, bridge=True)
            element.title = f"{counts[element]} × {title}"
            element.details = element.details if is_equal else " → ".join(widths)


def _join_transition(flow: Flow, element: Element) -> None:
    """Draw a norm and a map between layers as one box, such as that between two stages."""
    users = flow.users(element)
    if element.kind == "norm" and not element.unit and len(users) == 1:
        (user,) = users
        is_between = any(e.unit for e in flow.sources(element)) and any(e.unit for e in flow.users(user))
        if user.kind in ("linear", "convolution") and user.block == element.block and is_between:
            title = element.block_label or humanize(last_segment(element.block))
            title = title or f"{element.title} + {lower(user.title)}"
            joined = Element(user.kind, title, user.details, [*element.nodes, *user.nodes])
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
    if element.kind != "add" and (element.unit or len(embeddings) < len(sources) or len(embeddings) < 2):
        return False
    if len(embeddings) > 1 or (len(embeddings) == len(sources) == 1):
        joined = _joined_embeddings(embeddings)
        if len(embeddings) == len(sources):
            joined.shape = element.shape
            flow.merge([*embeddings, element], joined)
        else:
            flow.merge(embeddings, joined)
        return True
    return False


def _joined_embeddings(elements: Sequence[Element]) -> Element:
    """Return embeddings and the vectors beside them as one box: sums and sequences of them."""
    first = {"Patch embedding": 0, "Token embedding": 0, "Position embedding": 1}
    tables = [e for e in elements if e.kind == "embedding"]
    tables.sort(key=lambda e: first.get(e.title, 0 if e.title.startswith("Patch") else 2))
    vectors = [lower(e.title) for e in elements if e.kind == "parameter"]
    words = [word for e in tables for word in re.sub(r" embeddings?(,.*)?$", "", e.title).split(" + ")]
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    names = [word if number == 1 else f"{number} {word.lower()}" for word, number in counts.items()]
    title = " + ".join([*names[:1], *map(lower, names[1:])]) + " embedding" if names else ""
    old = [word for e in tables for word in re.findall(r"embeddings?, (.*)$", e.title)]
    title = ", ".join([part for part in (title, *old, *vectors) if part])
    pairs = [element.details.split(" × ") for element in tables]
    if len({pair[-1] for pair in pairs}) == 1 and all(len(pair) == 2 for pair in pairs) and len(pairs) > 1:
        details = f"({' + '.join(pair[0].strip('()') for pair in pairs)}) × {pairs[0][-1]}"
    else:
        details = "; ".join(e.details for e in (tables or elements[:1]))
    joined = Element("embedding" if tables else "parameter", title, details, [n for e in elements for n in e.nodes])
    joined.unit, joined.repeat = elements[0].unit, elements[0].repeat
    joined.tensors = [name for element in elements for name in element.tensors]
    joined.shape = max([e.shape for e in elements], key=len)
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
