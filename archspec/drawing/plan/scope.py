"""The inside of a node while the plan is built: its children, and the values that they exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from archspec.core.diagnostics import make_error
from archspec.drawing.plan.plan import Contents, Node, Plan, Use, Value
from archspec.ir.origins import Origin

MAX_PICTURE_NODES = 100_000

Key: TypeAlias = tuple[int | None, int]
"""A value within a scope: output number i of a child, or number i of the scope's own inputs."""

Keys: TypeAlias = tuple[Key, ...]


class Scope:
    """The contents of `node` under construction.

    `slots` are the values in the slots of a body. `weighs` holds the values with parameters behind them. `prefixes` are
    the addresses of all copies of the module to which relative addresses refer, each with a dot at the end, and `shown`
    is the same prefix in names. `counts` numbers the applications without an address by type. `repeated` are values of
    which each stands for several, and `merged` the operations on them, by what they have in common. `origins` are the
    origins of the slots of the body, and `read` the slots that something reads.
    """

    def __init__(self, plan: Plan, node: Node, prefixes: list[str], shown: str) -> None:
        self.plan = plan
        self.node = node
        self.prefixes = prefixes
        self.shown = shown
        self.contents = Contents()
        self.slots: dict[int, Keys] = {}
        self.weighs: set[Key] = set()
        self.repeated: set[Key] = set()
        self.merged: dict[object, Node] = {}
        self.counts: dict[str, int] = {}
        self.origins: Sequence[Origin] = ()
        self.read: set[int] = set()
        self._values: dict[Key, Value] = {}

    def child(self, kind: str, type: str) -> Node:
        """Add a child. Raises ArchError if the picture exceeds MAX_PICTURE_NODES nodes."""
        if len(self.plan.nodes) >= MAX_PICTURE_NODES:
            message = f"too many nodes for a picture: the limit is {MAX_PICTURE_NODES:,}"
            raise make_error("budget", message, help="draw stacks of equal blocks once, without `--no-fold`")
        node = Node(len(self.plan.nodes), self.node.id, kind, type)
        self.plan.nodes.append(node)
        self.contents.children.append(node.id)
        return node

    def use(self, key: Key, to: int | None, port: int) -> None:
        """Record that a value enters a child, or leaves as an output of the node."""
        value = self._values.get(key)
        if value is None:
            value = self._values[key] = Value(*key)
            self.contents.values.append(value)
        value.uses.append(Use(to, port, "down"))
