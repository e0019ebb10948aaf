"""The modules that an adapter changes, by the rules of peft."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from archspec.analysis.adapter.config import Lora
from archspec.core.addresses import parent, prefixes
from archspec.core.record import Record
from archspec.ir.table import Table, Tensor

ALL_LINEAR = "all-linear"
LINEAR = ("dense", "transposed")
"""The kinds of linear layers."""


class BaseModule(Record):
    """A module of the base model that owns tensors, or encloses some.

    Its `type` is "" where the spec has no module. `own` are the tensors that it owns directly. `kind` is "dense",
    "transposed" (as in GPT-2), "embedding", or "" if peft cannot adapt it.
    """

    name: str
    type: str
    kind: str
    own: tuple[Tensor, ...]

    @property
    def features(self) -> tuple[int, int]:
        """The numbers of inputs and outputs; of an embedding, of rows and columns."""
        first, second = next(tensor.shape for tensor in self.own if tensor.name.endswith("weight"))
        return (second, first) if self.kind == "dense" else (first, second)


def modules_of(table: Table, names: dict[str, str], kinds: dict[str, str]) -> list[BaseModule]:
    """Return the modules of a table, in program order; `names` are the names of its tensors and modules for peft.

    Where a layer owns the tensors of several experts (`experts.0.w1.weight`), each of these is a module; so is each
    part of an address that encloses modules, though the spec has none there.
    """
    own: dict[str, dict[str, list[Tensor]]] = {}
    for tensor in table.tensors:
        own.setdefault(tensor.layer, {}).setdefault(parent(tensor.name), []).append(tensor)
    found: list[BaseModule] = []
    for module in table.modules:
        for address, tensors in ({module.address: []} | own.get(module.address, {})).items():
            if address:
                is_matrix = any(each.name == f"{address}.weight" and len(each.shape) == 2 for each in tensors)
                name = names[address] if address in names else parent(names[tensors[0].name])
                kind = kinds.get(module.type, "") if is_matrix else ""
                found.append(BaseModule(name, module.type, kind, tuple(tensors)))
    return [*_with_enclosing(found)]


def _with_enclosing(modules: Sequence[BaseModule]) -> Iterator[BaseModule]:
    """Yield modules, each after those around it that the spec does not have."""
    known = {module.name for module in modules}
    for module in modules:
        for outer in prefixes(module.name):
            if outer not in known:
                known.add(outer)
                yield BaseModule(outer, "", "", ())
        yield module


def is_target(lora: Lora, name: str, targets: str | Iterable[str]) -> bool:
    """Whether a module is to be adapted; `targets` replace those of the configuration."""
    if _matches(lora.excluded, name) or any(re.match(rf"(^|.*\.){each}($|\..*)", name) for each in lora.guarded):
        return False
    if isinstance(targets, str):
        return re.fullmatch(targets, name) is not None
    names = frozenset(targets)
    if name in names:
        return True
    if not _ends_with_one(name, names):
        return False
    return not lora.layers or _index(lora.stacks, name) in lora.layers


def _index(stacks: Sequence[str], name: str) -> int | None:
    """Return the index of the layer in which a module is."""
    patterns = [rf"(?:^|.*?\.){stack}\.(?P<index>\d+)\." for stack in stacks] or [r".*?\.[^.]*\.(?P<index>\d+)\."]
    found = next(filter(None, (re.match(pattern, name) for pattern in patterns)), None)
    return int(found["index"]) if found is not None else None


def is_saved(lora: Lora, name: str) -> bool:
    """Whether a copy of a module is trained; as in peft, `classifier` includes a module `pre_classifier`."""
    return any(name.endswith(each) for each in lora.saved)


def all_linear(modules: Sequence[BaseModule], vocab: object) -> list[str]:
    """Return the names of all linear layers except the output layer, which scores the entries of the vocabulary."""
    linear = [module for module in modules if module.kind in LINEAR]
    has_vocabulary = any(module.kind == "embedding" for module in modules)
    heads = [m.name for m in linear if has_vocabulary and m.own[0].role == "head" and m.features[1] == vocab]
    return [module.name for module in linear if module.name not in heads[-1:]]


def _matches(patterns: str | Sequence[str], name: str) -> bool:
    if isinstance(patterns, str):
        return re.fullmatch(patterns, name) is not None
    return name in patterns or _ends_with_one(name, patterns)


def _ends_with_one(name: str, ends: Iterable[str]) -> bool:
    return any(name.endswith(f".{end}") for end in ends)
