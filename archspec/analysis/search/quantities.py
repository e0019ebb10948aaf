"""Quantities that conditions can use: parameters, work and bytes of a design."""

from __future__ import annotations

from typing import cast

from archspec.analysis.cost.api import cost
from archspec.analysis.cost.dtypes import ATTENTION, BITS, byte_count
from archspec.analysis.count.count import count
from archspec.analysis.count.select import SelectionRule
from archspec.analysis.fit.api import fit
from archspec.core.diagnostics import ArchError, make_error
from archspec.core.record import Node
from archspec.core.reports.text import literal
from archspec.formats.devices import load_device
from archspec.ir.active import ActiveParts
from archspec.ir.fold import has_choices
from archspec.ir.table import PlainValue
from archspec.ir.work import Quantity as Amount
from archspec.pipeline.model import Model, get_compilation


class Signature(Node):
    """The arguments of a quantity: a positional text (`subject`), sizes of dimensions, and named ones with defaults.

    `required` are the named arguments without which the quantity has no value.
    """

    subject: str = ""
    needs_subject: bool = False
    has_sizes: bool = False
    named: tuple[tuple[str, object], ...] = ()
    required: tuple[str, ...] = ()


SIGNATURES = {
    "params": Signature(subject="pattern"),
    "role_params": Signature(subject="role", needs_subject=True),
    "trainable": Signature(),
    "frozen": Signature(),
    "active": Signature(),
    "flops": Signature(has_sizes=True),
    "macs": Signature(has_sizes=True),
    "elementwise": Signature(has_sizes=True),
    "weight_bytes": Signature(named=(("dtype", "float32"),)),
    "activation_bytes": Signature(has_sizes=True, named=(("attention", "flash"), ("dtype", "float32"))),
    "cache_bytes": Signature(has_sizes=True, named=(("past", None), ("dtype", "bfloat16")), required=("past",)),
    "time": Signature(
        has_sizes=True,
        named=(("device", None), ("past", None), ("training", False), ("dtype", "bfloat16")),
        required=("device",),
    ),
    "fit": Signature(
        named=(("device", None), ("context", None), ("batch", 1), ("dtype", "bfloat16")),
        required=("device", "context"),
    ),
}
"""Signatures of the quantities, by name."""

REQUIRED = {
    "past": ("a number of positions", "past = 1024"),
    "context": ("a number of positions", "context = 1024"),
    "device": ("a device", 'device = "h100"'),
}
"""Descriptions and examples of required arguments."""

COMPILED_ONLY = ("activation_bytes", "cache_bytes", "time", "fit")
"""Quantities that have no formulas."""

_MINIMUMS = {"past": 0, "context": 1, "batch": 1}

_CHOICES: dict[str, tuple[str, ...]] = {"attention": ATTENTION}


