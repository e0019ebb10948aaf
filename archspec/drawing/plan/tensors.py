"""The tensors of the nodes of a plan: parameters, roles, ties, and applications that use the same weights again."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from archspec.core.addresses import ANY_INDEX, INDEX, relative
from archspec.drawing.plan.plan import Node, Plan, PlanTensor
from archspec.drawing.plan.scope import Scope
from archspec.ir.module import Body, LocatedTensor, ModuleTensor, find_member
from archspec.ir.table import Table, Tensor

MIN_FAMILY_TENSORS = 4
"""Tensors that differ only in indices are one node from this number on."""


class Holdings:
    """Assigns the tensors of a model to nodes: those of a layer to its first application, others to the first use.

    `roles` counts the parameters of each node by role. `counted` maps each tensor to the node that is drawn for it.
    """

    def __init__(self, plan: Plan, table: Table, counted: dict[str, str], fold: bool) -> None:
        self.plan = plan
        self.fold = fold
        self.counted = counted
        self.roles: dict[int, Counter[str | None]] = {}
        self._by_layer: dict[str, list[Tensor]] = {}
        self._by_name: dict[str, Tensor] = {}
        self._holders: dict[str, int] = {}
        self._node_of_layer: dict[str, int] = {}
        self._node_of_tensor: dict[str, int] = {}
        self._families: dict[str, dict[str, list[Tensor]]] = {}
        self._made: dict[tuple[int, str], int] = {}
        self._slots: dict[int, dict[int, tuple[str, ModuleTensor]]] = {}
        for tensor in table.tensors:
            self._by_layer.setdefault(tensor.layer, []).append(tensor)
            self._by_name[tensor.name] = tensor
        self._layers = sorted(self._by_layer)

    def layer(self, node: Node, addresses: list[str]) -> None:
        """Give a node the tensors of the layers at some addresses, unless another application has them."""
        self.roles[node.id] = Counter()
        own = self._by_layer.get(addresses[0], [])
        holder = self._node_of_layer.get(addresses[0])
        if holder is not None:
            node.again = holder
        else:
            for address in addresses:
                self._node_of_layer[address] = node.id
                for tensor in self._by_layer.get(address, []):
                    self._count(node, tensor)
        node.tensors = [self._described(node, tensor) for tensor in own if self._family(tensor)[0] is tensor]
        sizes: Counter[str | None] = Counter()
        for tensor in own:
            sizes[tensor.role] += tensor.size
        node.role = max(sizes, key=lambda role: sizes[role], default=None)

    def modules_in(self, address: str) -> frozenset[str]:
        """Return the addresses of the layers below an address, relative to it."""
        prefix = f"{address}."
        start = bisect_left(self._layers, prefix)
        end = bisect_left(self._layers, f"{address}/", start)  # the character after the dot
        return frozenset([layer[len(prefix) :] for layer in self._layers[start:end]])

    def _count(self, node: Node, tensor: Tensor) -> None:
        """Count a tensor at a node, unless it is counted at another one."""
        name = tensor.tied_to or tensor.name
        if self._holders.setdefault(name, node.id) != node.id:
            return
        self.counted[name] = node.name
        node.params += tensor.size
        if not tensor.trainable:
            node.frozen += tensor.size
        self.roles.setdefault(node.id, Counter())[tensor.role] += tensor.size

    def _described(self, node: Node, tensor: Tensor) -> PlanTensor:
        counted = tensor.tied_to or tensor.name
        is_own = self._holders.get(counted) == node.id
        params, tied_to = (tensor.size, None) if is_own else (0, counted)
        copies = len(self._family(tensor))
        return PlanTensor(self._shown(tensor), tensor.shape, params, tied_to, not tensor.trainable, copies)

    def _shown(self, tensor: Tensor) -> str:
        """Return the name of a tensor in its layer; that of several, with `*` for the indices."""
        name = relative(tensor.name, tensor.layer) if tensor.layer else tensor.name
        return INDEX.sub(ANY_INDEX, name) if len(self._family(tensor)) > 1 else name

    def _family(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of a layer that differ from a tensor only in indices, itself included."""
        if tensor.layer not in self._families:
            families: dict[object, list[Tensor]] = {}
            for other in self._by_layer[tensor.layer]:
                pattern = INDEX.sub(ANY_INDEX, relative(other.name, other.layer) if other.layer else other.name)
                key = pattern if self.fold and other.tied_to is None else other.name
                families.setdefault((key, other.shape, other.trainable, other.role), []).append(other)
            self._families[tensor.layer] = {}
            for family in families.values():
                for other in family:
                    own = family if len(family) >= MIN_FAMILY_TENSORS else [other]
                    self._families[tensor.layer][other.name] = own
        return self._families[tensor.layer][tensor.name]

    def add_up(self, node: Node, children: Sequence[Node]) -> None:
        """Sum the parameters of the children of a node by role."""
        if node.kind != "layer":
            counts: Counter[str | None] = Counter()
            for child in children:
                counts.update(self.roles.get(child.id, {}))
            self.roles[node.id] = counts

    def common_role(self, node: Node) -> str | None:
        """Return the role of at least 90 % of the parameters of a node."""
        counts = self.roles.get(node.id) or Counter()
        role = max(counts, key=lambda role: counts[role], default=None)
        return role if counts[role] * 10 >= counts.total() * 9 else None

    def begin(self, scope: Scope, body: Body, slots: dict[int, str]) -> None:
        """Note which tensors a body reads directly, by slot."""
        known = self._slots.setdefault(scope.node.id, {})
        for slot, name in slots.items():
            found = find_member(body.module, name) if body.module is not None else None
            assert isinstance(found, LocatedTensor)
            known[slot] = name, found.weight

    def tensor(self, scope: Scope, slot: int) -> int:
        """Return the node of a tensor that a body reads directly, or of all tensors that differ only in indices."""
        name, weight = self._slots[scope.node.id][slot]
        own = self._by_name.get(scope.prefixes[0] + name)
        if own is None:  # a buffer or constant
            node = scope.child(weight.kind, "")
            node.title, node.form, node.shape, node.dtype = name, "box", weight.shape, weight.type.dtype
            node.address = node.name = scope.shown + name
            node.addresses = [prefix + name for prefix in scope.prefixes]
            node.copies = len(scope.prefixes)
            return node.id
        first = self._family(own)[0].name
        if (scope.node.id, first) not in self._made:
            self._made[scope.node.id, first] = self._add(scope, own, weight.type.dtype).id
        id = self._made[scope.node.id, first]
        if len(self._family(own)) > 1:
            scope.repeated.add((id, 0))
        return id

    def _add(self, scope: Scope, own: Tensor, dtype: str) -> Node:
        """Add a node for a parameter tensor, in all copies of the scope."""
        node = scope.child("param", "")
        family = self._family(own)
        node.title, node.form, node.shape, node.dtype = self._shown(own), "box", own.shape, dtype
        node.address = node.name = scope.shown + node.title
        length = len(scope.prefixes[0])
        node.addresses = [prefix + member.name[length:] for prefix in scope.prefixes for member in family]
        node.copies = len(node.addresses)
        node.role = own.role
        if scope.node.kind == "layer":
            held = {tensor.name: tensor for tensor in scope.node.tensors or ()}[node.title]
            node.tensors = [held]
            node.params = held.params * node.copies
            node.frozen = node.params if held.frozen else 0
            return node
        for name in node.addresses:
            self._node_of_tensor.setdefault(name, node.id)
            self._count(node, self._by_name[name])
        if self._node_of_tensor[node.addresses[0]] != node.id:
            node.again = self._node_of_tensor[node.addresses[0]]
        node.tensors = [self._described(node, own)]
        return node

    def add_unread(self, scope: Scope) -> None:
        """Add the tensors of an opened layer that its body does not read."""
        drawn = {self.plan.nodes[id].title for id in scope.contents.children}
        for tensor in self._by_layer.get(scope.prefixes[0][:-1], []):
            if self._family(tensor)[0] is tensor and self._shown(tensor) not in drawn:
                self._add(scope, tensor, "real")

    def add_unused(self, scope: Scope) -> None:
        """Add the tensors that no application reads: those of a layer as one node."""
        for layer, tensors in self._by_layer.items():
            unread = [tensor for tensor in tensors if (tensor.tied_to or tensor.name) not in self._holders]
            if unread and len(unread) == len(tensors) and layer:
                node = scope.child("layer", unread[0].type)
                node.title = node.address = node.name = layer
                node.addresses = [layer]
                node.form = "box"
                self.layer(node, [layer])
            else:
                for tensor in unread:
                    if self._family(tensor)[0] is tensor:
                        self._add(scope, tensor, "real")

    def ties(self) -> list[tuple[int, int]]:
        """Return the pairs of nodes that use the same tensor: the one that counts it, and another."""
        found: dict[tuple[int, int], None] = {}
        for tensor in self._by_name.values():
            if tensor.tied_to is not None:
                ours = self._node_of_layer.get(tensor.layer, self._node_of_tensor.get(tensor.name))
                theirs = self._holders[tensor.tied_to]
                if ours is not None and ours != theirs:
                    found[theirs, ours] = None
        return [*found]
