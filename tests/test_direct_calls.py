"""Operations as exported programs seldom have them: the handlers, called directly, have the values of PyTorch."""

from collections.abc import Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from archspec.algebra import dim_max, symbol  # noqa: E402
from archspec.equivalence.calls.complex import Complex, call_complex, has_complex  # noqa: E402
from archspec.equivalence.calls.registry import CALLS  # noqa: E402
from archspec.equivalence.calls.values import Untranslatable, is_list, listed  # noqa: E402
from archspec.equivalence.evaluate import Evaluation  # noqa: E402
from archspec.ir import Type  # noqa: E402
from archspec.normal.arrays import Array, Arrays  # noqa: E402

GENERATOR = torch.Generator().manual_seed(0)
ATEN = torch.ops.aten
SEQ, HEIGHT = symbol("seq"), symbol("height")


def r(*shape: int) -> Any:
    return torch.randn(shape, generator=GENERATOR)


def dtype_of(x: Any) -> str:
    kinds = {torch.bool: "bool", torch.int64: "int", torch.complex64: "complex"}
    return kinds.get(x.dtype, "real")


class Direct:
    """Calls of handlers with tensors, which are inputs of normal forms."""

    def __init__(self) -> None:
        self.arrays = Arrays()
        self.stored: dict[tuple[str, str], Any] = {}

    def given(self, item: Any) -> Any:
        if is_list(item):
            return [self.given(part) for part in item]
        if not isinstance(item, torch.Tensor):
            return item
        if item.is_complex():
            return Complex(self.given(item.real), self.given(item.imag))
        name = f"x{len(self.stored)}"
        self.stored["input", name] = item
        return self.arrays.stored("input", name, tuple(item.shape), dtype_of(item))

    def call(self, name: str, types: list[Type], args: Any, named: Mapping[str, Any]) -> list[Any]:
        given = self.given(list(args))
        if has_complex(given) or any(type.dtype == "complex" for type in types):
            return listed(call_complex(name, CALLS.get(name), self.arrays, types, *given, **named))
        return listed(CALLS[name](self.arrays, types, *given, **named))

    def value(self, found: Array | Complex, sizes: Mapping[str, int] | None = None) -> Any:
        if isinstance(found, Complex):
            return torch.complex(self.value(found.real), self.value(found.imaginary))
        return Evaluation(self.arrays, self.stored, dict(sizes or {})).array(found)


def name_of(operation: Any) -> str:
    return operation._schema.name.rpartition("::")[2]


def check(operation: Any, *args: Any, **named: Any) -> None:
    """Compare the results of a handler with those of PyTorch; None is not computed."""
    expected = listed(operation(*args, **named))
    types = [Type(tuple(x.shape), dtype_of(x)) for x in expected]
    direct = Direct()
    found = direct.call(name_of(operation), types, args, named)
    assert len(found) == len(expected)
    for array, tensor in zip(found, expected, strict=True):
        value = direct.value(array)
        assert value.shape == tensor.shape and value.is_complex() == tensor.is_complex()
        torch.testing.assert_close(value.to(tensor.dtype), tensor, atol=2e-5, rtol=1e-5)


def weights(*shapes: tuple[int, ...]) -> list[Any]:
    return [r(*shape) * 0.5 for shape in shapes]


LSTM = [*weights((12, 2), (12, 3), (12,), (12,)), *weights((12, 2), (12, 3), (12,), (12,))]
DEEP = [*weights((12, 2), (12, 3)), *weights((12, 3), (12, 3))]

