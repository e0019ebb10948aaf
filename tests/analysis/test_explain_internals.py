"""Steps of the code that the tests of explain cannot reach through public names."""

import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import read_spec
from small import load
from test_explain import RELATIVES

import archspec
from archspec import Match
from archspec.analysis.explain.explain import MAX_MATCHES, Explainer, create_explainer
from archspec.analysis.explain.numbers import format_rounded, read_number
from archspec.analysis.explain.omissions import describe_arithmetic_error, describe_digit_difference
from archspec.analysis.explain.tensor_groups import TensorGroups, count_uses, find_table_types
from archspec.pipeline.family import relatives_of
from archspec.pipeline.model import get_compilation


def texts(match: Match) -> list[str]:
    return [step.text for step in match.steps[1:]]


@given(st.integers(1, 10**14), st.integers(1, 6))
def test_a_count_fits_its_own_rounding(count: int, digits: int) -> None:
    place = max(0, len(str(count)) - digits)
    value = (count + 10**place // 2) // 10**place * 10**place
    number = read_number(f"about {value}")
    assert any(reading.fits(count) for reading in number.readings)
    assert all(reading.fits(number.value) for reading in number.readings)
    assert [r.high - r.low for r in number.readings] == sorted((r.high - r.low for r in number.readings), reverse=True)


def test_readings() -> None:
    def shown(text: str) -> list[tuple[int | None, Fraction, Fraction]]:
        return [tuple(reading) for reading in read_number(text).readings]

    assert shown("0.34B") == [(2, Fraction(335_000_000), Fraction(345_000_000))]
    assert shown("0.340B") == [(3, Fraction(339_500_000), Fraction(340_500_000))]
    assert shown("110 million?") == shown("110M") == [(2, 105_000_000, 115_000_000), (3, 109_500_000, 110_500_000)]
    assert [digits for digits, _, _ in shown("100M")] == [1, 2, 3]
    assert shown("110000000") == [(None, 110_000_000, 110_000_000)]
    assert shown("22.7 Mi")[0][1] == Fraction("22.65") * 1024**2
    assert shown("1.0 Gi")[0][1] == Fraction("0.95") * 1024**3
    assert shown("1.0 Ti")[0][1] == Fraction("0.95") * 1024**4
    assert shown("1.0 Ki")[0][1] == Fraction("0.95") * 1024
    for power, units in enumerate(("K k thousand", "M m million", "B b G billion", "T t trillion"), 1):
        assert {read_number(f"1 {unit}").value for unit in units.split()} == {1000**power}
    assert shown("1.5e8") == [(2, Fraction(145_000_000), Fraction(155_000_000))]
    assert shown("109482e3")[0] == (6, Fraction(109_481_500), Fraction(109_482_500))
    assert format_rounded(0, read_number("1M"), 2) == "0"
    assert format_rounded(1_234, read_number("1M"), 2) == "0.0012M"
    assert shown("20 %") == [(1, Fraction("0.15"), Fraction("0.25")), (2, Fraction("0.195"), Fraction("0.205"))]
    assert format_rounded(335_141_888, read_number("340 M"), 4) == "335.1 M"
    assert format_rounded(999_999, read_number("1M"), 2) == "1.0M"
    assert format_rounded(99_960_000, read_number("100M"), 3) == "100M"
    assert format_rounded(10**16 + 1, read_number("about 10000000000000002"), 17) == "10,000,000,000,000,001"
    assert format_rounded(10**16 + 1, read_number("1K"), 17) == "10,000,000,000,000.001K"


@given(st.integers(1, 10**9), st.integers(0, 8), st.integers(0, 9))
def test_a_wrong_digit_is_an_arithmetic_error(meant: int, place: int, digit: int) -> None:
    digits = list(str(meant))
    place %= len(digits)
    digits[place] = str(digit)
    written = int("".join(digits))
    if 0 < written != meant and len(str(written)) == len(str(meant)):
        assert describe_arithmetic_error(meant, written) is not None
    assert describe_arithmetic_error(meant, meant) is None


def test_arithmetic_errors_by_their_digits() -> None:
    assert describe_arithmetic_error(109_482_240, 109_482_250) == "one digit is wrong: 5 for 4"
    assert describe_arithmetic_error(109_482_240, 109_842_240) == "two digits are swapped: 84 for 48"
    assert describe_arithmetic_error(109_982_240, 110_982_240) == "a carry is added: 1,000,000"
    assert describe_arithmetic_error(110_082_240, 109_982_240) == "a carry is lost: 100,000"
    assert describe_digit_difference(1_512, 1_533) == "two of its 4 digits differ"
    assert (
        describe_digit_difference(512, 533)
        is describe_digit_difference(1_512, 113)
        is describe_digit_difference(1_512, 1_634)
        is None
    )
    assert describe_arithmetic_error(10, 9) is None  # one more or less is no carry
    assert describe_arithmetic_error(109_982_240, 111_982_240) is None


@cache
def explainer(name: str) -> Explainer:
    model = archspec.load(name)
    return Explainer(model.count().table, relatives_of(model), count_uses(get_compilation(model).body))


@pytest.mark.parametrize(
    "name",
    ["transformer-base", *[pytest.param(n, marks=pytest.mark.slow) for n in ("bert-base-uncased", "albert-base-v2")]],
)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_every_convention_is_found_again(name: str, seed: int) -> None:
    """A number made by some adjustments is explained with no more of them, and every match sums to it."""
    chance = random.Random(seed)
    rank = chance.randint(0, 3)
    convention = chance.choice(explainer(name).conventions.enumerate_rank(rank) or [])
    number = explainer(name).universe.total(convention.groups)
    (answer,) = explainer(name).explain(read_number(str(number))).answers
    assert answer.matches and answer.matches[0].rank <= rank
    for match in answer.matches:
        assert match.params == number == sum(step.params for step in match.steps)
        if match.kind != "arithmetic error":
            assert sum(part.times * part.each for part in match.parts) == number
    if answer.matches[0].rank == rank:
        listed = [m for m in answer.matches if m.kind in ("convention", "coincidence")]
        assert len({tuple(texts(match)) for match in listed}) == len(listed) >= 1


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_kind_left_out_or_counted_twice_is_found(seed: int) -> None:
    chance = random.Random(seed)
    model = archspec.load("bert-base-uncased")
    universe = TensorGroups(model.count().table, (), {})
    kind = chance.choice(universe.groups)
    sign = chance.choice((-1, 1))
    number = model.params.total + sign * kind.times * kind.each
    (answer,) = Explainer(model.count().table).explain(read_number(str(number))).answers
    assert answer.matches[0].rank == 1
    found = [texts(m)[-1] for m in answer.matches]
    if sign > 0:
        assert any(text.startswith(f"`{kind.name}` counted twice") for text in found)
    else:  # where a convention leaves out just that kind, it is said in its words
        said = any(text.startswith(f"`{kind.name}` left out") for text in found)
        assert said or any(match.kind == "convention" for match in answer.matches)


@given(st.text(max_size=30))
def test_any_text_is_a_number_or_is_refused(text: str) -> None:
    try:
        number = read_number(text)
    except ValueError:
        return
    assert number.readings and number.value >= 0


def test_where_anything_fits_there_is_an_end() -> None:
    tensors = "".join(f"  p{i}: unused param [{1 + i * i % 997}, {1 + i % 9}]\n" for i in range(600))
    model = load(f"block It()(x [...]) -> [...] {{\n{tensors}  return x\n}}\n")
    (answer,) = Explainer(model.count().table).explain(read_number(str(model.params.total - 17))).answers
    assert max(len(answer.matches), answer.more) == MAX_MATCHES


def test_a_rank_with_too_many_conventions_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    table = load(RELATIVES.partition("block Labels")[0]).count().table
    assert Explainer(table).explain(read_number("31")).depth == 4
    for limit, depth, conventions in ((6, 4, 1 + 6 + 1), (5, 0, 1)):
        monkeypatch.setattr("archspec.analysis.explain.conventions.MAX_STATES", limit)
        found = Explainer(table).explain(read_number("31"))
        assert (found.depth, found.conventions) == (depth, conventions)


FAMILY = read_spec("explain_internals_family")


def listed(match: Match) -> str:
    """The steps of a match after the first one, and its addends."""
    addends = " + ".join(f"{part.times} x {part.each} {part.address}" for part in match.parts)
    return f"{match.kind} of rank {match.rank}: {'; '.join(texts(match)) or 'plain'} = {addends}"


def test_every_small_number(golden: Callable[[str, str], None], tmp_path: Path) -> None:
    """How many matches a number has, of this and of the next rank, the first two of them, and the nearest counts."""
    (tmp_path / "family.arch").write_text(FAMILY)
    lines: list[str] = []
    for name, numbers in (("body", range(60, 100)), ("scores", range(84, 110))):
        model = archspec.load(f"{tmp_path / 'family.arch'}:{name}")
        explainer = create_explainer(model)
        lines.append(f"{name}, {model.params.total}")
        for number in [*map(str, numbers), *[f"~{round}" for round in range(10, 400, 30)], "0.1K", "0.08K"]:
            for answer in explainer.explain(read_number(number)).answers:
                first = f"{number} at {answer.reading.digits}: {len(answer.matches)} and {answer.more}"
                nearest = ", ".join(f"{match.params:,}" for match in answer.nearest)
                lines += [f"{first}, near {nearest or 'none'}{', cut off' * answer.cut_off}"]
                lines += [f"  {listed(match)}" for match in answer.matches[:2]]
                for match in answer.matches:
                    counted = sum(part.times * part.each for part in match.parts)
                    assert match.params == sum(step.params for step in match.steps)
                    assert answer.reading.fits(match.params)
                    assert counted == match.params or match.kind == "arithmetic error"
    golden("explain-small.txt", "\n".join(lines) + "\n")


LOOKED_UP = read_spec("explain_internals_looked_up")


def test_rows_that_are_looked_up_in_a_loop_are_those_of_a_table() -> None:
    assert find_table_types(get_compilation(load(LOOKED_UP)).body) == {"Own"}
