"""The tensors that a module stores: kinds, ties, and which module owns them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from archspec.core.addresses import is_inside, parent
from archspec.pytorch.prove.tables import module_table

if TYPE_CHECKING:
    from torch import Tensor, nn

    from archspec.pytorch.values.values import Setting


# The numbers in tensors.

MAX_LISTED = 64
"""Constants with more elements are written as lists only if no formula is known for them."""

MAX_WRITTEN = 4096
"""Constants with more elements are not written as lists."""


class _Tensor(Protocol):
    """Methods of tensors that PyTorch gives no types of results."""

    def tolist(self) -> list[float]: ...
    def unique(self) -> Tensor: ...


def elements(tensor: Tensor) -> list[float]:
    """Return the elements of a tensor, row by row."""
    return cast("_Tensor", tensor.flatten()).tolist()


def distinct(tensor: Tensor) -> list[float]:
    """Return the different elements of a tensor in order."""
    return elements(cast("_Tensor", tensor).unique())


def rows(tensor: Tensor) -> list[Setting]:
    """Return a tensor as a list, of lists if it has several axes."""
    return [*elements(tensor)] if tensor.dim() == 1 else [rows(part) for part in tensor.unbind()]


class LiftedTensor(NamedTuple):
    """A stored tensor."""

    shape: tuple[int, ...]
    dtype: str
    is_buffer: bool
    is_frozen: bool
    storage: object


class StoredTensors:
    """The stored tensors of a module by name."""

    def __init__(self, module: nn.Module) -> None:
        import torch

        rows, places = module_table(module)
        self.names: dict[str, LiftedTensor] = {}
        self.own: dict[str, list[str]] = defaultdict(list)
        self._groups: dict[object, list[str]] = defaultdict(list)
        for name, row in rows.items():
            is_frozen = row.is_parameter and not row.is_trained
            self.names[name] = LiftedTensor(row.shape, row.dtype, not row.is_parameter, is_frozen, places[name])
            self.own[parent(name)].append(name)
            self._groups[places[name]].append(name)
        modules = dict(cast("Iterable[tuple[str, nn.Module]]", module.named_modules()))
        self._embeddings = {f"{path}.weight" for path, part in modules.items() if isinstance(part, torch.nn.Embedding)}
        self._aliases = {name for name, _ in self.ties}
        self._freezing: dict[str, Set[bool]] = {}

    @property
    def ties(self) -> list[tuple[str, str]]:
        """Pairs of an alias and the counted name; an embedding is preferred as the counted one."""
        found: list[tuple[str, str]] = []
        for group in self._groups.values():
            counted = next((name for name in group if name in self._embeddings), group[0])
            found += [(name, counted) for name in group if name != counted]
        return found

    def names_of(self, name: str) -> list[str]:
        """Return all names of a tensor."""
        return self._groups.get(self.names[name].storage, [name])

    def name_under(self, name: str, path: str) -> str | None:
        """Return the name of a tensor inside a module; None if it has none."""
        return next((other for other in self.names_of(name) if is_inside(other, path)), None)

    def freezing(self, path: str) -> Set[bool]:
        """Return whether the parameters that are counted in a module, or the one of a name, are frozen, or some are."""
        if path not in self._freezing:
            counted = [self.names[name] for name in self.names if name not in self._aliases and is_inside(name, path)]
            self._freezing[path] = {tensor.is_frozen for tensor in counted if not tensor.is_buffer}
        return self._freezing[path]

    def frozen(self, address: str, path: str) -> str:
        """Return what is written before a layer or tensor in the definition of the module at a path, all of which may
        be frozen where it is used.
        """
        is_whole = path != "" and self.freezing(path) == {True}
        return "frozen " if self.freezing(address) == {True} and not is_whole else ""

    def modifiers(self, name: str, path: str) -> str:
        """Return what is written before the shape of a tensor in its declaration in the module at a path."""
        tensor = self.names[name]
        frozen = self.frozen(name, path) if tensor.dtype == "real" else "frozen "
        kind = "buffer" if tensor.is_buffer else f"{frozen}param"
        return kind if tensor.dtype == "real" else f"{kind} {tensor.dtype}"
