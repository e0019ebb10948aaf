"""Memory of a model's tensors, and of their training state, in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from archspec.analysis.cost.dtypes import BITS, FLOATS, byte_count
from archspec.core.record import Record
from archspec.ir.module import LocatedTensor, Module, ModuleTensor, find_member
from archspec.ir.work import Quantity

_BUFFER_BYTES = {"int": 8, "bool": 1}
"""Bytes per element of types other than reals: integers are stored with 64 bits."""


class TrainingScheme(Record):
    """A training scheme: bytes of the weights, of their gradients, and of the optimizer state.

    `holds` describes the optimizer state and the element types.
    """

    name: str
    holds: str
    weights: int
    gradients: int
    optimizer: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer


class Memory(Record):
    """Memory in bytes: `weights` of all parameters at `dtype`, each tensor once; `buffers`; and training `schemes`.

    There are no schemes for types in which models are not trained. Only trainable parameters have gradients and
    optimizer state.
    """

    dtype: str
    weights: int
    buffers: int
    schemes: tuple[TrainingScheme, ...]


class Activations(Record):
    """Bytes that PyTorch saves in a forward pass for the backward pass, with an implementation of attention.

    A formula holds for dimensions of at least the sizes in `least`.
    """

    attention: str
    bytes: Quantity
    least: Mapping[str, int]


class KeptForBackward(Record):
    """Bytes that a forward pass keeps: `inputs` of checkpointed blocks, and what is saved `outside` of these.

    `results` are those of operations in checkpointed blocks that a policy saves. `recomputed` is the most that one of
    the blocks saves in addition when it is computed again.
    """

    inputs: int
    outside: int
    results: int
    recomputed: int


class StoredBytes(Record):
    """The bytes of the weights as stored: quantized weights, their scales and zero points, and all other parameters.

    `converted` is the number of quantized parameters, and `dtype` the type of the others. If the layout of the method
    is not supported, `unknown` is the reason, and there are no figures.
    """

    method: str
    unknown: str = ""
    converted: int = 0
    weights: int = 0
    scales: int = 0
    others: int = 0
    dtype: str = ""

    @property
    def total(self) -> int:
        return self.weights + self.scales + self.others


def compute_memory(module: Module, dtype: str) -> Memory:
    """Compute the memory of a module with weights of type `dtype`, a key of BITS."""

    @cache
    def count_buffers(target: Module | ModuleTensor) -> int:
        """Return the bytes of the buffers of a module, or of a tensor if it is a buffer."""
        if isinstance(target, Module):
            return sum([count_buffers(member.target) for member in target.members.values()])
        if target.kind == "param":
            return 0
        size = _BUFFER_BYTES.get(target.type.dtype)
        return byte_count(target.size, dtype) if size is None else target.size * size

    aliases = [find_member(module, name) for name in module.aliases]
    tied = sum([count_buffers(leaf.weight) for leaf in aliases if isinstance(leaf, LocatedTensor)])
    buffers = count_buffers(module) - tied
    stored, trained = module.total, module.total - module.frozen
    if dtype not in FLOATS:
        return Memory(dtype, byte_count(stored, dtype), buffers, ())
    size = BITS[dtype] // 8
    plain = [("SGD", "no state", 0), ("SGD with momentum", "momentum", 1), ("Adam", "first and second moment", 2)]
    schemes = [
        TrainingScheme(name, f"{dtype}: {state}", stored * size, trained * size, numbers * trained * size)
        for name, state, numbers in plain
    ]
    mixed = "16 bit: weights, gradients; float32: master weights, first and second moment"
    schemes.append(TrainingScheme("Adam, mixed precision", mixed, 2 * stored, 2 * trained, 12 * trained))
    return Memory(dtype, stored * size, buffers, tuple(schemes))
