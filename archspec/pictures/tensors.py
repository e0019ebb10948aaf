"""The tensors of the nodes of a plan: parameters, roles, ties, and applications that use the same weights again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from archspec.addresses import last
from archspec.ir import Body, Leaf, Weight, find
from archspec.pictures.plan import Node, Plan, PlanTensor
from archspec.pictures.scope import Scope
from archspec.table import Table, Tensor


class Holdings:
    """Assigns the tensors of a model to nodes: those of a layer to its first application, others to the first use.

    `roles` counts the parameters of each node by role. `counted` maps each tensor to the node that is drawn for it.
    """

    def __init__(self, plan: Plan, table: Table, counted: dict[str, str]) -> None:
        self.plan = plan
        self.counted = counted
        self.roles: dict[int, Counter[str | None]] = {}
        self._by_layer: dict[str, list[Tensor]] = {}
        self._by_name: dict[str, Tensor] = {}
        self._holders: dict[str, int] = {}
        self._node_of_layer: dict[str, int] = {}
        self._node_of_tensor: dict[str, int] = {}
        self._slots: dict[int, dict[int, tuple[str, Weight]]] = {}
        for tensor in table.tensors:
            self._by_layer.setdefault(tensor.layer, []).append(tensor)
            self._by_name[tensor.name] = tensor

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
        start = len(addresses[0]) + 1
        node.tensors = [self._described(node, tensor, tensor.name[start:]) for tensor in own]
        sizes: Counter[str | None] = Counter()
        for tensor in own:
            sizes[tensor.role] += tensor.size
        node.role = max(sizes, key=lambda role: sizes[role], default=None)

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

    def _described(self, node: Node, tensor: Tensor, name: str) -> PlanTensor:
        counted = tensor.tied_to or tensor.name
        is_own = self._holders.get(counted) == node.id
        return PlanTensor(
            name, tensor.shape, tensor.size if is_own else 0, None if is_own else counted, not tensor.trainable
        )

    def add_up(self, node: Node, children: Sequence[Node]) -> None:
        """Sum the parameters of the children of a node by role."""
        if node.kind != "layer":
            self.roles[node.id] = sum([self.roles.get(child.id, Counter()) for child in children], Counter())

    def common_role(self, node: Node) -> str | None:
        """Return the role of at least 90 % of the parameters of a node."""
        counts = self.roles.get(node.id) or Counter()
        role = max(counts, key=lambda role: counts[role], default=None)
        return role if counts[role] * 10 >= counts.total() * 9 else None

    def begin(self, scope: Scope, body: Body, slots: dict[int, str]) -> None:
        """Note which tensors a body reads directly, by slot."""
        known = self._slots.setdefault(scope.node.id, {})
        for slot, name in slots.items():
            found = find(body.module, name) if body.module is not None else None
            assert isinstance(found, Leaf)
            known[slot] = name, found.weight

    def tensor(self, scope: Scope, slot: int) -> int:
        """Add the node of a tensor that a body reads directly."""
        name, weight = self._slots[scope.node.id][slot]
        return self._add(scope, name, weight.kind, weight.shape, weight.type.dtype).id

    def _add(self, scope: Scope, name: str, kind: str, shape: tuple[int, ...], dtype: str) -> Node:
        node = scope.child(kind, "")
        node.title, node.form, node.shape, node.dtype = name, "box", shape, dtype
        node.address = node.name = scope.shown + name
        node.copies = len(scope.prefixes)
        names = [prefix + name for prefix in scope.prefixes]
        own = self._by_name.get(names[0])
        if own is None:  # a buffer or constant
            return node
        node.role = own.role
        if scope.node.kind == "layer":
            held = {tensor.name: tensor for tensor in scope.node.tensors or ()}[name]
            node.tensors = [held]
            node.params = held.params * node.copies
            node.frozen = node.params if held.frozen else 0
            return node
        for full in names:
            self._node_of_tensor.setdefault(full, node.id)
            self._count(node, self._by_name[full])
        if self._node_of_tensor[names[0]] != node.id:
            node.again = self._node_of_tensor[names[0]]
        node.tensors = [self._described(node, own, last(name))]
        return node

    def add_unread(self, scope: Scope) -> None:
        """Add the tensors of an opened layer that its body does not read."""
        drawn = {self.plan.nodes[id].title for id in scope.contents.children}
        for tensor in scope.node.tensors or ():
            if tensor.name not in drawn:
                self._add(scope, tensor.name, "param", tensor.shape, "real")

    def add_unused(self, scope: Scope) -> None:
        """Add the tensors that no application reads: those of a layer as one node."""
        for layer, tensors in self._by_layer.items():
            unread = [tensor for tensor in tensors if (tensor.tied_to or tensor.name) not in self._holders]
            if unread and len(unread) == len(tensors) and layer:
                node = scope.child("layer", unread[0].type)
                node.title = node.address = node.name = layer
                node.form = "box"
                self.layer(node, [layer])
            else:
                for tensor in unread:
                    self._add(scope, tensor.name, "param", tensor.shape, "real")

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
