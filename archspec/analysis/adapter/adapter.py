"""An adapter on a base model: its tensors, and the parameters that are trained."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from math import prod
from typing import TYPE_CHECKING

from archspec.analysis.adapter.base import base_table
from archspec.analysis.adapter.config import Lora, read_config
from archspec.analysis.adapter.targets import (
    ALL_LINEAR,
    LINEAR,
    BaseModule,
    all_linear,
    is_saved,
    is_target,
    modules_of,
)
from archspec.core.addresses import is_inside, last_segment, prefixes, relative
from archspec.core.diagnostics import make_error
from archspec.core.record import Record
from archspec.core.reports.results import Result
from archspec.core.resources import specs_root
from archspec.formats.configs.family import Layers, read_layers
from archspec.formats.configs.names import names_of
from archspec.ir.table import Params, Table, Tensor, Tensors
from archspec.pipeline.locate import ADAPTER_FILE, Location, locate

if TYPE_CHECKING:
    from archspec.ir.table import PlainValue
    from archspec.pipeline.model import ModelLike


PREFIX = "base_model.model."
"""The prefix of all names in checkpoints of adapters."""


class TargetRow(Record):
    """Equal modules that are adapted: the ends of their names, and the parameters that are trained for them.

    `what` is "lora", "bias" (the biases of the base model), or "copy" (modules of which a copy is trained). `shape` is
    that of the matrix of each: outputs x inputs. `rank` is 0 where there is none. `each` are the parameters of one of
    the `modules`, and `params` those of all.
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

    `params` are those of both: `trainable` are those that the adapter trains. `targets` are the modules by name and
    size. `table` has all tensors under the names that peft gives them; `stored` those of the adapter's checkpoint.
    `notes` are remarks on what was counted.
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
        """The share of the parameters that are trained."""
        return self.params.trainable / self.params.total


def adapter_of(name: str, lora: Lora, base: Table, notes: Sequence[str] = ()) -> Adapter:
    """Put an adapter on the base model with a table. Raises ArchError if it does not fit."""
    layers = read_layers(specs_root(), "LORA")
    namings = [_names(base, True), _names(base, False)]
    found = [_Adapting(lora, base, names, layers) for names in (namings[:1] if namings[0] == namings[1] else namings)]
    best = max(found, key=lambda each: (not each.unmatched, bool(each.adapted)))
    best.check()
    return best.result(name, notes)


def _names(table: Table, live: bool) -> dict[str, str]:
    """Return the names of tensors and modules, as in published checkpoints or in live models of `transformers`."""
    lists = names_of(table.modules[0].type, specs_root()) if live else []
    addresses = [*(tensor.name for tensor in table.tensors), *(module.address for module in table.modules)]
    return {address: lists[0].live(address) if lists else address for address in addresses}


