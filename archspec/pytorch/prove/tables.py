"""The tables of tensors of models and modules: names, shapes, types, kinds, which are trained, and which are tied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from archspec.ir.module import Module, canonical_name, is_frozen, iter_tensors
from archspec.pipeline.model import Model, get_compilation
from archspec.pytorch.export.exporting import is_without_values
from archspec.pytorch.passes.programs import dtype_of
from archspec.pytorch.prove.state import Snapshot

if TYPE_CHECKING:
    from torch import Tensor, nn


class TensorRow(NamedTuple):
    """A stored tensor: its shape, "real", "int", "bool" or "complex", and whether it is a parameter, and trained."""

    shape: tuple[int, ...]
    dtype: str
    is_parameter: bool
    is_trained: bool

    def __str__(self) -> str:
        kind = ("param" if self.is_trained else "frozen param") if self.is_parameter else "buffer"
        return f"{kind} {self.dtype} {[*self.shape]}"


class TensorTable(NamedTuple):
    """Tensors by name, and what is the same for the names of one tensor."""

    rows: dict[str, TensorRow]
    places: dict[str, object]


def model_table(module: Module) -> TensorTable:
    """Return the stored tensors of the module of a compiled model."""
    rows: dict[str, TensorRow] = {}
    places: dict[str, object] = {}
    for name, (weight, frozen) in iter_tensors(module):
        if weight.kind != "const":
            own = places[name] = canonical_name(module, name)
            is_trained = not (is_frozen(module, own) if own != name else frozen)
            is_parameter = weight.kind == "param"
            rows[name] = TensorRow(weight.shape, weight.type.dtype, is_parameter, is_parameter and is_trained)
    return TensorTable(rows, places)


def module_table(module: nn.Module) -> TensorTable:
    """Return the tensors that a module stores."""
    rows: dict[str, TensorRow] = {}
    places: dict[str, object] = {}
    parameters = dict(module.named_parameters(remove_duplicate=False))
    for name, tensor in _stored(module).items():
        dtype = "complex" if tensor.is_complex() else dtype_of(tensor)
        is_parameter = name in parameters
        rows[name] = TensorRow(tuple(tensor.shape), dtype, is_parameter, is_parameter and tensor.requires_grad)
        places[name] = _place(tensor)
    return TensorTable(rows, places)


def _stored(module: nn.Module) -> dict[str, Tensor]:
    """Return what checkpoints have, and all parameters; an entry that is no tensor is an empty one."""
    import torch

    found = {**module.state_dict(keep_vars=True), **dict(module.named_parameters(remove_duplicate=False))}
    return {name: value if isinstance(value, torch.Tensor) else torch.empty(0) for name, value in found.items()}


def table_difference(ours: TensorTable, theirs: TensorTable) -> str:
    """Describe how two tables differ; empty if they do not."""
    for name in [*ours.rows, *theirs.rows]:
        a, b = ours.rows.get(name), theirs.rows.get(name)
        if a is None or b is None or a.shape != b.shape:
            return f"the tensors differ: `{name}`"
        if a != b:
            return f"the tensors differ: `{name}` is `{b}`, not `{a}`"
    first: dict[object, str] = {}
    for name in theirs.rows:
        tied = first.setdefault(("theirs", theirs.places[name]), name)
        if tied != first.setdefault(("ours", ours.places[name]), name):
            return f"the tied tensors differ: `{name}`"
    return ""


def other_tensors(model: Model, module: nn.Module) -> str:
    """Describe how the tensors of a module differ from those of a model; empty if they do not."""
    return other_rows(model, module) or overlap(module)


def other_rows(model: Model, module: nn.Module) -> str:
    """Describe how the tensors of a module, whose parameters may have no memory of their own, differ from a model's."""
    return table_difference(model_table(get_compilation(model).compiled.module), module_table(module))


# Tensors in memory.


def _place(tensor: Tensor) -> object:
    """Return where a tensor is: all names of one tensor have the same place, but not its views in another order."""
    if not tensor.numel():
        return id(tensor)
    strides = [step if size > 1 else 0 for size, step in zip(tensor.shape, tensor.stride(), strict=True)]
    return _address(tensor), tuple(tensor.shape), tuple(strides), tensor.dtype


def _address(tensor: Tensor) -> int:
    """Return the address of the first element."""
    if is_without_values(tensor):
        storage = tensor.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]
        return (storage << 64) + tensor.storage_offset() * tensor.element_size()
    return tensor.data_ptr()


class _Span(NamedTuple):
    """A tensor in memory: the addresses of its first byte, and of the first one after it."""

    start: int
    stop: int
    name: str
    tensor: Tensor


def overlap(module: nn.Module) -> str:
    """Describe a stored tensor that has the memory of another one, or some of it twice, but is not the same; empty if
    there is none.

    Tables that a module computed in advance may be views of each other, but not of stored tensors.
    """
    stored = _stored(module)
    others = {name: tensor for name, tensor in Snapshot(module, has_values=False).tensors.items() if name not in stored}
    last: list[_Span] = []
    for span in sorted(_spans({**stored, **others}), key=lambda span: span[:2]):
        last = [other for other in last if other.stop > span.start]
        for other in last:
            both, either = [test(at.name in stored for at in (span, other)) for test in (all, any)]
            is_same = span.tensor is other.tensor or (both and _place(span.tensor) == _place(other.tensor))
            if either and not is_same and _share(span, other):
                first, second = sorted([span.name, other.name], key=[*stored, *others].index)
                return f"`{second}` is in the memory of `{first}`, but is another tensor"
        if span.name in stored and _repeats(span.tensor):
            return f"elements of `{span.name}` are at the same place in memory"
        last.append(span)
    return ""


def _spans(tensors: Mapping[str, Tensor]) -> Iterator[_Span]:
    import torch

    for name, tensor in tensors.items():
        if tensor.numel() and tensor.layout is torch.strided:
            start = _address(tensor)
            reach = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True)) + 1
            yield _Span(start, start + reach * tensor.element_size(), name, tensor)


def _share(a: _Span, b: _Span) -> bool:
    """Whether two tensors have an element in common."""
    import torch

    size = a.tensor.element_size()
    if b.tensor.element_size() != size or (a.start - b.start) % size:
        return True
    start = min(a.start, b.start)
    places = [_places(span.tensor) + (span.start - start) // size for span in (a, b)]
    return bool(torch.isin(*places).any())


def _repeats(tensor: Tensor) -> bool:
    """Whether several elements of a tensor are at the same place."""
    reach = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and step < reach:
            places = _places(tensor).sort().values
            return bool((places[1:] == places[:-1]).any())
        reach += (size - 1) * step
    return False


def _places(tensor: Tensor) -> Tensor:
    """Return the places of the elements of a tensor, counted from its first one."""
    import torch

    found = torch.zeros((), dtype=torch.long)
    for axis, (size, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        found = found + (torch.arange(size) * step).reshape([-1] + [1] * (tensor.dim() - 1 - axis))
    return found.flatten()
