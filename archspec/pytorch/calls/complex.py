"""Operations of PyTorch on complex numbers, as pairs of reals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from archspec.core.algebra import product
from archspec.core.record import Record
from archspec.ir.module import Type
from archspec.ir.normal.forms import shape
from archspec.ir.normal.forms.along import fourier_sums
from archspec.pytorch.calls.rows import Results, Row, Types, convert, tensor_of
from archspec.pytorch.values.arguments import Axes, Sizes, UntranslatableError, as_list, is_list, refuse
from archspec.pytorch.values.builder import Builder
from archspec.pytorch.values.values import Operand, Value


class ComplexValue(Record):
    """The real and the imaginary parts of complex numbers; no imaginary one if nothing can express it."""

    real: Value
    imaginary: Value | None


class Pairs(Record):
    """The parts of complex numbers along a last axis, of which only the first can be expressed."""

    whole: ComplexValue


ComplexResult: TypeAlias = Value | ComplexValue | Pairs
Number: TypeAlias = "ComplexValue | Operand | complex"
Made = TypeVar("Made")

EACH_PART = (
    "add sub neg sum mean clone contiguous alias detach view _unsafe_view reshape unsqueeze squeeze flatten unflatten "
    "transpose permute expand slice select index index_select gather cat stack split split_with_sizes chunk unbind "
    "repeat repeat_interleave roll flip pad constant_pad_nd"
)
"""Operations that are applied to both parts."""

OF_NUMBERS = "add sub cat stack"
"""Those of them whose tensors are all numbers, not indices."""

SEVERAL = "split split_with_sizes chunk unbind"
"""Those of them that have a list of results."""

NUMBERS = {"add": 1, "sub": 1, "constant_pad_nd": 2, "pad": 3}
"""The place of the argument of these that is a number, if it is no tensor; others are sizes and axes."""


def has_complex(value: object) -> bool:
    """Whether there is a complex number in arguments."""
    return isinstance(value, ComplexValue | Pairs) or (is_list(value) and any(has_complex(item) for item in value))


def call_complex(
    name: str, row: Row | None, b: Builder, types: Types, *args: object, **named: object
) -> ComplexResult | list[ComplexValue]:
    """Return the results of an operation with complex arguments or results. Raises Untranslatable for others."""
    if args and isinstance(args[0], Pairs):
        if name != "select" or (args[1:] != (len(types[0].shape), 0) and args[1:] != (-1, 0)):
            raise UntranslatableError("it uses the imaginary part of a Fourier transform")
        return args[0].whole.real
    function = _FUNCTIONS.get(name)
    if function is not None:
        return function(b, types, *args, **named)
    if name not in EACH_PART.split() or row is None:
        raise UntranslatableError(f"the operation `aten.{name}` has no normal form for complex numbers")
    if name in OF_NUMBERS.split():
        args = tuple([_reals(b, item) for item in args])
    reals = [Type(type.shape, "real") for type in types]
    real = _parts_of(row(b, reals, *_parts(b, args, False), **named))
    place = NUMBERS.get(name)
    no_numbers = [0 if at == place and not isinstance(item, ComplexValue | Value | complex) else item
                  for at, item in enumerate(args)]  # fmt: skip
    keywords = {key: 0 if key == "value" else item for key, item in named.items()}
    imaginary = _parts_of(row(b, reals, *_parts(b, no_numbers, True), **keywords))
    made = [ComplexValue(*parts) for parts in zip(real, imaginary, strict=True)]
    return made if name in SEVERAL.split() else made[0]


def _parts_of(results: Results) -> list[Value]:
    return [value for value in as_list(results) if value is not None]


def _parts(b: Builder, args: Sequence[object], is_imaginary: bool) -> list[object]:
    """Return arguments with the real or the imaginary parts of numbers; sizes and axes stay."""
    return [_part(b, item, is_imaginary) for item in args]


def _part(b: Builder, item: object, is_imaginary: bool) -> object:
    if isinstance(item, ComplexValue):
        return _imaginary(item) if is_imaginary else item.real
    if isinstance(item, complex):
        return item.imag if is_imaginary else item.real
    if is_list(item):
        return _parts(b, item, is_imaginary)
    if isinstance(item, Value) and item.dtype == "real" and is_imaginary:
        return _zeros(b, item.shape)
    return item


def _reals(b: Builder, item: object) -> object:
    """Return an argument whose tensors are reals or complex numbers."""
    if is_list(item):
        return [_reals(b, part) for part in item]
    return convert(b, item, "real") if isinstance(item, Value) else item


def _zeros(b: Builder, size: Sequence[object]) -> Value:
    return b.op("full", shape=size, value=0.0)  # pyright: ignore


def _imaginary(x: ComplexValue) -> Value:
    if x.imaginary is None:
        raise UntranslatableError("it uses the imaginary part of a Fourier transform")
    return x.imaginary


def _multiply(b: Builder, types: Types, x: Number, y: Number) -> ComplexValue:
    if not isinstance(x, ComplexValue | complex):
        x, y = y, x
    (p, q), (u, v) = _both(b, x), _both(b, y)
    assert q is not None
    if v is None:
        return ComplexValue(b.op("mul", p, u), b.op("mul", q, u))
    real = b.op("sub", b.op("mul", p, u), b.op("mul", q, v))
    return ComplexValue(real, b.op("add", b.op("mul", p, v), b.op("mul", q, u)))


def _both(b: Builder, x: Number) -> tuple[Operand, Operand | None]:
    """Return the parts of a number; no imaginary one for a real."""
    if isinstance(x, ComplexValue):
        return x.real, _imaginary(x)
    if isinstance(x, complex):
        return x.real, x.imag
    return convert(b, x, "real"), None


def _from_pairs(b: Builder, types: Types, x: Value) -> ComplexValue:
    return ComplexValue(b.op("pick", x, axis=-1, index=0), b.op("pick", x, axis=-1, index=1))


def _to_pairs(b: Builder, types: Types, x: ComplexValue) -> Value | Pairs:
    return Pairs(x) if x.imaginary is None else b.op("stack", x.real, x.imaginary, axis=-1)


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
    return b.op("sqrt", b.op("add", *[b.op("mul", part, part) for part in (x.real, _imaginary(x))]))


def _same(b: Builder, types: Types, x: Number, *rest: object, **named: object) -> ComplexValue | Value:
    if isinstance(x, ComplexValue):
        return x if types[0].dtype == "complex" else x.real
    assert not isinstance(x, complex)
    real = convert(b, tensor_of(b, x), "real")
    return ComplexValue(real, _zeros(b, real.shape))


def _fourier(is_inverse: bool = False, is_half: bool = False, rank: int | None = None) -> Callable[..., ComplexValue]:
    """Return the row of a Fourier transform over `rank` axes, by default the last ones or all."""

    def call(
        b: Builder,
        types: Types,
        x: ComplexValue | Value,
        size: Sizes | None = None,
        dim: Axes = None,
        norm: str | None = None,
    ) -> ComplexValue:
        if isinstance(x, ComplexValue) and x.imaginary is None:
            raise UntranslatableError("it has a Fourier transform of complex numbers")
        real, imaginary = (x.real, x.imaginary) if isinstance(x, ComplexValue) else (convert(b, x, "real"), None)
        axes = list(range(-(rank or len(real.shape)), 0)) if dim is None else as_list(dim)
        sizes = zip(as_list(size), axes, strict=False)
        if any(wanted is not None and wanted != real.shape[axis] for wanted, axis in sizes):
            refuse("fft")
        n, e = b.arrays, b.arrays.elements
        of_imaginary = None if imaginary is None else imaginary.array
        found = fourier_sums(n, real.array, of_imaginary, axes, 1.0 if is_inverse else -1.0)
        power = {None: -1.0 if is_inverse else 0.0, "backward": -1.0 if is_inverse else 0.0, "ortho": -0.5,
                 "forward": 0.0 if is_inverse else -1.0}[norm]  # fmt: skip
        by = e.product([(e.real(e.integer(product([real.shape[axis] for axis in axes]))), power)])
        parts = [n.array(part.shape, e.product([(part.element, 1.0), (by, 1.0)])) for part in found]
        if is_half:
            parts = [shape.cut(n, part, axes[0], 0, types[0].shape[axes[0]]) for part in parts]
        settings = axes[0] if len(axes) == 1 else tuple(axes)
        is_operation = imaginary is None and power == 0 and not is_half
        write = (lambda: b.op("fft", real, axis=settings)) if is_operation else None
        reason = "it has a Fourier transform of complex numbers, an inverse, or one with another norm"
        return ComplexValue(b.form("fft", parts[0], write, reason), _or_none(lambda: b.form("fft", parts[1])))

    return call


def _or_none(make: Callable[[], Made]) -> Made | None:
    """Return what is made; None if nothing can express it."""
    try:
        return make()
    except UntranslatableError:
        return None


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
    "fft_fft": _fourier(rank=1),
    "fft_ifft": _fourier(True, rank=1),
    "fft_fft2": _fourier(rank=2),
    "fft_ifft2": _fourier(True, rank=2),
    "fft_fftn": _fourier(),
    "fft_ifftn": _fourier(True),
    "fft_rfft": _fourier(is_half=True, rank=1),
}