class _Adapting:
    """The modules of a base model, under some names, with those that an adapter changes."""

    def __init__(self, lora: Lora, base: Table, names: dict[str, str], layers: Layers) -> None:
        self.lora = lora
        self.base = base
        self.names = names
        self.modules = modules_of(base, names, layers.kinds)
        self.is_fused = any(fnmatchcase(base.modules[0].type, each) for each in layers.fused)
        self.is_all = isinstance(lora.targets, str) and lora.targets.lower() == ALL_LINEAR
        targets = all_linear(self.modules, base.hyperparameters.get("vocab")) if self.is_all else lora.targets
        self.adapted = [m for m in self.modules if is_target(lora, m.name, targets)]
        self.saved = [m for m in self.modules if is_saved(lora, m.name)]
        self.wrapped = {m.name: "base_layer" for m in self.adapted} | {m.name: "original_module" for m in self.saved}
        ends = targets if not isinstance(targets, str) else ()
        self.unmatched = [e for e in ends if not any(m.name == e or m.name.endswith(f".{e}") for m in self.modules)]

    def check(self) -> None:
        """Raise ArchError for what peft cannot adapt, or what this does not count."""
        if not self.adapted:
            shown = self.lora.targets if isinstance(self.lora.targets, str) else ", ".join(self.lora.targets)
            names = ", ".join(dict.fromkeys(last_segment(m.name) for m in self.modules if m.kind in LINEAR))
            message = f"no module of {self.base.model} is a target of the adapter: {shown:.200}"
            raise make_error(
                "unknown-name", message, help=f"name its base model with --base; modules of this one: {names}"
            )
        for module in self.adapted:
            if not module.kind:
                what = f"is a `{module.type}`" if module.type else "only encloses others"
                message = f"cannot adapt `{module.name}`: it {what}"
                raise make_error("unsupported", message, help="only linear layers and embeddings are supported")
            if module.kind == "embedding" and self._is_shared(module):
                message = f"cannot adapt `{module.name}`: several embeddings share its table"
                raise make_error("unsupported", message)
        if self.is_all and self.is_fused:
            message = f"the linear layers of {self.base.model} depend on the version of transformers"
            raise make_error(
                "unsupported", message, help="list those to adapt in `target_modules`, instead of `all-linear`"
            )
        for one in self.saved:
            if one in self.adapted:
                raise make_error("unsupported", f"`{one.name}` is both a target and a module to save")
            inside = [m.name for m in (*self.saved, *self.adapted) if m is not one and is_inside(m.name, one.name)]
            if inside:
                raise make_error("unsupported", f"`{inside[0]}` is inside `{one.name}`, of which a copy is trained")

    def _is_shared(self, module: BaseModule) -> bool:
        tables = [(t.tied_to or t.name) for m in self.modules if m.kind == "embedding" for t in m.own]
        return any(tables.count(tensor.tied_to or tensor.name) > 1 for tensor in module.own)

    def result(self, name: str, notes: Sequence[str]) -> Adapter:
        """Return the adapter."""
        added = [(m, [*self._lora_tensors(m)]) for m in self.adapted]
        copies = [(m, [*self._copies(m)]) for m in self.saved]
        trained = self._trained_biases()
        base = [self._base_tensor(tensor, trained) for tensor in self.base.tensors]
        tensors = (*base, *(tensor for _, new in (*added, *copies) for tensor in new))
        total = sum(tensor.params for tensor in tensors)
        trainable = sum(tensor.params for tensor in tensors if tensor.trainable)
        params = Params(total, trainable, total - trainable)
        modules = [m._replace(address=PREFIX + self.names[m.address]) for m in self.base.modules if m.address]
        whole = Table(name, {}, {}, params, Tensors(tensors), (), (self.base.modules[0], *modules), {})
        kept = Tensors([*map(_stored, filter(_is_trained, tensors))])
        stored = whole._replace(params=Params(trainable, trainable, 0), tensors=kept)
        biases = [tensor for tensor in base if tensor.trainable and tensor.params]
        if self.is_fused and any("experts" in module.name for module in self.adapted):
            notes = [*notes, "the experts are adapted one by one, as published checkpoints store them"]
        targets = [*_rows("lora", added, self.lora), *_bias_rows(biases), *_rows("copy", copies)]
        return Adapter(name, self.base.model, self.lora, params, tuple(targets), whole, stored, tuple(notes))

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
        role = module.own[0].role
        layer = PREFIX + module.name
        for name, shape in shapes.items():
            yield _tensor(f"{layer}.{name}", shape, role, layer, module.type)

    def _copies(self, module: BaseModule) -> Iterator[Tensor]:
        copied: dict[str, str] = {}
        for each in self.modules:
            for tensor in each.own if is_inside(each.name, module.name) else ():
                canonical = tensor.tied_to or tensor.name
                name = f"{PREFIX}{module.name}{_COPY}{relative(self.names[tensor.name], module.name)}"
                first = copied.setdefault(canonical, name)
                copy = _tensor(name, tensor.shape, tensor.role, PREFIX + each.name, each.type)
                yield copy if first == name else copy._replace(params=0, tied_to=first)

    def _trained_biases(self) -> set[str]:
        """Return the biases of the base model that are trained."""
        if self.lora.bias == "none":
            return set()
        saved = [module.name for module in self.saved]
        layers = {t.name for m in self.adapted for t in m.own}
        return {
            tensor.tied_to or tensor.name
            for tensor in self.base.tensors
            if tensor.name.endswith(".bias")
            and (self.lora.bias == "all" or tensor.name in layers)
            and not any(is_inside(self.names[tensor.name], each) for each in saved)
        }

    def _base_tensor(self, tensor: Tensor, trained: set[str]) -> Tensor:
        """Return a tensor of the base model under the name that it has there with the adapter."""
        return tensor._replace(
            name=self._wrapped(tensor.name),
            tied_to=self._wrapped(tensor.tied_to) if tensor.tied_to is not None else None,
            layer=PREFIX + self.names[tensor.layer] if tensor.layer else "",
            trainable=(tensor.tied_to or tensor.name) in trained,
        )

    def _wrapped(self, address: str) -> str:
        """Return the name of a tensor of the base model where peft has wrapped the modules around it."""
        name = self.names[address]
        for outer in prefixes(name):
            if outer in self.wrapped:
                return f"{PREFIX}{outer}.{self.wrapped[outer]}.{relative(name, outer)}"
        return PREFIX + name


