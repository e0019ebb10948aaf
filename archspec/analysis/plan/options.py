"""The engines and optimizers of plans, and the state that optimizers of `torch.optim` keep for each tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from archspec.core.record import Record

ENGINES = ("ddp", "zero1", "zero2", "zero3", "fsdp2")
"""The engines: PyTorch's DDP (which divides nothing), DeepSpeed's ZeRO 1 to 3, and PyTorch's `fully_shard`."""


SCHEDULES = ("1f1b", "gpipe")
"""Schedules of pipelines: backward as soon as possible, or after all microbatches."""


class Optimizer(Record):
    """State in `copies` of a tensor in its type, and `scalars` bytes of float32 numbers for each tensor.

    A `factored` one keeps a row and a column for a matrix instead, and a copy for a vector.
    """

    title: str
    copies: int
    scalars: int = 4
    factored: bool = False

    def state_elements(self, shape: Sequence[int]) -> int:
        """Return the number of elements of the state of a tensor, without scalars."""
        if self.factored and len(shape) > 1:
            return prod(shape[:-1]) + prod(shape) // shape[-2]
        return self.copies * prod(shape) if self.copies else 0


OPTIMIZERS = {
    "sgd": Optimizer("SGD", 0, 0),
    "momentum": Optimizer("SGD with momentum", 1, 0),
    "adam": Optimizer("Adam", 2),
    "adamw": Optimizer("AdamW", 2),
    "amsgrad": Optimizer("AdamW with amsgrad", 3),
    "nadam": Optimizer("NAdam", 2, 8),
    "adagrad": Optimizer("Adagrad", 1),
    "rmsprop": Optimizer("RMSprop", 1),
    "adafactor": Optimizer("Adafactor", 1, factored=True),
}
"""The optimizers by name."""
