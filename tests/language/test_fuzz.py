"""No input does harm: what is no model ends in findings, soon and in little memory, without a traceback or a number.

The inputs are bundled specs with their words and lines mixed up, noise, and generated programs, right and wrong.
`pytest -m slow` tries many more; tests/compiler/test_hostile.py has short files that ask for very much.
"""

import contextlib
import random
from pathlib import Path

import pytest
from harm import bounded, save, sound, try_out
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import EXAMPLES, SMALL, SPECS, WORD, mutate, noise

import archspec
from archspec.pipeline.overrides import parse_override


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def test_the_small_spec_is_right(folder: Path) -> None:
    assert not try_out(folder, SMALL)


# Specs with their words and lines mixed up ----------------------------------------------------------------------------


def mixed_up(folder: Path, name: str, seeds: range) -> None:
    for seed in seeds:
        text = mutate(SPECS[name], random.Random(f"{name} {seed}"))
        try:
            try_out(folder, text)
        except BaseException:
            print(f"{name}, seed {seed}:\n{text}")
            raise


OFTEN = ("small", "attention.arch", "bert.arch", "llama.arch", "norm.arch", "recurrent.arch", "std.arch", "t5.arch")


@pytest.mark.parametrize("name", OFTEN)
def test_specs_with_words_and_lines_mixed_up(folder: Path, name: str) -> None:
    mixed_up(folder, name, range(40 if name == "small" else 3))


RARELY = [pytest.param(name, marks=pytest.mark.exhaustive) for name in SPECS if name not in OFTEN]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*OFTEN, *RARELY])
def test_many_specs_with_words_and_lines_mixed_up(folder: Path, name: str) -> None:
    mixed_up(folder, name, range(1000, 2000 if name == "small" else 1150))


def spoil(text: str, chance: random.Random) -> str:
    """The text with one word left out, doubled, misspelt, or in the place of the next."""
    words = WORD.findall(text)
    i, j = sorted(chance.sample([i for i, word in enumerate(words) if word.strip() and word[0] != "#"], 2))
    match chance.choice(["out", "double", "misspell", "swap"]):
        case "out":
            words[i] = ""
        case "double":
            words[i] += f" {words[i]}"
        case "misspell":
            words[i] = words[i][:1] + "x" + words[i][1:]
        case _:
            words[i], words[j] = words[j], words[i]
    return "".join(words)