def _is_trained(tensor: Tensor) -> bool:
    return tensor.trainable


def _stored(tensor: Tensor) -> Tensor:
    """Return a tensor under the name that it has in the checkpoint of the adapter."""
    tied_to = tensor.tied_to and tensor.tied_to.replace(_COPY, ".")
    return tensor._replace(name=tensor.name.replace(_COPY, "."), tied_to=tied_to)


_COPY = ".modules_to_save."


def _tensor(name: str, shape: tuple[int, ...], role: str | None, layer: str, type: str) -> Tensor:
    return Tensor(name, shape, prod(shape), prod(shape), True, None, role, layer, type)


def _rows(what: str, trained: Iterable[tuple[BaseModule, list[Tensor]]], lora: Lora | None = None) -> list[TargetRow]:
    """Return a row for all modules with the same name in their layer, the same size and the same rank."""
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


# `archspec.adapter`: the parameters that an adapter trains, and those of the model with it.


def adapter(
    source: str | os.PathLike[str],
    /,
    base: ModelLike | None = None,
    *,
    ignore: Sequence[str] = (),
    **overrides: PlainValue,
) -> Adapter:
    """Count the parameters of a LoRA adapter, and of the model with it, as `peft` does.

    `source` is an `adapter_config.json`, a directory with one, or a name on the hub. `base` is its base model, or what
    `load` takes; by default, the model that the adapter names. `ignore` are patterns of unknown fields to ignore,
    because they have no effect. `overrides` set hyperparameters of the base model, and of the head of its task
    (`labels`).

    Raises ArchError if the adapter or its base model cannot be found, or if it has a field that is not understood.
    """
    return adapter_at(locate(source)._replace(ignore=tuple(ignore)), base, overrides)


def adapter_at(location: Location, base: ModelLike | None, overrides: Mapping[str, PlainValue]) -> Adapter:
    """Count the parameters of an adapter, as `adapter` does; `location` has the patterns of fields to ignore."""
    if location.kind != "adapter":
        help = f"expected an `{ADAPTER_FILE}`, or a directory with one"
        raise make_error("usage", f"`{location.name}` is not an adapter", help=help)
    path, label = location.path, location.label
    lora, skipped = read_config(path, label, location.ignore)
    notes = [f"ignored as specified: {name}" for name in skipped]
    return adapter_of(_name(path, label), lora, base_table(lora, base, overrides, location), notes)


def _name(path: str, label: str) -> str:
    """Return the name of an adapter: that of its directory, or of the file if it has another than usual."""
    folder, file = os.path.split(os.path.abspath(path) if label == path else label)
    return os.path.basename(folder) if file == ADAPTER_FILE else file.removesuffix(".json")
