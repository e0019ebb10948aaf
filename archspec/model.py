"""The Python face: a compiled model, its tensors, totals and graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archspec.elaborate.models import Compiled
from archspec.elaborate.values import plain
from archspec.ir import Body, Type
from archspec.source import Diagnostic, fail
from archspec.table import Buffer, Params, Table, Tensor
from archspec.tensor_table import table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from networkx import DiGraph

    from archspec.elaborate.trace import Trace


class Model:
    """A compiled model. Made by `archspec.load`.

    `name` is the spec's; `overrides` are the hyperparameters that were set instead of those written (the `expect`
    lines of the spec are then not checked); `warnings` are findings that are no errors; `doc` is what the spec says
    of the model. `trace` compiles it once more and keeps what the expressions of its definitions come to, for
    translating these.
    """

    def __init__(
        self,
        compiled: Compiled,
        overrides: dict[str, Any],
        warnings: tuple[Diagnostic, ...],
        trace: Callable[[], Trace],
        bare: Callable[[], Body],
    ) -> None:
        self.name = compiled.name
        self.doc = compiled.doc
        self.overrides = overrides
        self.warnings = warnings
        self.trace = trace
        self._bare = bare
        self._compiled = compiled
        self._table: Table | None = None

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {self.params.total:,} parameters>"

    @property
    def params(self) -> Params:
        """Numbers of parameters: `total`, `trainable`, `frozen`; every tensor counted once, however many names it
        has.
        """
        module = self._compiled.module
        return Params(module.total, module.total - module.frozen, module.frozen)

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Every hyperparameter of the model by name; definitions and functions stand as their names."""
        return _plain(self._compiled)

    @property
    def values(self) -> dict[str, Any]:
        """Every hyperparameter as the compiler has it: definitions and functions as themselves, lists as tuples."""
        return self._compiled.hyperparameters

    @property
    def table(self) -> Table:
        """Tensors, buffers, modules and totals as plain data."""
        if self._table is None:
            self._table = compiled_table(self._compiled, self.overrides)
        return self._table

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Every named parameter in program order, tied names included (their `params` are 0)."""
        return self.table.tensors

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Stored tensors that are not parameters."""
        return self.table.buffers

    @property
    def body(self) -> Body:
        """What the model computes, as `archspec.ir` has it: for analyses and backends."""
        return self._compiled.body

    @property
    def bare(self) -> Body:
        """What the model computes when no optional input is given; `body` is for all of them given."""
        return self._bare()

    @property
    def inputs(self) -> dict[str, Type]:
        """The inputs by name, with shape and element type; dimensions left open are symbolic."""
        return dict(self.body.inputs)

    @property
    def outputs(self) -> dict[str, Type]:
        """The outputs by name, as `inputs`; an output without a name is `output` (or its number, of several)."""
        body = self.body
        present = [(name, slot) for name, slot in body.outputs if isinstance(slot, int)]
        return {
            name or ("output" if len(present) == 1 else str(i)): body.types[slot]
            for i, (name, slot) in enumerate(present)
        }

    def graph(self, level: str = "layer", depth: int | None = None, *, fold: bool = False) -> DiGraph[str]:
        """A fresh directed acyclic graph of the model.

        `level` is "layer" (a node for each application of a layer, each function or operation applied in a block),
        "block" (applications of blocks folded into a node from nesting `depth` on, 1 by default; 0 is the whole
        model) or "op" (layers and functions opened into primitive operations). With `fold`, a stack that repeats is
        drawn once: `*` stands for the number and `repeat` says how often; its nodes carry the parameters of all its
        rounds.

        Nodes have `kind` (input, output, layer, op, param, buffer, block), `type`, `params`, `macs`, `flops` and
        `elementwise` (integers, or formulas in the dimensions left open), `shape` (and `shapes` where there are
        several outputs), `path` (the applications of blocks around it), `source` (file:line), `address` where a layer
        or block is applied, and `shared_with` where a tensor it uses stands on another node. Edges have `shape` and
        `uses`: pairs of output index and argument name. The graph's own attribute `blocks` gives the type of each
        application of a block by its name in `path`s. At every level `params` sum to `params.total`, and the work to
        that of the whole model.

        Raises ValueError for another level, a negative depth, or a depth with another level than "block".
        """
        from archspec.graph import graph_of

        if level not in ("layer", "block", "op"):
            raise ValueError(f"level is 'layer', 'block' or 'op', not {level!r}")
        if depth is not None and level != "block":
            raise ValueError("depth goes with level 'block'")
        if depth is not None and depth < 0:
            raise ValueError(f"depth is 0 or more, not {depth}")
        if level == "block" and depth is None:
            depth = 1
        return graph_of(self.body, level, depth, fold)


def compiled_table(compiled: Compiled, overrides: Iterable[str]) -> Table:
    """The table of a compiled model; `overrides` are the names of hyperparameters that were set."""
    values = _plain(compiled)
    changed = {name: values[name] for name in overrides}
    table = table_of(compiled.name, compiled.module, values, changed)
    if not table.is_sound():
        raise fail("internal", f"the tensors of {compiled.name} do not add up to its total; please report this")
    return table._replace(unchecked=compiled.expectations if changed else 0)


def _plain(compiled: Compiled) -> dict[str, Any]:
    return {name: plain(value) for name, value in compiled.hyperparameters.items()}
