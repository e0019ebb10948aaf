"""The least time of a pass on a device: it computes its products, and moves its bytes, at most at the stated rates.

`docs/costs.md` lists the bytes that are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from archspec.analysis.cost.dtypes import BITS, FLOATS, byte_count, check_part
from archspec.analysis.cost.memory import StoredBytes
from archspec.analysis.cost.visible import VisibleProducts, count_visible_macs
from archspec.core.diagnostics import make_error
from archspec.core.record import Record
from archspec.ir.active import get_active_parts, share_of
from archspec.ir.module import Body
from archspec.ir.structure.attention import AttentionTracer
from archspec.ir.table import Table

if TYPE_CHECKING:
    from archspec.analysis.cost.decoding import Decoding, Prefill
    from archspec.analysis.cost.training import Training
    from archspec.formats.devices import Device


class Traffic(Record):
    """Bytes that a pass reads or writes at least: `kind` is "exact", "at least" or "assumed".

    `apart` are the bytes if tokens choose different experts, where these are more.
    """

    name: str
    bytes: int
    kind: str
    apart: int


class StepTime(Record):
    """The least time of a `step`: a "forward pass", "prefill", "decoding step" or "training step".

    The products take `flops`, which are "exact" or "at least" (`kind`), at `peak` FLOPs per second for matrices of type
    `dtype`; `traffic` is moved at `bandwidth` bytes per second. A figure that the device does not have is None.
    `utilization` and `bandwidth_utilization` are the parts of them that are reached: with a part below 1, the time is
    an estimate.
    """

    step: str
    device: str
    dtype: str
    flops: int
    kind: str
    peak: int | None
    traffic: tuple[Traffic, ...]
    bandwidth: int | None
    utilization: float = 1.0
    bandwidth_utilization: float = 1.0

    @property
    def compute_seconds(self) -> float | None:
        """The time of the products."""
        return None if self.peak is None else self.flops / (self.peak * self.utilization)

    @property
    def memory_seconds(self) -> float | None:
        """The time to move the bytes."""
        return self.seconds_to_move(sum(entry.bytes for entry in self.traffic))

    @property
    def seconds(self) -> float:
        """The longer of both times."""
        return max(self.compute_seconds or 0.0, self.memory_seconds or 0.0)

    @property
    def seconds_apart(self) -> float:
        """The time if tokens choose the maximum number of different experts."""
        apart = self.seconds_to_move(sum(entry.apart for entry in self.traffic))
        return max(self.compute_seconds or 0.0, apart or 0.0)

    @property
    def limit(self) -> str:
        """The longer of both times: "compute" or "memory"."""
        return "memory" if (self.memory_seconds or 0.0) >= (self.compute_seconds or 0.0) else "compute"

    @property
    def is_estimate(self) -> bool:
        return self.utilization < 1 or self.bandwidth_utilization < 1

    def seconds_to_move(self, bytes: int) -> float | None:
        """Return the time to move a number of bytes."""
        return None if self.bandwidth is None else bytes / (self.bandwidth * self.bandwidth_utilization)


class Rates(Record):
    """A device, and the parts of its peak and of its bandwidth that are reached."""

    device: Device
    utilization: float
    bandwidth_utilization: float

    def time(self, step: str, dtype: str, flops: int, kind: str, traffic: tuple[Traffic, ...]) -> StepTime:
        """Return the least time of a step. Raises ArchError if the device has no figure that bounds it."""
        device = self.device
        peak = device.peak.get(dtype)
        if peak is None and device.bandwidth is None:
            raise make_error("usage", f"{device.name} has neither a peak for {dtype} nor a bandwidth")
        return StepTime(step, device.name, dtype, flops, kind, peak, traffic, device.bandwidth, *self[1:])


def check_rates(device: Device, utilization: float, bandwidth_utilization: float) -> Rates:
    """Raises ArchError for a part that is not above 0 and at most 1."""
    check_part("utilization", utilization)
    check_part("bandwidth utilization", bandwidth_utilization)
    return Rates(device, utilization, bandwidth_utilization)


def forward_time(
    table: Table,
    body: Body,
    values: Mapping[str, int],
    tracer: AttentionTracer,
    dtype: str,
    stored: StoredBytes | None,
    prefill: Prefill | None,
    rates: Rates,
) -> StepTime:
    """Compute the least time of a forward pass, with sizes of all dimensions: a prefill if it fills a cache."""
    products = VisibleProducts(values)
    flops = 2 * count_visible_macs(body, tracer, products)
    tokens = values.get("batch", 1) * values["seq"] if "seq" in values else 2**63
    tensors = table.tensors
    counted = tensors.column([tensor.params for tensor in tensors.distinct])
    read = [*zip(counted, get_active_parts(body).of_all(tensors), strict=True)]
    weights = _weights(
        sum(share_of(number, part) for number, part in read),
        sum(share_of(number, part, tokens) for number, part in read),
        dtype,
        stored,
    )
    kind = "exact" if products.are_exact else "at least"
    if prefill is None:
        return rates.time("forward pass", dtype, flops, kind, (weights,))
    cache = Traffic("cache written", prefill.cache_bytes, "exact", prefill.cache_bytes)
    flops -= prefill.head_flops * (prefill.positions - 1)
    return rates.time("prefill", dtype, flops, kind, (weights, cache))


def decoding_time(decoding: Decoding, dtype: str, stored: StoredBytes | None, rates: Rates) -> StepTime:
    """Compute the least time of a decoding step."""
    least, most = (8 * bytes // BITS[dtype] for bytes in (decoding.least_weights, decoding.weights))
    cache = Traffic("cache read", decoding.cache_bytes, "exact", decoding.cache_bytes)
    traffic = (_weights(least, most, dtype, stored), cache)
    return rates.time("decoding step", dtype, decoding.flops, "exact", traffic)


def training_time(training: Training, table: Table, dtype: str, forward: StepTime, rates: Rates) -> StepTime:
    """Compute the least time of a training step, whose forward pass takes the time `forward`.

    Trained weights are read once more, by the optimizer, and if all of a model is trained with checkpointing, also by
    the blocks that are computed again.
    """
    if dtype not in FLOATS:
        message = f"models are not trained with weights of type {dtype}"
        raise make_error("usage", message, help="use --dtype bfloat16, for example")
    step = training.visible
    assert step is not None and training.active is not None
    least, most = byte_count(training.active, dtype), byte_count(training.trained, dtype)
    again = 2 if training.checkpoint != "none" and training.trained == table.params.total else 1
    (weights,) = [entry for entry in forward.traffic if entry.name.startswith("weights")]
    kind = "exact" if least == most else "at least"

    def trained(name: str, times: int, kind: str) -> Traffic:
        return Traffic(name, times * least, kind, times * most)

    traffic = (
        weights._replace(name="weights read, forward"),
        trained("weights read again", again, "at least"),
        trained("gradients, written and read", 2, kind),
        trained("moments of Adam, read and written", 4, "assumed"),
    )
    flops = step.forward if training.is_bound else step.hardware  # a loop: backward is known at most
    assert isinstance(flops, int)
    return rates.time("training step", dtype, flops, "at least" if training.is_bound else forward.kind, traffic)


def _weights(least: int, most: int, dtype: str, stored: StoredBytes | None) -> Traffic:
    """Return the traffic of reading parameters once."""
    if stored is None:
        kind = "exact" if least == most else "at least"
        return Traffic("weights read", byte_count(least, dtype), kind, byte_count(most, dtype))
    if stored.unknown:
        message = f"the time depends on the bytes of the weights as stored, which are not known: {stored.unknown}"
        raise make_error("unsupported", message)
    per_parameter = [(stored.weights, stored.converted)] if stored.converted else [(BITS[stored.dtype], 8)]
    (bytes, number) = per_parameter[0]
    return Traffic("weights read, as stored", least * bytes // number, "at least", most * bytes // number)
