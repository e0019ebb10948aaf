"""Pictures of the two models of a difference side by side, with added, removed, moved and changed parts marked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from archspec.analysis.diff.api import Difference
from archspec.analysis.diff.operations import OperationChanges
from archspec.analysis.diff.structure import Repetition, StoredTensor, TensorChange, contents, covered
from archspec.core.addresses import ANY_INDEX, address_pattern, join, parent
from archspec.core.reports.tables import shape
from archspec.core.reports.text import titles
from archspec.drawing.api import build_plan, find_open_nodes
from archspec.drawing.plan.correspondence import Correspondence, key_from
from archspec.drawing.plan.labels import annotate
from archspec.drawing.plan.plan import Node, Plan
from archspec.drawing.svg.marks import Kind, Mark
from archspec.drawing.svg.panels import Panel, side_by_side
from archspec.drawing.svg.theme import THEMES
from archspec.ir.module import gc_paused
from archspec.ir.table import Table
from archspec.pipeline.model import Model

_KEY: list[tuple[Kind | None, str]] = [
    ("removed", "removed: only in A"),
    ("added", "added: only in B"),
    ("moved", "moved: other inputs and other readers"),
    ("changed", "changed, or contains changes"),
    (None, "A: what it is in A"),
]

MAX_TOOLTIP_LENGTH = 400
"""The limit on the length of a tooltip."""


def picture(found: Difference, a: Model, b: Model, theme: str = "light") -> str:
    """Return the pictures of two models side by side, as SVG."""
    with gc_paused():
        panels, same = panels_of(found, a, b)
        return side_by_side(panels, same, _KEY, THEMES[theme])


def panels_of(found: Difference, a: Model, b: Model) -> tuple[list[Panel], Correspondence]:
    """Return the marked plans of two models, and what corresponds in them."""
    plans, names = (build_plan(a), build_plan(b)), _Names(found)
    same = Correspondence(plans, names.key_of)
    texts = titles((table.model, table.overrides) for table in (found.before, found.after))
    panels = [
        Panel(
            f"{'AB'[own]}: {text}",
            plan,
            find_open_nodes(plan, "layer", None),
            _Marking(plan, own, found, names).marks(same),
        )
        for own, (plan, text) in enumerate(zip(plans, texts, strict=True))
    ]
    return panels, same


class _Names:
    """Names of the two models: those of A, those of B, and those that changes of operations use for both."""

    def __init__(self, found: Difference) -> None:
        self.added, self.removed = found.prefix
        self._known = [_addresses(found.before), _addresses(found.after)]

    def key_of(self, own: int, node: Node) -> Hashable:
        """Return the pattern of the name of a node in B."""
        names = {
            address: ("address", address_pattern(self._in_b(own, address))) for address in (node.addresses or ())[:1]
        }
        return key_from(names, node, address_pattern)

    def _in_b(self, own: int, name: str) -> str:
        return self.added + name.removeprefix(self.removed) if own == 0 else name

    def of_tensor(self, own: int, name: str) -> str:
        """Return a model's name for a tensor, from B's."""
        if own == 1:
            return name
        plain = name.removeprefix(self.added)
        return self.removed + plain if self.removed + plain in self._known[0] else plain

    def of_operation(self, own: int, address: str) -> str:
        """Return a model's address for that of a change of operations, which has the longer prefix of the two."""
        return address.removeprefix(self.added) if own == 0 else address.removeprefix(self.removed)


def _addresses(table: Table) -> set[str]:
    return {*contents(table)}