CALLED: dict[str, list[tuple[Any, ...]]] = {
    "of numbers": [
        (ATEN.atan2.default, r(3, 4), torch.tensor([1.0, -2.0, 0.5, -0.5])),
        (ATEN.atan2.default, torch.tensor([1, -2, 3]), torch.tensor([-1, 2, 2])),
        (ATEN.scalar_tensor.default, 2.5),
    ],
    "complex": [
        (ATEN.fft_rfft.default, r(3, 5)),
        (ATEN.fft_rfft.default, r(3, 4), 3, 0),
        (ATEN.fft_rfft.default, r(3, 4), None, -2, "ortho"),
        (ATEN.fft_rfft.default, r(4), None, -1, "forward"),
        (ATEN.fft_ifft.default, torch.complex(r(2, 3), r(2, 3)), 3, -1, "forward"),
        (ATEN.fft_ifft2.default, torch.complex(r(2, 3), r(2, 3))),
    ],
    "layers": [
        (ATEN.conv1d.padding, r(2, 3, 8), r(6, 3, 3), r(6), [2], "valid", [2]),
        (ATEN.conv1d.padding, r(2, 3, 8), r(6, 3, 3), None, [1], "same", [2]),
        (ATEN.conv_transpose1d.default, r(3, 7), r(3, 4, 4), r(4), [2], [1]),
        (ATEN.instance_norm.default, r(2, 3, 4), r(3), r(3), r(3), r(3).abs(), False, 0.1, 0.25, False),
        (ATEN.instance_norm.default, r(2, 3, 4), r(3), None, None, None, True, 0.1, 0.25, False),
        (ATEN.reflection_pad1d.default, r(2, 5), [1, 3]),
        (ATEN.replication_pad1d.default, r(2, 5), [1, 3]),
    ],
    "recurrent": [
        (ATEN.lstm.input, r(2, 4, 2), [r(2, 2, 3), r(2, 2, 3)], LSTM, True, 1, 0.0, False, True, True),
        (ATEN.lstm.input, r(4, 3, 2), [r(2, 3, 3), r(2, 3, 3)], DEEP, False, 2, 0.0, False, False, False),
    ],
}


@pytest.mark.parametrize("group", CALLED)
def test_handlers_have_the_values_of_pytorch(group: str) -> None:
    for operation, *args in CALLED[group]:
        check(operation, *args)


@pytest.mark.parametrize("x", [r(2, 3), torch.tensor([[1, -2], [3, 4]])], ids=["reals", "integers"])
def test_numbers_that_become_complex_have_no_imaginary_part(x: Any) -> None:
    check(ATEN._to_copy.default, x, dtype=torch.complex64)


def test_statistics_that_training_would_use_are_zeros() -> None:
    x, scale, shift = r(1, 4, 3), r(4), r(4)
    direct = Direct()
    types = [Type((1, 4, 3)), Type((4,)), Type((4,))]
    found = direct.call("_native_batch_norm_legit", types, (x, scale, shift, True, 0.1, 0.25), {})
    result, *rest = [direct.value(array) for array in found]
    expected = torch.nn.functional.batch_norm(x, None, None, scale, shift, True, 0.1, 0.25)
    torch.testing.assert_close(result.float(), expected)
    assert [part.tolist() for part in rest] == [[0.0] * 4] * 2


def test_an_axis_of_any_size_keeps_it_where_another_one_is_resized() -> None:
    direct = Direct()
    x = direct.arrays.stored("input", "x", (1, 2, HEIGHT, 4), "real")
    direct.stored["input", "x"] = tensor = r(1, 2, 3, 4)
    (found,) = direct.call("upsample_nearest2d", [Type((1, 2, HEIGHT, 6))], (x, None, None, None), {})
    expected = torch.nn.functional.interpolate(tensor, (3, 6))
    torch.testing.assert_close(direct.value(found, {"height": 3}).float(), expected)


def test_slices_begin_at_sizes() -> None:
    direct = Direct()
    x = direct.arrays.stored("input", "x", (2, SEQ), "real")
    types = [Type((2, 3))]
    (found,) = direct.call("slice", types, (x, 1, SEQ - 3), {})
    assert found == direct.call("slice", types, (x, 1, dim_max(SEQ - 3, 0)), {})[0]
    for size in (3, 5):
        direct.stored["input", "x"] = tensor = r(2, size)
        assert direct.value(found, {"seq": size}).float().equal(tensor[:, size - 3 :])


def of(*shape: Any) -> Type:
    return Type(shape)


X, ROWS, MASK = r(4, 3), torch.tensor([0, 2]), torch.tensor([True, False, True, False])

PROJECTED = [r(2, 4, 2), [r(1, 2, 3)] * 2, LSTM[:5], True, 1, 0.0, False, False, True]

