"""PyTorch's calls, as proofs and `lift` read them: the cases are lines of `golden/calls/`."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F
from builders import builder
from call_table import Translation, compare_values, names_in, parse, sources, translated
from paths import GOLDEN

from archspec import Type
from archspec.core.algebra import symbol
from archspec.ir.normal.arrays import Arrays
from archspec.pytorch.calls.registry import CALLS, call
from archspec.pytorch.calls.shape import wrap_negative_indices
from archspec.pytorch.export.exporting import export_module
from archspec.pytorch.lift.recording import Recording
from archspec.pytorch.prove.api import run_with_deep_stack
from archspec.pytorch.values.arguments import UntranslatableError, as_list
from archspec.pytorch.values.builder import Builder

GROUPS = [path.stem for path in sorted((GOLDEN / "calls").glob("*.txt"))]


@pytest.mark.parametrize("group", GROUPS)
def test_calls_have_the_values_of_pytorch(group: str, golden: Callable[[str, str], None]) -> None:
    lines: list[str] = []
    for source in sources(group):
        try:
            lines.append(translated(source))
        except Exception as error:
            raise AssertionError(source) from error
    golden(f"calls/{group}.txt", "".join([f"{line}\n" for line in lines]))


def test_each_row_has_a_case() -> None:
    """The rows of loops are of calls that archspec itself makes."""
    names = {name for group in GROUPS for source in sources(group) for name in names_in(parse(source))}
    assert {*CALLS} - names == {"carried", "looped"}


@pytest.mark.parametrize(
    ("source", "type"),
    [
        ("scatter(r(4, 3), 1, i(1, 4, 2))", Type((4, 3))),
        ("linalg_norm(r(4), 'nuc', [0])", Type(())),
        ("index_put(r(4, 3), [n(0, 2), n(0, 0, 0)], torch.ones(()))", Type((4, 3))),
        ("pad(r(4, 3), [1, 1], 'other')", Type((4, 5))),
        ("arange(0, 2, 0.5)", Type((4,), "int")),
        ("batch_norm(r(1, 2, 4), None, None, None, None, False, 0.1, 0.5, False)", Type((1, 2, 4))),
        ("batch_norm(r(1, 2, 4), None, None, r(2), None, True, 0.1, 0.5, False)", Type((1, 2, 4))),
        ("batch_norm(r(1, 2, 4), None, None, None, r(2), False, 0.1, 0.5, False)", Type((1, 2, 4))),
    ],
)
def test_calls_that_pytorch_does_not_accept_are_refused(source: str, type: Type) -> None:
    case, spec = parse(source), builder()
    for b in (spec, Builder(spec.arrays)):
        args = [Translation(b, spec).argument(arg)[1] for arg in case.args]
        with pytest.raises(UntranslatableError, match=r"has no normal form with these|uses batch statistics"):
            call(b, case.name, [type], args, {})


OTHER_OVERLOADS = {
    "slice.t": "of lists",
    "slice.str": "of texts",
    "repeat_interleave.Tensor": "without repeats, which the handler must have",
    "lstm.data": "of packed sequences, whose parameters are no list there",
    "gru.data": "of packed sequences, whose parameters are no list there",
    "rnn_tanh.data": "of packed sequences, whose parameters are no list there",
    "rnn_relu.data": "of packed sequences, whose parameters are no list there",
    "var.default": "a boolean in the place of axes is `unbiased`",
    "std.default": "a boolean in the place of axes is `unbiased`",
    "var_mean.default": "a boolean in the place of axes is `unbiased`",
    "std_mean.default": "a boolean in the place of axes is `unbiased`",
    "_native_batch_norm_legit.default": "with statistics: more arguments than the handler has",
    "scatter.value": "a number is what a tensor is elsewhere",
    "scatter.value_reduce": "has an argument that the handler does not have",
}


def test_arguments_have_the_places_that_pytorch_has_them_in() -> None:
    wrong: list[str] = []
    for name, handler in CALLS.items():
        packet = getattr(torch.ops.aten, name, None)
        parameters = [*inspect.signature(handler).parameters.values()][2:]
        places = [item.name for item in parameters if item.kind is item.POSITIONAL_OR_KEYWORD]
        named = {item.name for item in parameters}
        overloads: list[str] = packet.overloads() if packet is not None else []
        for overload in [item for item in overloads if not item.endswith("out")]:
            arguments = [item.name for item in getattr(packet, overload)._schema.arguments if not item.kwarg_only]
            for ours, theirs in zip(places, arguments, strict=False):
                if ours != theirs and (theirs in named or ours in arguments):
                    wrong.append(f"{name}.{overload}")
    assert {*wrong} <= OTHER_OVERLOADS.keys()


def test_indices_that_may_be_negative_count_from_the_end() -> None:
    arrays = Arrays()
    computed = arrays.opaque("unheard", (("most", 3),), [], [((2,), "int")])[0]
    given = arrays.stored("input", "ids", (2,), "int")
    looped = arrays.loop((0, (), 0, 3), [given, given], [((2,), "int")])[0]
    for index in (computed, looped):
        assert wrap_negative_indices(arrays, index, 5) == arrays.array(
            (2,), arrays.elements.integer(arrays.elements.polynomial(index.element) % 5)
        )
    assert wrap_negative_indices(arrays, given, 5) == given


# Calls in exported programs -------------------------------------------------------------------------------------------


class Called(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, a: Any, b: Any = None) -> Any:
        return self.function(*[x for x in (a, b) if x is not None])


def check(function: Callable[..., Any], types: dict[str, Type], *trials: dict[str, int]) -> None:
    """Compare what is recorded of a function with its values, for inputs of each size."""
    generator = torch.Generator().manual_seed(0)
    module = Called(function).eval()
    recording = Recording(Arrays(), export_module(module, types, trials[0]), module, types)
    values = recording.results()
    for sizes in trials:
        shapes = [[size if isinstance(size, int) else size.at(sizes) for size in type.shape] for type in types.values()]
        tensors = [torch.randn(shape, generator=generator) for shape in shapes]
        expected = as_list(function(*[x.clone() for x in tensors]))
        inputs = {("input", name): x for name, x in zip(types, tensors, strict=True)}
        compare_values(recording.arrays, values, inputs, expected, sizes)


def interleave(x: Any, y: Any) -> Any:
    result = torch.zeros(x.shape[0], 2 * x.shape[1])
    result[:, 0::2], result[:, 1::2] = x, y
    return result


@pytest.mark.parametrize(
    "function",
    [
        interleave,
        lambda x, y: torch.zeros_like(x).fill_(3.0) + y,
        lambda x, y: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0]), right=True) + y,
        lambda x, y: (x[:, [-1]], y[..., [-2], :], x[torch.arange(2) + 1]),
        lambda x, y: [torch.view_as_real(part) for part in torch.complex(x, y).clone().chunk(2)],
        lambda x, y: F.normalize(x, dim=-1) + F.adaptive_avg_pool2d(y[None], (3, 4))[0],
    ],
)
def test_calls_are_recorded_after_what_changes_them(function: Callable[..., Any]) -> None:
    run_with_deep_stack(lambda: check(function, {"a": Type((3, 4)), "b": Type((3, 4))}, {}))


def test_images_are_resized_to_sizes_that_are_dimensions() -> None:
    def resize(x: Any, y: Any) -> Any:
        return F.interpolate(x, size=tuple(y.shape), mode="bilinear") + y

    types = {"a": Type((2, 3, 4, 5)), "b": Type((symbol("height"), symbol("width")))}
    sizes = [{"height": height, "width": width} for height, width in ((7, 8), (7, 3), (2, 5), (4, 12))]
    run_with_deep_stack(lambda: check(resize, types, *sizes))


PLACE = r", in inner \(test_calls.py:\d+\)$"


@pytest.mark.parametrize(
    ("reason", "function"),
    [
        (rf"dropout is active: the module is in training mode{PLACE}", lambda x: F.dropout(x, 0.1, training=True)),
        (rf"it draws random numbers.*{PLACE}", lambda x: x + torch.rand(4)),
        (r"^it draws random numbers", lambda x: x[torch.bucketize(torch.rand(4), torch.arange(0.0, 0.3, 0.1))]),
        (rf"`aten.cumprod` has no normal form{PLACE}", lambda x: torch.cumprod(x, 0)),
        (rf"has no normal form with these arguments{PLACE}", lambda x: x.index_put((torch.tensor([0, 2]),), x[:2])),
        (rf"it uses the imaginary part of a Fourier transform{PLACE}", lambda x: torch.fft.fft(x).imag),
        (r"^it changes its inputs or buffers$", lambda x: x.add_(1.0)),
        (r"^it selects rows by a mask,", lambda x: x[x > 0]),
    ],
)
def test_a_refusal_has_its_module_and_line(reason: str, function: Callable[..., Any]) -> None:
    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Called(function)

        def forward(self, a: Any) -> Any:
            return self.inner(a) + 1

    def record() -> Any:
        module, types = Outer().eval(), {"a": Type((4,))}
        return Recording(Arrays(), export_module(module, types, {}), module, types).results()

    with pytest.raises(UntranslatableError, match=reason):
        run_with_deep_stack(record)
