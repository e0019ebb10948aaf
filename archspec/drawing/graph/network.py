"""The graph of a model: a `networkx.DiGraph` that notebooks can show."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import networkx

from archspec.core.reports.html import render_html
from archspec.core.reports.page import Page
from archspec.core.reports.tables import Column, Row, View, columns, frame
from archspec.drawing.graph.nodelink import to_node_link

if TYPE_CHECKING:
    Base = networkx.DiGraph[str]
else:
    Base = networkx.DiGraph

MAX_ROWS = 200
"""The limit on rows of the table in a notebook."""


class Graph(Base):
    """A directed acyclic graph of a model, with the attributes that `Model.graph` describes."""

    _draw: Callable[[], str | None] | None = None
    _drawn = (0, 0)

    def set_preview(self, draw: Callable[[], str | None]) -> None:
        """Show what `draw` returns in notebooks, if anything, for as long as the graph keeps its size."""
        self._draw, self._drawn = draw, self._extent()

    def __repr__(self) -> str:
        model = self.graph.get("model")
        nodes, edges = self._extent()
        return f"<Graph{f' of {model!r}' if model else ''}: {nodes:,} nodes, {edges:,} edges>"

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_draw"}

    def _repr_html_(self) -> str:
        """Return the picture of the model, or a table of the nodes with parameters."""
        drawn = self._draw() if self._draw is not None and self._drawn == self._extent() else None
        return drawn if drawn is not None else render_html(self._page())

    def to_dict(self) -> dict[str, object]:
        """Return the data that the command writes with `--to json`."""
        return {**to_node_link(self)}

    def to_frame(self) -> Any:
        """Return the nodes and their attributes as a `pandas.DataFrame`.

        Raises ArchError if pandas is not installed.
        """
        nodes = cast("list[Row]", to_node_link(self)["nodes"])
        keys = list(dict.fromkeys(["id", *(key for node in nodes for key in node)]))
        return frame(View(columns(*keys), [{key: node.get(key) for key in keys} for node in nodes]))

    def _extent(self) -> tuple[int, int]:
        return len(self), len(self.edges)

    def _page(self) -> Page:
        rows: list[Row] = [
            {"node": name, "type": data["type"], "params": data["params"], "role": data.get("role")}
            for name, data in self.nodes(data=True)
            if data["params"]
        ]
        shown = (Column("node", "node"), Column("type", "type", style="role"), Column("params", "parameters"))
        more = [f"{len(rows) - MAX_ROWS:,} more nodes with parameters"] if len(rows) > MAX_ROWS else []
        return Page(repr(self)[1:-1], [View(shown, rows[:MAX_ROWS]), more])
