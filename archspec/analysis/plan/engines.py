"""How engines divide the tensors of a model among ranks, and what else they hold during a step.

The rules are those of PyTorch 2.14 (DDP, FSDP2) and DeepSpeed 0.19 (ZeRO); `docs/fit.md` lists what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from archspec.analysis.cost.dtypes import byte_count
from archspec.analysis.plan.options import Optimizer
from archspec.analysis.plan.plan import PlanRow
from archspec.core.record import Record

REDUCE_BUCKET, LIVE_PARAMETERS, PERSISTENT = 5 * 10**8, 10**9, 10**5
"""Defaults of DeepSpeed, in elements: `reduce_bucket_size`, `stage3_max_live_parameters`, and
`stage3_param_persistence_threshold`, below which parameters are whole on every rank.
"""


class PlannedTensor(Record):
    """A tensor of a model, once if tied: its type as stored, and its block ("" outside of blocks).

    `group` is where `--by block` lists it, and `ranks` the number among which data is divided, if it is another one.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    size: int
    is_trained: bool
    block: str
    group: str
    ranks: int | None = None


class Setting(Record):
    """An engine and its options; `ranks` are those among which data is divided.

    `compute` is the type of the computation, which `fsdp2` converts weights to. With `reshard`, it drops whole weights
    after the forward pass.
    """

    engine: str
    ranks: int
    optimizer: Optimizer
    dtype: str
    compute: str
    reshard: bool = True

    @property
    def is_mixed(self) -> bool:
        """Whether weights are converted, in which case gradients are added in float32."""
        return self.compute != self.dtype


class Share(Record):
    """Bytes of the states of one rank; `scalars` are the steps that optimizers count for each tensor."""

    weights: int = 0
    gradients: int = 0
    master: int = 0
    optimizer: int = 0
    scalars: int = 0

    @property
    def total(self) -> int:
        return sum(self)


def share_of(tensors: Sequence[PlannedTensor], setting: Setting, rank: int = 0) -> Share:
    """Return the states of a rank. The first rank has the most."""
    return _SHARES[setting.engine](tensors, setting, rank)


def share_without_padding(tensors: Sequence[PlannedTensor], setting: Setting) -> Share:
    """Return the states of some of the tensors; where all are in one buffer, of their part of it, rounded."""
    if setting.engine not in ("zero1", "zero2"):
        return share_of(tensors, setting)
    trained = sum(tensor.size for tensor in tensors if tensor.is_trained)
    weights, part = sum(_bytes(tensor) for tensor in tensors), trained // setting.ranks
    return Share(weights, 2 * part, 4 * part, 4 * setting.optimizer.copies * part)


def _whole(tensors: Sequence[PlannedTensor], setting: Setting, rank: int) -> Share:
    """Every rank has everything."""
    trained = [tensor for tensor in tensors if tensor.is_trained]
    return Share(
        sum(_bytes(tensor) for tensor in tensors),
        sum(_bytes(tensor) for tensor in trained),
        0,
        sum(byte_count(setting.optimizer.state_elements(tensor.shape), tensor.dtype) for tensor in trained),
        setting.optimizer.scalars * len(trained),
    )


def _flat(tensors: Sequence[PlannedTensor], setting: Setting, rank: int) -> Share:
    """ZeRO-1 and ZeRO-2: trained elements in one buffer, padded to a multiple of twice the ranks."""
    padded = _round_up(sum(tensor.size for tensor in tensors if tensor.is_trained), 2 * setting.ranks)
    frozen = sum(_bytes(tensor) for tensor in tensors if not tensor.is_trained)
    part = padded // setting.ranks
    return Share(frozen + 2 * padded, 2 * part, 4 * part, 4 * setting.optimizer.copies * part)


def _each_tensor(tensors: Sequence[PlannedTensor], setting: Setting, rank: int) -> Share:
    """ZeRO-3: the elements of each tensor alone, rounded up."""
    parts = [(_divide(tensor.size, setting.ranks), tensor) for tensor in tensors]
    trained = sum(part for part, tensor in parts if tensor.is_trained)
    weights = sum(byte_count(part, tensor.dtype) for part, tensor in parts)
    return Share(weights, 2 * trained, 4 * trained, 4 * setting.optimizer.copies * trained)


def _rows(tensors: Sequence[PlannedTensor], setting: Setting, rank: int) -> Share:
    """FSDP2: the rows of each tensor; weights and gradients are padded to the rows of the first rank."""
    weights = gradients = optimizer = 0
    for tensor in tensors:
        rows = _divide(tensor.shape[0], tensor.ranks or setting.ranks)
        row = tensor.size // tensor.shape[0] if tensor.size else 0
        weights += byte_count(rows * row, tensor.dtype)
        if tensor.is_trained:
            gradients += byte_count(rows * row, tensor.dtype)
            own = max(0, min(rows, tensor.shape[0] - rank * rows))
            optimizer += byte_count(own * row * setting.optimizer.copies, tensor.dtype)
    trained = sum(tensor.is_trained for tensor in tensors)
    return Share(weights, gradients, 0, optimizer, setting.optimizer.scalars * trained)


_SHARES: Mapping[str, Callable[[Sequence[PlannedTensor], Setting, int], Share]] = {
    "ddp": _whole,
    "zero1": _flat,
    "zero2": _flat,
    "zero3": _each_tensor,
    "fsdp2": _rows,
}


