"""An adapter on a base model: its tensors, and the parameters that are trained."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from math import prod
from typing import TYPE_CHECKING

from archspec.analysis.adapter.base import load_base_table
from archspec.analysis.adapter.config import Lora, read_config
from archspec.analysis.adapter.targets import (
    ALL_LINEAR,
    LINEAR,
    BaseModule,
    all_linear,
    is_saved,
    is_target,
    list_modules,
)
from archspec.core.addresses import is_inside, last_segment, prefixes, relative
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import make_error
from archspec.core.record import Record
from archspec.core.reports.results import Result
from archspec.core.resources import specs_root
from archspec.formats.configs.configuration import ADAPTER_FILE
from archspec.formats.configs.family import Layers, read_layers
from archspec.formats.configs.names import find_names
from archspec.ir.table import Params, Table, Tensor, Tensors
from archspec.pipeline.locate import Location, locate

if TYPE_CHECKING:
    from archspec.ir.table import PlainValue
    from archspec.pipeline.model import ModelLike

PREFIX = "base_model.model."
"""The prefix of all names in checkpoints of adapters."""


class TargetRow(Record):
    """Equal modules that are adapted: the last segment of their names, and the parameters that are trained for them.

    `what` is "lora", "bias" (the biases of the base model), or "copy" (modules of which a copy is trained). `shape` is
    the shape of each matrix: outputs x inputs. `rank` is 0 for modules without LoRA. `each` is the parameter count of
    one of the `modules`, and `params` that of all.
    """

    target: str
    type: str
    what: str
    modules: int
    shape: tuple[int, ...]
    rank: int
    each: int
    params: int


class Adapter(Result):
    """An adapter on a base model.

    `params` counts the parameters of both; the adapter trains the `trainable` ones. `targets` are the modules by name
    and size. `table` has all tensors by their names in peft; `stored` has the tensors of the adapter's checkpoint.
    `notes` are remarks on the counts.
    """

    name: str
    base: str
    lora: Lora
    params: Params
    targets: tuple[TargetRow, ...]
    table: Table
    stored: Table
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Adapter {self.name!r} of {self.base!r}: {self.params.trainable:,} trainable parameters>"

    @property
    def share(self) -> float:
        """The fraction of the parameters that are trained."""
        return self.params.trainable / self.params.total


def build_adapter(name: str, lora: Lora, base: Table, notes: Sequence[str] = ()) -> Adapter:
    """Apply an adapter to the base model with a table. Raises ArchError if it does not fit."""
    layers = read_layers(specs_root(), "LORA")
    namings = [_peft_names(base, True), _peft_names(base, False)]
    candidates = [
        _AdapterBuilder(lora, base, names, layers) for names in (namings[:1] if namings[0] == namings[1] else namings)
    ]
    best = max(candidates, key=lambda candidate: (not candidate.unmatched, bool(candidate.adapted)))
    best.check()
    return best.result(name, notes)


def _peft_names(table: Table, live: bool) -> dict[str, str]:
    """Return the names of tensors and modules in published checkpoints, or in `live` models of `transformers`."""
    lists = find_names(table.modules[0].type, specs_root()) if live else []
    addresses = [*(tensor.name for tensor in table.tensors), *(module.address for module in table.modules)]
    return {address: lists[0].live(address) if lists else address for address in addresses}


class _AdapterBuilder:
    """Builder of an Adapter: the modules of a base model by their names in peft, and the modules that it changes."""

    def __init__(self, lora: Lora, base: Table, names: dict[str, str], layers: Layers) -> None:
        self.lora = lora
        self.base = base
        self.names = names
        self.modules = list_modules(base, names, layers.kinds)
        self.is_fused = any(fnmatchcase(base.modules[0].type, pattern) for pattern in layers.fused)
        self.is_all_linear = isinstance(lora.targets, str) and lora.targets.lower() == ALL_LINEAR
        targets = all_linear(self.modules, base.hyperparameters.get("vocab")) if self.is_all_linear else lora.targets
        self.adapted = [m for m in self.modules if is_target(lora, m.name, targets)]
        self.saved = [m for m in self.modules if is_saved(lora, m.name)]
        self.wrappers = {m.name: "base_layer" for m in self.adapted} | {m.name: "original_module" for m in self.saved}
        ends = targets if not isinstance(targets, str) else ()
        self.unmatched = [e for e in ends if not any(m.name == e or m.name.endswith(f".{e}") for m in self.modules)]

    def check(self) -> None:
        """Raise ArchError for modules that peft cannot adapt, or whose parameters cannot be counted."""
        if not self.adapted:
            targets = self.lora.targets if isinstance(self.lora.targets, str) else ", ".join(self.lora.targets)
            names = ", ".join(dict.fromkeys(last_segment(m.name) for m in self.modules if m.kind in LINEAR))
            message = f"no module of {self.base.model} is a target of the adapter: {targets:.200}"
            raise make_error(
                "unknown-name", message, help=f"name its base model with --base; modules of this one: {names}"
            )
        for module in self.adapted:
            if not module.kind:
                problem = f"is a `{module.type}`" if module.type else "only encloses other modules"
                message = f"cannot adapt `{module.name}`: it {problem}"
                raise make_error("unsupported", message, help="only linear layers and embeddings are supported")
            if module.kind == "embedding" and self._is_shared(module):
                message = f"cannot adapt `{module.name}`: several embeddings share its table"
                raise make_error("unsupported", message)
        if self.is_all_linear and self.is_fused:
            message = f"the linear layers of {self.base.model} depend on the version of transformers"
            raise make_error(
                "unsupported", message, help="list those to adapt in `target_modules`, instead of `all-linear`"
            )
        for saved in self.saved:
            if saved in self.adapted:
                raise make_error("unsupported", f"`{saved.name}` is both a target and a module to save")
            nested = [m.name for m in (*self.saved, *self.adapted) if m is not saved and is_inside(m.name, saved.name)]
            if nested:
                raise make_error("unsupported", f"`{nested[0]}` is inside `{saved.name}`, of which a copy is trained")

    def _is_shared(self, module: BaseModule) -> bool:
        tables = [(t.tied_to or t.name) for m in self.modules if m.kind == "embedding" for t in m.tensors]
        return any(tables.count(tensor.tied_to or tensor.name) > 1 for tensor in module.tensors)

    def result(self, name: str, notes: Sequence[str]) -> Adapter:
        """Return the adapter."""
        added = [(m, [*self._lora_tensors(m)]) for m in self.adapted]
        copies = [(m, [*self._copy_tensors(m)]) for m in self.saved]
        trained = self._trained_biases()
        base = [self._base_tensor(tensor, trained) for tensor in self.base.tensors]
        tensors = (*base, *(tensor for _, new in (*added, *copies) for tensor in new))
        total = sum(tensor.params for tensor in tensors)
        trainable = sum(tensor.params for tensor in tensors if tensor.trainable)
        params = Params(total, trainable, total - trainable)
        modules = [m._replace(address=PREFIX + self.names[m.address]) for m in self.base.modules if m.address]
        table = Table(name, {}, {}, params, Tensors(tensors), (), (self.base.modules[0], *modules), {})
        stored_tensors = Tensors([*map(_as_stored, filter(_is_trained, tensors))])
        stored = table._replace(params=Params(trainable, trainable, 0), tensors=stored_tensors)
        biases = [tensor for tensor in base if tensor.trainable and tensor.params]
        if self.is_fused and any("experts" in module.name for module in self.adapted):
            notes = [*notes, "the experts are adapted one by one, as published checkpoints store them"]
        targets = [*_target_rows("lora", added, self.lora), *_bias_rows(biases), *_target_rows("copy", copies)]
        return Adapter(name, self.base.model, self.lora, params, tuple(targets), table, stored, tuple(notes))

    def _lora_tensors(self, module: BaseModule) -> Iterator[Tensor]:
        inputs, outputs = module.features
        rank = self.lora.rank_of(module.name)
        shapes: dict[str, tuple[int, ...]]
        if module.kind == "embedding":
            if self.lora.lora_bias:
                raise make_error("unsupported", f"`lora_bias` is not supported for the embedding `{module.name}`")
            shapes = {"lora_embedding_A": (rank, inputs), "lora_embedding_B": (outputs, rank)}
        else:
            shapes = {"lora_A.weight": (rank, inputs), "lora_B.weight": (outputs, rank)}
            if self.lora.lora_bias:
                shapes["lora_B.bias"] = (outputs,)
        if self.lora.dora:
            shapes["lora_magnitude_vector"] = (outputs,)
        role = module.tensors[0].role
        layer = PREFIX + module.name
        for name, shape in shapes.items():
            yield _trained_tensor(f"{layer}.{name}", shape, role, layer, module.type)

    def _copy_tensors(self, module: BaseModule) -> Iterator[Tensor]:
        copied: dict[str, str] = {}
        for nested in self.modules:
            for tensor in nested.tensors if is_inside(nested.name, module.name) else ():
                canonical = tensor.tied_to or tensor.name
                name = f"{PREFIX}{module.name}{_COPY_SEGMENT}{relative(self.names[tensor.name], module.name)}"
                first = copied.setdefault(canonical, name)
                copy = _trained_tensor(name, tensor.shape, tensor.role, PREFIX + nested.name, nested.type)
                yield copy if first == name else copy._replace(params=0, tied_to=first)

    def _trained_biases(self) -> set[str]:
        """Return the names of the biases of the base model that are trained."""
        if self.lora.bias == "none":
            return set()
        saved = [module.name for module in self.saved]
        layers = {t.name for m in self.adapted for t in m.tensors}
        return {
            tensor.tied_to or tensor.name
            for tensor in self.base.tensors
            if tensor.name.endswith(".bias")
            and (self.lora.bias == "all" or tensor.name in layers)
            and not any(is_inside(self.names[tensor.name], module) for module in saved)
        }

    def _base_tensor(self, tensor: Tensor, trained: set[str]) -> Tensor:
        """Return a tensor of the base model with its name in the adapted model."""
        return tensor._replace(
            name=self._wrapped_name(tensor.name),
            tied_to=self._wrapped_name(tensor.tied_to) if tensor.tied_to is not None else None,
            layer=PREFIX + self.names[tensor.layer] if tensor.layer else "",
            trainable=(tensor.tied_to or tensor.name) in trained,
        )

    def _wrapped_name(self, address: str) -> str:
        """Return the name of a tensor of the base model, inserting the wrappers that peft puts around modules."""
        name = self.names[address]
        for enclosing in prefixes(name):
            if enclosing in self.wrappers:
                return f"{PREFIX}{enclosing}.{self.wrappers[enclosing]}.{relative(name, enclosing)}"
        return PREFIX + name


def _is_trained(tensor: Tensor) -> bool:
    return tensor.trainable


def _as_stored(tensor: Tensor) -> Tensor:
    """Return a tensor with its name in the checkpoint of the adapter."""
    tied_to = tensor.tied_to and tensor.tied_to.replace(_COPY_SEGMENT, ".")
    return tensor._replace(name=tensor.name.replace(_COPY_SEGMENT, "."), tied_to=tied_to)


_COPY_SEGMENT = ".modules_to_save."


def _trained_tensor(name: str, shape: tuple[int, ...], role: str | None, layer: str, type: str) -> Tensor:
    return Tensor(name, shape, prod(shape), prod(shape), True, None, role, layer, type)


def _target_rows(
    what: str, trained: Iterable[tuple[BaseModule, list[Tensor]]], lora: Lora | None = None
) -> list[TargetRow]:
    """Return one row for all modules with the same last segment, size and rank."""
    rows: dict[tuple[object, ...], TargetRow] = {}
    for module, tensors in trained:
        shape = tuple(reversed(module.features)) if lora is not None else ()
        rank = lora.rank_of(module.name) if lora is not None else 0
        params = sum(tensor.params for tensor in tensors)
        label = last_segment(module.name) if lora is not None else module.name
        first = TargetRow(label, module.type, what, 0, shape, rank, params, 0)
        row = rows.setdefault((first, len(tensors)), first)
        rows[first, len(tensors)] = row._replace(modules=row.modules + 1, params=row.params + params)
    return list(rows.values())


def _bias_rows(biases: Sequence[Tensor]) -> list[TargetRow]:
    params = sum(tensor.params for tensor in biases)
    return [TargetRow("bias", "", "bias", len(biases), (), 0, 0, params)] if biases else []


# The function `archspec.adapter`.


@check_arguments
def adapter(
    source: str | os.PathLike[str],
    /,
    base: ModelLike | None = None,
    *,
    ignore: Sequence[str] = (),
    **overrides: PlainValue,
) -> Adapter:
    """Count the parameters of a LoRA adapter, and of the model with it, as `peft` does.

    `source` is an `adapter_config.json`, a directory with one, or a name on the hub. `base` is its base model, or an
    argument of `load` (default: the model that the adapter names). `ignore` are patterns of unknown fields to ignore,
    because they have no effect. `overrides` set hyperparameters of the base model, and of the head of its task
    (`labels`).

    Raises ArchError if the adapter or its base model cannot be found, or if it has an unknown field.
    """
    return load_adapter(locate(source)._replace(ignore=tuple(ignore)), base, overrides)


def load_adapter(location: Location, base: ModelLike | None, overrides: Mapping[str, PlainValue]) -> Adapter:
    """Count the parameters of an adapter, as `adapter` does; `location` has the patterns of fields to ignore."""
    if location.kind != "adapter":
        help = f"expected an `{ADAPTER_FILE}`, or a directory with one"
        raise make_error("usage", f"`{location.name}` is not an adapter", help=help)
    path, label = location.path, location.label
    lora, skipped = read_config(path, label, location.ignore)
    notes = [f"ignored as specified: {name}" for name in skipped]
    return build_adapter(_adapter_name(path, label), lora, load_base_table(lora, base, overrides, location), notes)


def _adapter_name(path: str, label: str) -> str:
    """Return the name of an adapter: of its directory, or of the file if it does not have the default name."""
    folder, file = os.path.split(os.path.abspath(path) if label == path else label)
    return os.path.basename(folder) if file == ADAPTER_FILE else file.removesuffix(".json")
