"""The meaning of the colors of a picture: roles, or shares of parameters, FLOPs or bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from archspec.core.algebra import evaluate
from archspec.drawing.plan.plan import Node, Plan
from archspec.drawing.svg.theme import Fill, RoleStyle, Theme, contrast, heat_color, role_styles

Coloring: TypeAlias = Literal["role", "params", "flops", "bytes"]

TITLES = {"params": "share of parameters", "flops": "share of FLOPs", "bytes": "share of activation bytes"}


class Paint:
    """The colors of a picture. `shares` are those of nodes, and `most` is the largest of a closed layer or operation.

    `sizes` are those of the dimensions, for FLOPs and bytes.
    """

    def __init__(self, plan: Plan, theme: Theme, coloring: Coloring = "role", sizes: Mapping[str, int] = {}) -> None:
        self.theme = theme
        self.coloring: Coloring = coloring
        self.sizes = sizes
        self.is_by_role = coloring == "role"
        names = [share.role for share in plan.roles if share.role is not None]
        self.styles: dict[str, RoleStyle] = role_styles(theme, names)
        self.shares: dict[int, float] = {}
        if coloring != "role":
            totals = totals_of(plan, coloring, sizes)
            self.shares = {id: amount / totals[0] if amount else 0.0 for id, amount in totals.items()}
        leaves = [node.id for node in plan.nodes if node.kind in ("layer", "op", "fn", "param")]
        self.most = max([self.shares[id] for id in leaves if id in self.shares], default=None) or 1.0

    def fill_of(self, node: Node) -> Fill:
        """Return the colors of a box."""
        theme = self.theme
        if node.form == "terminal":
            return Fill(theme.terminal, theme.pill_line)
        if not self.is_by_role:
            return Fill(heat_color(theme, self.shares[node.id] / self.most), theme.pill_line)
        if node.form in ("pill", "circle"):
            return Fill(theme.pill, theme.pill_line)
        style = self.styles.get(node.role or "")
        return style.fill if style is not None else theme.plain

    def letter_of(self, node: Node) -> str:
        """Return the letter of a node's role."""
        style = self.styles.get(node.role or "")
        return style.letter if style is not None and self.is_by_role else ""

    def inks(self, fill: str) -> tuple[str, str]:
        """Return the colors of main and secondary text on a fill."""
        if self.is_by_role:
            return self.theme.ink, self.theme.dim
        ink = max(("#000000", "#ffffff"), key=lambda color: contrast(color, fill))
        return ink, ink


def totals_of(plan: Plan, what: Coloring, sizes: Mapping[str, int]) -> dict[int, int]:
    """Return the parameters, FLOPs or bytes of each node in all its applications, by id."""
    found: dict[int, int] = {}

    def visit(node: Node, times: int) -> None:
        times *= node.times
        if what == "params":
            found[node.id] = node.params
        else:
            found[node.id] = times * evaluate(2 * node.macs if what == "flops" else node.bytes, sizes)
        inner = times * evaluate(node.rounds, sizes)
        for child in plan.children(node):
            visit(child, inner)

    visit(plan.nodes[0], 1)
    return found