@pytest.mark.parametrize("seeds", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_one_wrong_word_is_seldom_more_than_one_finding(folder: Path, seeds: int) -> None:
    found = [len(try_out(folder, spoil(SMALL, random.Random(seed)))) for seed in range(seeds)]
    assert sum(number <= 1 for number in found) >= 0.7 * seeds, found
    assert sum(number <= 3 for number in found) >= 0.95 * seeds, found


# Overrides ------------------------------------------------------------------------------------------------------------

VALUES = (0, -1, 2, 10**30, 2.5, float("nan"), float("inf"), True, None, "", "x", "gelu", "Linear", "a" * 10**5)
OBJECTS = ([], [1, [2]], {}, (1, 2), b"x", 1j, print, range(3), ["a"] * 10**5)


@pytest.mark.parametrize("name", ["words", "hidden", "layers", "heads", "pooler", "Kind", "nothing", ""])
def test_overrides_of_any_kind(folder: Path, name: str) -> None:
    path = save(folder, SMALL)
    with bounded():
        for value in (*VALUES, *OBJECTS):
            try:
                model = archspec.load(f"{path}:small", **{name: value})
            except archspec.ArchError as error:
                assert sum(len(sound(diagnostic)) for diagnostic in error.diagnostics) < 10_000
            else:
                assert model.params.total == sum(tensor.params for tensor in model.tensors)


@given(st.text('x=layers0123456789.e-+[](),"\\ \0é', max_size=20))
@settings(max_examples=300, derandomize=True, deadline=None, database=None)
def test_values_of_overrides(text: str) -> None:
    with contextlib.suppress(archspec.ArchError):
        parse_override(text)
    with contextlib.suppress(archspec.ArchError):
        parse_override(f"x={text}")


# Noise ----------------------------------------------------------------------------------------------------------------

MANY = settings(EXAMPLES, max_examples=3000, derandomize=False)


@given(noise)
@EXAMPLES
def test_noise(folder: Path, data: str | bytes) -> None:
    try_out(folder, data)


@pytest.mark.slow
@given(noise)
@MANY
def test_much_noise(folder: Path, data: str | bytes) -> None:
    try_out(folder, data)


# Generated programs: right, or with one thing wrong -------------------------------------------------------------------

HEAD = """import std { Linear, LayerNorm, gelu }
dim batch, seq
fn double(by = 2)(x [...]) -> [...] { return gelu(x * by) }
layer Scale(width)(x [..., width]) -> [..., width] {
  weight: param [width]
  return x * .weight
}
"""
SIZES = st.integers(1, 5)


class Writer:
    """Writes the body of a block, and counts its parameters as it goes. Each value is [batch, seq, n] for a known n."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.sizes = {"x": 4}
        self.unused = {"x"}
        self.params = 0
        self.owned = 0

    def name(self) -> str:
        name = self.draw(st.sampled_from(sorted(self.sizes)))
        self.unused.discard(name)
        return name

    def address(self, params: int) -> str:
        self.owned += 1
        self.params += params
        form = self.draw(st.sampled_from(["a{}", "stack.a{}", "for_.in.{}", "stack.b[{}]", '"in".a{}']))
        return form.format(self.owned)

    def linear(self, size: int, result: int) -> str:
        bias = self.draw(st.booleans())
        address = self.address(size * result + result * bias)
        return f"{address}: Linear({size}, {result}{'' if bias else ', bias = false'})"

    def step(self, size: int) -> tuple[str, int]:
        """Something that goes into a chain with `size` features, and how many come out."""
        match self.draw(st.integers(0, 8)):
            case 0:
                result = self.draw(SIZES)
                return self.linear(size, result), result
            case 1:
                return f"{self.address(2 * size)}: LayerNorm({size})", size
            case 2:
                return f"{self.address(size)}: Scale({size})", size
            case 3:
                return f"double({self.draw(SIZES)})", size
            case 4:
                return f"{self.draw(st.sampled_from('+-*/'))} {self.draw(SIZES)}.5", size
            case 5:
                condition = self.draw(st.sampled_from(["on", "not on", "depth > 1", "on and depth != 2"]))
                return f"gelu if {condition}", size
            case 6:
                rounds = self.draw(SIZES)
                self.params += (rounds - 1) * size
                return f"{self.address(size)}[i]: Scale({size}) for i in 0..{rounds}", size
            case 7:
                result = self.draw(SIZES)
                return f"concat(axis = -1)(_, _) |> {self.linear(2 * size, result)}", result
            case _:
                return "softmax(axis = -1)", size

    def value(self) -> tuple[str, int]:
        name = self.name()
        size = self.sizes[name]
        if self.draw(st.booleans()):
            others = [other for other in self.sizes if self.sizes[other] == size]
            other = self.draw(st.sampled_from(others))
            self.unused.discard(other)
            operator = self.draw(st.sampled_from(["+", "-", "*", "/"]))
            forms = [f"{name} {operator} {other}", f"where({name} > {other}, {name}, 0.0)", f"max({other}, {name})"]
            name = self.draw(st.sampled_from(forms))
        steps: list[str] = []
        for _ in range(self.draw(st.integers(0, 4))):
            step, size = self.step(size)
            steps.append(f" |> {step}")
        return name + "".join(steps), size

    def write(self) -> None:
        for i in range(self.draw(st.integers(0, 6))):
            text, size = self.value()
            self.lines.append(f"v{i} = {text}")
            self.sizes[f"v{i}"] = size
            self.unused.add(f"v{i}")
        ends = [f"({name} |> {self.linear(self.sizes[name], 3)})" for name in sorted(self.unused)]
        self.lines.append(f"return {' + '.join(ends)}" if ends else f"return x |> {self.linear(4, 3)}")


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, int]:
    """A spec that is right, and the number of its parameters."""
    writer = Writer(draw)
    writer.write()
    rounds = draw(st.integers(1, 3))
    body = "\n  ".join(writer.lines)
    total = rounds * (writer.params + 3 * 4) + 2 * 4
    return (
        f"{HEAD}block Body(on, depth)(x [batch, seq, 4]) -> [batch, seq, 3] {{\n"
        f"  require on or depth > 0\n  {body}\n}}\n"
        f"block Whole(rounds = {rounds}, on = true)(x [batch, seq, 4]) -> [batch, seq, 4] {{\n"
        "  h = x |> norm: LayerNorm(4)\n"
        "  for i in 0..rounds { h = h |> body[i]: Body(on, i) |> back[i]: Linear(3, 4, bias = false) |> + h }\n"
        "  return h\n}\n"
        f'model "whole" = Whole() {{ expect params == {total} }}\n'
    ), total


@given(programs())
@EXAMPLES
def test_programs_that_are_right(folder: Path, program: tuple[str, int]) -> None:
    text, _ = program
    assert not try_out(folder, text), text


@given(programs(), st.integers())
@EXAMPLES
def test_programs_with_something_wrong(folder: Path, program: tuple[str, int], seed: int) -> None:
    try_out(folder, mutate(program[0], random.Random(seed)))


@pytest.mark.slow
@given(programs(), st.integers())
@settings(MANY, max_examples=300)
def test_many_programs(folder: Path, program: tuple[str, int], seed: int) -> None:
    text, _ = program
    assert not try_out(folder, text), text
    try_out(folder, mutate(text, random.Random(seed)))
