"""No input does harm: what is no model ends in findings, soon and in little memory, without a traceback or a number.

The inputs are bundled specs with their words and lines mixed up, generated programs, noise, and attacks: short files that
ask for very much. `pytest -m slow` tries many more.
"""

import contextlib
import io
import json
import random
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import archspec
from archspec.cli import main
from archspec.pipeline import check
from archspec.resources import specs_root
from archspec.source import ArchError, Diagnostic, Span

SECONDS = 5
MEMORY = 1 << 30  # more than at the start, in bytes
MOST_TEXT = 100_000  # characters of all findings together

SPECS = {path.name: path.read_text(encoding="utf-8") for path in sorted(Path(specs_root()).rglob("*.arch"))}

SMALL = """
import std { Linear, Embedding, LayerNorm, SelfAttention, first, key_mask, gelu }

dim batch, seq

fn scaled(factor = 2, shift = none)(x [...], y [...] = none) -> [...] {
  z = x * factor + y if y != none else x
  return z |> + shift if shift != none
}

layer Scale(width, by = 1e-3, kind = "plain")(x [..., width]) -> [..., width] {
  role norm
  require width % 2 == 0 and by > 0.0, "width must be even"
  weight: param [width] ~ normal(0.02)
  table:  frozen param [width] = arange(width) * 1.0
  spare:  unused buffer int [2, 3]
  return x * .weight + .table if kind == "plain" else x * .weight - .table
}

block Layer(hidden, heads, inner, act = gelu)(x [batch, seq, hidden], mask bool [...] = none) -> [batch, seq, hidden] {
  role feed_forward for up, down
  h = x |> self: SelfAttention(hidden, heads)(_, mask) |> + x |> norm: LayerNorm(hidden)
  return h |> up: Linear(hidden, inner) |> act |> down: Linear(inner, hidden) |> + h
}

block Model(words = 11, hidden = 8, layers = 4, heads = [2, 4], inner = 4 * hidden, pooler = true, Kind = Layer)
           (ids int [batch, seq], mask int [batch, seq] = none) -> (states [batch, seq, hidden], pooled [batch, hidden]) {
  keys = key_mask(mask) if mask != none
  embedded = embeddings.words: Embedding(words, hidden)(ids)
  scale: Scale(hidden, kind = "other")
  tie decoder.weight = embeddings.words.weight
  h = embedded |> scaled(_, .scale(embedded)) |> scaled(3, shift = 1)
  for i in 0..layers {
    if i % 2 == 0 {
      h = h |> encoder.layer[i]: Kind(hidden, heads[i // 2], inner)(_, keys)
    } else {
      h = h |> scaled |> .scale
    }
  }
  a, b = split([hidden - 3, 3], axis = -1)(h)
  logits = concat(axis = -1)(a, b) |> decoder: Linear(hidden, words, bias = false) |> softmax(axis = -1)
  g = h |> + sum(axis = -1, keep = true)(logits)
  pooled = (first(g) |> pooler: Linear(hidden, hidden) |> tanh) if pooler
  return g, pooled
}

model "small" = Model() { expect params == 1744 }
model "plain" = Model(layers = 1, pooler = false)
"""
SPECS["small"] = SMALL


# What must hold -------------------------------------------------------------------------------------------------------


class TooLong(BaseException):
    """Nothing catches it on its way."""


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Ends what takes too long or too much memory."""

    def stop(*_: object) -> None:
        raise TooLong(f"more than {SECONDS} seconds")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    limits = _limit_memory()
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
        if limits is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, limits)


def _limit_memory() -> tuple[int, int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    return soft, hard


def try_out(folder: Path, data: str | bytes) -> bool:
    """Checks and counts a spec; whether nothing is wrong with it. Asserts that what is said of it is sound."""
    path = folder / "spec.arch"
    path.write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    with bounded():
        report = check(str(path))
        assert sum(len(sound(diagnostic)) for diagnostic in report.diagnostics) < MOST_TEXT
        for spec in models(str(path)):
            printed, said = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
                status = main(["count", spec, "--format", "json"])
            if status == 0:
                assert "error[" not in said.getvalue()
                consistent(spec, printed.getvalue())
            else:
                assert printed.getvalue() == ""
                assert said.getvalue().startswith(("error[", "warning["))
                assert report.failed, "check finds nothing, and count does"
    return not report.failed


def models(path: str) -> list[str]:
    """A SPEC for each model of a file (the first few), or the file itself."""
    try:
        archspec.load(path)
    except ArchError as error:
        help = error.diagnostics[0].help or ""
        if error.diagnostics[0].code == "which-model":
            return re.findall(r"\S+\.arch:[^,]+", help)[:2]
        if error.diagnostics[0].code == "no-model":
            return []
    return [path]


def consistent(spec: str, printed: str) -> None:
    """Totals agree: of the table, of the tensors in it, of the graph's nodes."""
    contents = json.loads(printed)
    total = contents["params"]["total"]
    assert total == sum(tensor["params"] for tensor in contents["tensors"])
    if len(contents["tensors"]) < 2000:
        graph = archspec.load(spec).graph()
        assert total == sum(params for _, params in graph.nodes(data="params"))