class _Marking:
    """The changes at each node of one of the two models."""

    def __init__(self, plan: Plan, own: int, found: Difference, names: _Names) -> None:
        self.plan = plan
        self.own = own
        self.found = found
        self.names = names
        self.changes: dict[int, dict[str, Kind]] = {}
        self.notes: dict[int, dict[str, None]] = {}
        self.tensors: dict[int, set[str]] = {}
        self.whole: set[int] = set()
        self.one_sided: Kind = "added" if own else "removed"
        self._nodes: dict[str, list[int]] = {}
        self._patterns: dict[str, list[int]] = {}
        for node in plan.nodes:
            if node.parent is None or plan.nodes[node.parent].kind != "layer":  # changes of tensors are its own
                for address in node.addresses or ():
                    self._nodes.setdefault(address, []).append(node.id)
                for pattern in {address_pattern(address) for address in node.addresses or ()}:
                    self._patterns.setdefault(pattern, []).append(node.id)

    def marks(self, same: Correspondence) -> dict[int, Mark]:
        """Return the marks of nodes by id."""
        repetitions = self.found.repetitions
        within = tuple(covered(repetitions))
        for repetition in repetitions:
            self._repetition(repetition)
        for change in self.found.tensors:
            if not within or not change.name.startswith(within):
                self._tensor(change)
        for operation in self.found.operations:
            self._operation(operation)
        self._unaddressed(same)
        self._combine(self.plan.nodes[0])
        marks: dict[int, Mark] = {}
        for id, kinds in self.changes.items():
            node = self.plan.nodes[id]
            kind = self._kind(node, set(kinds.values()))
            marks[id] = Mark(kind, _shortened("; ".join(kinds)))
            notes = [note for note in self.notes.get(id, ()) if note]
            if self.own == 1 and kind == "changed" and node.form == "box" and notes:
                annotate(node, f"A: {', '.join(notes)}")
        return marks

    def _kind(self, node: Node, kinds: set[Kind]) -> Kind:
        """Return the kind of several changes: one that is only added or removed in part is changed."""
        if kinds <= {"added", "removed"} and node.id not in self.whole:
            return "changed"
        return next(iter(kinds)) if len(kinds) == 1 else "changed"

    # Changes

    def _repetition(self, repetition: Repetition) -> None:
        """Mark the additional repetitions in the model that has them; `times` of the operations marks the other one."""
        if (repetition.after > repetition.before) != bool(self.own):
            return
        for number in repetition.numbers:
            name = self.names.of_tensor(self.own, join(parent(repetition.address), str(number)))
            for id in self._holders(name):
                self._record(id, f"{repetition.before} -> {repetition.after} in total", self.one_sided)
                self.tensors.setdefault(id, set()).add(name)
                if self.tensors[id] >= {*(self.plan.nodes[id].addresses or ())}:
                    self.whole.add(id)

    def _tensor(self, change: TensorChange) -> None:
        name, text = self.names.of_tensor(self.own, change.name), f"{', '.join(change.kinds)} {change.name}"
        if (change.before, change.after)[self.own] is None:  # the layer may have other tensors
            for id in self._nodes.get(parent(name), ()):
                self._record(id, text, "changed")
        elif change.before is None or change.after is None:
            for id in self._holders(name):
                self._record(id, text, self.one_sided)
                self.tensors.setdefault(id, set()).add(name)
        else:
            for id in self._holders(name):
                self._record(id, text, "changed", _described(change.before))

    def _operation(self, change: OperationChanges) -> None:
        if change.kind in ("input", "output"):
            self._terminal(change)
            return
        if (change.kind == "added" and self.own == 0) or (change.kind == "removed" and self.own == 1):
            return
        words = " -> ".join([change.before or "nothing", change.after or "nothing"])
        text = " ".join([part for part in (change.kind, change.what, words) if part])
        kind: Kind = change.kind if change.kind in ("added", "removed", "moved") else "changed"
        for address in change.fold.names:
            for id in self._holders(self.names.of_operation(self.own, address)):
                if not id:
                    self._whole_model(change, text)
                    continue
                self._record(id, text, kind, change.before if change.kind == "times" else "")
                if kind == self.one_sided and self._is_exact(id, address):
                    self.whole.add(id)

    def _whole_model(self, change: OperationChanges, text: str) -> None:
        """Mark the outputs that a change of the model itself affects: the one that it names, or else all."""
        outputs = [node for node in self.plan.nodes if node.kind == "output"]
        named = [node for node in outputs if node.title == change.what.partition(":")[0]]
        for node in named or outputs:
            if node.id not in self.changes:
                self._record(node.id, text, "changed")

    def _terminal(self, change: OperationChanges) -> None:
        here = (change.before, change.after)[self.own]
        there = (change.before, change.after)[1 - self.own]
        for node in self.plan.nodes:
            if node.kind == change.kind and node.title == change.what and here:
                kind: Kind = "changed" if there else self.one_sided
                self._record(node.id, f"{change.kind} {change.before or 'none'} -> {change.after or 'none'}", kind)
                self.whole.add(node.id)

    def _record(self, id: int, text: str, kind: Kind, note: str = "") -> None:
        self.changes.setdefault(id, {})[text] = kind
        self.notes.setdefault(id, {})[note] = None

    def _is_exact(self, id: int, address: str) -> bool:
        own = self.names.of_operation(self.own, address)
        return {*(self.plan.nodes[id].addresses or ())} <= {own} or ANY_INDEX in own

    def _holders(self, name: str) -> list[int]:
        """Return the nodes at an address, or at the innermost address around it that has one; else the root."""
        while name:
            found = self._nodes.get(name) or (self._patterns.get(name) if ANY_INDEX in name else None)
            if found:
                return found
            name = parent(name)
        return [0]

    # Whole nodes

    def _combine(self, node: Node) -> None:
        """Find the nodes that are added or removed as a whole: all of their tensors are."""
        children = self.plan.children(node)
        for child in children:
            self._combine(child)
        if node.tensors and node.kind in ("layer", "param"):
            count = sum(tensor.copies for tensor in node.tensors) * (node.copies if node.kind == "layer" else 1)
            if len(self.tensors.get(node.id, ())) >= count:
                self.whole.add(node.id)
        elif node.kind == "block":
            held = [child for child in children if child.params or child.tensors]
            if held and all(child.id in self.whole for child in held):
                self.whole.add(node.id)
        if node.id in self.whole and node.kind == "block":
            self._absorb(node)

    def _absorb(self, node: Node) -> None:
        """Replace the changes inside of a node that is added or removed as a whole by one of the node."""
        for child in _inside(self.plan, node):
            self.changes.pop(child.id, None)
        self.changes[node.id] = {f"{self.one_sided} {node.name}": self.one_sided}

    def _unaddressed(self, same: Correspondence) -> None:
        """Mark operations without a counterpart, in the blocks whose computation differs and in the model."""
        changed = {address for change in self.found.operations for address in self._places(change)}
        for node in self.plan.nodes:
            if node.kind not in ("op", "fn") or same.node(self.own, node.id, 1 - self.own) is not None:
                continue
            if self._block_of(node) in changed:
                self._record(node.id, f"{self.one_sided} {node.title}", self.one_sided)
                self.whole.add(node.id)

    def _places(self, change: OperationChanges) -> Iterator[int]:
        """Yield the blocks in which a change of operations is drawn: at its addresses, and around them."""
        for address in change.fold.names:
            for id in self._holders(self.names.of_operation(self.own, address)):
                node = self.plan.nodes[id]
                yield id
                yield self._block_of(node)

    def _block_of(self, node: Node) -> int:
        """Return the innermost block around a node, or the root."""
        while node.parent is not None:
            node = self.plan.nodes[node.parent]
            if node.kind in ("block", "layer"):
                return node.id
        return 0


def _inside(plan: Plan, node: Node) -> Iterable[Node]:
    for child in plan.children(node):
        yield child
        yield from _inside(plan, child)


def _shortened(text: str) -> str:
    """Cut a text that is too long to be read in a tooltip."""
    return text if len(text) <= MAX_TOOLTIP_LENGTH else f"{text[: MAX_TOOLTIP_LENGTH - 3]}..."


def _described(stored: StoredTensor | None) -> str:
    if stored is None:
        return ""
    words = [shape(stored.shape).replace(" x ", " \N{MULTIPLICATION SIGN} ")]
    words += ["buffer"] if stored.kind == "buffer" else [] if stored.trainable else ["frozen"]
    return ", ".join(words) + (f" = {stored.tied_to}" if stored.tied_to else "")
