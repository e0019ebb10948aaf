"""The public compiled model, and for internal use how it was compiled."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from archspec.compiler.elaborate.models import CompiledModel, compile_without_optional
from archspec.compiler.evaluate.values import to_plain
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import Diagnostic, Report, StopCompilation, internal_error, make_error
from archspec.ir.fold import has_choices
from archspec.ir.module import Body, BodyCache, Type, gc_paused
from archspec.ir.table import Buffer, HyperparameterValues, Params, PlainValue, Table, Tensor
from archspec.ir.tabulate import build_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from archspec.analysis.count.count import Count
    from archspec.analysis.count.select import SelectionRule
    from archspec.compiler.elaborate.trace import Trace
    from archspec.compiler.evaluate.program import Program
    from archspec.compiler.resolve.unit import Definition, Unit
    from archspec.core.reports.documents import Document
    from archspec.drawing.graph import Graph
    from archspec.formats.configs.configuration import Configuration, ConfigurationData
    from archspec.ir.structure.parts import Part
    from archspec.language.syntax import tree


MAX_CACHED_TENSORS = 20_000
"""The maximum number of tensors of a table that is cached with its body."""

_TABLES: BodyCache[None, Table] = BodyCache()


class Compilation:
    """Internal state of a compiled model: the compiler's result and its inputs.

    `program` is the state of the compilation, `unit` the file that the model is in, and `node` its statement there.
    `values` are the hyperparameters as the compiler has them: definitions and functions as themselves, lists as tuples.
    `body` is the computation with every optional input given.
    """

    def __init__(
        self,
        compiled: CompiledModel,
        program: Program,
        unit: Unit,
        node: tree.Model,
        overrides: dict[str, PlainValue],
    ) -> None:
        self.compiled = compiled
        self.program = program
        self.unit = unit
        self.node = node
        self.overrides = overrides
        self.values = compiled.hyperparameters
        self.body = compiled.body

    def body_without_optional_inputs(self) -> Body:
        """Compile the computation of the model without optional inputs."""
        report = Report()
        self.program.begin(report, self.unit.source)
        body = None
        with gc_paused(), suppress(StopCompilation):
            body = compile_without_optional(self.program, self.unit, self.node, self.compiled)
        report.check()
        assert body is not None
        return body

    def trace(self, specialized: Iterable[Definition] = ()) -> Trace:
        """Compile the model once more, and record the values of the expressions in its definitions.

        Definitions that are `specialized` are compiled once for each key of their hyperparameters.
        """
        from archspec.compiler.elaborate.trace import trace_model

        return trace_model(self.unit, self.node, self.overrides, self.values, specialized)

    @cached_property
    def table(self) -> Table:
        """The tensors, buffers, modules and totals as plain data."""
        table = build_model_table(self.compiled, self.overrides)
        notes = [*self.unit.notes]
        if self.unit.default_architecture is not None:
            notes.append(_describe_default_architecture(self.unit.default_architecture, table))
        return table._replace(notes=(*table.notes, *notes))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the model without its optional inputs."""
        from archspec.ir.structure.read import read_parts

        return read_parts(self.body_without_optional_inputs())

    def require_computation(self) -> None:
        """Raise ArchError if part of the computation of a configuration is not supported."""
        if self.unit.deferred:
            message = f"the computation of {self.unit.deferred[0]} is not supported for {self.compiled.name}"
            raise make_error("unsupported", message, help="count and cost it, or remove the field to leave it out")