# What else is held during a step ----------------------------------------------------------------------------------


AT_LOSS, BACKWARD = "at the loss", "backward"


def held_in_step(tensors: Sequence[PlannedTensor], setting: Setting) -> dict[str, tuple[PlanRow, ...]]:
    """Return what an engine holds besides states, by the moments of a step."""
    if setting.engine == "fsdp2":
        return _held_by_fsdp(tensors, setting)
    trained = [tensor for tensor in tensors if tensor.is_trained]
    if setting.engine == "ddp":
        note = "unless `gradient_as_bucket_view`"
        buckets = PlanRow("buckets of gradients", sum(_bytes(tensor) for tensor in trained), "at most", note)
        rows = (buckets,) if setting.ranks > 1 else ()
        return {AT_LOSS: rows, BACKWARD: rows}
    bucket = PlanRow("bucket of gradients", 2 * REDUCE_BUCKET, "assumed", f"`reduce_bucket_size` {REDUCE_BUCKET:,}")
    if setting.engine == "zero1":
        gradients = PlanRow("whole gradients", 2 * sum(tensor.size for tensor in trained), "at most", "until divided")
        return {AT_LOSS: (), BACKWARD: (gradients, bucket)}
    if setting.engine == "zero2":
        return {AT_LOSS: (), BACKWARD: (bucket,)}
    live = 2 * min(sum(tensor.size for tensor in tensors), LIVE_PARAMETERS)
    small = 2 * sum(tensor.size for tensor in tensors if tensor.size < PERSISTENT)
    always = (
        PlanRow("whole weights", live, "assumed", f"`stage3_max_live_parameters` {LIVE_PARAMETERS:,}"),
        PlanRow("whole small weights", small, "assumed", f"`stage3_param_persistence_threshold` {PERSISTENT:,}"),
    )
    return {AT_LOSS: always, BACKWARD: (*always, bucket)}


def _held_by_fsdp(tensors: Sequence[PlannedTensor], setting: Setting) -> dict[str, tuple[PlanRow, ...]]:
    """Return what FSDP2 holds: a group for each block, and the root for what is outside of blocks.

    A group drops whole weights before its gradients are added. Those of the root are added last.
    """
    groups: dict[str, list[PlannedTensor]] = {"": []}
    for tensor in tensors:
        groups.setdefault(tensor.block, []).append(tensor)
    root = groups.pop("")
    blocks = [*groups.values()]
    gathered = sorted([_gathered(group, setting) for group in blocks], reverse=True)
    alive = gathered[:2] if setting.reshard else gathered
    scattered = max([_scattered(group, setting) for group in blocks], default=0)
    what = f"{len(alive)} {'block' if len(alive) == 1 else 'blocks'}, {setting.compute}"
    reduced = "float32" if setting.is_mixed else setting.dtype
    outside, late = "outside of blocks", "whole gradients outside of blocks"
    root_weights = PlanRow("whole weights outside of blocks", _gathered(root, setting), "exact", setting.compute)
    root_gradients = PlanRow(late, _gradients(root, setting), "at most", "until the end of the step")
    always = (
        root_weights,
        PlanRow("whole weights of blocks", sum(alive), "at most", what),
        PlanRow("buffer of all-gather", max(gathered, default=0), "at most", "1 block"),
    )
    moments = {
        "at the start": (root_weights, PlanRow("buffer of all-gather", root_weights.bytes, "at most", outside)),
        AT_LOSS: always,
        BACKWARD: (
            *always,
            root_gradients,
            PlanRow("whole gradients of blocks", max([_gradients(g, setting) for g in blocks], default=0), "at most"),
            PlanRow("buffer of reduce-scatter", scattered, "at most", f"1 block, {reduced}"),
        ),
        "at the end of backward": (
            root_gradients,
            PlanRow(
                "buffers of reduce-scatter", _scattered(root, setting) + scattered, "at most", f"{outside}, {reduced}"
            ),
        ),
    }
    return {name: tuple([row for row in rows if row.bytes]) for name, rows in moments.items()}


def _padded(tensor: PlannedTensor, setting: Setting) -> int:
    """Return the elements of a tensor whose rows are padded to a multiple of the ranks."""
    ranks = tensor.ranks or setting.ranks
    return _round_up(tensor.shape[0], ranks) * (tensor.size // tensor.shape[0]) if tensor.size else 0


def _gathered(tensors: Sequence[PlannedTensor], setting: Setting) -> int:
    dtype = setting.compute if setting.is_mixed else ""
    return sum(byte_count(_padded(tensor, setting), dtype or tensor.dtype) for tensor in tensors)


def _gradients(tensors: Sequence[PlannedTensor], setting: Setting) -> int:
    dtype = setting.compute if setting.is_mixed else ""
    return sum(byte_count(tensor.size, dtype or tensor.dtype) for tensor in tensors if tensor.is_trained)


def _scattered(tensors: Sequence[PlannedTensor], setting: Setting) -> int:
    dtype = "float32" if setting.is_mixed else ""
    return sum(byte_count(_padded(tensor, setting), dtype or tensor.dtype) for tensor in tensors if tensor.is_trained)


def _bytes(tensor: PlannedTensor) -> int:
    return byte_count(tensor.size, tensor.dtype)


def _divide(number: int, ranks: int) -> int:
    return -(-number // ranks)


def _round_up(number: int, multiple: int) -> int:
    return _divide(number, multiple) * multiple
