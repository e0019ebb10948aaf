"""Specs that the translation to PyTorch is tried on: the documentation's, those of other tests, some of their own."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch_operations
import yaml
from bundled import SIZES_ONLY
from documented import PAGES
from examples import blocks
from paths import DATA, GOLDEN, SPECS
from torch_attention import attention
from torch_programs import Program

import archspec
from archspec import Model

MODEL = re.compile(r'^model "([^"]+)"', re.MULTILINE)
OTHERS = ["families", "loops", "files", "flow", "tensors", "hyperparameters"]
"""Files of `tests/golden/specs`."""

COMPILED = re.compile(r"^=== (.+)\n((?:(?!---|=== ).*\n)*)---\n(?!error\[)", re.MULTILINE)
"""A case whose spec compiles: its title and its spec."""

SMALL: dict[str, dict[str, Any] | None] = yaml.safe_load((DATA / "small_sizes.yaml").read_text(encoding="utf-8"))
"""Bundled models small enough to be tried, by the beginning of their names."""

PAIRS = {"clip-vit-base-patch32": "small-clip", "siglip-base-patch16-224": "small-siglip"}
"""Bundled models whose sizes are those of their parts, and the models of `pairs.arch` that are like them."""


class Text(NamedTuple):
    """A model of a text; `folder` has the files that it imports."""

    name: str
    text: str
    model: str
    folder: dict[str, str]

    def load(self, folder: Path) -> Model:
        for name, text in self.folder.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        path = folder / "it.arch"
        path.write_text(self.text, encoding="utf-8")
        return archspec.load(f"{path}:{self.model}")


def small(name: str) -> dict[str, Any] | None:
    """Small numbers of a bundled model; None if only the record of its type is tried."""
    return next((numbers for start, numbers in SMALL.items() if name.startswith(start)), None)


def bundled() -> dict[str, tuple[str, dict[str, Any]]]:
    """The bundled models and the examples of the library with small numbers: SPEC and overrides.

    Of models that have only other sizes, there is one.
    """
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    examples = SPECS / "std" / "examples.arch"
    for name in archspec.models():
        numbers = small(name)
        if name in SIZES_ONLY:
            continue
        if name in PAIRS:
            found[name] = (f"{DATA / 'pairs.arch'}:{PAIRS[name]}", {})
        elif numbers is not None:
            found[name] = (name, numbers)
    for name in MODEL.findall(examples.read_text(encoding="utf-8")):
        found[name] = (f"{examples}:{name}", SMALL[name])
    return found


VARIANTS = "docs/variants.md"
"""The page whose models have published sizes; `test_variants.py` builds them small."""


def texts() -> list[Text]:
    """Every model of every text."""
    return [*_of_files(), *_of_pages(), *_of_operations(), *_of_other_tests(), *random_texts()]


def random_texts() -> list[Text]:
    """Texts drawn at random, of those that use what the others do not."""
    drawn = {f"attention {seed}": attention(seed) for seed in (3, 7, 9, 24)}
    drawn |= {f"program {seed}": _with_model(Program(seed).text()) for seed in (0, 13, 31)}
    return [text for name, whole in drawn.items() for text in _models(name, whole)]


def _models(name: str, text: str, folder: dict[str, str] | None = None) -> Iterator[Text]:
    for model in MODEL.findall(text):
        yield Text(f"{name}: {model}", text, model, folder or {})


def _of_files() -> Iterator[Text]:
    folder = DATA / "translated"
    parts = {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in sorted(folder.glob("*/*.arch"))}
    for path in [*sorted(folder.glob("*.arch")), DATA / "values.arch"]:
        yield from _models(path.stem, path.read_text(encoding="utf-8"), parts)


def _of_pages() -> Iterator[Text]:
    for page, path in PAGES.items():
        if page == VARIANTS:
            continue
        seen: dict[str, str] = {}
        for block in blocks(path.read_text(encoding="utf-8")):
            if block.kind == "arch" and not block.mark:
                first = re.match(r"# (\S+\.arch)", block.text)
                if first:
                    seen[first[1]] = block.text
                yield from _models(f"{page}:{block.line}", block.text, dict(seen))


def _of_operations() -> Iterator[Text]:
    for op, text in torch_operations.specs().items():
        yield from _models(op, text)


def _of_other_tests() -> Iterator[Text]:
    """The specs of other tests that compile without changes."""
    for name in OTHERS:
        for title, text in COMPILED.findall((GOLDEN / "specs" / f"{name}.txt").read_text(encoding="utf-8")):
            yield from _models(f"{name}, {title}", _with_model(text))


def _with_model(text: str) -> str:
    """As `small.load` does: the last layer or block is a model."""
    if "\nmodel " in text:
        return text
    last = [line.split()[1] for line in text.splitlines() if line.startswith(("layer ", "block "))][-1]
    return text + f'\nmodel "it" = {last.partition("(")[0]}()\n'