class Model:
    """A compiled model, as `archspec.load` and `archspec.loads` return it.

    `name` is the model's name in the spec and `doc` its documentation there. `overrides` are the hyperparameters that
    were set instead of those in the spec (whose `expect` lines are then not checked). `warnings` are the diagnostics
    that are not errors.
    """

    def __init__(self, compilation: Compilation, warnings: tuple[Diagnostic, ...]) -> None:
        self.name = compilation.compiled.name
        self.doc = compilation.compiled.doc
        self.overrides = compilation.overrides
        self.warnings = warnings
        self._compilation = compilation

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {self.params.total:,} parameters>"

    @property
    def params(self) -> Params:
        """The parameter counts `total`, `trainable` and `frozen`. A tensor with several names is counted once."""
        module = self._compilation.compiled.module
        return Params(module.total, module.total - module.frozen, module.frozen)

    @property
    def hyperparameters(self) -> HyperparameterValues:
        """Every hyperparameter by name: numbers, booleans, strings, lists, None; definitions and functions by name."""
        return _plain_hyperparameters(self._compilation.compiled)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Every named parameter tensor in program order; a tied name has `params` 0, and `tied_to`."""
        return self._compilation.table.tensors.all()

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The stored tensors that are not parameters, in program order."""
        return self._compilation.table.buffers

    @property
    def inputs(self) -> dict[str, Type]:
        """The inputs by name: shape and element type. A size is an integer, or symbolic (`batch`, `seq - 1`)."""
        return dict(self._compilation.body.inputs)

    @property
    def outputs(self) -> dict[str, Type]:
        """The outputs by name, as `inputs`. A single output without a name is `output`; of several, its number."""
        body = self._compilation.body
        return {name: body.types[slot] for name, slot in body.named_outputs().items()}

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the model (attention, feed-forward networks, norms, ...), each with its facts, in program order.

        They are read from its operations, for the model without its optional inputs.
        """
        return self._compilation.parts

    @check_arguments
    def count(self, by: str | None = None, depth: int | None = None, *, rules: Sequence[SelectionRule] = ()) -> Count:
        """Return the parameter counts as a tree of layers, or grouped `by` "tensor", "layer", "block" or "role".

        `depth` limits the depth of the tree. `rules` select tensors by name, and the last match wins:
        `SelectionRule(False, "*.bias")` leaves out the biases.

        Raises ValueError for another `by`, or a negative depth.
        """
        from archspec.analysis.count.count import count

        return count(self._compilation.table, rules, by, depth)

    @check_arguments
    def graph(self, level: str = "layer", depth: int | None = None, *, fold: bool = False) -> Graph:
        """Return a new directed acyclic graph of the model.

        `level` is "layer" (a node for each application of a layer, and each function or operation applied in a block),
        "block" (applications of blocks as single nodes, from nesting `depth` on, 1 by default; 0 is the whole model)
        or "op" (layers and functions opened into primitive operations). With `fold`, a stack that repeats is drawn
        once: `*` stands for the index and `repeat` is how often; its nodes have the parameters of all repetitions.
        Repetitions that differ in which parameters are shared or frozen stay separate (`layers.0-2`).

        Nodes have `kind` (input, output, layer, op, param, buffer, block), `type`, `params`, `macs`, `flops` and
        `elementwise` (integers, or formulas in symbolic dimensions), `shape` (and `shapes` if there are several
        outputs), `path` (the applications of blocks around it), `source` (file:line), `address` where a layer or block
        is applied, `tensors` (the names of those whose parameters it has), `role` (if all of them have the same),
        `label` (if the spec gives one to all that it stands for), `frozen` (how many of its `params` are, if any),
        `shared_with` where a tensor it uses is on another node, and `hyperparameters` and `constants` (inputs that are
        numbers) of an operation.

        Edges have `shape`, `dtype` and `uses`: pairs of output index and argument name, with the `positions` of these
        arguments. The graph's own attributes are `model` (its name), `params` (in total), `roles` (the parameters of
        each role, "" for none), `blocks` (the type of each application of a block by its name in `path`s), and with
        `fold`, if any is drawn for several, `repeats` (how often it is applied). `labels`, if there are any,
        are by the name of a node, a block or an address around them. At every level `params` sum to `params.total`, and
        the work to that of the whole model.

        Raises ValueError for another level, a negative depth, or a depth with a level other than "block".
        """
        from archspec.drawing.graph import build_graph, check_level

        depth = check_level(level, depth)
        graph = build_graph(self._compilation.body, self._compilation.table, level, depth, fold)
        graph.set_preview(lambda: self._picture(None if level == "layer" else level, depth))
        return graph

    def to_dict(self) -> Document:
        """Return the data that `archspec count` writes with `--format json`."""
        return self.count().to_dict()

    def to_frame(self) -> Any:
        """Return the tensors as a `pandas.DataFrame`. Raises ArchError if pandas is not installed."""
        return self.count().to_frame()

    def __str__(self) -> str:
        return str(self.count())

    def _repr_html_(self) -> str:
        """Return the picture of the model for a notebook."""
        return self._picture()

    def _picture(self, level: str | None = None, depth: int | None = None) -> str:
        """Return the picture of the model as SVG."""
        from archspec.drawing.api import picture

        return picture(self, level, depth)


ModelLike: TypeAlias = "Model | str | os.PathLike[str] | Configuration | ConfigurationData"
"""A Model, or any argument of `archspec.load`."""


def get_compilation(model: Model) -> Compilation:
    """Return the internal state of a model. Private to the package; may change without notice."""
    return model._compilation  # pyright: ignore[reportPrivateUsage]


def _describe_default_architecture(architecture: str, table: Table) -> str:
    """Describe the class as which a configuration without `architectures` is read."""
    text = f"read as {architecture}: the configuration names no `architectures`"
    has_head = any(tensor.role == "head" for tensor in table.tensors.distinct)
    return text if has_head or not architecture.endswith("Model") else f"{text}; a head is not included"


def build_model_table(compiled: CompiledModel, overrides: Iterable[str]) -> Table:
    """Build the table of a compiled model; `overrides` are the names of hyperparameters that were set."""
    values = _plain_hyperparameters(compiled)
    changed = {name: values[name] for name in overrides}
    unchecked = compiled.expectations if changed else 0
    table = _shared_table(compiled)
    return table._replace(model=compiled.name, hyperparameters=values, overrides=changed, unchecked=unchecked)


def _shared_table(compiled: CompiledModel) -> Table:
    """Return the table shared by all models with this body, without model-specific fields."""
    cached = _TABLES.entries(compiled.body)
    if None in cached:
        return cached[None]
    table = build_table(compiled.name, compiled.module, {}, {})
    if any(tensor.role is None for tensor in table.tensors.distinct):
        from archspec.ir.structure.roles import default_roles

        roles = default_roles(compiled.body)
        table = build_table(compiled.name, compiled.module, {}, {}, roles)
    if not table.is_consistent():
        raise internal_error(f"the tensors of {compiled.name} do not add up to its total")
    if has_choices(compiled.body):
        from archspec.ir.active import active_parameters

        table = table._replace(active=active_parameters(compiled.body, table))
    if len(table.tensors) <= MAX_CACHED_TENSORS:
        cached[None] = table
    return table


def _plain_hyperparameters(compiled: CompiledModel) -> dict[str, PlainValue]:
    return {name: to_plain(value) for name, value in compiled.hyperparameters.items()}
