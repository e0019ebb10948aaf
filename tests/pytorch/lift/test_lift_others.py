"""Lifting: which modules are tried in the place of one that cannot be lifted, and why a spec is refused."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from archspec import ArchError
from archspec.core.diagnostics import make_error
from archspec.pytorch.export.capture import SingleLengthError
from archspec.pytorch.lift.check import ComparisonError, TooLargeToRunError, UndecidedError
from archspec.pytorch.lift.sizes.sizes import ActualSizeError, SizeDependenceError
from archspec.pytorch.lift.sources import lifting, subjects
from archspec.pytorch.lift.sources.architecture import Architecture, subject_of
from archspec.pytorch.lift.sources.inputs import parse_input
from archspec.pytorch.lift.sources.source import CoincidentSizeError, LayerPatternError, Source
from archspec.pytorch.lift.sources.subjects import source_of
from archspec.pytorch.lift.sources.variations import (
    multiplied,
    resize_second,
    separate_part_sizes,
    shrinks_lists,
    uncropped,
    unrolled,
    with_fewer_layers,
    with_fewer_parameters,
    with_more_heads,
)
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.lift.subject import subject_of as subject_of_module
from archspec.pytorch.values.arguments import UntranslatableError

nn = torch.nn
FIELDS: dict[str, Any] = {
    "model_type": "toy",
    "hidden_size": 64,
    "num_hidden_layers": 5,
    "num_attention_heads": 16,
    "num_key_value_heads": 24,
    "image_size": 224,
}


class Toy(nn.Module):
    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        self.hidden = fields["hidden_size"]
        self.layers = nn.ModuleList([nn.Linear(self.hidden, self.hidden) for _ in range(fields["num_hidden_layers"])])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def build(fields: dict[str, Any]) -> Any:
    return Toy({**FIELDS, **fields})


def inputs(module: Any, turn: int) -> Iterator[dict[str, Any]]:
    yield {"x": torch.ones(3 - turn, 5 + turn, module.hidden)}
    yield {"x": torch.ones(3 - turn, 9 + turn, module.hidden)}


TOY = Architecture("Toy", FIELDS, build, inputs)
WHOLE, LARGE, SHALLOW = unrolled(TOY), uncropped(TOY), with_fewer_layers(TOY)
assert WHOLE is not None and LARGE is not None
LARGE_WHOLE = unrolled(LARGE)
ACTUAL = [SHALLOW, unrolled(SHALLOW)]


def tried(makers: Sequence[Callable[[], Source]]) -> list[Any]:
    """The architectures of sources that are tried."""
    return [make.args[0] for make in makers]  # type: ignore[attr-defined]


OTHERS: dict[str, tuple[Exception, list[Any], list[Any]]] = {
    "large": (TooLargeToRunError(), [with_fewer_parameters(TOY), LARGE], [with_fewer_parameters(WHOLE), LARGE_WHOLE]),
    "of other sizes": (CoincidentSizeError(), [separate_part_sizes(TOY)], [separate_part_sizes(WHOLE)]),
    "unlike": (SizeDependenceError(), [with_more_heads(TOY), WHOLE, LARGE_WHOLE], [LARGE_WHOLE]),
    "of few layers": (LayerPatternError(), [LARGE, WHOLE], [LARGE_WHOLE]),
    "of small sizes": (ActualSizeError(), [resize_second(TOY), LARGE], [LARGE_WHOLE]),
    "another reason": (UntranslatableError(), [LARGE], [LARGE_WHOLE]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_modules_depend_on_the_reason(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cause, small, whole = OTHERS[name]
    shallow_ones = (
        [with_fewer_layers(separate_part_sizes(TOY)), unrolled(with_fewer_layers(separate_part_sizes(TOY)))]
        if name == "of other sizes"
        else ACTUAL
    )
    found = subjects.source_of_architecture(TOY)
    assert tried(found.others(cause)) == [*small, *shallow_ones]
    assert found.subject.numbers["num_hidden_layers"] == 3 and found.actual().hidden == 64
    monkeypatch.setattr(subjects, "shrinks_lists", lambda architecture: architecture is TOY)
    found = subjects.source_of_architecture(TOY)
    assert tried(found.others(cause)) == [*whole, *shallow_ones]
    assert found.subject.numbers["num_hidden_layers"] == 5


def test_modules_with_many_layers_have_few() -> None:
    fields = {**FIELDS, "num_hidden_layers": 81}
    deep = replace(TOY, fields=fields, build=lambda own: build({**fields, **own}))
    assert unrolled(deep) is None and unrolled(replace(deep, fields={**fields, "num_hidden_layers": 80})) is not None
    found = subjects.source_of_architecture(deep)
    assert tried(found.others(LayerPatternError())) == [uncropped(deep), with_fewer_layers(deep)]


def test_longer_inputs_are_tried_first() -> None:
    longer, *rest = subjects.source_of_architecture(TOY).others(SingleLengthError())
    assert tried(rest) == [LARGE, *ACTUAL]
    assert longer().subject.inputs["x"].shape[1] == 9


def test_the_second_module_of_another_one_may_be_lighter() -> None:
    other = subjects.source_of_architecture(TOY).others(UntranslatableError())[0]()
    assert tried(other.others(TooLargeToRunError())) == [with_fewer_parameters(LARGE)]
    assert tried(other.others(SizeDependenceError())) == []


def test_the_first_module_that_can_be_built_is_lifted() -> None:
    def picky(fields: dict[str, Any]) -> Any:
        if fields.get("vocab_size", 5000) != 5000:
            raise ValueError("another vocabulary")
        return build(fields)

    made = replace(TOY, fields={**FIELDS, "vocab_size": 5000}, build=picky)
    found = subjects.source_of_architecture(made)
    assert found.subject.numbers == {"num_hidden_layers": 3}
    assert tried(found.others(TooLargeToRunError())) == tried(found.others(None)) == [unrolled(with_fewer_layers(made))]

    def broken(fields: dict[str, Any]) -> Any:
        raise ValueError("never")

    with pytest.raises(ArchError, match=r"cannot build and run a small `Toy`: ValueError: never$"):
        subjects.source_of_architecture(replace(TOY, build=broken))


def test_lists_count_where_a_module_cannot_do_without() -> None:
    def failing(fields: dict[str, Any]) -> Any:
        raise ValueError("no sizes")

    fields = {**FIELDS, "hidden_sizes": [512, 512, 1500]}
    assert not shrinks_lists(replace(TOY, build=failing)) and not shrinks_lists(replace(TOY, fields=fields))
    assert shrinks_lists(replace(TOY, fields=fields, build=failing))


def test_parts_that_have_one_size_have_it_in_the_third_module() -> None:
    def joined(fields: dict[str, Any]) -> Any:
        if fields["inner_config"]["hidden_size"] != fields["hidden_size"]:
            raise ValueError("two sizes")
        return build(fields)

    fields = {**FIELDS, "inner_config": {"model_type": "inner", "hidden_size": 64}}
    for make, is_same in ((build, False), (joined, True)):
        subject = subject_of(replace(TOY, fields=fields, build=make))
        found = subject.third([*subject.numbers]) if subject.third is not None else None
        assert found is not None
        assert (found.numbers["hidden_size"] == found.numbers["inner_hidden_size"]) == is_same
        assert found.numbers["num_hidden_layers"] == 5


def test_numbers_of_an_unknown_kind_are_multiplied_if_the_module_can_be_called() -> None:
    fields = {**FIELDS, "kernel": 3, "gap": 5, "one": 1}

    def odd(own: dict[str, Any]) -> Any:
        if own.get("kernel", 3) % 2 == 0 or own.get("gap", 5) > 20:
            raise ValueError("an even kernel")
        return build({**fields, **own})

    made = replace(TOY, fields=fields, build=odd)
    first = subject_of(made)

    def multiples(*without: str) -> Any:
        found = multiplied(made, first, without)
        return found and [dict(choices.multiples) for choices in found.choices]

    assert multiples("image_size") == [{}, {"kernel": 5, "gap": 2}, {}]
    assert multiples("image_size", "kernel") == [{}, {"gap": 2}, {}]
    assert multiples("image_size", "kernel", "gap") is None
    several = replace(TOY, fields={**FIELDS, **{f"{letter}_gap": 3 for letter in "abcdefgh"}})
    found = multiplied(several, subject_of(several), ["image_size"])
    assert found is not None and [*found.choices[1].multiples.values()] == [2, 5, 4, 7, 6, 9, 2, 5]


def test_the_third_module_has_other_layers_unless_some_are_listed_by_number() -> None:
    several = {**FIELDS, "num_hidden_layers": 12}
    made = replace(TOY, fields=several, build=lambda fields: build({**several, **fields}))
    whole = unrolled(made)
    assert whole is not None
    listed = replace(made, fields={**several, "cross_attention_indexes": [2, 5]})
    for item, layers in ((made, 5), (whole, 12), (listed, 3)):
        subject = subject_of(item)
        found = subject.third([*subject.numbers]) if subject.third is not None else None
        assert found is not None and found.numbers["num_hidden_layers"] == layers


# Files ----------------------------------------------------------------------------------------------------------------

FILE = """
import torch
from types import SimpleNamespace


