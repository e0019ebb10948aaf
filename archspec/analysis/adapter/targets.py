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
    """A module of the base model that owns or encloses tensors.

    `type` is "" if the spec has no such module. `tensors` are the tensors that the module owns directly. `kind` is
    "dense", "transposed" (as in GPT-2), "embedding", or "" if peft cannot adapt it.
    """

    name: str
    type: str
    kind: str
    tensors: tuple[Tensor, ...]

    @property
    def features(self) -> tuple[int, int]:
        """The numbers of inputs and outputs; of an embedding, of rows and columns."""
        first, second = next(tensor.shape for tensor in self.tensors if tensor.name.endswith("weight"))
        return (second, first) if self.kind == "dense" else (first, second)


def list_modules(table: Table, names: dict[str, str], kinds: dict[str, str]) -> list[BaseModule]:
    """Return the modules of a table, in program order; `names` maps its tensors and modules to their names in peft.

    If a layer owns the tensors of several experts (`experts.0.w1.weight`), each expert's matrix is a module. Each
    prefix of an address that encloses modules is a module, too, even if the spec has no module there.
    """
    owned: dict[str, dict[str, list[Tensor]]] = {}
    for tensor in table.tensors:
        owned.setdefault(tensor.layer, {}).setdefault(parent(tensor.name), []).append(tensor)
    modules: list[BaseModule] = []
    for module in table.modules:
        for address, tensors in ({module.address: []} | owned.get(module.address, {})).items():
            if address:
                is_matrix = any(tensor.name == f"{address}.weight" and len(tensor.shape) == 2 for tensor in tensors)
                name = names[address] if address in names else parent(names[tensors[0].name])
                kind = kinds.get(module.type, "") if is_matrix else ""
                modules.append(BaseModule(name, module.type, kind, tuple(tensors)))
    return [*_insert_enclosing(modules)]


def _insert_enclosing(modules: Sequence[BaseModule]) -> Iterator[BaseModule]:
    """Yield modules, each preceded by enclosing ones that the spec does not have."""
    names = {module.name for module in modules}
    for module in modules:
        for enclosing in prefixes(module.name):
            if enclosing not in names:
                names.add(enclosing)
                yield BaseModule(enclosing, "", "", ())
        yield module


def is_target(lora: Lora, name: str, targets: str | Iterable[str]) -> bool:
    """Whether to adapt a module; `targets` replace the targets of the configuration."""
    if _matches_any(lora.excluded, name) or any(
        re.match(rf"(^|.*\.){pattern}($|\..*)", name) for pattern in lora.guarded
    ):
        return False
    if isinstance(targets, str):
        return re.fullmatch(targets, name) is not None
    names = frozenset(targets)
    if name in names:
        return True
    if not _ends_with_one(name, names):
        return False
    return not lora.layers or _layer_index(lora.stacks, name) in lora.layers


def _layer_index(stacks: Sequence[str], name: str) -> int | None:
    """Return the index of the layer that contains a module, or None."""
    patterns = [rf"(?:^|.*?\.){stack}\.(?P<index>\d+)\." for stack in stacks] or [r".*?\.[^.]*\.(?P<index>\d+)\."]
    match = next(filter(None, (re.match(pattern, name) for pattern in patterns)), None)
    return int(match["index"]) if match is not None else None


def is_saved(lora: Lora, name: str) -> bool:
    """Whether a copy of a module is trained; as in peft, `classifier` includes a module `pre_classifier`."""
    return any(name.endswith(end) for end in lora.saved)


def all_linear(modules: Sequence[BaseModule], vocab: object) -> list[str]:
    """Return the names of all linear layers except the output layer, which scores the entries of the vocabulary."""
    linear = [module for module in modules if module.kind in LINEAR]
    has_vocabulary = any(module.kind == "embedding" for module in modules)
    heads = [m.name for m in linear if has_vocabulary and m.tensors[0].role == "head" and m.features[1] == vocab]
    return [module.name for module in linear if module.name not in heads[-1:]]


def _matches_any(patterns: str | Sequence[str], name: str) -> bool:
    if isinstance(patterns, str):
        return re.fullmatch(patterns, name) is not None
    return name in patterns or _ends_with_one(name, patterns)


def _ends_with_one(name: str, ends: Iterable[str]) -> bool:
    return any(name.endswith(f".{end}") for end in ends)