REFUSED: dict[str, tuple[str, Type, list[Any], dict[str, Any]]] = {
    "a cosine of repeated numbers": ("cosine_similarity", of(4), [r(3, 4), r(1, 4), 0], {}),
    "a transform of another size": ("fft_fft", Type((3, 3), "complex"), [r(3, 4), 3], {}),
    "a cubic resizing to any size": ("upsample_bicubic2d", of(1, 2, HEIGHT, 3), [r(1, 2, 3, 4), None], {}),
    "an aligned resizing to any size": ("upsample_linear1d", of(1, 2, HEIGHT), [r(1, 2, 3), None, True], {}),
    "a resizing to any size by a scale": ("upsample_linear1d", of(1, 2, HEIGHT), [r(1, 2, 3), None, False, 1.5], {}),
    "a root of squares without an epsilon": ("rms_norm", of(4, 3), [X, [3]], {}),
    "reduced scattering": ("scatter", of(4, 3), [X, 1, torch.zeros(4, 2).long(), 1.0], {"reduce": "add"}),
    "scattering of several numbers": ("scatter", of(4, 3), [X, 1, torch.zeros(4, 2).long(), X[:, 1:]], {}),
    "scattering of nothing": ("scatter", of(4, 3), [X, 1, torch.zeros(4, 2).long()], {}),
    "scattering to some rows": ("scatter", of(4, 3), [X, 1, torch.zeros(2, 2).long(), 1.0], {}),
    "replaced steps of any size": ("slice_scatter", of(4, 3), [X, r(2, 3), 0, SEQ, None, 2], {}),
    "accumulated elements": ("index_put", of(4, 3), [X, [ROWS], r(2, 3), True], {}),
    "elements at indices of the last axis": ("index_put", of(4, 3), [X, [None, ROWS], torch.ones(())], {}),
    "elements at a mask and indices": ("index_put", of(4, 3), [X, [MASK, ROWS], torch.ones(())], {}),
    "elements at rows of indices": ("index_put", of(4, 3), [X, [torch.zeros(2, 2).long()], torch.ones(())], {}),
    "elements at an index alone": ("index_put", of(4, 3), [X, [torch.tensor(1)], torch.ones(())], {}),
    "elements at indices of two lengths": ("index_put", of(4, 3), [X, [ROWS, ROWS.new_zeros(3)], torch.ones(())], {}),
    "projected states": ("lstm", of(2, 4, 2), PROJECTED, {}),
    "rows of boundaries": ("searchsorted", Type((4, 3), "int"), [r(4, 5), X], {}),
    "boundaries in another order": ("searchsorted", Type((4, 3), "int"), [r(3), X], {"sorter": torch.arange(3)}),
    "the other side of boundaries": ("searchsorted", Type((4, 3), "int"), [r(3), X], {"side": "right"}),
    "less at an end that is mirrored": ("reflection_pad1d", of(4, 3), [X, [-1, 1]], {}),
    "less at the other end": ("reflection_pad1d", of(4, 3), [X, [1, -1]], {}),
    "any size before": ("reflection_pad1d", of(4, SEQ + 4), [X, [SEQ, 1]], {}),
    "any size after": ("reflection_pad1d", of(4, SEQ + 4), [X, [1, SEQ]], {}),
    "an unknown continuation": ("pad", of(4, 5), [X, [1, 1], "other"], {}),
    "steps of any size from a fraction": ("arange", of(3), [0.5, SEQ, SEQ], {}),
    "fractions from any number": ("arange", of(3), [SEQ, SEQ, 0.5], {}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_normal_form_is_refused(what: str) -> None:
    name, type, args, named = REFUSED[what]
    shown = {"fft_fft": "fft", "reflection_pad1d": "pad"}.get(name, name).removesuffix("_bicubic2d")
    with pytest.raises(Untranslatable, match=f"`aten.{shown.removesuffix('_linear1d')}` has no normal form with these"):
        Direct().call(name, [type], args, named)


def test_masks_that_select_are_refused() -> None:
    with pytest.raises(Untranslatable, match="it selects by a mask"):
        Direct().call("index", [of(2, 3)], [X, [MASK]], {})