class Net(torch.nn.Module):
    def __init__(self, hidden, layers, gap=3):
        super().__init__()
        self.hidden, self.gap = hidden, gap
        self.layers = torch.nn.ModuleList([torch.nn.Linear(hidden, hidden) for _ in range(layers)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * self.gap


class Words(torch.nn.Module):
    config = SimpleNamespace(vocab_size=9)

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(9, 4)

    def forward(self, input_ids):
        return self.table(input_ids)


class Failing(torch.nn.Module):
    def forward(self, x):
        raise [KeyError(), ValueError("first line" + chr(10) + "second line")][x.shape[0] == 1]


def build(hidden=16, layers=3, gap=3):
    return Net(hidden, layers, gap).eval()


def training(hidden=16, layers=3):
    return Net(hidden, layers)


def fixed(hidden=16, layers=7):
    assert layers == 7
    return Net(hidden, 2).eval()


def unsigned():
    return Net(8, 2).eval()


unsigned.__signature__ = 0
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("others") / "net.py"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


def test_modules_of_a_file_in_the_place_of_small_ones(file: str) -> None:
    found = source_of(f"{file}:build", ["x=real[batch,seq,hidden]"])
    hidden: Any = found.subject.numbers["hidden"]
    assert found.subject.numbers == {"hidden": hidden, "layers": 3, "gap": 3} and hidden != 16
    assert found.subject.second is not None and found.subject.second().numbers["gap"] == 6
    same, relayered, wide = [make() for make in found.others(None)]
    assert same.subject.second is not None and same.subject.second().numbers["gap"] == 3
    assert relayered.subject.numbers["layers"] == 5
    assert wide.subject.numbers["hidden"] == 4 * hidden
    assert found.keeping is not None
    whole, actual = found.keeping(["hidden", "gap"]), found.keeping(())
    second = whole.subject.second
    assert second is not None
    assert [[*own.numbers] for own in (whole.subject, second())] == [["hidden", "gap"]] * 2
    assert (len(whole.subject.module.layers), actual.subject.module.hidden) == (3, 16)
    made = same, relayered, wide, whole, actual
    assert [source.whole is found.whole for source in made] == [True, True, True, True, False]
    assert all(source.actual() is found.actual() for source in made)
    assert all([item.name for item in source.declared] == ["x"] for source in (found, same, actual))
    assert found.whole is not None and found.whole.free == {"x": ("batch", "seq", "hidden")}


@pytest.mark.parametrize("factory", ["training", "fixed", "unsigned"])
def test_modules_without_small_ones_are_lifted_as_they_are(factory: str, file: str) -> None:
    width = 8 if factory == "unsigned" else 16
    found = source_of(f"{file}:{factory}", [f"x=real[batch,seq,{width}]"])
    assert found.subject.module is found.actual() and found.subject.second is None and found.whole is None
    assert len(found.others(SingleLengthError())) == 1 and len(found.others(None)) == 0
    assert found.subject.module.hidden == width


def test_modules_with_a_configuration_get_the_inputs_of_its_kind(file: str) -> None:
    assert source_of(f"{file}:Words").subject.inputs["input_ids"].shape == (3, 11)


@pytest.mark.parametrize(
    ("text", "given", "reason"),
    [
        ("build", [], "the inputs of `build` are unknown"),
        ("build", ["y=real[3]"], "`forward` of Net has no argument `y`"),
        ("Failing", ["x=real[1,2]"], "calling Failing fails: ValueError: first line$"),
        ("Failing", ["x=real[4,2]"], "calling Failing fails: KeyError: $"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(text: str, given: list[str], reason: str, file: str) -> None:
    with pytest.raises(ArchError) as caught:
        source_of(f"{file}:{text}", given)
    first = str(caught.value).splitlines()[0]
    assert first.endswith(reason.removesuffix("$")) if reason.endswith("$") else reason in first


@pytest.mark.parametrize("text", ["timm:tiny", "config.json"])
def test_inputs_of_known_architectures_are_not_described(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "architecture_of", lambda _: TOY)
    with pytest.raises(ArchError, match=f"--input cannot be combined with `{text}`: its inputs are known$"):
        source_of(text, ["x=real[batch,8]"])


def test_configurations_and_collections_are_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Subject(build({}), {}, name="tiny")
    monkeypatch.setattr(subjects, "architecture_of", lambda _: TOY)
    monkeypatch.setattr(subjects, "subject_of_collection", lambda _: given)
    assert source_of("config.json").subject.name == "Toy"
    found = source_of("timm:tiny")
    assert found.subject is given and found.actual() is given.module


# Checks of a spec -----------------------------------------------------------------------------------------------------

SPEC = """
dim batch, seq
block Net(width)(x [batch, seq, width]) -> [batch, seq, width] {
  weight: param [width]
  return x * .weight
}
model "net" = Net(8)
"""


class Net(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        return x * self.weight


def subject(width: int = 8, **others: Any) -> Subject:
    return Subject(Net(width).eval(), {"x": torch.ones(2, 5, width)}, numbers={"width": width}, name="net", **others)


def refusal(name: str, problem: Exception) -> ArchError:
    """A refusal to lift a subject of a name, and what it is for."""
    found = make_error("lift", f"cannot lift `{name}`: {problem}")
    found.__cause__ = problem
    return found


@pytest.fixture
def problems(monkeypatch: pytest.MonkeyPatch) -> dict[str, Exception]:
    """What subjects of some names are not lifted for; the spec of all others is the same."""
    found: dict[str, Exception] = {}

    def lift_subject(given: Subject) -> str:
        if given.name in found:
            raise refusal(given.name, found[given.name])
        return SPEC

    monkeypatch.setattr(lifting, "lift_subject", lift_subject)
    return found


def source(name: str = "net", width: int = 8, **others: Any) -> Source:
    return Source(replace(subject(), name=name), lambda: Net(width), **others)


def test_the_first_other_module_that_is_lifted_counts(problems: dict[str, Exception]) -> None:
    problems |= {"first": SizeDependenceError("a"), "second": LayerPatternError("b"), "third": CoincidentSizeError("c")}
    asked: list[tuple[str, type]] = []

    def others(name: str, *rest: Callable[[], Source]) -> Callable[[BaseException | None], Any]:
        def found(cause: BaseException | None) -> Any:
            asked.append((name, type(cause)))
            return rest

        return found

    def failing() -> Source:
        raise make_error("lift", "cannot build it")

    third = source("third", others=others("third"))
    second = source("second", others=others("second", failing, lambda: third))
    assert lifting.lift_or_replace(source("first", others=others("first", lambda: second, source))) == SPEC
    assert asked == [("first", SizeDependenceError), ("second", LayerPatternError), ("third", CoincidentSizeError)]
    with pytest.raises(ArchError, match=r"cannot lift `first`: a$"):
        lifting.lift_or_replace(source("first", others=others("first", lambda: second)))


def refused(given: Source) -> tuple[str, str | None, type]:
    """The reason why a source is not lifted, the help, and the class of the cause."""
    with pytest.raises(ArchError) as caught:
        lifting.lift_or_replace(given)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic.message, diagnostic.help, type(caught.value.__cause__)


@pytest.mark.usefixtures("problems")
def test_a_spec_has_the_tensors_of_the_actual_module() -> None:
    message, _, cause = refused(source(width=9))
    assert message.startswith("cannot lift `net`: the spec lifted from a small module is wrong at the actual sizes: ")
    assert "weight" in message and cause is LayerPatternError


@pytest.mark.usefixtures("problems")
def test_sizes_that_may_be_any_are_no_numbers_in_a_spec() -> None:
    inputs = {"x": torch.ones(2, 5, 8), "other": torch.ones(2)}
    fixed = replace(subject(), inputs=inputs, other_inputs={"x": torch.ones(3, 5, 9), "other": torch.ones(2)})
    named = [parse_input(item) for item in ("other=real[batch]", "z=real[batch]", "x=real[batch,seq,width]")]
    message, help, _ = refused(Source(fixed, Net, declared=named))
    assert message == (
        "cannot lift `net`: its operations depend on `width` of `x` in a way that is known for one size only"
    )
    assert help == "write a number in the place of `width`"
    other = Source(subject(), Net, whole=fixed, declared=named)
    assert refused(other)[0] == message
    assert lifting.lift_or_replace(Source(fixed, Net, declared=named[:2])) == SPEC
    assert lifting.lift_or_replace(Source(subject(), Net, declared=named)) == SPEC


@pytest.mark.usefixtures("problems")
def test_a_spec_holds_for_other_modules_of_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[dict[str, Any], Subject]] = []
    raised: list[Exception] = []

    def check(text: str, overrides: dict[str, Any], given: Subject) -> None:
        assert text.startswith(SPEC)
        found.append((overrides, given))
        if raised:
            raise raised[0]

    for name in ("check_again", "check_outputs", "check_unrounded"):
        monkeypatch.setattr(lifting, name, check)
    deep, third, whole = subject(9), subject(10), subject(11)

    def only(whole: Subject | None = None, **others: Any) -> Source:
        return Source(subject(**others), Net, whole=whole)

    for given, overrides, made in (
        (only(deep=lambda differs: None if differs else deep), {"width": 9}, deep),
        (only(deep=lambda differs: deep if differs else None, has_patterns=True), {"width": 9}, deep),
        (only(third=lambda names: third), {"width": 10}, third),
        (only(whole=whole), {}, whole),
    ):
        found.clear()
        raised.clear()
        assert lifting.lift_or_replace(given) == SPEC
        ((own, one),) = found
        assert own == overrides and one is made
    assert lifting.lift_or_replace(only(third=lambda names: None)) == SPEC and len(found) == 1
    with monkeypatch.context() as patch:
        patch.setattr(lifting, "lift_subject", lambda _: f"{SPEC}# a if i == 0 else b")
        assert lifting.lift_or_replace(only(deep=lambda differs: deep if differs else None)) != SPEC and len(found) == 2
    others = "the spec of two small ones does not hold for other sizes: why"
    few = "the spec of one with few layers does not hold for all: why"
    small = "the spec lifted from a small module is wrong at the actual sizes: why"
    for problem, reasons in (
        (
            UntranslatableError("why"),
            [(few, LayerPatternError), (others, CoincidentSizeError), (small, UntranslatableError)],
        ),
        (UndecidedError("why"), [(few, LayerPatternError), None, None]),
        (
            ComparisonError("why"),
            [(few, LayerPatternError), (others, CoincidentSizeError), (small, UntranslatableError)],
        ),
    ):
        raised[:] = [problem]
        sources = [only(deep=lambda _: deep), only(third=lambda names: third), only(whole=whole)]
        for given, reason in zip(sources, reasons, strict=True):
            if reason is None:
                assert lifting.lift_or_replace(given) == SPEC
            else:
                message, _, cause = refused(given)
                assert (message, cause) == (f"cannot lift `net`: {reason[0]}", reason[1])
    monkeypatch.setattr(lifting, "check_outputs", lambda *given: None)
    assert (
        lifting.lift_or_replace(only(third=lambda names: third)) == SPEC
    )  # its outputs are the same, though it cannot be exported


def test_inputs_with_other_sizes_have_another_batch_and_length() -> None:
    class Taking(nn.Module):
        def __init__(self, *fixed: int) -> None:
            super().__init__()
            self.fixed = fixed

        def forward(self, x: Any, ids: Any, flags: Any, image: Any, numbers: Any, one: Any, more: Any = None) -> Any:
            if any(x.shape[axis] != shapes[0][axis] for axis in self.fixed):
                raise ValueError("another size")
            return x

    shapes = (2, 5, 8), (2, 5), (2, 5), (2, 3, 8, 8), (4,), ()
    given = [torch.zeros(shape, dtype=torch.long if turn == 1 else None) for turn, shape in enumerate(shapes)]
    for fixed, expected in (
        ((), [(3, 7, 8), (3, 7), (3, 5), (3, 3, 8, 8), (5,), ()]),
        ((1,), [(3, 5, 8), (3, 5), (3, 5), (3, 3, 8, 8), (5,), ()]),
        ((0,), None),
    ):
        found = subject_of_module(Taking(*fixed), given).other_inputs
        assert (found and [tuple(value.shape) for value in found.values()]) == expected
    named = subject_of_module(Taking(), {"ids": given[1], "other": given[0], "x": given[0]}).inputs
    assert [*named] == ["x", "ids", "other"]
