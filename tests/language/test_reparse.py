"""A changed file is parsed in parts to the same tree as if it were parsed whole."""

import random
from pathlib import Path

import pytest
from paths import ROOT

from archspec import Source
from archspec.core.diagnostics import Report
from archspec.language.syntax.parse import parse, reparse

SPECS = sorted(Path(str(ROOT / "specs")).glob("*/*.arch"))
INSERTED = (
    *("\n", " ", "x", "#", "##", "# a\n", '"', "(", ")", "{", "}", "{\n", "}\n", "|>", "|> gelu", "->", "else", ","),
    *("dim a\n", "dim a", "fn f(n) { return n }\n", "fn f(n) {\n  return n\n}", 'model "m" = F()\n', "{ expect true }"),
    *("\n## doc\n", "import std { Linear }\n", "role x", "\ufeff", "//", "0.5", ".a", "=", "~"),
)


def check(old: str, new: str) -> bool:
    """Whether a change is parsed in parts; fails if the tree is not that of the whole."""
    before, after = Report(), Report()
    file = parse(Source("a", old), before)
    assert not before.diagnostics
    whole = parse(Source("a", new), after)
    found = reparse(Source("a", new), old, file)
    if after.diagnostics:
        assert found is None, new
    assert found is None or found == whole, new
    return found is not None


def changed(text: str, rng: random.Random) -> str:
    """A text with something removed, inserted or copied."""
    start = rng.randrange(len(text) + 1)
    lines = [0, *[i + 1 for i, c in enumerate(text) if c == "\n"], len(text)]
    if rng.random() < 0.5:
        start = rng.choice(lines)
    end = start
    if rng.random() < 0.5:
        end = min(len(text), start + rng.choice((1, 2, 5, 40, 400)))
        if rng.random() < 0.5:
            end = min(line for line in lines if line >= end)
    new = rng.choice(INSERTED) if rng.random() < 0.7 else ""
    if rng.random() < 0.2:
        other = rng.choice(lines)
        new = text[other : min(len(text), other + rng.choice((10, 100, 1000)))]
    return text[:start] + new + text[end:]


@pytest.mark.parametrize("seed", range(8))
def test_random_changes(seed: int) -> None:
    rng = random.Random(seed)
    in_parts = 0
    for _ in range(12):
        text = rng.choice(SPECS).read_text()
        in_parts += check(text, changed(text, rng))
    assert in_parts


@pytest.mark.slow  # the same, more often
@pytest.mark.parametrize("seed", range(8, 16))
def test_many_random_changes(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        text = rng.choice(SPECS).read_text()
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            new = changed(text, rng)
            check(text, new)
            report = Report()
            parse(Source("a", new), report)
            if not report.diagnostics:
                text = new


ITEMS = """# a file
import std { Linear }  # why

## Twice.
fn twice(n) { return 2 * n }
dim batch

## A layer.
## It doubles.
layer Double(n)(x [batch, n]) -> [batch, n] {
  return 2 * x
}
model "a" = Double(n = twice(2)) { expect params == 0 }
model "b" = Double(n = 2)
# the end"""


@pytest.mark.parametrize(
    ("old", "new", "in_parts"),
    [
        ("return 2 * x", "return 3 * x", True),
        ("## Twice.", "## Two times.", True),
        ("## Twice.\n", "", True),
        ("dim batch\n\n", "dim batch\n", True),
        ("# why\n", "# why\n# more\n", True),
        ("}\nmodel", "}\n## The model.\nmodel", True),
        ("# the end", "", True),
        ("# the end", "{ expect params == 0 }", False),
        ("fn twice(n) { return 2 * n }\n", "", True),
        ("dim batch", "dim batch, seq", True),
        ("## A layer.\n## It doubles.\n", "|> relu\n", False),
        ("(n = 2)\n", "(n = 2)", True),
        ('}\nmodel "a"', '} model "a"', False),
        ("# a file\n", "\ufeff# a file\n", True),
        ("## It doubles.\n", "\ufeff## It doubles.\n", False),
        ("dim batch", "\ufeffdim batch", False),
    ],
)
def test_what_is_parsed_in_parts(old: str, new: str, in_parts: bool) -> None:
    assert old in ITEMS
    assert check(ITEMS, ITEMS.replace(old, new, 1)) == in_parts