def sound(diagnostic: Diagnostic) -> str:
    """The diagnostic as text, after a look at it: printable, carets under something."""
    text = diagnostic.render()
    assert re.fullmatch(r"(error|warning)\[[a-z]+(-[a-z]+)*\]: .+", text.split("\n")[0])
    assert diagnostic.code != "internal"
    assert all(line.isprintable() for line in text.split("\n"))
    for span in (diagnostic.span, *(note.span for note in diagnostic.notes)):
        if span is not None:
            lies_within(span)
    lines = text.split("\n")
    for above, line in zip(lines, lines[1:], strict=False):
        if re.fullmatch(r" *\| *(\^+|-+)", line):
            gutter = line.index("|")
            assert len(line) <= max(len(above), gutter + 2) + 1, "the caret is outside the line"
    return text


def lies_within(span: Span) -> None:
    assert 0 <= span.start <= span.end <= len(span.source.text)
    line, column = span.source.position(span.start)
    assert 1 <= column <= len(span.source.line(line)) + 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def test_the_small_spec_is_right(folder: Path) -> None:
    assert try_out(folder, SMALL)


# Specs with their words and lines mixed up ----------------------------------------------------------------------------

WORD = re.compile(r'#[^\n]*|"[^"\n]*"|\w+|\|>|->|\.{2,3}|\*\*|//|[=!<>]=|\s+|.')
HUGE = ("0", "-1", "1.5", "1e300", "999_999_999_999_999_999", "10 ** 18", "2 ** 10 ** 10", "4096", "100_001", "inf", "none")
OTHERS = (
    *"( ) [ ] { } , . : = + - * / % < > _ \" # ~ \\ ; @ é".split(),
    *"|> -> .. ... ** // == != <= >= if else for in return tie require role param buffer frozen unused expect".split(),
    *"and or not true false none inf as import export dim fn layer block model int bool x hidden i batch seq".split(),
    *"Linear Layer Model LayerNorm softmax split concat sum arange full reshape len min 0 1 2 8 \n".split(" "),
)


def mutate(text: str, chance: random.Random) -> str:
    """The text with a few words or lines deleted, doubled, swapped or replaced."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        by_line = chance.random() < 0.3
        parts = text.splitlines(keepends=True) if by_line else WORD.findall(text)
        if not parts:
            break
        i, j = chance.randrange(len(parts)), chance.randrange(len(parts))
        match chance.randrange(7 if by_line else 9):
            case 0:
                del parts[i]
            case 1:
                parts.insert(j, parts[i])
            case 2:
                parts[i], parts[j] = parts[j], parts[i]
            case 3:
                del parts[min(i, j) : min(i, j) + 4]
            case 4:
                parts.insert(i, parts[i])
            case 5:
                parts[i] = parts[j]
            case 6:
                del parts[i : None if chance.random() < 0.1 else i + 2]
            case 7:
                parts[i] = chance.choice(OTHERS)
            case _:
                numbers = [k for k, part in enumerate(parts) if part[0].isdigit()]
                if numbers:
                    parts[chance.choice(numbers)] = chance.choice(HUGE)
        text = "".join(parts)
    return text


def mixed_up(folder: Path, name: str, seeds: range) -> None:
    for seed in seeds:
        text = mutate(SPECS[name], random.Random(f"{name} {seed}"))
        try:
            try_out(folder, text)
        except BaseException:
            print(f"{name}, seed {seed}:\n{text}")
            raise


@pytest.mark.parametrize("name", SPECS)
def test_specs_with_words_and_lines_mixed_up(folder: Path, name: str) -> None:
    mixed_up(folder, name, range(80 if name == "small" else 5))


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_many_specs_with_words_and_lines_mixed_up(folder: Path, name: str) -> None:
    mixed_up(folder, name, range(1000, 3000 if name == "small" else 1300))
