"""Operations of PyTorch on complex numbers, as pairs of reals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from archspec.core.algebra import product
from archspec.core.record import Record
from archspec.ir.module import Type
from archspec.ir.normal.arrays import Array, Arrays
from archspec.ir.normal.forms import elementwise as forms
from archspec.ir.normal.forms import shape
from archspec.ir.normal.forms.along import fourier_sums
from archspec.pytorch.calls.values import (
    Axes,
    Handler,
    Sizes,
    UntranslatableError,
    array_of,
    as_list,
    as_number,
    compute_results,
    is_list,
    refuse,
    unary_function,
)


class Complex(Record):
    """The real and the imaginary parts of complex numbers."""

    real: Array
    imaginary: Array


Parts: TypeAlias = "Complex | Array | complex"

EACH_PART = (
    "add sub neg sum mean clone contiguous alias detach view _unsafe_view reshape unsqueeze squeeze flatten unflatten "
    "transpose permute expand slice select index index_select gather cat stack split split_with_sizes chunk unbind "
    "repeat repeat_interleave roll flip pad constant_pad_nd"
)
"""Operations that are applied to both parts."""

SEVERAL = "split split_with_sizes chunk unbind"
"""Those of them that have a list of results."""

NUMBERS = {"add": 1, "sub": 1, "constant_pad_nd": 2, "pad": 3}
"""The place of the argument of these that is a number, if it is no tensor; others are sizes and axes."""


def call_complex(
    name: str, handler: Handler | None, n: Arrays, types: Sequence[Type], *given: object, **named: object
) -> Array | Complex | list[Complex]:
    """Return the results of an operation with complex arguments or results. Raises Untranslatable for others."""
    function = _FUNCTIONS.get(name)
    if function is not None:
        return function(n, types, *given, **named)
    if name not in EACH_PART.split() or handler is None:
        raise UntranslatableError(f"the operation `aten.{name}` has no normal form for complex numbers")
    reals = [Type(type.shape, "real") for type in types]
    of_both = (given, named), _of_imaginary(name, given, named)
    real, imaginary = [
        compute_results(handler(n, reals, *_parts(n, args, turn), **keywords))
        for turn, (args, keywords) in enumerate(of_both)
    ]
    made = [Complex(a, b) for a, b in zip(real, imaginary, strict=True)]
    return made if name in SEVERAL.split() else made[0]


def has_complex(value: object) -> bool:
    """Whether there is a complex number in arguments."""
    return isinstance(value, Complex) or (is_list(value) and any(has_complex(item) for item in value))


def _of_imaginary(
    name: str, given: Sequence[object], named: Mapping[str, object]
) -> tuple[list[object], dict[str, object]]:
    """Return the arguments of an operation on the imaginary parts of numbers: those of real numbers are 0."""
    place = NUMBERS.get(name)
    args = [
        0 if at == place and not isinstance(item, Complex | Array | complex) else item for at, item in enumerate(given)
    ]
    return args, {key: 0 if key == "value" else item for key, item in named.items()}


def _parts(n: Arrays, given: Sequence[object], turn: int) -> list[object]:
    """Return arguments with the real (0) or the imaginary parts (1) of numbers; sizes and axes stay."""
    return [_part(n, item, turn) for item in given]


def _part(n: Arrays, item: object, turn: int) -> object:
    if isinstance(item, Complex):
        return item.imaginary if turn else item.real
    if isinstance(item, complex):
        return item.imag if turn else item.real
    if is_list(item):
        return _parts(n, item, turn)
    if isinstance(item, Array) and n.dtype(item) == "real" and turn:
        return n.array(item.shape, n.elements.number(0.0))
    return item


def _both(n: Arrays, value: Parts) -> tuple[Array, Array | None]:
    """Return the parts of a number; no imaginary one for a real."""
    if isinstance(value, Complex):
        return value.real, value.imaginary
    if isinstance(value, complex):
        return array_of(n, value.real), array_of(n, value.imag)
    return as_number(n, array_of(n, value), Type((), "real")), None


def _multiply(n: Arrays, types: Sequence[Type], a: Parts, b: Parts) -> Complex:
    size = types[0].shape
    (x, y), (u, v) = _both(n, a), _both(n, b)

    def multiplied(p: Array, q: Array) -> Array:
        return n.each(size, forms.multiply, p, q)

    real, imaginary = multiplied(x, u), n.array(size, n.elements.number(0.0))
    if y is not None and v is not None:
        real = n.each(size, forms.subtract, real, multiplied(y, v))
    for p, q in ((x, v), (y, u)):
        if p is not None and q is not None:
            imaginary = n.each(size, forms.add, imaginary, multiplied(p, q))
    return Complex(real, imaginary)


def _from_pairs(n: Arrays, types: Sequence[Type], x: Array) -> Complex:
    return Complex(shape.pick(n, x, -1, 0), shape.pick(n, x, -1, 1))


def _to_pairs(n: Arrays, types: Sequence[Type], x: Complex) -> Array:
    return shape.stack(n, x.real, x.imaginary, axis=-1)


def _polar(n: Arrays, types: Sequence[Type], size: Array, angle: Array) -> Complex:
    def part(name: str) -> Array:
        return n.each(types[0].shape, forms.multiply, size, n.each(angle.shape, unary_function(name), angle))

    return Complex(part("cos"), part("sin"))


def _made(n: Arrays, types: Sequence[Type], real: Array, imaginary: Array) -> Complex:
    return Complex(real, imaginary)


def _real(n: Arrays, types: Sequence[Type], x: Complex) -> Array:
    return x.real


def _imaginary(n: Arrays, types: Sequence[Type], x: Complex) -> Array:
    return x.imaginary


def _conjugate(n: Arrays, types: Sequence[Type], x: Complex) -> Complex:
    return Complex(x.real, n.each(x.imaginary.shape, forms.negate, x.imaginary))


def _size(n: Arrays, types: Sequence[Type], x: Complex) -> Array:
    squares = [n.each(part.shape, forms.multiply, part, part) for part in (x.real, x.imaginary)]
    return n.each(types[0].shape, forms.square_root, n.each(types[0].shape, forms.add, *squares))


def _same(n: Arrays, types: Sequence[Type], x: Parts, *rest: object, **named: object) -> Array | Complex:
    if isinstance(x, Complex):
        return x if types[0].dtype == "complex" else x.real
    real, _ = _both(n, x)
    return Complex(n.array(real.shape, n.elements.real(real.element)), n.array(real.shape, n.elements.number(0.0)))


def _fourier(is_inverse: bool = False, is_half: bool = False, rank: int | None = None) -> Callable[..., Complex]:
    """Return the handler of a Fourier transform over `rank` axes, by default the last ones or all."""

    def call(
        n: Arrays,
        types: Sequence[Type],
        x: Parts,
        size: Sizes | None = None,
        dim: Axes = None,
        norm: str | None = None,
    ) -> Complex:
        real, imaginary = _both(n, x)
        axes = list(range(-(rank or len(real.shape)), 0)) if dim is None else as_list(dim)
        if any(
            given is not None and given != real.shape[axis] for given, axis in zip(as_list(size), axes, strict=False)
        ):
            refuse("fft")
        found = fourier_sums(n, real, imaginary, axes, 1.0 if is_inverse else -1.0)
        power = {None: -1.0 if is_inverse else 0.0, "backward": -1.0 if is_inverse else 0.0, "ortho": -0.5,
                 "forward": 0.0 if is_inverse else -1.0}[norm]  # fmt: skip
        e = n.elements
        by = e.product([(e.real(e.integer(product([real.shape[axis] for axis in axes]))), power)])
        parts = [n.array(part.shape, e.product([(part.element, 1.0), (by, 1.0)])) for part in found]
        if is_half:
            parts = [shape.cut(n, part, axes[0], 0, types[0].shape[axes[0]]) for part in parts]
        return Complex(*parts)

    return call


_FUNCTIONS: Mapping[str, Callable[..., Array | Complex]] = {
    "mul": _multiply,
    "view_as_complex": _from_pairs,
    "view_as_real": _to_pairs,
    "polar": _polar,
    "complex": _made,
    "real": _real,
    "imag": _imaginary,
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