class Quantity(Node):
    """A quantity with its arguments. Kind "hyperparameter" is the value of the hyperparameter `subject`."""

    kind: str
    subject: str = ""
    sizes: tuple[tuple[str, int], ...] = ()
    named: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        if self.kind == "hyperparameter":
            return self.subject
        arguments = [f'"{self.subject}"'] if self.subject else []
        arguments += [f"{name} = {size}" for name, size in self.sizes]
        defaults = dict(SIGNATURES[self.kind].named)
        for name, value in self.named:
            if value != defaults[name]:
                arguments.append(f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {literal(value)}")
        return f"{self.kind}({', '.join(arguments)})" if arguments else self.kind

    @property
    def dims(self) -> dict[str, int]:
        return dict(self.sizes)

    def text(self, name: str) -> str:
        """Return the value of a named argument that is text."""
        return str(dict(self.named)[name])


PARAMS = Quantity("params")


def find_argument_error(name: str, value: object, text: str) -> str | None:
    """Return the error message for an invalid named argument of a quantity, with source `text`; None if valid."""
    if name in _MINIMUMS:
        is_right = isinstance(value, int) and not isinstance(value, bool) and value >= _MINIMUMS[name]
        return None if is_right else f"`{name}` expects an integer of at least {_MINIMUMS[name]}, found {text}"
    if name == "training":
        return None if isinstance(value, bool) else f"`training` is true or false; found {text}"
    if name == "device":
        return _find_device_error(value, text)
    choices = _CHOICES.get(name, tuple(BITS))
    return None if value in choices else f"`{name}` is one of {', '.join(choices)}; found {text}"


def _find_device_error(value: object, text: str) -> str | None:
    if not isinstance(value, str):
        return f"`device` expects a name or a file in quotes, found {text}"
    try:
        load_device(value)
    except ArchError as error:
        return error.diagnostics[0].message
    return None


def measure(model: Model, quantity: Quantity) -> PlainValue:
    """Return the value of a quantity of a compiled model: an integer, or the value of a hyperparameter.

    Raises ArchError, with code `bad-size` if the model does not accept the sizes.
    """
    match quantity.kind:
        case "params":
            return count_matching(model, quantity.subject) if quantity.subject else model.params.total
        case "role_params":
            return sum(tensor.params for tensor in model.tensors if tensor.role == quantity.subject)
        case "trainable" | "frozen":
            return getattr(model.params, quantity.kind)
        case "active":
            return _count_active(model)
        case "weight_bytes":
            return byte_count(model.params.total, quantity.text("dtype"))
        case "fit":
            device, dtype = quantity.text("device"), quantity.text("dtype")
            context, batch = (cast("int", dict(quantity.named)[name]) for name in ("context", "batch"))
            return -fit(model, device, batch=batch, context=context, dtype=dtype).missing
        case "hyperparameter":
            return model.hyperparameters[quantity.subject]
        case _:
            return _measure_cost(model, quantity)


def count_matching(model: Model, pattern: str) -> int:
    """Count the parameters that a pattern selects, as `archspec count --select` does."""
    return count(get_compilation(model).table, (SelectionRule(True, pattern),)).selection.total


def _count_active(model: Model) -> int:
    compilation = get_compilation(model)
    if not has_choices(compilation.body):
        return model.params.total
    if compilation.table.active is not None:
        return compilation.table.active.total
    if "unknown" in ActiveParts(compilation.body).of_all(compilation.table.tensors):
        raise make_error("usage", f"cannot count the parameters of {model.name} that are used for one token")
    return model.params.total


def _measure_cost(model: Model, quantity: Quantity) -> int:
    """Return the work of a model, memory in bytes that depends on sizes, or a least time in whole nanoseconds."""
    sizes, past = quantity.dims, dict(quantity.named).get("past")
    assert past is None or isinstance(past, int)
    if quantity.kind == "time":
        training, device = bool(dict(quantity.named)["training"]), quantity.text("device")
        time = cost(model, dims=sizes, dtype=quantity.text("dtype"), past=past, training=training, device=device).time
        assert time is not None
        return int(time.seconds * 10**9)
    if quantity.kind == "cache_bytes":
        decoding = cost(model, dims=sizes, past=past, cache_dtype=quantity.text("dtype")).decoding
        assert decoding is not None
        return decoding.cache_bytes
    if quantity.kind == "activation_bytes":
        dtype, attention = quantity.text("dtype"), quantity.text("attention")
        activations = cost(model, dims=sizes, dtype=dtype, attention=attention).activations
        assert activations is not None
        return _as_integer(model, quantity, activations.bytes)
    work = cost(model, dims=sizes).work
    amounts = {"flops": work.flops, "macs": work.macs, "elementwise": work.elementwise}
    return _as_integer(model, quantity, amounts[quantity.kind])


def _as_integer(model: Model, quantity: Quantity, amount: Amount) -> int:
    if isinstance(amount, int):
        return amount
    missing = [name for name in cost(model).dims if name not in quantity.dims]
    arguments = ", ".join([f"{name} = {size}" for name, size in quantity.sizes] + [f"{name} = ..." for name in missing])
    message = f"`{quantity}` depends on sizes of dimensions: {amount}"
    raise make_error("usage", message, help=f"write `{quantity.kind}({arguments})`")
