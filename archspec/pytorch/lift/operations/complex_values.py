"""Operations of PyTorch on complex numbers, as pairs of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from archspec.core.record import Record
from archspec.ir.module import Type
from archspec.pytorch.calls.complex import EACH_PART, NUMBERS, SEVERAL
from archspec.pytorch.calls.values import Axes, UntranslatableError, as_list, is_list
from archspec.pytorch.lift.operations.handlers import Handler, Types
from archspec.pytorch.lift.values.builder import Builder
from archspec.pytorch.lift.values.values import Operand, Value


class ComplexValue(Record):
    """The real and the imaginary parts of complex numbers; no imaginary one if nothing can express it."""

    real: Value
    imaginary: Value | None


class Pairs(Record):
    """The parts of complex numbers along a last axis, of which only the first can be expressed."""

    whole: ComplexValue


ComplexResult: TypeAlias = Value | ComplexValue | Pairs


def has_complex(value: object) -> bool:
    """Whether there is a complex number in arguments."""
    return isinstance(value, ComplexValue | Pairs) or (is_list(value) and any(has_complex(item) for item in value))


def complex_counterpart(
    name: str, handler: Handler | None, b: Builder, types: Types, *given: object, **named: object
) -> ComplexResult | list[ComplexValue]:
    """Return the results of an operation with complex arguments or results. Raises Untranslatable for others."""
    if given and isinstance(given[0], Pairs):
        if name != "select" or (given[1:] != (len(types[0].shape), 0) and given[1:] != (-1, 0)):
            raise UntranslatableError("it uses the imaginary part of a Fourier transform")
        return given[0].whole.real
    function = _FUNCTIONS.get(name)
    if function is not None:
        return function(b, types, *given, **named)
    if name not in EACH_PART.split() or handler is None:
        raise UntranslatableError(f"the operation `aten.{name}` has no counterpart for complex numbers")
    place = NUMBERS.get(name, len(given))
    number = named.get("value", given[place] if place < len(given) else 0)
    if number and not isinstance(number, Value | ComplexValue):
        raise UntranslatableError("it combines real and complex numbers")
    reals = [Type(type.shape, "real") for type in types]
    both = [as_list(handler(b, reals, *_parts(given, turn), **named)) for turn in (0, 1)]
    made = [ComplexValue(real, imaginary) for real, imaginary in zip(*both, strict=True) if real is not None]
    return made if name in SEVERAL.split() else made[0]


def _parts(given: Sequence[object], turn: int) -> list[object]:
    return [_part(item, turn) for item in given]


def _part(item: object, turn: int) -> object:
    if isinstance(item, ComplexValue):
        return _imaginary(item) if turn else item.real
    if is_list(item) and has_complex(item):
        return _parts(item, turn)
    if isinstance(item, Value) and item.dtype == "real" and turn:
        raise UntranslatableError("it combines real and complex numbers")
    return item


def _imaginary(x: ComplexValue) -> Value:
    if x.imaginary is None:
        raise UntranslatableError("it uses the imaginary part of a Fourier transform")
    return x.imaginary


def _multiply(b: Builder, types: Types, x: ComplexValue | Operand, y: ComplexValue | Operand) -> ComplexValue:
    if not isinstance(x, ComplexValue):
        x, y = y, x
    if not isinstance(x, ComplexValue):
        raise UntranslatableError("it combines real and complex numbers")
    if not isinstance(y, ComplexValue):
        return ComplexValue(b.op("mul", x.real, y), b.op("mul", _imaginary(x), y))
    (p, q), (u, v) = (x.real, _imaginary(x)), (y.real, _imaginary(y))
    real = b.op("sub", b.op("mul", p, u), b.op("mul", q, v))
    return ComplexValue(real, b.op("add", b.op("mul", p, v), b.op("mul", q, u)))


def _from_pairs(b: Builder, types: Types, x: Value) -> ComplexValue:
    return ComplexValue(b.op("pick", x, axis=-1, index=0), b.op("pick", x, axis=-1, index=1))


def _to_pairs(b: Builder, types: Types, x: ComplexValue) -> Value | Pairs:
    if x.imaginary is None:
        return Pairs(x)
    return b.op("stack", x.real, _imaginary(x), axis=-1)


def _polar(b: Builder, types: Types, size: Value, angle: Value) -> ComplexValue:
    return ComplexValue(*[b.op("mul", size, b.op(name, angle)) for name in ("cos", "sin")])


def _made(b: Builder, types: Types, real: Value, imaginary: Value) -> ComplexValue:
    return ComplexValue(real, imaginary)


def _real_part(b: Builder, types: Types, x: ComplexValue) -> Value:
    return x.real


def _imaginary_part(b: Builder, types: Types, x: ComplexValue) -> Value:
    return _imaginary(x)


def _conjugate(b: Builder, types: Types, x: ComplexValue) -> ComplexValue:
    return ComplexValue(x.real, b.op("neg", _imaginary(x)))


def _size(b: Builder, types: Types, x: ComplexValue) -> Value:
    parts = [b.op("mul", part, part) for part in (x.real, _imaginary(x))]
    return b.op("sqrt", b.op("add", *parts))


def _same(b: Builder, types: Types, x: ComplexValue | Value, *rest: object, **named: object) -> ComplexValue | Value:
    if isinstance(x, ComplexValue):
        return x if types[0].dtype == "complex" else x.real
    return ComplexValue(x, None)


def _fourier(
    b: Builder, types: Types, x: ComplexValue | Value, size: object = None, dim: Axes = None, norm: str | None = None
) -> ComplexValue:
    if isinstance(x, ComplexValue) or size is not None or norm not in (None, "backward"):
        raise UntranslatableError("it has a Fourier transform of complex numbers, with another size or norm")
    axes = list(range(len(x.shape))) if dim is None else as_list(dim)
    return ComplexValue(b.op("fft", x, axis=axes[0] if len(axes) == 1 else tuple(axes)), None)


def _fourier_of_one(
    b: Builder, types: Types, x: ComplexValue | Value, size: object = None, dim: int = -1, norm: str | None = None
) -> ComplexValue:
    return _fourier(b, types, x, size, [dim], norm)


def _fourier_of_two(
    b: Builder,
    types: Types,
    x: ComplexValue | Value,
    size: object = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> ComplexValue:
    return _fourier(b, types, x, size, [*dim], norm)


_FUNCTIONS: Mapping[str, Callable[..., ComplexResult]] = {
    "mul": _multiply,
    "view_as_complex": _from_pairs,
    "view_as_real": _to_pairs,
    "polar": _polar,
    "complex": _made,
    "real": _real_part,
    "imag": _imaginary_part,
    "conj": _conjugate,
    "_conj": _conjugate,
    "conj_physical": _conjugate,
    "resolve_conj": _same,
    "abs": _size,
    "to": _same,
    "_to_copy": _same,
    "fft_fft": _fourier_of_one,
    "fft_fft2": _fourier_of_two,
    "fft_fftn": _fourier,
}
